/* Birth, death and audit of a pool's order. */
#include "pool/order.h"

#include "core/memory.h"

#include <assert.h>
#include <stdio.h>

#define FIRST_BUCKETS ((size_t)128)

raffia_status pool_order_create(struct raffia_pool *pool)
{
    struct pool_order *order = core_calloc(1, sizeof *order);
    if (!order)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    order->table_size = FIRST_BUCKETS;
    order->table = core_calloc(FIRST_BUCKETS, sizeof(struct pool_pending *));
    if (!order->table) {
        core_free(order);
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    }
    order->by_event = (pool->device.driver->capabilities & DRIVER_REUSE_BY_EVENT) != 0;
    pthread_mutex_init(&order->lock, NULL);
    pool->order = order;
    return RAFFIA_OK;
}

void *pool_order_calloc(size_t count, size_t size)
{
    struct core_error_record before;
    core_error_save(&before);
    void *memory = core_calloc(count, size);
    core_error_restore(&before);
    return memory;
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
    assert(!order->record_count && !order->pins);
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
    pool_records_free(order);
    pthread_mutex_destroy(&order->lock);
    core_free(order->table);
    core_free(order);
    pool->order = NULL;
}

/* ---- audit ---------------------------------------------------------------------------------- */

/* What the batches of a stream hold. */
struct tally {
    size_t records;
    size_t waiting, listed; /* that wait; that the stream may have back */
    size_t detached, taken;
};

static bool record_is_wrong(struct raffia_pool *pool, const struct pool_pending *pending)
{
    struct space_block block;
    const enum space_state state = pending->state == POOL_TAKEN ? SPACE_HELD : SPACE_PENDING;
    return space_find(pool->space, pending->offset, &block) || block.handle != pending->handle ||
           block.bytes != pending->bytes || block.state != state ||
           pool_record_find(pool->order, pending->offset) != pending;
}

static bool batch_is_wrong(struct raffia_pool *pool, const struct pool_batch *batch,
                           struct tally *tally)
{
    size_t blocks = 0, bytes = 0, others = 0;
    for (const struct pool_pending *one = batch->records; one; one = one->batch_next) {
        const bool waits = one->state == POOL_WAITS;
        if (one->batch != batch || (one->past && !waits) || record_is_wrong(pool, one))
            return true;
        blocks += waits;
        bytes += waits ? one->bytes : 0;
        others += !waits;
        tally->records++;
        tally->listed += waits && !one->past;
        tally->detached += one->state == POOL_DETACHED;
        tally->taken += one->state == POOL_TAKEN;
    }
    tally->waiting += blocks;
    return blocks != batch->block_count || bytes != batch->bytes || others > batch->taken ||
           batch->passed;
}

static bool stream_is_wrong(struct raffia_pool *pool, const struct pool_stream *stream,
                            struct tally *tally, char text[static CORE_ERROR_MAX])
{
    size_t listed = 0;
    const size_t before = tally->listed;
    for (const struct pool_batch *batch = stream->oldest; batch; batch = batch->next)
        if (batch->stream != stream || batch_is_wrong(pool, batch, tally)) {
            snprintf(text, CORE_ERROR_MAX, "a batch of stream %llu is wrong",
                     (unsigned long long)stream->id);
            return true;
        }
    for (unsigned i = 0; i < POOL_ORDER_CLASSES; i++) {
        const bool in_use = stream->classes_in_use[i / 64] >> i % 64 & 1;
        const size_t so_far = listed;
        for (const struct pool_pending *one = stream->classes[i]; one; one = one->next)
            listed += one->state == POOL_WAITS && one->class == i && !one->past;
        if (in_use != (listed > so_far))
            listed = SIZE_MAX / 2; /* nothing can agree with that */
    }
    if (listed == (pool->order->by_event ? 0 : tally->listed - before))
        return false;
    snprintf(text, CORE_ERROR_MAX, "stream %llu lists other blocks than wait for it",
             (unsigned long long)stream->id);
    return true;
}

/* Every record is in a batch, but for those HIDDEN ones whose batch has passed. */
static bool table_is_wrong(const struct pool_order *order, const struct tally *tally)
{
    size_t records = 0, alone = 0;
    for (size_t i = 0; i < order->table_size; i++)
        for (const struct pool_pending *one = order->table[i]; one; one = one->table_next) {
            records++;
            alone += !one->batch && one->state == POOL_HIDDEN;
        }
    return records != order->record_count || records != tally->records + alone ||
           tally->taken != pool_count_taken(order);
}

bool pool_order_is_wrong(struct raffia_pool *pool, char text[static CORE_ERROR_MAX])
{
    const struct pool_order *order = pool->order;
    struct tally tally = {0};
    for (const struct pool_stream *stream = order ? order->streams : NULL; stream;
         stream = stream->next)
        if (stream_is_wrong(pool, stream, &tally, text))
            return true;
    if (order && (table_is_wrong(order, &tally) || tally.detached > order->unlisted)) {
        snprintf(text, CORE_ERROR_MAX, "the table of blocks that were freed on streams is wrong");
        return true;
    }
    const size_t waiting = order ? order->unlisted + tally.waiting : pool->pending_blocks;
    if (waiting != pool->pending_blocks) {
        snprintf(text, CORE_ERROR_MAX, "pending blocks, batches and counter: %zu against %zu",
                 waiting, pool->pending_blocks);
        return true;
    }
    return false;
}
