/*
 * The pool that benchmarks take memory from: as that of a device number (raffia/umd.h) its blocks
 * are whole pages; its size is fixed.
 */
#ifndef CLI_BENCH_POOL_H
#define CLI_BENCH_POOL_H

#include "cli/bench_options.h"
#include "cli/bench_report.h"

#include <raffia/pool.h>

/* A pool of this machine's memory in one piece. */
raffia_status bench_pool_make(size_t bytes, unsigned threads, const struct bench_options *options,
                              raffia_pool **pool_p);

/* Puts the pool's pages into a row. */
raffia_status bench_pool_show(raffia_pool *pool, struct bench_row *row);

/* Notes what the pages of the huge rows were, where that is not what was asked for. `row` is one of
 * them. */
void bench_pool_note(struct bench_report *report, const struct bench_row *row);

#endif
