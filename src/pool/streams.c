/* The streams that a pool's blocks were freed on, by id: a handle may name another stream later. */
#include "core/memory.h"
#include "pool/order.h"

static struct pool_stream **bucket_of(struct pool_order *order, uint64_t id)
{
    return &order->buckets[id * 0x9E3779B97F4A7C15u >> 58];
}

struct pool_stream *pool_stream_find(struct pool_order *order, uint64_t id)
{
    struct pool_stream *stream = order->last;
    if (stream && stream->id == id)
        return stream;
    stream = *bucket_of(order, id);
    while (stream && stream->id != id)
        stream = stream->bucket_next;
    if (stream)
        order->last = stream;
    return stream;
}

struct pool_stream *pool_streams_first(struct raffia_pool *pool)
{
    core_lock_take(&pool->lock);
    struct pool_stream *first = pool->order->streams;
    core_lock_leave(&pool->lock);
    return first;
}

/* What had the handle that a new stream has now was destroyed. */
static void retire_namesakes(struct pool_order *order, driver_stream handle)
{
    for (struct pool_stream *stream = order->streams; stream; stream = stream->next)
        if (stream->handle == handle && !stream->is_default)
            stream->retired = true;
}

static struct pool_stream *add(struct pool_order *order, uint64_t id, driver_stream handle)
{
    struct pool_stream **bucket = bucket_of(order, id);
    struct pool_stream *stream = pool_order_calloc(1, sizeof *stream);
    if (!stream)
        return NULL;
    retire_namesakes(order, handle);
    stream->id = id;
    stream->bucket_next = *bucket;
    *bucket = stream;
    stream->next = order->streams;
    order->streams = stream;
    order->stream_count++;
    return stream;
}

struct pool_stream *pool_stream_get(struct pool_order *order, uint64_t id, driver_stream handle)
{
    struct pool_stream *stream = pool_stream_find(order, id);
    if (!stream)
        stream = add(order, id, handle);
    if (stream) {
        stream->is_default = driver_stream_is_default(handle);
        stream->handle = handle;
        stream->retired = false;
    }
    return stream;
}

struct pool_batch *pool_new_batch(struct pool_order *order, struct pool_stream *stream)
{
    struct pool_batch *batch = order->spare_batches;
    if (batch)
        order->spare_batches = batch->next;
    else
        batch = pool_order_calloc(1, sizeof *batch);
    if (!batch)
        return NULL;
    *batch = (struct pool_batch){.stream = stream, .born = ++order->births};
    if (stream->newest)
        stream->newest->next = batch;
    else
        stream->oldest = batch;
    stream->newest = batch;
    return batch;
}

struct pool_batch *pool_marked_from(struct pool_batch *batch)
{
    while (batch && !batch->event)
        batch = batch->next;
    return batch;
}

/* An open batch with nothing in it means nothing. */
static bool is_empty(struct pool_order *order, struct pool_stream *stream)
{
    struct pool_batch *only = stream->oldest;
    if (only && only == stream->newest && !only->sealed && !only->block_count && !only->taken &&
        !only->waiters) {
        stream->oldest = stream->newest = NULL;
        only->passed = true;
        pool_batch_settle(order, only);
    }
    return !stream->oldest;
}

static void forget(struct pool_order *order, struct pool_stream *stream)
{
    struct pool_stream **place = bucket_of(order, stream->id);
    while (*place != stream)
        place = &(*place)->bucket_next;
    *place = stream->bucket_next;
    if (order->last == stream)
        order->last = NULL;
    order->stream_count--;
    core_free(stream);
}

void pool_streams_sweep(struct pool_order *order)
{
    const bool many = order->stream_count > POOL_STREAMS_KEPT;
    struct pool_stream **place = &order->streams;
    while (*place) {
        struct pool_stream *stream = *place;
        if ((many || stream->retired) && is_empty(order, stream)) {
            *place = stream->next;
            forget(order, stream);
        } else {
            place = &stream->next;
        }
    }
}
