/*
 * What `raffia load` says about its loads, for people and as JSON.
 */
#ifndef CLI_LOAD_REPORT_H
#define CLI_LOAD_REPORT_H

#include "cli/process.h"
#include "cli/verify.h"

#include <raffia/load.h>

struct load_outcome {
    const char *path;
    const char *device;
    const char *reader; /* the one asked for, by name */
    size_t tensors;
    raffia_load_report *reports; /* one for each run */
    unsigned runs;
    struct process_facts before, after; /* around the first load, the model still in memory */
    bool verified;
    struct verify_result verification; /* of the last run */
    const raffia_model *model;         /* the last run's, for its checksums; NULL = none wanted */
};

raffia_status load_report_print(struct load_outcome *outcome, bool json);

#endif
