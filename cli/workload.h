/*
 * Loads that are generated, the same on every machine: by SplitMix64 from a fixed seed each.
 *
 *   pairs    10,000 blocks of 2 to 64 MiB in steps of 2 MiB, first in, first out, 256 live
 *   lifo1    1,000,000 times a block of 2 MiB and its free
 *   lifo64   64 blocks of 2 to 64 MiB and their frees backwards, 15,625 times
 *   mix80    1,000,000 operations, 256 B to 256 MiB on a logarithmic scale: blocks are added until
 *            80 % of 16 GiB would be exceeded, then victims are drawn until the next one fits
 *   small80  the same up to 4 MiB
 *   tiny80   the same up to 16 KiB, 80 % of 128 MiB of the range
 *   mt1, mt2 500,000 operations for each of one or two threads, as mix80 but up to 16 MiB and in an
 *            equal share of the 16 GiB
 *
 * The range is WORKLOAD_RANGE_BYTES, whose end is where a bounded allocator refuses.
 */
#ifndef CLI_WORKLOAD_H
#define CLI_WORKLOAD_H

#include "cli/trace.h"

#define WORKLOAD_RANGE_BYTES ((size_t)16 << 30)
#define WORKLOAD_THREADS_MAX 2u

struct workload {
    const char *name;
    unsigned threads; /* 0: for a process that has never had more than one thread */
};

/* All of them, those that start threads last. */
extern const struct workload workloads[];
extern const size_t workload_count;

/* NULL if nothing goes by that name. */
const struct workload *workload_find(const char *name);

/* Makes the trace of one thread, from 0. OUT_OF_HOST_MEMORY. */
raffia_status workload_make(const struct workload *workload, unsigned thread, struct trace *trace);

#endif
