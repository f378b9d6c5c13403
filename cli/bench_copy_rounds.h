/*
 * The rounds of `raffia bench copy`.
 */
#ifndef CLI_BENCH_COPY_ROUNDS_H
#define CLI_BENCH_COPY_ROUNDS_H

#include "cli/bench_options.h"
#include "cli/bench_report.h"

#define BENCH_COPY_SIZES_MAX 8

struct bench_copy_plan {
    struct bench_options options;
    size_t sizes[BENCH_COPY_SIZES_MAX]; /* of one copy */
    size_t size_count;
    size_t total_bytes; /* moved by one sample, in copies of one size */
    bool sweep;         /* small copies in many sizes and numbers as well */
};

/* Measures; `report` is empty. */
raffia_status bench_copy_measure(const struct bench_copy_plan *plan, struct bench_report *report);

#endif
