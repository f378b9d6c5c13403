/*
 * A trace replayed on a pool.
 */
#ifndef CLI_BENCH_TRACE_H
#define CLI_BENCH_TRACE_H

#include "cli/bench_report.h"
#include "cli/trace_series.h"

struct bench_trace_plan {
    const char *device; /* NULL = the default device */
    raffia_pages_mode pages;
    size_t page_size;    /* 0 = 2 MiB */
    size_t pool_bytes;   /* limit; 0 = twice the trace's peak */
    size_t chunk_bytes;  /* 0 = the pool's choice; with a limit by factor one page */
    size_t granule;      /* 0 = 256 B */
    double limit_factor; /* of the trace's peak; 0 = pool_bytes holds */
    bool need;           /* look for the smallest limit too */
    bool touch;
    bool remap;     /* a remappable pool */
    bool adaptive;  /* one that learns */
    unsigned trims; /* of the first pass */
    unsigned runs;
};

/* Fills in an empty report and the series of the first pass. */
raffia_status bench_trace_measure(const struct bench_trace_plan *plan, const char *name,
                                  const struct trace *trace, struct bench_report *report,
                                  struct trace_series *series);

/* What is common to all passes over a trace. */
struct bench_trace {
    const struct bench_trace_plan *plan;
    const struct trace *trace;
    struct bench_report *report;
    uint64_t *names;
    size_t limit;
    size_t chunk_bytes;
};

/* The page size in force, as far as it is known before there is a pool. */
size_t bench_trace_page_bytes(const struct bench_trace_plan *plan);

/* A new pool with that limit, one chunk mapped. */
raffia_status bench_trace_pool(const struct bench_trace *bench, size_t limit, size_t chunk_bytes,
                               raffia_pool **pool_p);

/* The smallest limit at which nothing is refused, looked for upward from the peak in steps of a
 * 256th of it, over the peak; NAN if four times the peak does not suffice. The pools grow by the
 * page unless the plan says otherwise. */
raffia_status bench_trace_need(const struct bench_trace *bench, double *need_p);

#endif
