/* Runs the four benchmarks for their headlines. */
#include "cli/bench_alloc_rounds.h"
#include "cli/bench_headlines.h"
#include "cli/bench_load_rounds.h"
#include "cli/bench_step_rounds.h"
#include "cli/bench_tlb_rounds.h"
#include "core/checked.h"

#include <stdio.h>
#include <string.h>

#define PAIRS        100u
#define READS        ((size_t)2 << 20)
#define STEPS        10u
#define BATCH_PART   16 /* of the size */
#define WEIGHTS_PART 4

typedef raffia_status (*measure)(const struct bench_headlines_plan *plan,
                                 struct bench_report *report);
typedef void (*read_headline)(const struct bench_report *report, struct bench_headline *headline);

static raffia_status measure_load(const struct bench_headlines_plan *plan,
                                  struct bench_report *report)
{
    return bench_load_measure_new(plan->options.directory, plan->bytes, &plan->options, report);
}

static raffia_status measure_alloc(const struct bench_headlines_plan *plan,
                                   struct bench_report *report)
{
    struct bench_alloc_plan alloc = {
        .options = plan->options,
        .pool_bytes = plan->bytes,
        .first_bytes = plan->bytes,
        .pairs = PAIRS,
    };
    return bench_alloc_measure(&alloc, report);
}

static raffia_status measure_tlb(const struct bench_headlines_plan *plan,
                                 struct bench_report *report)
{
    struct bench_tlb_plan tlb = {.options = plan->options, .bytes = plan->bytes, .reads = READS};
    return bench_tlb_measure(&tlb, report);
}

static raffia_status measure_step(const struct bench_headlines_plan *plan,
                                  struct bench_report *report)
{
    struct bench_step_plan step = {
        .options = plan->options,
        .steps = STEPS,
        .batch_bytes = core_align_down(plan->bytes / BATCH_PART, sizeof(float)),
        .weight_bytes = core_align_down(plan->bytes / WEIGHTS_PART, sizeof(float)),
    };
    return bench_step_measure(&step, report);
}

/* Each note once: the benchmarks say much the same of their pages. */
static void add_notes(const struct bench_report *report, struct bench_headlines *headlines)
{
    for (size_t i = 0; i < report->note_count; i++) {
        bool is_new = headlines->note_count < BENCH_NOTES_MAX;
        for (size_t j = 0; is_new && j < headlines->note_count; j++)
            is_new = strcmp(headlines->notes[j], report->notes[i]) != 0;
        if (is_new)
            snprintf(headlines->notes[headlines->note_count++], BENCH_NOTE_MAX, "%s",
                     report->notes[i]);
    }
}

raffia_status bench_headlines_measure(const struct bench_headlines_plan *plan,
                                      struct bench_headlines *headlines)
{
    static const struct {
        measure measure;
        read_headline read;
        bool notes; /* what it notes is worth repeating beside one number */
    } benches[SEED_HEADLINES] = {
        [SEED_LOAD] = {measure_load, bench_headline_load, true},
        [SEED_ALLOCATION] = {measure_alloc, bench_headline_allocation, false},
        [SEED_TLB] = {measure_tlb, bench_headline_tlb, true},
        [SEED_STEP] = {measure_step, bench_headline_step, false},
    };
    raffia_status status = RAFFIA_OK;
    for (int i = 0; !status && i < SEED_HEADLINES; i++) {
        struct bench_report *report = bench_report_new();
        if (!report)
            return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
        status = benches[i].measure(plan, report);
        if (!status) {
            benches[i].read(report, &headlines->ours[i]);
            if (benches[i].notes)
                add_notes(report, headlines);
        }
        bench_report_free(report);
    }
    return status;
}
