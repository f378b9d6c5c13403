/*
 * Which tensors a load takes, and which of their bytes.
 */
#ifndef LOAD_SELECT_H
#define LOAD_SELECT_H

#include "load/catalog.h"

/*
 * One tensor to be had. Its bytes lie in the file as pieces of `piece_bytes` each, `piece_stride`
 * apart: one piece for a whole tensor or a cut of the outermost dimension. An empty tensor has no
 * piece.
 */
struct load_selected {
    const struct catalog_tensor *tensor;
    const uint64_t *shape; /* the slice's, if one was taken */
    uint64_t bytes;
    uint64_t file_offset; /* of the first piece */
    uint64_t piece_bytes;
    uint64_t piece_stride;
};

struct load_selection {
    struct load_selected *tensors; /* in order of name */
    size_t count;
    uint64_t bytes;   /* sum */
    uint64_t *shapes; /* owns the shapes of slices */
};

/*
 * Chooses by `names` and `slices` of the options. A name is a tensor's own name or a shell pattern;
 * one that is both is taken as both. A name or slice that matches no tensor is NOT_FOUND.
 */
raffia_status load_select(const struct catalog *catalog, const raffia_load_options *options,
                          struct load_selection *selection);

void load_selection_free(struct load_selection *selection);

#endif
