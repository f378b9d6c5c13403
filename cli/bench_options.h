/*
 * Options that all benchmarks share, as a child of their argp parsers.
 */
#ifndef CLI_BENCH_OPTIONS_H
#define CLI_BENCH_OPTIONS_H

#include "cli/options.h"

#include <raffia/pages.h>

struct bench_options {
    unsigned runs;           /* rounds that count */
    raffia_pages_mode pages; /* of the huge rows: try or on */
    size_t page_size;        /* 0 = default */
    unsigned threads;        /* of the rows with several; 0 = default */
    bool json;
    const char *device; /* NULL = this machine's memory */
    bool hot_only;      /* loads: nothing is read from the disk */
};

#define BENCH_RUNS_DEFAULT 5u

/* Keys of the benchmark's own options begin here. */
#define BENCH_OPTION_FIRST (CLI_OPTION_FIRST + 0x100)

/* For the parent's `children`. Their input is a struct bench_options, which the parent hands down
 * in ARGP_KEY_INIT. */
extern const struct argp_child bench_options_children[];

/* The same with --device, for benchmarks that can also measure a device. */
extern const struct argp_child bench_device_options_children[];

#endif
