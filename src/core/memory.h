/*
 * Ordinary memory for bookkeeping. All of the library's own allocations go through here so that
 * tests can fail each of them and see that none is lost.
 */
#ifndef CORE_MEMORY_H
#define CORE_MEMORY_H

#include <raffia/base.h>
#include <raffia/status.h>

/* Each returns NULL, with RAFFIA_ERROR_OUT_OF_HOST_MEMORY recorded, when there is none. `count *
 * size` is checked. Memory from core_calloc() is zero. */
void *core_malloc(size_t bytes) __attribute__((malloc, alloc_size(1)));
void *core_calloc(size_t count, size_t size) __attribute__((malloc, alloc_size(1, 2)));

/* On failure the old block stays as it was. */
void *core_reallocate(void *block, size_t count, size_t size);

char *core_strdup(const char *text) __attribute__((malloc));

/* printf into a new string. */
char *core_asprintf(const char *format, ...) RAFFIA_PRINTF(1, 2) __attribute__((malloc));

void core_free(void *block);

/* Blocks not freed yet. For leak checks in tests; always 0 in release builds. */
long core_memory_live(void);

#endif
