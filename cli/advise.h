/*
 * What `raffia advise` prints.
 */
#ifndef CLI_ADVISE_H
#define CLI_ADVISE_H

#include "cli/advise_judge.h"

struct advise_report {
    const char *const *paths; /* of the models, in the order of the question's weights */
    struct advise_question question;
    struct advice advice;
};

raffia_status advise_print(const struct advise_report *report, bool json);

#endif
