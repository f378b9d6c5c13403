/*
 * Small models whose contents can be checked anywhere: in a child, in a thread, after a kill.
 */
#ifndef LIFE_MODELS_H
#define LIFE_MODELS_H

#include "model_file.h"
#include "support/directory.h"

#include <raffia/load.h>

#define KIB ((size_t)1024)
#define MIB (1024 * KIB)

enum { LIFE_TENSORS = 4 };

struct life_model {
    struct test_path path;
    struct model_file_tensor tensors[LIFE_TENSORS];
    uint64_t sums[LIFE_TENSORS]; /* XXH3 of what the file holds */
    size_t bytes;                /* of all tensors */
};

/* Writes a model of about `bytes`, whose largest tensor is half of it. `salt` tells models apart.
 */
void life_model_make(struct life_model *made, const struct test_directory *directory,
                     const char *name, size_t bytes, unsigned salt);

/* True if a loaded model holds what the file does. */
bool life_model_is_whole(const struct life_model *expected, const raffia_model *model);

/* Loads, and returns MISMATCH where a byte is wrong. *model_p is written on success only. */
raffia_status life_load(const struct life_model *model, const raffia_load_options *options,
                        raffia_model **model_p);

/* The same, and lets it go again. */
raffia_status life_load_once(const struct life_model *model, const raffia_load_options *options);

#define LOAD_OPTIONS(...)                                                                          \
    ((raffia_load_options){                                                                        \
        .struct_size = sizeof(raffia_load_options), .device = "host", __VA_ARGS__})

#define POOL_OPTIONS(...)                                                                          \
    ((raffia_pool_options){                                                                        \
        .struct_size = sizeof(raffia_pool_options), .device = "host", __VA_ARGS__})

/* A pool; the figures of one; its end, with nothing in use and nothing damaged. */
raffia_pool *life_pool_make(const raffia_pool_options *options);
raffia_pool_stats life_pool_stats(raffia_pool *pool);
void life_pool_end(raffia_pool *pool);

#endif
