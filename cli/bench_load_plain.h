/*
 * The baseline: what a program does that knows nothing of pools. New anonymous memory in 4 KiB
 * pages, and read() into it.
 */
#ifndef CLI_BENCH_LOAD_PLAIN_H
#define CLI_BENCH_LOAD_PLAIN_H

#include "cli/model_summary.h"

#include <raffia/status.h>

struct plain_load {
    unsigned char *memory; /* the files, whole, one behind the other */
    size_t bytes;
    double map_seconds; /* spent on getting addresses; the pages come with the reading */
};

/* Reads the files; each of `threads` threads reads its share of the bytes, in order. */
raffia_status plain_load_run(const struct model_summary *files, unsigned threads,
                             struct plain_load *load);

/* Gives the memory back to the system. */
void plain_load_free(struct plain_load *load);

#endif
