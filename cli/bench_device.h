/*
 * A device as the benchmarks use it: opened by name, with one stream, pools of its memory and of
 * pinned host memory beside it, and copies that are waited for.
 */
#ifndef CLI_BENCH_DEVICE_H
#define CLI_BENCH_DEVICE_H

#include "cli/bench_options.h"
#include "driver/driver.h"

#include <raffia/pool.h>

struct bench_device {
    struct driver_device device;
    raffia_device_info info;
    driver_stream stream;
    double open_seconds; /* driver, context and stream; nothing else is timed with them */
};

/* Opens it and makes its stream. UNSUPPORTED for a device without streams. */
raffia_status bench_device_open(const char *name, struct bench_device *device);
void bench_device_close(struct bench_device *device);

/* A pool of the device's memory whose blocks are whole pages; `bytes` at once and no more. */
raffia_status bench_device_pool(const struct bench_device *device, size_t bytes,
                                raffia_pool **pool_p);

/* The same of host memory that is pinned for the device. */
raffia_status bench_device_pinned_pool(const struct bench_device *device, size_t bytes,
                                       const struct bench_options *options, raffia_pool **pool_p);

/* Waits for all that was submitted to the stream. */
raffia_status bench_device_wait(const struct bench_device *device);

/* Copies `bytes` in pieces of `piece`, from and to the same `piece` bytes over and over, and waits.
 * CANCELLED, once what was submitted is done, after an interrupt. */
raffia_status bench_device_copies(const struct bench_device *device, void *to, const void *from,
                                  size_t piece, size_t bytes);

#endif
