#include "core/memory.h"

#include "core/checked.h"
#include "core/error.h"
#include "core/fault.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef RAFFIA_FAULTS
#include <stdatomic.h>

static atomic_long live_blocks;

static void count_block(int step)
{
    atomic_fetch_add_explicit(&live_blocks, step, memory_order_relaxed);
}

long core_memory_live(void)
{
    return atomic_load(&live_blocks);
}
#else
static void count_block(int step)
{
    (void)step;
}

long core_memory_live(void)
{
    return 0;
}
#endif

static void *refuse(size_t bytes)
{
    core_error(RAFFIA_ERROR_OUT_OF_HOST_MEMORY, "cannot allocate %zu bytes for bookkeeping", bytes);
    return NULL;
}

void *core_malloc(size_t bytes)
{
    void *block = core_fault("malloc") ? NULL : malloc(bytes ? bytes : 1);
    if (!block)
        return refuse(bytes);
    count_block(1);
    return block;
}

void *core_calloc(size_t count, size_t size)
{
    size_t bytes;
    if (!core_multiply(count, size, &bytes))
        return refuse(SIZE_MAX);
    void *block = core_fault("calloc") ? NULL : calloc(1, bytes ? bytes : 1);
    if (!block)
        return refuse(bytes);
    count_block(1);
    return block;
}

void *core_reallocate(void *block, size_t count, size_t size)
{
    size_t bytes;
    if (!core_multiply(count, size, &bytes))
        return refuse(SIZE_MAX);
    void *larger = core_fault("realloc") ? NULL : realloc(block, bytes ? bytes : 1);
    if (!larger)
        return refuse(bytes);
    if (!block)
        count_block(1);
    return larger;
}

char *core_strdup(const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = core_malloc(bytes);
    return copy ? memcpy(copy, text, bytes) : NULL;
}

char *core_asprintf(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0)
        return refuse(0);
    char *text = core_malloc((size_t)length + 1);
    if (!text)
        return NULL;
    va_start(arguments, format);
    vsnprintf(text, (size_t)length + 1, format, arguments);
    va_end(arguments);
    return text;
}

void core_free(void *block)
{
    if (!block)
        return;
    count_block(-1);
    free(block);
}
