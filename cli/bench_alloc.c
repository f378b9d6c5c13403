/*
 * raffia bench alloc: what memory costs out of a pool, out of a new pool, and out of the system.
 */
#include "cli/bench.h"
#include "cli/bench_alloc_device.h"
#include "cli/bench_alloc_pairs.h"
#include "cli/bench_alloc_rounds.h"
#include "cli/bench_run.h"

#include <raffia/base.h>

static const char documentation[] =
    "Compares getting memory from a pool of huge pages with getting it from the system in 4 KiB "
    "pages: one large allocation, and many pairs of allocation and free.\n"
    "\v"
    "Rows of one large allocation (--first), all pages there at its end:\n"
    "  first.regular.1, .n  mmap() and a byte written to each page, by one thread and by all\n"
    "  first.pool.1, .n     a pool of that size is built, and the allocation made from it\n"
    "  build.pool           the standing pool (--pool) is built\n"
    "  standing.alloc       the allocation from the standing pool\n"
    "  standing.touch       the same, and a byte written to each page, though nothing is left to "
    "do there\n"
    "The rows take turns, round by round; the first round warms up and is dropped. Before each row "
    "with new memory as much is touched and freed, because the host of a virtual machine is slow "
    "to provide it. What giving the memory back costs is in none of them.\n\n"
    "Rows of pairs: blocks of 2 to 64 MiB in steps of 2 MiB, always in the same order, freed first "
    "in first out with up to 64 alive, as far as the pool allows:\n"
    "  pair.pool            pairs from the pool by its C interface (umd_huge_page_alloc(), "
    "umd_huge_page_free()),\n"
    "                       the clock read around each call\n"
    "  pair.pool.alloc, .free  the two halves\n"
    "  pair.pool.mean       the mean of a pass with the clock at both ends only, for each round\n"
    "  pair.direct.mean     the same from a pool itself (raffia_pool_alloc(), raffia_pool_free())\n"
    "  pair.regular         mmap(), a byte written to each page, munmap(); one block at a time\n"
    "  pair.malloc.mean     malloc() and free(), nothing touched\n\n"
    "Ratios of medians:\n"
    "  alloc.regular_over_first               first.regular.1 : first.pool.n\n"
    "  alloc.regular_over_first_same_threads  first.regular.n : first.pool.n\n"
    "  alloc.regular_over_first_one_thread    first.regular.1 : first.pool.1\n"
    "  alloc.regular_over_standing            first.regular.1 : standing.alloc\n"
    "  alloc.regular_over_standing_touched    first.regular.1 : standing.touch\n"
    "  alloc.pair_regular_over_pool           pair.regular : pair.pool.mean\n"
    "They are left out (null) if no huge pages could be had. Sizes not given are chosen from the "
    "free memory: the pool takes a quarter of it, at most 2 GiB.\n\n"
    "With --device, rows of that device's memory:\n"
    "  pair.pool.mean, .direct.mean, .stream.mean\n"
    "                       pairs by the calls by device number, from a pool, and in a stream's "
    "order\n"
    "  pair.async.mean      the driver's own stream-ordered allocator, which keeps what is freed\n"
    "  large.pool, .regular --first from the standing pool, and from the driver's allocator\n"
    "  build.pool           the standing pool is built (8GiB, or half of what is free)\n"
    "  pinned.build, .free  a pool of pinned huge pages is built and given back (4GiB, or a "
    "quarter "
    "of\n"
    "                       the free host memory)\n"
    "  hostalloc.build, .free\n"
    "                       the same by the driver's own allocator of pinned memory\n"
    "and ratios: alloc.async_over_pool (pair.async.mean : pair.stream.mean), "
    "alloc.regular_over_pool_large, pinned.hostalloc_over_build, pinned.hostfree_over_free.\n\n"
    "Examples:\n"
    "  raffia bench alloc\n"
    "  raffia bench alloc --pool 8GiB --pairs 10000 --json\n"
    "  raffia bench alloc --device cuda:0\n\n"
    "Exit codes: 0 measured, 1 it could not be measured, 2 bad command line.";

enum key {
    KEY_POOL = BENCH_OPTION_FIRST,
    KEY_FIRST,
    KEY_PAIRS,
    KEY_PINNED,
};

#define PAIRS_DEFAULT 10000u
#define BYTES_MAX     ((size_t)1 << 42)

static const struct argp_option option_table[] = {
    {"pool", KEY_POOL, "SIZE", 0, "size of the standing pool (2GiB, or what is free)", 0},
    {"first", KEY_FIRST, "SIZE", 0, "size of the large allocation (1GiB, or the pool's)", 0},
    {"pinned", KEY_PINNED, "SIZE", 0,
     "with --device: pinned memory that is built (4GiB, or what is free)", 0},
    {"pairs", KEY_PAIRS, "N", 0, "pairs of one pass (10000)", 0},
    {0},
};

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct bench_alloc_plan *plan = state->input;
    switch (key) {
    case KEY_POOL:
        plan->pool_bytes = cli_option_size(state, "--pool", text, 2 * PAIR_STEP_BYTES, BYTES_MAX);
        return 0;
    case KEY_FIRST:
        plan->first_bytes = cli_option_size(state, "--first", text, PAIR_STEP_BYTES, BYTES_MAX);
        return 0;
    case KEY_PINNED:
        plan->pinned_bytes = cli_option_size(state, "--pinned", text, PAIR_STEP_BYTES, BYTES_MAX);
        return 0;
    case KEY_PAIRS:
        plan->pairs = cli_option_count(state, "--pairs", text, 1, BENCH_ALLOC_PAIRS_MAX);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static raffia_status measure(const void *plan, struct bench_report *report)
{
    const struct bench_alloc_plan *asked = plan;
    return asked->options.device ? bench_alloc_device_measure(asked, report)
                                 : bench_alloc_measure(asked, report);
}

int bench_alloc(int argc, char **argv)
{
    static const struct bench_command command = {
        documentation, NULL, BENCH_TAKES_RUNS | BENCH_TAKES_DEVICE, option_table, parse};
    struct bench_alloc_plan plan = {
        .pairs = PAIRS_DEFAULT,
    };
    bench_options_parse(&command, argc, argv, &plan);
    return bench_run(measure, &plan, plan.options.json);
}
