/* Events behind batches. The order lock is held all through; the driver is asked with the pool lock
 * let go. */
#include "core/log.h"
#include "pool/order.h"

/* ---- events --------------------------------------------------------------------------------- */

static void give_back(struct raffia_pool *pool, driver_event event)
{
    struct pool_order *order = pool->order;
    if (!event)
        return;
    if (order->event_count < POOL_EVENTS_KEPT) {
        order->events[order->event_count++] = event;
        return;
    }
    pool_event_destroy(pool, event);
}

void pool_event_destroy(struct raffia_pool *pool, driver_event event)
{
    struct core_error_record before;
    core_error_save(&before);
    if (pool->device.driver->event_destroy(pool->device.index, event))
        core_log_error("pool '%s': an event could not be destroyed: %s", pool->name,
                       raffia_last_error());
    core_error_restore(&before);
}

static driver_event take_event(struct raffia_pool *pool)
{
    struct pool_order *order = pool->order;
    driver_event event = NULL;
    if (order->event_count)
        return order->events[--order->event_count];
    return pool->device.driver->event_create(pool->device.index, &event) ? NULL : event;
}

/* ---- marking -------------------------------------------------------------------------------- */

/* Pool lock held. Whether there is anything that no event speaks for. */
static bool needs_mark(const struct pool_stream *stream)
{
    bool needed = false;
    for (const struct pool_batch *batch = stream->oldest; batch; batch = batch->next) {
        needed = needed || batch->records || batch->taken;
        if (batch->event)
            needed = false;
    }
    return needed;
}

static enum pool_mark_result ask_for_capture(const struct raffia_pool *pool, driver_stream handle)
{
    const struct driver_device device = pool->device;
    bool capturing;
    if (device.driver->stream_is_capturing(device.index, handle, &capturing))
        return POOL_MARK_FAILED;
    return capturing ? POOL_MARK_CAPTURING : POOL_MARKED;
}

/* An event that was recorded while a capture began tells nothing; it is not used again. */
static driver_event record(struct raffia_pool *pool, driver_stream handle,
                           enum pool_mark_result *result)
{
    const driver_event event = take_event(pool);
    *result = POOL_MARK_FAILED;
    if (!event)
        return NULL;
    if (pool->device.driver->event_record(pool->device.index, event, handle)) {
        give_back(pool, event);
        return NULL;
    }
    *result = ask_for_capture(pool, handle);
    if (*result == POOL_MARKED)
        return event;
    pool_event_destroy(pool, event);
    return NULL;
}

enum pool_mark_result pool_mark_stream(struct raffia_pool *pool, struct pool_stream *stream,
                                       driver_stream handle)
{
    core_lock_take(&pool->lock);
    struct pool_batch *batch = stream->newest;
    const bool needed = needs_mark(stream);
    stream->wanted = stream->wanted && needed;
    core_lock_leave(&pool->lock);
    if (!needed)
        return POOL_MARKED;
    enum pool_mark_result result = ask_for_capture(pool, handle);
    if (result != POOL_MARKED)
        return result;
    /* Blocks freed from here on wait for the next event. */
    core_lock_take(&pool->lock);
    batch->sealed = true;
    core_lock_leave(&pool->lock);
    const driver_event event = record(pool, handle, &result);
    core_lock_take(&pool->lock);
    batch->event = event;
    batch->marked = ++pool->order->marks;
    stream->wanted = stream->wanted && !event;
    core_lock_leave(&pool->lock);
    return result;
}

/* Whether the handle of a default stream names this one in this thread: each thread may have one of
 * its own. */
static bool is_default_here(const struct raffia_pool *pool, const struct pool_stream *stream,
                            driver_stream handle)
{
    const struct driver_device device = pool->device;
    uint64_t id;
    return !device.driver->stream_id(device.index, handle, &id) && id == stream->id;
}

void pool_want_stream(struct raffia_pool *pool, struct pool_stream *stream)
{
    core_lock_take(&pool->lock);
    const bool wanted = needs_mark(stream), is_default = stream->is_default;
    const driver_stream handle = stream->handle; /* a free on it writes it anew */
    stream->wanted = wanted;
    core_lock_leave(&pool->lock);
    if (wanted && is_default && is_default_here(pool, stream, handle))
        (void)pool_mark_stream(pool, stream, handle);
}

/* ---- passing -------------------------------------------------------------------------------- */

void pool_pass_one(struct raffia_pool *pool, struct pool_stream *stream)
{
    core_lock_take(&pool->lock);
    const driver_event event = pool_pass_oldest(pool, stream);
    core_lock_leave(&pool->lock);
    give_back(pool, event);
    pool->order->passes++;
}

void pool_pass_until(struct raffia_pool *pool, struct pool_stream *stream,
                     const struct pool_batch *batch)
{
    bool more = true;
    while (more) {
        more = stream->oldest != batch;
        pool_pass_one(pool, stream);
    }
}

/* Batches that no one waits in, with nothing taken from them, need no event. */
static bool is_void(const struct pool_batch *batch)
{
    return batch->sealed && !batch->block_count && !batch->taken;
}

void pool_poll_stream(struct raffia_pool *pool, struct pool_stream *stream)
{
    const struct driver_device device = pool->device;
    for (;;) {
        bool done = false;
        core_lock_take(&pool->lock);
        struct pool_batch *oldest = stream->oldest;
        struct pool_batch *marked = pool_marked_from(oldest);
        const driver_event event = marked ? marked->event : NULL;
        const bool empty = oldest && is_void(oldest);
        core_lock_leave(&pool->lock);
        if (empty) {
            pool_pass_one(pool, stream);
            continue;
        }
        if (!marked || device.driver->event_done(device.index, event, &done) || !done)
            return;
        pool_pass_until(pool, stream, marked);
    }
}

void pool_waiter_leaves(struct raffia_pool *pool, struct pool_batch *batch)
{
    driver_event event = NULL;
    core_lock_take(&pool->lock);
    batch->waiters--;
    if (batch->passed && !batch->waiters) {
        event = batch->event;
        batch->event = NULL;
    }
    pool_batch_settle(pool->order, batch);
    core_lock_leave(&pool->lock);
    give_back(pool, event);
}

/* ---- behind another stream ------------------------------------------------------------------ */

raffia_status pool_order_behind(struct raffia_pool *pool, driver_stream handle,
                                struct pool_batch *batch)
{
    core_lock_take(&pool->lock);
    const struct pool_batch *marked = pool_marked_from(batch);
    core_lock_leave(&pool->lock);
    if (!marked) {
        pool_want_stream(pool, batch->stream);
        core_lock_take(&pool->lock);
        marked = pool_marked_from(batch);
        core_lock_leave(&pool->lock);
    }
    if (!marked)
        return RAFFIA_ERROR_BUSY;
    return pool->device.driver->stream_wait_event(pool->device.index, handle, marked->event);
}
