/*
 * The rounds of `raffia bench load`: every row takes its turn in each of them.
 */
#ifndef CLI_BENCH_LOAD_ROUNDS_H
#define CLI_BENCH_LOAD_ROUNDS_H

#include "cli/bench_options.h"
#include "cli/bench_report.h"

/* Measures with the model at `path`; `report` is empty. */
raffia_status bench_load_measure(const char *path, const struct bench_options *plan,
                                 struct bench_report *report);

/* The same with a model of `bytes` that is made in `directory`; nothing of it stays. */
raffia_status bench_load_measure_new(const char *directory, size_t bytes,
                                     const struct bench_options *plan, struct bench_report *report);

/* Fails unless there is memory for a model of `bytes` in the page cache and in a pool. */
raffia_status bench_load_check_memory(size_t bytes);

#endif
