/*
 * The ways of getting a model into memory that `raffia bench load` compares. Each does all of it
 * inside the clock, from opening the files to giving the memory back, but for what its name says
 * was there before.
 */
#ifndef CLI_BENCH_LOAD_WAYS_H
#define CLI_BENCH_LOAD_WAYS_H

#include "cli/bench_report.h"
#include "cli/model_summary.h"

#include <raffia/load.h>

/* What all of them load. */
struct load_subject {
    const char *path;
    raffia_model *model; /* inspected: its tensors' places in the files */
    struct model_summary summary;
    uint64_t *checksums; /* XXH3 of each tensor, from a load that was verified */
    uint64_t file_bytes; /* of all files */
};

struct load_sample {
    double seconds;
    double parts[BENCH_WAIT];  /* of them */
    uint64_t faults;           /* minor */
    uint64_t page_table_bytes; /* more than before, with the model in memory */
    uint64_t bytes_direct;     /* not from the page cache */
    raffia_page_report pages;  /* total_bytes is 0 where no page was read back */
};

/* Pages asked for and threads used. */
struct load_terms {
    raffia_pages_mode pages;
    size_t page_size; /* 0 = default */
    unsigned threads;
};

/* Loads and verifies the model once, which leaves its files in the page cache. The subject must be
 * freed whatever happens. */
raffia_status load_subject_open(const char *path, struct load_subject *subject);
void load_subject_free(struct load_subject *subject);

/* Compares one tensor's bytes, wherever they lie; MISMATCH. */
raffia_status load_subject_check(const struct load_subject *subject, size_t index,
                                 const void *data);

/* With `verify` every tensor is compared, outside the clock; MISMATCH if one differs. */

/* The plain way: read() into new memory in 4 KiB pages, each thread its share. */
raffia_status load_plainly(const struct load_subject *subject, unsigned threads, bool verify,
                           struct load_sample *sample);

/* The library's way, into memory made for the load. */
raffia_status load_fresh(const struct load_subject *subject, const struct load_terms *terms,
                         bool verify, struct load_sample *sample);

/* The library's way, into a pool that is there and has been used: a block the size of the model is
 * overwritten and freed first, outside the clock. */
raffia_status load_standing(const struct load_subject *subject, raffia_pool *pool, unsigned threads,
                            bool verify, struct load_sample *sample);

/* A pool with room for the model. *page_table_bytes_p receives what its tables take. */
raffia_status load_pool_make(const struct load_subject *subject, const struct load_terms *terms,
                             raffia_pool **pool_p, uint64_t *page_table_bytes_p);

#endif
