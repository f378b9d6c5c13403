/*
 * The processor's own count of TLB misses, through perf_event_open(2), where there is one.
 */
#ifndef CLI_TLB_COUNTERS_H
#define CLI_TLB_COUNTERS_H

#include <raffia/base.h>

#define TLB_COUNTERS_MAX 4
#define TLB_WHY_MAX      240

/* An event as perf_event_open() takes it. */
struct tlb_event {
    const char *name;
    uint32_t type;
    uint64_t config;
    bool walks; /* counts walks of the page tables, which is what a miss costs */
};

/* The processor, as CPUID numbers it. */
struct tlb_processor {
    char vendor[16]; /* "AuthenticAMD", "GenuineIntel"; "" if unknown */
    unsigned family, model;
};

void tlb_processor_read(struct tlb_processor *processor);

/* Events worth trying on a processor, the generic one first; returns how many. */
size_t tlb_events(const struct tlb_processor *processor,
                  struct tlb_event events[static TLB_COUNTERS_MAX]);

/* Why a counter could not be opened, and what to do about it, for the errno of the attempt. */
const char *tlb_counters_why(int error_number, char buffer[static TLB_WHY_MAX]);

/* Counters of the calling thread in user mode. */
struct tlb_counters {
    size_t count; /* 0 = there are none */
    struct tlb_event events[TLB_COUNTERS_MAX];
    int fds[TLB_COUNTERS_MAX];
    char why[TLB_WHY_MAX]; /* the first that could not be opened could not; "" if all could */
};

/* Opens what can be opened; none is no failure. */
void tlb_counters_open(struct tlb_counters *counters);
void tlb_counters_close(struct tlb_counters *counters);

/* Starts all of them at zero, and stops them. */
void tlb_counters_start(const struct tlb_counters *counters);
void tlb_counters_stop(const struct tlb_counters *counters, double counts[static TLB_COUNTERS_MAX]);

#endif
