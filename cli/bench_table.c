/*
 * raffia bench table: the four headline figures of the pool's first description, and ours beside
 * them.
 */
#include "cli/bench.h"
#include "cli/bench_headlines.h"
#include "cli/bench_memory.h"
#include "cli/bench_options.h"
#include "cli/command.h"
#include "cli/fail.h"
#include "cli/interrupt.h"
#include "core/memory.h"

static const char documentation[] =
    "Runs the benchmarks load, alloc, tlb and step with small settings, one after the other, and "
    "sets their results beside the figures of the author who first described such a pool (\"seed "
    "figures\", of a GPU server, not measured here).\n"
    "\v"
    "Rows:\n"
    "  load        a model file: plain.fresh4k.1 and load.standinghuge.n of bench load\n"
    "  allocation  one large allocation, each page written to: first.regular.1 and standing.touch "
    "of "
    "bench alloc\n"
    "  tlb         misses, where the processor counts them; else the time of a random read "
    "(\"probe\"), which no miss count can be told from\n"
    "  first step  first.regular and first.pool of bench step\n"
    "The column \"of seed\" is our ratio over the seed's, where both are of one kind.\n\n"
    "Memory needed: twice --size.\n\n"
    "Examples:\n"
    "  raffia bench table\n"
    "  raffia bench table --size 256MiB --json\n\n"
    "Exit codes: 0 measured, 1 it could not be measured, 2 bad command line.";

enum key {
    KEY_SIZE = 's',
};

#define DEFAULT_BYTES ((size_t)1 << 30)
#define DEFAULT_RUNS  3u
#define SHARE         4 /* of the free memory */
#define BYTES_MIN     ((size_t)4 << 20)
#define BYTES_MAX     ((size_t)32 << 30)

static const struct argp_option option_table[] = {
    {"size", KEY_SIZE, "SIZE", 0,
     "size of the model, the allocation and the memory read (1GiB, or what is free)", 0},
    {0},
};

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct bench_headlines_plan *plan = state->input;
    switch (key) {
    case KEY_SIZE:
        plan->bytes = cli_option_size(state, "--size", text, BYTES_MIN, BYTES_MAX);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static raffia_status run(struct bench_headlines_plan *plan)
{
    raffia_status status = RAFFIA_OK;
    if (!plan->bytes)
        status = bench_memory_choose(DEFAULT_BYTES, SHARE, &plan->bytes);
    struct bench_headlines *headlines = status ? NULL : core_calloc(1, sizeof *headlines);
    if (!headlines)
        return status ? status : RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    status = bench_headlines_measure(plan, headlines);
    if (!status)
        status = bench_headlines_print(headlines, plan->options.json);
    core_free(headlines);
    return status;
}

int bench_table(int argc, char **argv)
{
    static const struct bench_command command = {
        documentation, NULL, BENCH_TAKES_RUNS | BENCH_TAKES_DIRECTORY, option_table, parse};
    struct bench_headlines_plan plan = {.options = {.runs = DEFAULT_RUNS}};
    bench_options_parse(&command, argc, argv, &plan);
    cli_interrupt_catch();
    return run(&plan) ? cli_fail_last(plan.options.json, NULL) : CLI_OK;
}
