/*
 * The rounds of `raffia bench load`: every row takes its turn in each of them.
 */
#ifndef CLI_BENCH_LOAD_ROUNDS_H
#define CLI_BENCH_LOAD_ROUNDS_H

#include <raffia/pages.h>
#include <raffia/status.h>

struct bench_load_plan {
    unsigned runs;           /* rounds that count */
    raffia_pages_mode pages; /* of the huge rows: try or on */
    size_t page_size;        /* 0 = default */
    unsigned threads;        /* of the rows with several; 0 = default */
    bool json;
};

/* Measures with the model at `path` and prints the report. */
raffia_status bench_load_model(const char *path, const struct bench_load_plan *plan);

/* Fails unless there is memory for a model of `bytes` in the page cache and in a pool. */
raffia_status bench_load_check_memory(size_t bytes);

#endif
