#include "catalog_invariants.h"

#include <string.h>

static const char *broken_by_tensor(const struct catalog *catalog,
                                    const struct catalog_tensor *tensor, uint64_t file_bytes)
{
    if (catalog->file_count) {
        if (tensor->file >= catalog->file_count)
            return "the file exists";
        file_bytes = catalog->files[tensor->file].bytes;
    }
    if (tensor->rank > RAFFIA_TENSOR_RANK_MAX)
        return "the rank is bounded";
    if (raffia_dtype_bits(tensor->dtype) == 0)
        return "the dtype is known";
    unsigned __int128 bits = raffia_dtype_bits(tensor->dtype);
    for (unsigned i = 0; i < tensor->rank; i++) {
        bits *= tensor->shape[i];
        if (bits >> 64)
            return "the size fits";
    }
    if (bits != (unsigned __int128)tensor->bytes * 8)
        return "bytes are what shape and dtype take";
    if (tensor->bytes > file_bytes || tensor->offset > file_bytes - tensor->bytes)
        return "the bytes lie inside the file";
    return NULL;
}

const char *catalog_broken_promise(const struct catalog *catalog, uint64_t file_bytes)
{
    for (size_t i = 0; i < catalog->tensor_count; i++) {
        const char *broken = broken_by_tensor(catalog, &catalog->tensors[i], file_bytes);
        if (broken)
            return broken;
        if (i && strcmp(catalog->tensors[i - 1].name, catalog->tensors[i].name) >= 0)
            return "names are unique and in order";
    }
    for (size_t i = 0; i < catalog->metadata_count; i++) {
        if (!catalog->metadata[i].value)
            return "metadata has values";
        if (i && strcmp(catalog->metadata[i - 1].key, catalog->metadata[i].key) >= 0)
            return "metadata keys are unique and in order";
    }
    return NULL;
}
