/*
 * The options that benchmarks share, and the way their command lines are read.
 */
#ifndef CLI_BENCH_OPTIONS_H
#define CLI_BENCH_OPTIONS_H

#include "cli/options.h"

#include <raffia/pages.h>

/* Zero in any field is the default until the command line was read. */
struct bench_options {
    unsigned runs;           /* rounds that count */
    raffia_pages_mode pages; /* of the huge rows: try or on */
    size_t page_size;        /* 0 = default */
    unsigned threads;        /* of the rows with several; 0 = default */
    bool json;
    const char *directory; /* where models are made */
    const char *device;    /* NULL = this machine's memory */
    bool hot_only;         /* loads: nothing is read from the disk */
};

/* Keys of the benchmark's own options begin here. */
#define BENCH_OPTION_FIRST (CLI_OPTION_FIRST + 0x100)

/* Shared options that not every benchmark has. */
#define BENCH_TAKES_RUNS      1u
#define BENCH_TAKES_DIRECTORY 2u
#define BENCH_TAKES_DEVICE    4u
#define BENCH_NEEDS_DEVICE    8u /* there is no default; its parser refuses a line without */

/* How a benchmark is called. Its plan begins with a struct bench_options. */
struct bench_command {
    const char *documentation;
    const char *argument; /* "[FILE]"; NULL: there is none */
    unsigned takes;
    const struct argp_option *options; /* its own */
    argp_parser_t parse;               /* of these and of the argument; its input is the plan */
};

/* Reads the command line into the plan, defaults filled in; ends the process if it is bad. */
void bench_options_parse(const struct bench_command *command, int argc, char **argv, void *plan);

#endif
