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

/* Reads between two looks at the interrupt flag: a whole number of rounds through the pages of the
 * spread rows, unless --spread says otherwise. */
#define READS_A_LOOK ((size_t)1 << 18)

/* A dependent read takes as long as several independent ones. */
#define CHASE_PART 4

enum side { REGULAR, HUGE, SIDES };

enum work { SPREAD, READ, CHASE, CHASE2, CHASE4, CHASE8, CONTROL, WORKS };

static const struct {
    const char *names[SIDES];
    unsigned chains; /* followed side by side; 0: the reads are independent */
} works[WORKS] = {
    [SPREAD] = {{"spread.regular", "spread.huge"}, 0},
    [READ] = {{"read.regular", "read.huge"}, 0},
    [CHASE] = {{"chase.regular", "chase.huge"}, 1},
    [CHASE2] = {{"chase2.regular", "chase2.huge"}, 2},
    [CHASE4] = {{"chase4.regular", "chase4.huge"}, 4},
    [CHASE8] = {{"chase8.regular", "chase8.huge"}, 8},
    [CONTROL] = {{"control.regular", "control.huge"}, 0},
};

struct bench {
    const struct bench_tlb_plan *plan;
    struct bench_report *report;
    size_t bytes;
    unsigned char *memory[SIDES];
    raffia_pool *pool;
    size_t places[WORKS][SIDES][PROBE_CHAINS_MAX]; /* where the chains are */
    uint32_t *chosen;                              /* pages of the spread rows */
    size_t spread;                                 /* how many */
    struct bench_row *rows[WORKS][SIDES];
    struct tlb_counters counters;
    double misses[SIDES][TLB_COUNTERS_MAX]; /* of READ over all rounds that count */
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
    for (int work = 0; work < WORKS; work++)
        for (int side = 0; side < SIDES; side++) {
            struct bench_row *row = bench_report_row(bench->report, works[work].names[side], 1,
                                                     bench->plan->options.runs);
            if (!row)
                return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
            bench->rows[work][side] = row;
        }
    return RAFFIA_OK;
}

static raffia_status choose_pages(struct bench *bench)
{
    const size_t pages = bench->bytes / PROBE_PAGE,
                 wanted = bench->plan->spread ? bench->plan->spread : TLB_SPREAD_DEFAULT;
    bench->spread = core_min(wanted, pages);
    bench->chosen = core_calloc(bench->spread, sizeof *bench->chosen);
    if (!bench->chosen)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    probe_spread_make(bench->chosen, bench->spread, pages);
    return RAFFIA_OK;
}

static void start_chains(struct bench *bench, const uint32_t *order)
{
    for (int work = 0; work < WORKS; work++)
        for (int side = 0; side < SIDES; side++)
            probe_chain_starts(order, bench->bytes / PROBE_PAGE, bench->places[work][side],
                               works[work].chains);
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
    /* The machine's memory is made before the rings and the pool are: there Ctrl-C is heard. */
    status = bench_memory_touch(bench->memory[REGULAR], bench->bytes, threads);
    if (!status)
        bench_memory_warm(bench->bytes, true);
    if (!status)
        status = cli_interrupt_check();
    if (!status)
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
    start_chains(bench, order);
    core_free(order);
    return choose_pages(bench);
}

static void free_memory(struct bench *bench)
{
    core_free(bench->chosen);
    bench_memory_unmap(bench->memory[REGULAR], bench->bytes);
    if (bench->memory[HUGE])
        (void)!raffia_pool_free(bench->pool, bench->memory[HUGE]);
    raffia_pool_release(bench->pool);
}

/* So many reads of one kind of work; returns how many they were. */
static size_t do_piece(struct bench *bench, enum work work, enum side side, size_t reads,
                       uint64_t seed)
{
    const unsigned char *memory = bench->memory[side];
    const size_t pages = bench->bytes / PROBE_PAGE;
    const unsigned chains = works[work].chains;
    if (chains) {
        const size_t steps = core_max(reads / core_max(CHASE_PART, chains), 1);
        probe_chase(memory, bench->places[work][side], chains, steps);
        return steps * chains;
    }
    if (work == SPREAD)
        bench->sums[side] += probe_read_chosen(memory, bench->chosen, bench->spread, reads);
    else if (work == CONTROL)
        bench->sums[side] +=
            probe_read(memory, core_min(pages, CONTROL_BYTES / PROBE_PAGE), reads, seed);
    else
        bench->sums[side] += probe_read(memory, pages, reads, seed);
    return reads;
}

/* One sample: the reads made, fewer if the command is interrupted. */
static size_t do_work(struct bench *bench, enum work work, enum side side, uint64_t seed)
{
    size_t made = 0;
    for (size_t left = bench->plan->reads; left > 0 && !cli_interrupted();) {
        const size_t piece = core_min(left, READS_A_LOOK);
        made += do_piece(bench, work, side, piece, seed * READS_A_LOOK + left);
        left -= piece;
    }
    return made;
}

/* The lines of what stays in the caches are fetched first, so that neither side pays for the
 * other's. */
static void warm_up(struct bench *bench, enum work work, enum side side)
{
    if (work == CONTROL)
        do_work(bench, work, side, 0);
    if (work == SPREAD)
        bench->sums[side] +=
            probe_read_chosen(bench->memory[side], bench->chosen, bench->spread, 2 * bench->spread);
}

static void run_sample(struct bench *bench, enum work work, enum side side, unsigned round)
{
    double counts[TLB_COUNTERS_MAX];
    bool counting = work == READ && round > 0;
    warm_up(bench, work, side);
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
    if (round > 0 && reads > 0)
        bench_row_add(bench->rows[work][side], seconds / (double)reads);
}

static bool read_alike(const struct bench *bench)
{
    bool alike = bench->sums[REGULAR] == bench->sums[HUGE];
    for (int work = 0; work < WORKS; work++)
        for (unsigned chain = 0; chain < works[work].chains; chain++)
            alike =
                alike && bench->places[work][REGULAR][chain] == bench->places[work][HUGE][chain];
    return alike;
}

/* The first round warms up and is dropped. Sides take turns in going first. */
static raffia_status run_rounds(struct bench *bench)
{
    for (unsigned round = 0; round <= bench->plan->options.runs; round++)
        for (int work = 0; work < WORKS; work++) {
            enum side first = round % 2 ? HUGE : REGULAR;
            run_sample(bench, (enum work)work, first, round);
            run_sample(bench, (enum work)work, first == HUGE ? REGULAR : HUGE, round);
            raffia_status status = cli_interrupt_check();
            if (status)
                return status;
        }
    /* Both hold the same ring, and were read alike. */
    return read_alike(bench)
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
    static const struct {
        const char *name;
        enum work work;
    } ratios[] = {
        {"tlb.regular_over_huge", SPREAD},          {"tlb.uncached_regular_over_huge", READ},
        {"tlb.chase_regular_over_huge", CHASE},     {"tlb.chase2_regular_over_huge", CHASE2},
        {"tlb.chase4_regular_over_huge", CHASE4},   {"tlb.chase8_regular_over_huge", CHASE8},
        {"tlb.control_regular_over_huge", CONTROL},
    };
    const bool huge = bench_row_is_huge(bench->rows[SPREAD][HUGE]);
    for (size_t i = 0; i < sizeof ratios / sizeof *ratios; i++)
        bench_report_ratio(report, ratios[i].name, bench->rows[ratios[i].work][REGULAR],
                           bench->rows[ratios[i].work][HUGE], huge);
    bool counted = counters_count(bench);
    report->source = counted ? TLB_SOURCE_COUNTERS : TLB_SOURCE_PROBE;
    if (counted)
        add_misses(bench, huge);
    else
        bench_report_note(report, "no misses are claimed: %s. The ratios are times",
                          bench->counters.count ? "the counters stay at 0 here"
                                                : bench->counters.why);
    bench_report_note(report,
                      "tlb.regular_over_huge is spread.regular : spread.huge, independent reads of "
                      "%zu pages in random order, one out of each %zu KiB: their lines fit a cache "
                      "of %zu KiB, so that the translation is what differs",
                      bench->spread, bench->bytes / bench->spread / 1024,
                      bench->spread * PROBE_LINE / 1024);
    bench_report_note(report,
                      "the control reads %zu KiB, which every TLB covers: its ratio should "
                      "be about 1",
                      core_min(bench->bytes, CONTROL_BYTES) / 1024);
    bench_pool_note(report, bench->rows[SPREAD][HUGE]);
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
