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

/* step_fill(); CANCELLED if the user interrupted the command meanwhile. */
raffia_status bench_step_fill(float *numbers, size_t count, uint32_t seed);

/* Measures; `report` is empty. */
raffia_status bench_step_measure(const struct bench_step_plan *plan, struct bench_report *report);

#endif
