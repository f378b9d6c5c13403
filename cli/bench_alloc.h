/*
 * What the parts of `raffia bench alloc` share.
 */
#ifndef CLI_BENCH_ALLOC_H
#define CLI_BENCH_ALLOC_H

#include "cli/bench_alloc_rounds.h"

#include <raffia/pool.h>
#include <raffia/umd.h>

/* Rows with one thread and with all; on one CPU both are the same row. */
enum { BENCH_ALLOC_ONE, BENCH_ALLOC_ALL, BENCH_ALLOC_CHOICES };

struct bench_alloc {
    const struct bench_alloc_plan *plan;
    struct bench_report *report;
    unsigned threads;
    size_t pool_bytes, first_bytes;
    /* One large allocation. */
    struct bench_row *first_regular[BENCH_ALLOC_CHOICES];
    struct bench_row *first_pool[BENCH_ALLOC_CHOICES];
    struct bench_row *build_pool, *standing_alloc, *standing_touch;
    /* Pairs. */
    struct bench_row *pair_pool, *pair_pool_alloc, *pair_pool_free, *pair_pool_mean;
    struct bench_row *pair_direct_mean, *pair_regular, *pair_malloc_mean;
    PoolStatus umd; /* the pool of the pairs, after them */
};

/* bench_alloc_first.c: one large allocation, out of new memory, out of a new pool, and out of the
 * standing pool, whose building is measured too. */
raffia_status bench_alloc_first_rows(struct bench_alloc *bench);
raffia_status bench_alloc_first_round(struct bench_alloc *bench, bool warm_up);
raffia_status bench_alloc_build(struct bench_alloc *bench, bool warm_up, raffia_pool **pool_p);
raffia_status bench_alloc_standing_round(struct bench_alloc *bench, raffia_pool *pool,
                                         bool warm_up);
void bench_alloc_first_add(struct bench_alloc *bench);

/* bench_alloc_many.c: many pairs of allocation and free, from the standing pool itself, and then,
 * when that is gone, from one like it by the calls of raffia/umd.h, and from the system. */
raffia_status bench_alloc_pair_rows(struct bench_alloc *bench);
raffia_status bench_alloc_direct_round(struct bench_alloc *bench, raffia_pool *pool, bool warm_up);
raffia_status bench_alloc_pair_round(struct bench_alloc *bench, bool warm_up);
void bench_alloc_pair_add(struct bench_alloc *bench);

/* Says how many requests the pool of the calls by device number had no room for. */
void bench_alloc_note_fallbacks(struct bench_report *report, const PoolStatus *umd);

#endif
