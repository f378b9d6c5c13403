/*
 * raffia bench micro: what an allocation and a free cost, and what is refused, under loads that
 * other allocators are measured with.
 */
#include "cli/bench_micro.h"

#include "cli/bench.h"
#include "cli/bench_run.h"
#include "cli/options.h"

#include <string.h>

static const char documentation[] =
    "Replays generated loads on a pool of 16 GiB that is full of pages already, and on its index "
    "of free space alone. No memory is touched, and little is needed: the pool stands on the "
    "simulated device.\n"
    "\v"
    "Loads, each the same on every machine:\n"
    "  pairs     10,000 blocks of 2 to 64 MiB, first in, first out, 256 live\n"
    "  lifo1     1,000,000 times a block of 2 MiB and its free\n"
    "  lifo64    64 blocks of 2 to 64 MiB and their frees backwards, 15,625 times\n"
    "  mix80     1,000,000 operations, 256 B to 256 MiB, 80 % of the range kept full\n"
    "  small80   the same up to 4 MiB: some 30,000 live blocks\n"
    "  tiny80    the same up to 16 KiB, 80 % of 128 MiB: some 28,000 live blocks\n"
    "  mt1, mt2  500,000 operations a thread up to 16 MiB, in one and in two threads\n\n"
    "Rows, in seconds for one operation (an allocation or a free), one sample a pass:\n"
    "  LOAD.pool   raffia_pool_alloc() and raffia_pool_free(), by address\n"
    "  LOAD.space  the index alone, by handle; it is for one thread, so mt1 and mt2 have none\n"
    "  LOAD.adaptive  with --adaptive: as LOAD.pool, on a pool that learns; it is never trimmed\n"
    "  LOAD.floor  calls that do nothing: the cost of the harness, contained in the others\n"
    "They take turns, round by round, each on a new pool; the first round warms up and is "
    "dropped. mt1 and mt2 count from the first thread's start to the last one's end, divided by "
    "the operations of all. Loads without threads run before them, in a process that has had one "
    "thread only.\n\n"
    "Values: the medians in ns (micro.LOAD_pool_ns, ...), the bytes refused because no free "
    "stretch was long enough (micro.LOAD_pool_refused_bytes), and their share of all bytes asked "
    "for (_share).\n\n"
    "Examples:\n"
    "  raffia bench micro\n"
    "  raffia bench micro --scenario mix80 --scenario small80 --json\n\n"
    "Exit codes: 0 measured, 1 it could not be measured, 2 bad command line.";

enum key {
    KEY_RUNS = 'r',
    KEY_SCENARIO = CLI_OPTION_FIRST,
    KEY_ADAPTIVE,
    KEY_JSON,
};

#define RUNS_DEFAULT 5u
#define RUNS_MAX     1000u

static const struct argp_option option_table[] = {
    {"scenario", KEY_SCENARIO, "LOAD", 0, "this load only; may be given again (all)", 0},
    {"adaptive", KEY_ADAPTIVE, NULL, 0, "an adaptive pool too, of chunks of 256 MiB", 0},
    {"runs", KEY_RUNS, "N", 0, "rounds that count (5)", 0},
    {"json", KEY_JSON, NULL, 0, "report as one JSON object on standard output", 0},
    {0},
};

static void choose(struct argp_state *state, const char *text, struct bench_micro_plan *plan)
{
    const char *words[BENCH_MICRO_LOADS_MAX + 1] = {NULL};
    for (size_t i = 0; i < workload_count; i++)
        words[i] = workloads[i].name;
    plan->chosen[cli_option_choice(state, "--scenario", text, words)] = true;
}

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct bench_micro_plan *plan = state->input;
    switch (key) {
    case KEY_SCENARIO:
        choose(state, text, plan);
        return 0;
    case KEY_RUNS:
        plan->runs = (unsigned)cli_option_count(state, "--runs", text, 1, RUNS_MAX);
        return 0;
    case KEY_ADAPTIVE:
        plan->adaptive = true;
        return 0;
    case KEY_JSON:
        plan->json = true;
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "'%s' is too many: there are no arguments", text);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static raffia_status measure(const void *plan, struct bench_report *report)
{
    return bench_micro_measure(plan, report);
}

int bench_micro(int argc, char **argv)
{
    static const struct argp argp = {option_table, parse, NULL, documentation, NULL, NULL, NULL};
    struct bench_micro_plan plan = {.runs = RUNS_DEFAULT};
    argp_parse(&argp, argc, argv, 0, NULL, &plan);
    return bench_run(measure, &plan, plan.json);
}
