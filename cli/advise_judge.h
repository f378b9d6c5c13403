/*
 * What pool models want, on a machine, and what to expect of it.
 */
#ifndef CLI_ADVISE_JUDGE_H
#define CLI_ADVISE_JUDGE_H

#include "driver/host/facts.h"

#include <raffia/status.h>

#define ADVISE_TEXT_MAX         512
#define ADVISE_COMMANDS_MAX     4
#define ADVISE_REMARKS_MAX      6
#define ADVISE_EXPECTATIONS_MAX 4

/* From so many loads a day on a page of 1 GiB may pay off. */
#define ADVISE_LOADS_MANY 20u

/* Weights beyond which it may, and those below which huge pages gain little. Decimal, as the
 * figures were stated. */
#define ADVISE_WEIGHTS_LARGE ((size_t)8 * 1000 * 1000 * 1000)
#define ADVISE_WEIGHTS_SMALL ((size_t)500 * 1000 * 1000)

struct advise_question {
    const size_t *weights; /* bytes of each model */
    size_t count;          /* at least 1 */
    bool rotate;           /* models come and go; else all of them stay */
    bool loads_given;
    uint64_t loads_per_day;
};

struct advise_expectation {
    char text[ADVISE_TEXT_MAX];
    bool applies; /* to these models; what holds for every program applies */
};

/* Whole sentences, and commands to be typed as they stand. */
struct advice {
    size_t weight_bytes;
    size_t pool_bytes;
    size_t turns_bytes; /* a pool that does if several models take turns; 0 for one model */
    unsigned percent;   /* of the weights, before rounding up to whole pages */
    char arithmetic[ADVISE_TEXT_MAX];
    char why[ADVISE_TEXT_MAX];
    size_t page_size;
    char page_why[ADVISE_TEXT_MAX];
    bool fits; /* the pool fits into what is free */
    size_t command_count;
    char commands[ADVISE_COMMANDS_MAX][ADVISE_TEXT_MAX + HOST_PATH_MAX];
    size_t remark_count;
    char remarks[ADVISE_REMARKS_MAX][ADVISE_TEXT_MAX];
    size_t expectation_count;
    struct advise_expectation expectations[ADVISE_EXPECTATIONS_MAX];
};

/* Judges. Pure: asks nobody anything. OVERFLOW if the sizes exceed the address space. */
raffia_status advise_judge(const struct advise_question *question, const struct host_facts *facts,
                           struct advice *advice);

#endif
