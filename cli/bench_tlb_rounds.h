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

/*
 * Pages of the spread rows: twice to five times as many as the TLBs of present processors hold
 * translations for (1536 to 4096), while their lines, 512 KiB, stay in the second-level caches.
 */
#define TLB_SPREAD_DEFAULT ((size_t)8192)

struct bench_tlb_plan {
    struct bench_options options;
    size_t bytes;  /* read, of each kind of pages; 0 = 3/8 of the free memory, at most 4 GiB */
    size_t reads;  /* of one sample */
    size_t spread; /* pages that the spread rows read; 0 = TLB_SPREAD_DEFAULT, or all there are */
};

/* Measures; `report` is empty. */
raffia_status bench_tlb_measure(const struct bench_tlb_plan *plan, struct bench_report *report);

#endif
