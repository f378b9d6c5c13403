/*
 * The ways of getting memory that `raffia bench alloc` compares by pairs.
 */
#ifndef CLI_BENCH_ALLOC_WAYS_H
#define CLI_BENCH_ALLOC_WAYS_H

#include "cli/bench_alloc_pairs.h"

#include <raffia/pool.h>

/* The calls of raffia/umd.h, with the pool of that number, which was built before; `device_id` must
 * outlive it. */
struct pair_way pair_way_umd(int *device_id);

/* Blocks of a pool, without those calls. */
struct pair_way pair_way_pool(raffia_pool *pool);

/* mmap(), a byte written to each base page, munmap(). */
struct pair_way pair_way_regular(void);

/* malloc() and free() of the C library, nothing touched. */
struct pair_way pair_way_malloc(void);

#endif
