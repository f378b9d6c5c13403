/*
 * What tests of loading have in common: a directory, memory to load into, and a hook on reads.
 */
#ifndef LOAD_FIXTURE_H
#define LOAD_FIXTURE_H

#include "model_file.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

#define LOAD_OPTIONS(...)                                                                          \
    ((raffia_load_options){.struct_size = sizeof(raffia_load_options), __VA_ARGS__})

/* Memory aligned to `alignment` plus `shift`, to be freed with test_memory_free(). */
struct test_memory {
    void *base;
    unsigned char *at;
    size_t bytes;
};
struct test_memory test_memory_take(size_t bytes, size_t alignment, size_t shift);
void test_memory_free(struct test_memory *memory);

/* Room for the whole model at `path`, aligned to a page. */
struct test_memory test_memory_for(const char *path, const raffia_load_options *options);

/* True if the descriptor was opened with O_DIRECT. */
bool test_is_direct(int fd);

/* Whether files at `path` can be read with O_DIRECT here. */
bool test_direct_works(const char *path);

/* A resource that gives malloc()ed memory and counts what is live. */
struct test_resource {
    size_t live;
    unsigned properties;
    size_t alignment_max;  /* larger ones are refused as INVALID_ARGUMENT; 0 = none are */
    raffia_status failure; /* of allocate(), if not OK */
};
raffia_resource_ref test_resource_ref(struct test_resource *resource);

#endif
