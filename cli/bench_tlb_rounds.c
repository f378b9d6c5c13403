#include "cli/bench_tlb_rounds.h"

#include "cli/bench_memory.h"
#include "cli/bench_pool.h"
#include "cli/interrupt.h"
#include "cli/tlb_counters.h"
#include "cli/tlb_probe.h"
#include "core/checked.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/parallel.h"
#include "core/text.h"

#include <stdio.h>

#define BYTES_MAX     ((size_t)4 << 30)
#define CONTROL_BYTES ((size_t)4 << 20)

/* Both kinds of memory stand side by side: each takes a third of what is free. */
#define SHARE 3

/* A dependent read takes as long as several independent ones. */
#define CHASE_PART 4

enum side { REGULAR, HUGE, SIDES };

enum work { READ, CHASE, CONTROL, WORKS };

struct bench {
    const struct bench_tlb_plan *plan;
    struct bench_report *report;
    size_t bytes;
    unsigned char *memory[SIDES];
    raffia_pool *pool;
    size_t place[SIDES]; /* where the chase is */
    struct bench_row *rows[WORKS][SIDES];
    struct tlb_counters counters;
    double misses[SIDES][TLB_COUNTERS_MAX]; /* of READ, over all rounds that count */
    uint64_t sums[SIDES];                   /* of all words read */
};

static raffia_status choose_size(struct bench *bench)
{
    raffia_status status = RAFFIA_OK;
    bench->bytes = bench->plan->bytes;
    if (!bench->bytes)
        status = bench_memory_choose(BYTES_MAX, SHARE, &bench->bytes);
    size_t need = 0;
    if (!status && !core_multiply(bench->bytes, SIDES, &need))
        status = core_error(RAFFIA_ERROR_OVERFLOW, "twice %zu bytes exceed the address space",
                            bench->bytes);
    return status ? status : bench_memory_check(need, "the benchmark (twice --size)", "--size");
}

static raffia_status make_rows(struct bench *bench)
{
    static const char *const names[WORKS][SIDES] = {
        [READ] = {"read.regular", "read.huge"},
        [CHASE] = {"chase.regular", "chase.huge"},
        [CONTROL] = {"control.regular", "control.huge"},
    };
    for (int work = 0; work < WORKS; work++)
        for (int side = 0; side < SIDES; side++) {
            struct bench_row *row =
                bench_report_row(bench->report, names[work][side], 1, bench->plan->options.runs);
            if (!row)
                return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
            bench->rows[work][side] = row;
        }
    return RAFFIA_OK;
}

/* Fills both sides with the same ring. */
static raffia_status make_memory(struct bench *bench)
{
    size_t pages = bench->bytes / PROBE_PAGE;
    void *block;
    raffia_status status = bench_memory_map(bench->bytes, &bench->memory[REGULAR]);
    if (status)
        return status;
    unsigned threads = core_thread_count(bench->plan->options.threads);
    status = bench_pool_make(bench->bytes, threads, &bench->plan->options, &bench->pool);
    if (!status)
        status = raffia_pool_alloc(bench->pool, bench->bytes, 0, &block);
    if (status)
        return status;
    bench->memory[HUGE] = block;
    for (int work = 0; !status && work < WORKS; work++)
        status = bench_pool_show(bench->pool, bench->rows[work][HUGE]);
    uint32_t *order = status ? NULL : core_calloc(pages, sizeof *order);
    if (!order)
        return status ? status : RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    for (int side = 0; side < SIDES; side++)
        probe_chain_make(bench->memory[side], pages, order);
    core_free(order);
    return RAFFIA_OK;
}

static void free_memory(struct bench *bench)
{
    bench_memory_unmap(bench->memory[REGULAR], bench->bytes);
    if (bench->memory[HUGE])
        (void)!raffia_pool_free(bench->pool, bench->memory[HUGE]);
    raffia_pool_release(bench->pool);
}

/* One sample: the reads made. */
static size_t do_work(struct bench *bench, enum work work, enum side side, uint64_t seed)
{
    const unsigned char *memory = bench->memory[side];
    size_t pages = bench->bytes / PROBE_PAGE, reads = bench->plan->reads;
    if (work == CHASE) {
        reads = core_max(reads / CHASE_PART, 1);
        bench->place[side] = probe_chase(memory, bench->place[side], reads);
        return reads;
    }
    if (work == CONTROL)
        pages = core_min(pages, CONTROL_BYTES / PROBE_PAGE);
    bench->sums[side] += probe_read(memory, pages, reads, seed);
    return reads;
}

static void run_sample(struct bench *bench, enum work work, enum side side, unsigned round)
{
    double counts[TLB_COUNTERS_MAX];
    bool counting = work == READ && round > 0;
    /* The control's few lines are fetched first, so that neither side pays for the other's. */
    if (work == CONTROL)
        do_work(bench, work, side, 0);
    if (counting)
        tlb_counters_start(&bench->counters);
    double started = core_clock_seconds();
    size_t reads = do_work(bench, work, side, round);
    double seconds = core_clock_seconds() - started;
    if (counting) {
        tlb_counters_stop(&bench->counters, counts);
        for (size_t i = 0; i < bench->counters.count; i++)
            bench->misses[side][i] += counts[i];
    }
    if (round > 0)
        bench_row_add(bench->rows[work][side], seconds / (double)reads);
}

/* The first round warms up and is dropped. Sides take turns in going first. */
static raffia_status run_rounds(struct bench *bench)
{
    for (unsigned round = 0; round <= bench->plan->options.runs; round++)
        for (int work = 0; work < WORKS; work++) {
            enum side first = round % 2 ? HUGE : REGULAR;
            run_sample(bench, (enum work)work, first, round);
            run_sample(bench, (enum work)work, first == HUGE ? REGULAR : HUGE, round);
            if (cli_interrupted())
                return core_error(RAFFIA_ERROR_CANCELLED, "interrupted");
        }
    /* Both hold the same ring, and were read alike. */
    return bench->place[REGULAR] == bench->place[HUGE] && bench->sums[REGULAR] == bench->sums[HUGE]
               ? RAFFIA_OK
               : core_error(RAFFIA_ERROR_MISMATCH, "the two kinds of memory read differently");
}

/* Counters that count nothing, though a million pages were read, are no counters. */
static bool counters_count(const struct bench *bench)
{
    for (size_t i = 0; i < bench->counters.count; i++)
        if (bench->misses[REGULAR][i] > 0)
            return true;
    return false;
}

/* The event to compare by: one that counts walks, if any does. */
static size_t best_event(const struct bench *bench)
{
    size_t best = 0;
    for (size_t i = 0; i < bench->counters.count; i++)
        if (bench->misses[REGULAR][i] > 0 &&
            (bench->counters.events[i].walks || !(bench->misses[REGULAR][best] > 0)))
            best = i;
    return best;
}

static void add_misses(struct bench *bench, bool huge)
{
    struct bench_report *report = bench->report;
    double runs = bench->plan->options.runs;
    const double *regular = bench->misses[REGULAR], *of_huge = bench->misses[HUGE];
    for (size_t i = 0; i < bench->counters.count; i++) {
        char name[BENCH_NAME_MAX];
        snprintf(name, sizeof name, "tlb.regular.%s", bench->counters.events[i].name);
        bench_report_value(report, name, regular[i] / runs);
        snprintf(name, sizeof name, "tlb.huge.%s", bench->counters.events[i].name);
        bench_report_value(report, name, of_huge[i] / runs);
    }
    size_t best = best_event(bench);
    bench_report_value(report, "tlb.misses_regular", regular[best] / runs);
    bench_report_value(report, "tlb.misses_huge", of_huge[best] / runs);
    bench_report_quotient(report, "tlb.misses_regular_over_huge", regular[best], of_huge[best],
                          huge);
    bench_report_note(report, "misses are those of %s, for %zu reads each",
                      bench->counters.events[best].name, bench->plan->reads);
}

static void add_results(struct bench *bench)
{
    struct bench_report *report = bench->report;
    struct bench_row *const *read = bench->rows[READ], *const *chase = bench->rows[CHASE];
    bool huge = bench_row_is_huge(read[HUGE]);
    bench_report_ratio(report, "tlb.regular_over_huge", read[REGULAR], read[HUGE], huge);
    bench_report_ratio(report, "tlb.chase_regular_over_huge", chase[REGULAR], chase[HUGE], huge);
    bench_report_ratio(report, "tlb.control_regular_over_huge", bench->rows[CONTROL][REGULAR],
                       bench->rows[CONTROL][HUGE], huge);
    bool counted = counters_count(bench);
    report->source = counted ? TLB_SOURCE_COUNTERS : TLB_SOURCE_PROBE;
    if (counted)
        add_misses(bench, huge);
    else
        bench_report_note(report, "no misses are claimed: %s. The ratios are times",
                          bench->counters.count ? "the counters stay at 0 here"
                                                : bench->counters.why);
    bench_report_note(report,
                      "the control reads %zu KiB, which every TLB covers: its ratio should "
                      "be about 1",
                      core_min(bench->bytes, CONTROL_BYTES) / 1024);
    bench_pool_note(report, read[HUGE]);
}

raffia_status bench_tlb_measure(const struct bench_tlb_plan *plan, struct bench_report *report)
{
    struct bench bench = {.plan = plan, .report = report};
    raffia_status status = choose_size(&bench);
    if (status)
        return status;
    char size[CORE_SIZE_TEXT_MAX];
    snprintf(report->title, sizeof report->title,
             "Reading %s at random, one line of each 4 KiB page, in small and in huge pages",
             core_format_size(bench.bytes, size));
    tlb_counters_open(&bench.counters);
    status = make_rows(&bench);
    if (!status)
        status = make_memory(&bench);
    if (!status)
        status = run_rounds(&bench);
    if (!status)
        add_results(&bench);
    free_memory(&bench);
    tlb_counters_close(&bench.counters);
    return status;
}
