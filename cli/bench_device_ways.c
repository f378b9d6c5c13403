#include "cli/bench_device_ways.h"

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
