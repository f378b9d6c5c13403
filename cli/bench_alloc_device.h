/*
 * raffia bench alloc --device: memory of a device, and pinned memory beside it.
 */
#ifndef CLI_BENCH_ALLOC_DEVICE_H
#define CLI_BENCH_ALLOC_DEVICE_H

#include "cli/bench_alloc_rounds.h"

/* Measures; `report` is empty. */
raffia_status bench_alloc_device_measure(const struct bench_alloc_plan *plan,
                                         struct bench_report *report);

#endif
