/*
 * A model in numbers: its files, how many tensors of which type, and the largest ones.
 */
#ifndef CLI_MODEL_SUMMARY_H
#define CLI_MODEL_SUMMARY_H

#include <raffia/load.h>
#include <raffia/status.h>

#define MODEL_SUMMARY_LARGEST 5

struct model_summary_file {
    const char *path; /* the model's */
    uint64_t bytes;   /* 0 if it cannot be told */
};

struct model_summary {
    struct model_summary_file *files; /* in order of path */
    size_t file_count;
    struct {
        size_t tensors;
        uint64_t bytes;
    } dtypes[RAFFIA_DTYPE_COUNT];
    const raffia_tensor *largest[MODEL_SUMMARY_LARGEST]; /* largest first */
    size_t largest_count;
};

/* The summary must not outlive the model. */
raffia_status model_summary_make(const raffia_model *model, struct model_summary *summary);

void model_summary_free(struct model_summary *summary);

#endif
