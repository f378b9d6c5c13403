/*
 * raffia bench tlb --device: a timed probe of a device's address translation.
 */
#ifndef CLI_BENCH_TLB_DEVICE_H
#define CLI_BENCH_TLB_DEVICE_H

#include "cli/bench_report.h"
#include "cli/bench_tlb_rounds.h"

/* Measures; `report` is empty. */
raffia_status bench_tlb_device_measure(const struct bench_tlb_plan *plan,
                                       struct bench_report *report);

#endif
