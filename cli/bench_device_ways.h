/*
 * The ways of getting a device's memory that `raffia bench alloc --device` compares by pairs.
 */
#ifndef CLI_BENCH_DEVICE_WAYS_H
#define CLI_BENCH_DEVICE_WAYS_H

#include "cli/bench_alloc_pairs.h"
#include "cli/bench_device.h"
#include "cli/cuda_peer.h"

/* Blocks of a pool in the order of a stream; the pool and stream behind it must outlive it. */
struct stream_way {
    raffia_pool *pool;
    raffia_stream stream;
};
struct pair_way pair_way_stream(struct stream_way *way);

/* The driver's own stream-ordered allocator. */
struct async_way {
    struct cuda_peer *peer;
    driver_stream stream;
};
struct pair_way pair_way_async(struct async_way *way);

#endif
