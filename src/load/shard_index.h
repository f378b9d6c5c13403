/*
 * The index of a sharded model, model.safetensors.index.json: {"metadata": {"total_size": ...},
 * "weight_map": {tensor: file}}.
 *
 * File names are plain names in the index's own directory: an index must not reach out of it. The
 * files themselves may be symbolic links, as they are in the caches of model hubs: whoever can
 * place links in the directory can as well place files there.
 */
#ifndef LOAD_SHARD_INDEX_H
#define LOAD_SHARD_INDEX_H

#include "load/catalog.h"

struct shard_index_entry {
    const char *tensor;
    const char *file; /* one of shard_index.files */
};

struct shard_index {
    struct shard_index_entry *entries; /* in order of tensor, bytewise; tensors are unique */
    size_t entry_count;
    const char **files; /* in order, bytewise, unique; at most CATALOG_FILES_MAX */
    size_t file_count;
    bool total_given;
    uint64_t total_bytes; /* what the index says; often wrong, so nothing is sized by it */
    struct json_t *json;  /* owns the strings */
};

/* Parses and validates an index; touches no file. `path` is put in front of every error. The index
 * is to be cleared. */
raffia_status shard_index_parse(const char *path, const void *text, size_t bytes,
                                struct shard_index *index);
void shard_index_clear(struct shard_index *index);

/*
 * Compares the index with a catalog made of all its files in their order, and arranged: each tensor
 * must lie in the file it is mapped to, and in no other, and no file may have one that the index
 * does not know (it is stale then). A wrong total is only warned of.
 */
raffia_status shard_index_check(const char *path, const struct shard_index *index,
                                const struct catalog *catalog);

/* Reads the open index file, opens all files that it names and fills the empty catalog. */
raffia_status shard_index_read(struct catalog *catalog, const struct catalog_file *file,
                               const struct catalog_limits *limits);

#endif
