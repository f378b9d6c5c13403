/*
 * Pairs of allocation and free: blocks of 2 to 64 MiB, freed in the order they were taken, with
 * several alive at once.
 */
#ifndef CLI_BENCH_ALLOC_PAIRS_H
#define CLI_BENCH_ALLOC_PAIRS_H

#include <raffia/base.h>
#include <raffia/status.h>

/* Blocks are multiples of this. */
#define PAIR_STEP_BYTES ((size_t)2 << 20)

/* Largest block. */
#define PAIR_BYTES_MAX ((size_t)64 << 20)

/* Most blocks alive at once. */
#define PAIR_LIVE_MAX 64u

/* A way of getting memory. OUT_OF_MEMORY from take() means: not while so much is alive. */
struct pair_way {
    void *context;
    raffia_status (*take)(void *context, size_t bytes, void **block_p);
    raffia_status (*give)(void *context, void *block, size_t bytes);
};

struct pair_load {
    size_t *sizes; /* of each pair's block */
    size_t pairs;
    size_t live_max;       /* blocks alive at once; 1 to PAIR_LIVE_MAX */
    size_t live_bytes_max; /* and bytes, but for a block that is alone */
};

struct pair_result {
    double seconds;   /* for all of it */
    uint64_t refused; /* times that take() had to wait for an older block to be freed */
};

/* What each call took, for those who ask; arrays of `pairs` seconds. */
struct pair_times {
    double *take;
    double *give;
};

/* Sizes in a sequence that is always the same: multiples of PAIR_STEP_BYTES up to `largest`. */
void pair_sizes_make(size_t *sizes, size_t count, size_t largest);

/* Pairs that a pool of that size serves without gaps getting in the way: blocks are at most an
 * eighth of it, and half of it is left free. load->sizes is for core_free(). */
raffia_status pair_load_make(size_t pool_bytes, size_t pairs, struct pair_load *load);

/* Takes and gives each block once. With `times` the clock is read before and after each call. */
raffia_status pairs_run(const struct pair_way *way, const struct pair_load *load,
                        struct pair_result *result, struct pair_times *times);

#endif
