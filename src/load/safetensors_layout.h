/* How the tensors of one safetensors file lie in it. */
#ifndef LOAD_SAFETENSORS_LAYOUT_H
#define LOAD_SAFETENSORS_LAYOUT_H

#include "load/catalog.h"

struct safetensors_layout {
    struct catalog_tensor *tensors; /* each valid by itself; offsets count from data_offset */
    size_t count;
    uint64_t data_offset; /* where the header ends */
    uint64_t file_bytes;
    bool lenient;     /* bytes after the last tensor are a warning, not an error */
    const char *path; /* for that warning */
};

/*
 * Sorts the tensors by offset, checks that they fill the file from the header to its end without
 * hole or overlap, and makes their offsets those in the file. The caller adds the file's name to
 * errors.
 */
raffia_status safetensors_layout_settle(const struct safetensors_layout *layout);

#endif
