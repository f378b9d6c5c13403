/* Birth, death and audit of a pool's order. */
#include "pool/order.h"

#include "core/memory.h"

#include <assert.h>
#include <stdio.h>

#define FIRST_BUCKETS ((size_t)64)

raffia_status pool_order_create(struct raffia_pool *pool)
{
    struct pool_order *order = core_calloc(1, sizeof *order);
    if (!order)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    order->taken_buckets = FIRST_BUCKETS;
    order->taken = core_calloc(FIRST_BUCKETS, sizeof(struct pool_pending *));
    if (!order->taken) {
        core_free(order);
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    }
    order->by_event = (pool->device.driver->capabilities & DRIVER_REUSE_BY_EVENT) != 0;
    pthread_mutex_init(&order->lock, NULL);
    pool->order = order;
    return RAFFIA_OK;
}

static void free_batches(struct pool_batch *batch)
{
    while (batch) {
        struct pool_batch *next = batch->next;
        core_free(batch);
        batch = next;
    }
}

void pool_order_destroy(struct raffia_pool *pool)
{
    struct pool_order *order = pool->order;
    if (!order)
        return;
    assert(!order->taken_count && !order->pins);
    while (order->streams) {
        struct pool_stream *stream = order->streams;
        order->streams = stream->next;
        for (const struct pool_batch *batch = stream->oldest; batch; batch = batch->next)
            if (batch->event)
                pool_event_destroy(pool, batch->event);
        free_batches(stream->oldest);
        core_free(stream);
    }
    while (order->event_count)
        pool_event_destroy(pool, order->events[--order->event_count]);
    free_batches(order->spare_batches);
    pool_pending_free_slabs(order);
    pthread_mutex_destroy(&order->lock);
    core_free(order->taken);
    core_free(order);
    pool->order = NULL;
}

/* ---- audit ---------------------------------------------------------------------------------- */

static bool record_is_wrong(struct raffia_pool *pool, const struct pool_pending *pending,
                            enum space_state state)
{
    struct space_block block;
    return space_find(pool->space, pending->offset, &block) || block.handle != pending->handle ||
           block.bytes != pending->bytes || block.state != state;
}

static bool batch_is_wrong(struct raffia_pool *pool, const struct pool_batch *batch)
{
    size_t blocks = 0, bytes = 0;
    for (const struct pool_pending *one = batch->blocks; one; one = one->batch_next) {
        if (one->batch != batch || one->taken || record_is_wrong(pool, one, SPACE_PENDING))
            return true;
        blocks++;
        bytes += one->bytes;
    }
    return blocks != batch->block_count || bytes != batch->bytes || batch->passed;
}

static size_t count_with_past(const struct pool_batch *batch)
{
    size_t count = 0;
    for (const struct pool_pending *one = batch->blocks; one; one = one->batch_next)
        count += one->past != NULL;
    return count;
}

static size_t count_listed(const struct pool_stream *stream)
{
    size_t count = 0;
    for (unsigned i = 0; i < POOL_ORDER_CLASSES; i++)
        for (const struct pool_pending *one = stream->classes[i]; one; one = one->next)
            count++;
    return count;
}

static bool taken_are_wrong(struct raffia_pool *pool)
{
    const struct pool_order *order = pool->order;
    size_t count = 0;
    for (size_t i = 0; i < order->taken_buckets; i++)
        for (const struct pool_pending *one = order->taken[i]; one; one = one->next) {
            if (!one->taken || !one->batch || record_is_wrong(pool, one, SPACE_HELD))
                return true;
            count++;
        }
    return count != order->taken_count;
}

bool pool_order_is_wrong(struct raffia_pool *pool, char text[static CORE_ERROR_MAX])
{
    const struct pool_order *order = pool->order;
    size_t waiting = order ? order->unlisted : pool->pending_blocks;
    for (const struct pool_stream *stream = order ? order->streams : NULL; stream;
         stream = stream->next) {
        size_t blocks = 0, unlisted = 0;
        for (const struct pool_batch *batch = stream->oldest; batch; batch = batch->next) {
            if (batch->stream != stream || batch_is_wrong(pool, batch)) {
                snprintf(text, CORE_ERROR_MAX, "a batch of stream %llu is wrong",
                         (unsigned long long)stream->id);
                return true;
            }
            blocks += batch->block_count;
            unlisted += count_with_past(batch);
        }
        if (count_listed(stream) != (order->by_event ? 0 : blocks - unlisted)) {
            snprintf(text, CORE_ERROR_MAX, "stream %llu lists other blocks than wait for it",
                     (unsigned long long)stream->id);
            return true;
        }
        waiting += blocks;
    }
    if (order && taken_are_wrong(pool)) {
        snprintf(text, CORE_ERROR_MAX, "the table of taken blocks is wrong");
        return true;
    }
    if (waiting != pool->pending_blocks) {
        snprintf(text, CORE_ERROR_MAX, "pending blocks, batches and counter: %zu against %zu",
                 waiting, pool->pending_blocks);
        return true;
    }
    return false;
}
