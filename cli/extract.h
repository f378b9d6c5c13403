/*
 * Writes tensors' bytes to files of their own.
 */
#ifndef CLI_EXTRACT_H
#define CLI_EXTRACT_H

#include <raffia/load.h>
#include <raffia/status.h>

struct extract_item {
    char *name;
    const char *file; /* borrowed from the request */
};

/* What shall be written where, checked before anything is loaded. */
struct extract_plan {
    struct extract_item *items;
    size_t count;
    bool clash; /* why it was refused: a file would be lost */
};

/*
 * Reads the headers of the model and checks every request, NAME=FILE, against it. Of the '=' in a
 * request that one ends the name which makes it a tensor's; if there are several, the last, so that
 * "./" before a FILE with a '=' in it settles what is meant. Refused are names that are no tensor,
 * files that cannot be written, files of the model itself and a file for two tensors; `clash` tells
 * the latter two. The plan is to be freed in any case.
 */
raffia_status extract_plan_make(const char *path, const raffia_load_options *options,
                                const char *const *requests, size_t count,
                                struct extract_plan *plan);

void extract_plan_free(struct extract_plan *plan);

/* Writes the tensors of a loaded model. Each file appears whole or not at all. */
raffia_status extract_tensors(const raffia_model *model, const struct extract_plan *plan);

#endif
