/*
 * The rounds of `raffia bench rotate`: models that take turns in memory.
 */
#ifndef CLI_BENCH_ROTATE_ROUNDS_H
#define CLI_BENCH_ROTATE_ROUNDS_H

#include <raffia/pages.h>
#include <raffia/status.h>

#define ROTATE_MODELS_MAX 16u
#define ROTATE_ROUNDS_MAX 10000u

struct rotate_plan {
    unsigned models;
    unsigned rounds;
    size_t model_bytes;
    raffia_pages_mode pages; /* of all ways but the last: try or on */
    size_t page_size;        /* 0 = default */
    unsigned threads;        /* of each load; 0 = default */
};

/* What happens to a model when the next one comes. */
enum rotate_way_kind {
    ROTATE_STAY,    /* all stay in one pool of 1.3 times their sum; each is replaced by itself */
    ROTATE_TURNS,   /* one at a time, in one pool of 1.2 times the largest */
    ROTATE_REBUILT, /* one at a time, in huge pages made for it */
    ROTATE_REGULAR, /* one at a time, in regular pages made for it */
    ROTATE_WAY_COUNT,
};

struct rotate_round {
    double
        seconds[ROTATE_MODELS_MAX]; /* of turns that worked: the old model goes, the next comes */
    unsigned turns;
    unsigned failures;     /* turns without memory for the next model */
    uint64_t driver_calls; /* a pool that stands: all; else those that got the memory */
};

struct rotate_way {
    size_t pool_bytes;    /* 0: no pool stands */
    double build_seconds; /* to make the pool */
    uint64_t build_calls;
    raffia_page_report pages;
    struct rotate_round *rounds; /* as many as planned */
};

struct rotate_result {
    const struct rotate_plan *plan;
    struct rotate_way ways[ROTATE_WAY_COUNT];
};

/* "rotate.stay", ... */
const char *rotate_way_name(enum rotate_way_kind kind);

/* Rotates the models at `paths`. Every byte is verified in the first round. The result must be
 * freed whatever happens. */
raffia_status rotate_measure(const struct rotate_plan *plan, const char *const *paths,
                             struct rotate_result *result);
void rotate_result_free(struct rotate_result *result);

/* p50 and the largest over the turns of rounds first..end-1; NAN if there are none. */
struct rotate_times {
    double p50, max;
};
raffia_status rotate_times_of(const struct rotate_result *result, enum rotate_way_kind kind,
                              unsigned first, unsigned end, struct rotate_times *times);

/* Over the same rounds. */
uint64_t rotate_calls_of(const struct rotate_result *result, enum rotate_way_kind kind,
                         unsigned first, unsigned end);
unsigned rotate_failures_of(const struct rotate_result *result, enum rotate_way_kind kind);

/* bench_rotate_print.c */
raffia_status rotate_print(const struct rotate_result *result, bool json);

#endif
