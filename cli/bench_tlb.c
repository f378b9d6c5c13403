/*
 * raffia bench tlb: what translating addresses costs, in small and in huge pages.
 */
#include "cli/bench.h"
#include "cli/bench_run.h"
#include "cli/bench_tlb_device.h"
#include "cli/bench_tlb_rounds.h"
#include "cli/tlb_probe.h"

static const char documentation[] =
    "Reads memory at random, one line of each 4 KiB page, in 4 KiB pages and in huge pages, and "
    "compares the time of a read.\n"
    "\v"
    "Rows, in seconds for one read:\n"
    "  spread.regular, .huge   independent reads of some thousand pages (--spread), one out of "
    "each "
    "equal part of\n"
    "                          the memory, in random order, over and over. There are more of them "
    "than the TLB has\n"
    "                          room for in 4 KiB pages, while their lines stay in the caches: what "
    "the two differ by\n"
    "                          is the cost of translating\n"
    "  read.regular, .huge     independent reads of all pages: nearly each needs a translation and "
    "a "
    "line from\n"
    "                          memory. The processor has about ten under way, and fetching lines "
    "hides much of what\n"
    "                          translating them costs\n"
    "  chase.regular, .huge    each read tells where the next one is: it has to wait\n"
    "  chase2, chase4, chase8  2, 4 and 8 such chains side by side: so many reads under way\n"
    "  control.regular, .huge  independent reads of 4 MiB, which the TLBs cover\n"
    "Both kinds of memory stand side by side and take turns; the first round warms up and is "
    "dropped.\n\n"
    "Ratios of medians:\n"
    "  tlb.regular_over_huge           spread.regular : spread.huge\n"
    "  tlb.uncached_regular_over_huge  read.regular : read.huge\n"
    "  tlb.chase_regular_over_huge     chase.regular : chase.huge; the same for chase2, 4 and 8\n"
    "  tlb.control_regular_over_huge   control.regular : control.huge, about 1 if all is well\n"
    "  tlb.misses_regular_over_huge    misses of the read rows, where the processor counts them\n"
    "They are left out (null) if no huge pages could be had. \"source\" says what they rest on: "
    "\"perf_event_open\" if the processor counted misses (the counts are printed too), \"probe\" "
    "if there are times only; a note then says why.\n\n"
    "With --device one line in each 2 MiB of the device's memory is chased by a kernel, over more "
    "and more memory up to --size (a third of what is free, at most 64 GiB):\n"
    "  chase.pool.SIZE, .regular.SIZE  in memory of a pool, and of the driver's allocator\n"
    "  chase.packed.SIZE               as many lines, 512 bytes apart: what is not translation\n\n"
    "Memory needed: twice --size.\n\n"
    "Examples:\n"
    "  raffia bench tlb\n"
    "  raffia bench tlb --size 4GiB --json\n"
    "  raffia bench tlb --device cuda:0\n\n"
    "Exit codes: 0 measured, 1 it could not be measured, 2 bad command line.";

enum key {
    KEY_SIZE = 's',
    KEY_READS = BENCH_OPTION_FIRST,
    KEY_SPREAD,
};

#define READS_DEFAULT ((size_t)4 << 20)
#define READS_MAX     ((uint64_t)1 << 32)

/* The probe counts pages with 32 bits. */
#define BYTES_MIN (PROBE_PAGE * 512)
#define BYTES_MAX (PROBE_PAGE * UINT32_MAX)

static const struct argp_option option_table[] = {
    {"size", KEY_SIZE, "SIZE", 0, "memory that is read, of each kind (4GiB, or what is free)", 0},
    {"reads", KEY_READS, "N", 0, "reads of one sample (4194304)", 0},
    {"spread", KEY_SPREAD, "N", 0, "pages of the spread rows (8192)", 0},
    {0},
};

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct bench_tlb_plan *plan = state->input;
    switch (key) {
    case KEY_SIZE:
        plan->bytes = cli_option_size(state, "--size", text, BYTES_MIN, BYTES_MAX);
        return 0;
    case KEY_READS:
        plan->reads = cli_option_count(state, "--reads", text, 1, READS_MAX);
        return 0;
    case KEY_SPREAD:
        plan->spread = cli_option_count(state, "--spread", text, 1, UINT32_MAX);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static raffia_status measure(const void *plan, struct bench_report *report)
{
    const struct bench_tlb_plan *asked = plan;
    return asked->options.device ? bench_tlb_device_measure(asked, report)
                                 : bench_tlb_measure(asked, report);
}

int bench_tlb(int argc, char **argv)
{
    static const struct bench_command command = {
        documentation, NULL, BENCH_TAKES_RUNS | BENCH_TAKES_DEVICE, option_table, parse};
    struct bench_tlb_plan plan = {
        .reads = READS_DEFAULT,
    };
    bench_options_parse(&command, argc, argv, &plan);
    return bench_run(measure, &plan, plan.options.json);
}
