/*
 * The rounds of `raffia bench tlb`.
 */
#ifndef CLI_BENCH_TLB_ROUNDS_H
#define CLI_BENCH_TLB_ROUNDS_H

#include "cli/bench_options.h"
#include "cli/bench_report.h"

/* What the ratio stands on. */
#define TLB_SOURCE_PROBE    "probe"
#define TLB_SOURCE_COUNTERS "perf_event_open"

struct bench_tlb_plan {
    struct bench_options options;
    size_t bytes; /* read, of each kind of pages; 0 = 3/8 of the free memory, at most 4 GiB */
    size_t reads; /* of one sample */
};

/* Measures; `report` is empty. */
raffia_status bench_tlb_measure(const struct bench_tlb_plan *plan, struct bench_report *report);

#endif
