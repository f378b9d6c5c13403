/*
 * The generated loads (workload.h) on the pool and on its index of free space.
 */
#ifndef CLI_BENCH_MICRO_H
#define CLI_BENCH_MICRO_H

#include "cli/bench_report.h"
#include "cli/replay.h"
#include "cli/workload.h"

#define BENCH_MICRO_LOADS_MAX 8

struct bench_micro_plan {
    unsigned runs;
    bool chosen[BENCH_MICRO_LOADS_MAX]; /* by place in workloads[]; none chosen means all */
    bool adaptive;                      /* an adaptive pool beside the other */
    bool json;
};

/* Fills in an empty report. */
raffia_status bench_micro_measure(const struct bench_micro_plan *plan, struct bench_report *report);

/* What several threads did together. */
struct micro_threads_result {
    double seconds; /* from the first start to the last end, of all threads */
    uint64_t done, refused_bytes;
};

/* From now on the process counts as one with threads, also where a load has one only: locks then
 * take their atomic path, as in every process that has ever started a thread. */
raffia_status micro_threads_begin(void);

/* Replays a trace in each of as many threads, on one allocator. Everything is freed at the end. */
raffia_status micro_threads_run(const struct replay_way *way, const struct trace *traces,
                                unsigned threads, struct micro_threads_result *result);

#endif
