#include "cli/bench_device_ways.h"

#include "core/error.h"

#include <raffia/umd.h>

static raffia_status take_on_stream(void *context, size_t bytes, void **block_p)
{
    const struct stream_way *way = context;
    return raffia_pool_alloc_on(way->pool, way->stream, bytes, 0, block_p);
}

static raffia_status give_on_stream(void *context, void *block, size_t bytes)
{
    const struct stream_way *way = context;
    (void)bytes;
    return raffia_pool_free_on(way->pool, way->stream, block);
}

struct pair_way pair_way_stream(struct stream_way *way)
{
    return (struct pair_way){way, take_on_stream, give_on_stream};
}

static raffia_status take_async(void *context, size_t bytes, void **block_p)
{
    const struct async_way *way = context;
    return cuda_peer_alloc_async(way->peer, way->stream, bytes, block_p);
}

static raffia_status give_async(void *context, void *block, size_t bytes)
{
    const struct async_way *way = context;
    (void)bytes;
    return cuda_peer_free_async(way->peer, way->stream, block);
}

struct pair_way pair_way_async(struct async_way *way)
{
    return (struct pair_way){way, take_async, give_async};
}

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

struct pair_way pair_way_umd_of(int *device_id)
{
    return (struct pair_way){device_id, take_by_umd, give_by_umd};
}
