/*
 * The rounds of `raffia bench alloc`.
 */
#ifndef CLI_BENCH_ALLOC_ROUNDS_H
#define CLI_BENCH_ALLOC_ROUNDS_H

#include "cli/bench_options.h"
#include "cli/bench_report.h"

/* Most pairs of one pass. */
#define BENCH_ALLOC_PAIRS_MAX ((uint64_t)10 * 1000 * 1000)

struct bench_alloc_plan {
    struct bench_options options;
    size_t pool_bytes;  /* of the standing pool; 0 = a quarter of the free memory, at most 2 GiB */
    size_t first_bytes; /* the one large allocation; 0 = 1 GiB, or the pool if that is less */
    size_t pairs;
    size_t pinned_bytes; /* of the pinned rows; 0 = a quarter of the free memory, at most 4 GiB */
};

/* Measures; `report` is empty. */
raffia_status bench_alloc_measure(const struct bench_alloc_plan *plan, struct bench_report *report);

#endif
