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

/* What the steps on this machine's memory and on a device's have in common. */

/* A fresh batch is the source from another place on: steps differ, and cost nothing to make. */
#define STEP_SHIFT_BYTES  ((size_t)4096)
#define STEP_SHIFTS_BYTES ((size_t)1 << 20)

#define STEP_WEIGHT_SEED 1u
#define STEP_BATCH_SEED  2u

enum step_side { STEP_REGULAR, STEP_POOL, STEP_SIDES };

struct step_rows {
    struct bench_row *first[STEP_SIDES], *steps[STEP_SIDES];
};

/* `pool_threads` make the pool. */
raffia_status bench_step_rows(struct bench_report *report, const struct bench_step_plan *plan,
                              unsigned pool_threads, struct step_rows *rows);

/* MISMATCH unless both paths computed the same; CANCELLED if the user interrupted the command. */
raffia_status bench_step_compare(const uint64_t hashes[static STEP_SIDES], size_t step);

/* The ratios, unknown unless the pool has the pages that were wanted, and that both paths were
 * compared. */
void bench_step_add_results(struct bench_report *report, const struct step_rows *rows, bool known);

/* step_fill(); CANCELLED if the user interrupted the command meanwhile. */
raffia_status bench_step_fill(float *numbers, size_t count, uint32_t seed);

/* Measures; `report` is empty. */
raffia_status bench_step_measure(const struct bench_step_plan *plan, struct bench_report *report);

#endif
