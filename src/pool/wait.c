/* Seeing to it that pending blocks become free: by looking, and by waiting. */
#include "core/log.h"
#include "pool/order.h"
#include "pool/registry.h"

#include <assert.h>

/* How many pools could not be torn down with their last owner. */
static atomic_size_t left_behind;

/* Order lock held. */
static void look(struct raffia_pool *pool)
{
    for (struct pool_stream *stream = pool_streams_first(pool); stream; stream = stream->next) {
        pool_want_stream(pool, stream);
        pool_poll_stream(pool, stream);
    }
    core_lock_take(&pool->lock);
    pool_streams_sweep(pool->order);
    core_lock_leave(&pool->lock);
}

/* Pool lock held. */
static bool is_over(struct raffia_pool *pool)
{
    struct pool_order *order = pool->order;
    if (!pool->orphaned || pool->live_blocks || pool->pending_blocks || order->pins || order->ended)
        return false;
    order->ended = true;
    return true;
}

static void end_if_over(struct raffia_pool *pool)
{
    core_lock_take(&pool->lock);
    const bool over = is_over(pool);
    core_lock_leave(&pool->lock);
    if (over)
        pool_tear_down(pool);
}

void pool_order_refresh(struct raffia_pool *pool)
{
    struct core_error_record before;
    if (!pool->order)
        return;
    core_error_save(&before);
    pool_lock(&pool->order->lock);
    look(pool);
    pool_unlock(&pool->order->lock);
    end_if_over(pool);
    core_error_restore(&before);
}

void pool_order_close(struct raffia_pool *pool, uint64_t id, driver_stream handle)
{
    struct core_error_record before;
    core_error_save(&before);
    pool_lock(&pool->order->lock);
    core_lock_take(&pool->lock);
    struct pool_stream *stream = pool_stream_find(pool->order, id);
    core_lock_leave(&pool->lock);
    if (stream) {
        (void)pool_mark_stream(pool, stream, handle);
        pool_poll_stream(pool, stream);
    }
    pool_unlock(&pool->order->lock);
    core_error_restore(&before);
}

/* ---- waiting -------------------------------------------------------------------------------- */

/* What a wait is for. */
enum aim {
    AIM_FREE, /* blocks that become free */
    AIM_USE,  /* as well that taken ones are not in use from before any more */
};

/* Pool lock held. Whether there is something to gain. */
static bool is_worthwhile(const struct raffia_pool *pool, enum aim aim)
{
    return pool->pending_blocks || (aim == AIM_USE && pool_count_taken(pool->order));
}

/* Pool lock held. The same for batches up to the one that is marked. */
static bool gains(const struct pool_batch *batch, const struct pool_batch *marked, enum aim aim)
{
    for (;; batch = batch->next) {
        if (batch->block_count || (aim == AIM_USE && batch->taken))
            return true;
        if (batch == marked)
            return false;
    }
}

/* Order lock held. The batch whose event was recorded first, with this thread among its waiters;
 * NULL if none has an event. */
static struct pool_batch *choose(struct raffia_pool *pool, enum aim aim)
{
    struct pool_batch *first = NULL;
    core_lock_take(&pool->lock);
    for (struct pool_stream *stream = pool->order->streams; stream; stream = stream->next) {
        struct pool_batch *marked = pool_marked_from(stream->oldest);
        if (marked && gains(stream->oldest, marked, aim) &&
            (!first || marked->marked < first->marked))
            first = marked;
    }
    if (first)
        first->waiters++;
    core_lock_leave(&pool->lock);
    return first;
}

/* No lock held. */
static raffia_status wait_for_event(const struct raffia_pool *pool, driver_event event)
{
    const struct driver_device device = pool->device;
    raffia_status status = RAFFIA_ERROR_DRIVER;
    for (int i = 0; status && i < POOL_DRIVER_ATTEMPTS; i++)
        status = device.driver->event_wait(device.index, event);
    return status;
}

/* No lock held. A device whose context is lost runs nothing any more. */
static raffia_status wait_for_device(const struct raffia_pool *pool)
{
    const struct driver_device device = pool->device;
    raffia_status status = RAFFIA_ERROR_DRIVER;
    for (int i = 0; status && i < POOL_DRIVER_ATTEMPTS; i++)
        status = device.driver->device_wait(device.index);
    return status && device.driver->context_state(device.index) ? RAFFIA_OK : status;
}

/* Order lock held. Seals all that is open, so that what is freed from here on is told apart.
 * Returns the number of the youngest batch. */
static uint64_t seal_all(struct raffia_pool *pool)
{
    core_lock_take(&pool->lock);
    for (struct pool_stream *stream = pool->order->streams; stream; stream = stream->next)
        if (stream->newest)
            stream->newest->sealed = true;
    const uint64_t youngest = pool->order->births;
    core_lock_leave(&pool->lock);
    return youngest;
}

/* Order lock held. The oldest batches of the stream have passed, up to the number given. */
static bool pass_up_to(struct raffia_pool *pool, struct pool_stream *stream, uint64_t youngest)
{
    bool any = false;
    for (;;) {
        core_lock_take(&pool->lock);
        const bool passes = stream->oldest && stream->oldest->born <= youngest;
        core_lock_leave(&pool->lock);
        if (!passes)
            return any;
        pool_pass_one(pool, stream);
        any = true;
    }
}

/* Order lock held; let go while it waits. For what no event speaks for: the stream has made no call
 * since, and may be gone by now, or the driver refused. */
static bool wait_without_event(struct raffia_pool *pool)
{
    const uint64_t youngest = seal_all(pool);
    bool any = false;
    pool_unlock(&pool->order->lock);
    raffia_status status = wait_for_device(pool);
    pool_lock(&pool->order->lock);
    for (struct pool_stream *stream = status ? NULL : pool_streams_first(pool); stream;
         stream = stream->next)
        any = pass_up_to(pool, stream, youngest) || any;
    return any;
}

/* The same. True if the batch has passed. */
static bool wait_for_batch(struct raffia_pool *pool, struct pool_batch *batch)
{
    const driver_event event = batch->event;
    pool_unlock(&pool->order->lock);
    raffia_status status = wait_for_event(pool, event);
    pool_lock(&pool->order->lock);
    if (!status && !batch->passed)
        pool_pass_until(pool, batch->stream, batch);
    pool_waiter_leaves(pool, batch);
    return !status;
}

static bool has_pending(struct raffia_pool *pool)
{
    core_lock_take(&pool->lock);
    const bool some = pool->pending_blocks > 0;
    core_lock_leave(&pool->lock);
    return some;
}

static bool wait_worthwhile(struct raffia_pool *pool, enum aim aim)
{
    core_lock_take(&pool->lock);
    const bool worthwhile = is_worthwhile(pool, aim);
    core_lock_leave(&pool->lock);
    return worthwhile;
}

static bool wait_for_some(struct raffia_pool *pool, enum aim aim)
{
    struct core_error_record before;
    if (!wait_worthwhile(pool, aim))
        return false;
    core_error_save(&before);
    pool_lock(&pool->order->lock);
    const uint64_t passes = pool->order->passes;
    look(pool);
    bool passed = pool->order->passes != passes;
    struct pool_batch *batch = passed ? NULL : choose(pool, aim);
    passed = passed || (batch && wait_for_batch(pool, batch));
    if (!passed && wait_worthwhile(pool, aim))
        passed = wait_without_event(pool);
    look(pool);
    pool_unlock(&pool->order->lock);
    core_error_restore(&before);
    return passed;
}

bool pool_order_wait(struct raffia_pool *pool)
{
    return wait_for_some(pool, AIM_FREE);
}

bool pool_order_wait_use(struct raffia_pool *pool)
{
    return wait_for_some(pool, AIM_USE);
}

/* ---- the end of a stream -------------------------------------------------------------------- */

/* Order lock held; let go while it waits. No event can be had for the stream. */
static raffia_status wait_for_stream(struct raffia_pool *pool, struct pool_stream *stream,
                                     driver_stream handle)
{
    const uint64_t id = stream->id, youngest = seal_all(pool);
    pool_unlock(&pool->order->lock);
    raffia_status status = RAFFIA_ERROR_DRIVER;
    for (int i = 0; status && i < POOL_DRIVER_ATTEMPTS; i++)
        status = pool->device.driver->stream_wait(pool->device.index, handle);
    pool_lock(&pool->order->lock);
    core_lock_take(&pool->lock);
    stream = pool_stream_find(pool->order, id); /* it may have been forgotten meanwhile */
    core_lock_leave(&pool->lock);
    if (!status && stream)
        pass_up_to(pool, stream, youngest);
    return status;
}

raffia_status pool_order_retire(struct raffia_pool *pool, uint64_t id, driver_stream handle)
{
    raffia_status status = RAFFIA_OK;
    pool_lock(&pool->order->lock);
    core_lock_take(&pool->lock);
    struct pool_stream *stream = pool_stream_find(pool->order, id);
    core_lock_leave(&pool->lock);
    const enum pool_mark_result result =
        stream ? pool_mark_stream(pool, stream, handle) : POOL_MARKED;
    if (result == POOL_MARK_CAPTURING)
        status = core_error(RAFFIA_ERROR_BUSY,
                            "pool '%s': a stream cannot be retired while it is being captured: "
                            "retire it when the capture has ended",
                            pool->name);
    else if (result == POOL_MARK_FAILED)
        status = wait_for_stream(pool, stream, handle);
    core_lock_take(&pool->lock);
    stream = pool_stream_find(pool->order, id);
    if (stream && !status)
        stream->retired = true;
    core_lock_leave(&pool->lock);
    look(pool);
    pool_unlock(&pool->order->lock);
    end_if_over(pool);
    return status;
}

/* ---- the end of a pool ---------------------------------------------------------------------- */

/* No lock held, pinned. */
static void drain(struct raffia_pool *pool)
{
    while (pool_order_wait(pool))
        ;
    if (!has_pending(pool))
        return;
    core_log_warn("pool '%s' is kept: blocks in it were freed on streams that cannot be waited for",
                  pool->name);
    atomic_fetch_add(&left_behind, 1);
}

void pool_order_unpin(struct raffia_pool *pool)
{
    struct pool_order *order = pool->order;
    core_lock_take(&pool->lock);
    const bool waits =
        pool->orphaned && !pool->live_blocks && pool->pending_blocks && !order->draining;
    order->draining = order->draining || waits;
    core_lock_leave(&pool->lock);
    if (waits)
        drain(pool);
    core_lock_take(&pool->lock);
    order->pins--;
    const bool over = is_over(pool);
    core_lock_leave(&pool->lock);
    if (over)
        pool_tear_down(pool);
}

/* Pool lock held. Whether blocks wait for an event that there is none of. */
static bool has_unmarked(const struct raffia_pool *pool)
{
    for (const struct pool_stream *stream = pool->order->streams; stream; stream = stream->next)
        for (struct pool_batch *batch = stream->oldest; batch; batch = batch->next)
            if (batch->block_count && !pool_marked_from(batch))
                return true;
    return false;
}

void pool_order_wait_unmarked(struct raffia_pool *pool)
{
    struct core_error_record before;
    if (!pool->order)
        return;
    core_error_save(&before);
    pool_lock(&pool->order->lock);
    look(pool);
    core_lock_take(&pool->lock);
    const bool unmarked = has_unmarked(pool);
    core_lock_leave(&pool->lock);
    if (unmarked)
        (void)wait_without_event(pool);
    pool_unlock(&pool->order->lock);
    end_if_over(pool);
    core_error_restore(&before);
}

static bool reap(void *context, raffia_pool *pool)
{
    (void)context;
    if (!pool->order)
        return true;
    core_lock_take(&pool->lock);
    const bool orphaned = pool->orphaned;
    core_lock_leave(&pool->lock);
    if (!orphaned)
        return true;
    /* Nobody will make a call for its streams again. */
    pool_order_wait_unmarked(pool);
    if (has_pending(pool))
        atomic_fetch_add(&left_behind, 1);
    return true;
}

void pool_order_reap(void)
{
    if (atomic_exchange(&left_behind, 0))
        pool_registry_for_each(reap, NULL);
}
