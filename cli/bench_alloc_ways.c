#include "cli/bench_alloc_ways.h"

#include "cli/bench_memory.h"
#include "core/error.h"

#include <raffia/umd.h>

#include <stdlib.h>

static raffia_status take_by_umd(void *context, size_t bytes, void **block_p)
{
    const int *device_id = context;
    *block_p = umd_huge_page_alloc(*device_id, bytes, 0);
    return *block_p ? RAFFIA_OK : raffia_last_status();
}

static raffia_status give_by_umd(void *context, void *block, size_t bytes)
{
    const int *device_id = context;
    (void)bytes;
    return (raffia_status)umd_huge_page_free(*device_id, block);
}

struct pair_way pair_way_umd(int *device_id)
{
    return (struct pair_way){device_id, take_by_umd, give_by_umd};
}

static raffia_status take_from_pool(void *context, size_t bytes, void **block_p)
{
    return raffia_pool_alloc(context, bytes, 0, block_p);
}

static raffia_status give_to_pool(void *context, void *block, size_t bytes)
{
    (void)bytes;
    return raffia_pool_free(context, block);
}

struct pair_way pair_way_pool(raffia_pool *pool)
{
    return (struct pair_way){pool, take_from_pool, give_to_pool};
}

static raffia_status take_regular(void *context, size_t bytes, void **block_p)
{
    (void)context;
    unsigned char *memory;
    raffia_status status = bench_memory_map(bytes, &memory);
    if (status)
        return status;
    status = bench_memory_touch(memory, bytes, 1);
    if (status)
        bench_memory_unmap(memory, bytes);
    else
        *block_p = memory;
    return status;
}

static raffia_status give_regular(void *context, void *block, size_t bytes)
{
    (void)context;
    bench_memory_unmap(block, bytes);
    return RAFFIA_OK;
}

struct pair_way pair_way_regular(void)
{
    return (struct pair_way){NULL, take_regular, give_regular};
}

static raffia_status take_malloc(void *context, size_t bytes, void **block_p)
{
    (void)context;
    *block_p = malloc(bytes);
    return *block_p ? RAFFIA_OK : core_error(RAFFIA_ERROR_OUT_OF_MEMORY, "malloc() gave nothing");
}

static raffia_status give_malloc(void *context, void *block, size_t bytes)
{
    (void)context;
    (void)bytes;
    free(block);
    return RAFFIA_OK;
}

struct pair_way pair_way_malloc(void)
{
    return (struct pair_way){NULL, take_malloc, give_malloc};
}
