/*
 * raffia bench step --device: steps that move a batch to a device and compute there.
 */
#ifndef CLI_BENCH_STEP_DEVICE_H
#define CLI_BENCH_STEP_DEVICE_H

#include "cli/bench_step_rounds.h"

/* Measures; `report` is empty. */
raffia_status bench_step_device_measure(const struct bench_step_plan *plan,
                                        struct bench_report *report);

#endif
