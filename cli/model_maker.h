/*
 * Makes a whole model: one file, or a directory of shards with their index.
 */
#ifndef CLI_MODEL_MAKER_H
#define CLI_MODEL_MAKER_H

#include "cli/model_file.h"

struct model_order {
    const char *path;
    const struct model_shape *shape;
    unsigned shards; /* 0 = one file at `path`; else `path` becomes a directory of so many */
    bool replace;    /* an existing file; directories are never replaced unless empty */
};

/* Most shards a model can have: their names count with five digits. */
#define MODEL_SHARDS_MAX 99999u

/* The model appears whole or not at all. */
raffia_status model_make(const struct model_order *order, struct model_writer *writer);

#endif
