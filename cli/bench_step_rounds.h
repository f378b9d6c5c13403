/*
 * The steps of `raffia bench step`.
 */
#ifndef CLI_BENCH_STEP_ROUNDS_H
#define CLI_BENCH_STEP_ROUNDS_H

#include "cli/bench_options.h"
#include "cli/bench_report.h"

struct bench_step_plan {
    struct bench_options options; /* runs: first steps that are measured */
    size_t steps;                 /* on both paths, the first one apart */
    size_t batch_bytes;
    size_t weight_bytes;
};

/* Measures; `report` is empty. */
raffia_status bench_step_measure(const struct bench_step_plan *plan, struct bench_report *report);

#endif
