/*
 * The four headline figures, the seed's and ours.
 */
#ifndef CLI_BENCH_HEADLINES_H
#define CLI_BENCH_HEADLINES_H

#include "cli/bench_options.h"
#include "cli/bench_report.h"
#include "cli/seed_figures.h"

struct bench_headlines_plan {
    struct bench_options options;
    size_t bytes; /* of the model, the large allocation and the memory read */
};

/* Ours. */
struct bench_headline {
    bool known;           /* there is a ratio: huge pages could be had */
    bool comparable;      /* with the seed's: times are no misses */
    double before, after; /* small pages, the pool */
    const char *unit;     /* of both */
    double ratio;
    const char *source; /* what it rests on: "clock", "perf_event_open" or "probe" */
    char what[BENCH_TITLE_MAX];
};

struct bench_headlines {
    struct bench_headline ours[SEED_HEADLINES];
    char notes[BENCH_NOTES_MAX][BENCH_NOTE_MAX];
    size_t note_count;
};

/* Takes our figures out of the reports of the four benchmarks. */
void bench_headline_load(const struct bench_report *report, struct bench_headline *headline);
void bench_headline_allocation(const struct bench_report *report, struct bench_headline *headline);
void bench_headline_tlb(const struct bench_report *report, struct bench_headline *headline);
void bench_headline_step(const struct bench_report *report, struct bench_headline *headline);

/* Runs the four benchmarks; `headlines` is zero. */
raffia_status bench_headlines_measure(const struct bench_headlines_plan *plan,
                                      struct bench_headlines *headlines);

raffia_status bench_headlines_print(const struct bench_headlines *headlines, bool json);

#endif
