/*
 * raffia bench: finds the benchmark and hands it the rest of the line.
 */
#include "cli/bench.h"

#include "cli/command.h"

#include <stdio.h>
#include <string.h>

static struct bench {
    const char *name;
    char title[32]; /* becomes argv[0] */
    cli_run run;
    const char *summary;
} benches[] = {
    {"load", "raffia bench load", bench_load,
     "a model file from the page cache into regular and into huge pages"},
    {"alloc", "raffia bench alloc", bench_alloc,
     "memory from a pool, from a new pool, and from the system"},
    {"copy", "raffia bench copy", bench_copy, "copies between host and device memory"},
    {"tlb", "raffia bench tlb", bench_tlb, "random reads in regular and in huge pages"},
    {"step", "raffia bench step", bench_step,
     "steps that move a batch and compute, with regular memory and with a pool"},
    {"table", "raffia bench table", bench_table,
     "all of them, small, beside the figures the pool was first described with"},
    {"rotate", "raffia bench rotate", bench_rotate,
     "models that take turns, in a pool that stands and in memory made for each"},
    {"micro", "raffia bench micro", bench_micro,
     "generated loads on a pool and on its index of free space"},
    {"trace", "raffia bench trace", bench_trace,
     "recorded allocations replayed on a pool: memory needed, time, a drawing"},
};

static const size_t bench_count = sizeof benches / sizeof *benches;

static void print_usage(FILE *stream)
{
    fprintf(stream,
            "Usage: raffia bench NAME [ARGUMENT...]\n"
            "Measures this machine. Each benchmark compares ways of doing one thing, taking "
            "turns,\nand checks that all of them did it.\n\nBenchmarks:\n");
    for (size_t i = 0; i < bench_count; i++)
        fprintf(stream, "  %-12s %s\n", benches[i].name, benches[i].summary);
    fprintf(stream, "\n  raffia bench NAME --help   what it does and its options\n\n"
                    "Example:\n  raffia bench load --size 1GiB --json\n\n"
                    "Exit codes: 0 measured, 1 it could not be measured, 2 bad command line.\n");
}

int cli_bench(int argc, char **argv)
{
    if (argc < 2) {
        print_usage(stderr);
        return CLI_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_usage(stdout);
        return CLI_OK;
    }
    for (size_t i = 0; i < bench_count; i++)
        if (strcmp(argv[1], benches[i].name) == 0) {
            argv[1] = benches[i].title;
            return benches[i].run(argc - 1, argv + 1);
        }
    fprintf(stderr, "raffia bench: there is no benchmark '%s' (raffia bench --help lists them)\n",
            argv[1]);
    return CLI_USAGE;
}
