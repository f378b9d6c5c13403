/* Taking back blocks of a pool whose device has streams, and cutting them. */
#include "pool/order.h"

/* Pool lock held. */
static inline bool has_size(const struct raffia_pool *pool, const struct pool_pending *record,
                            size_t requested)
{
    return !requested || space_requested(pool->space, record->handle) == requested;
}

/* Pool lock held. The live block at the address, if `requested` is its size or 0, and its record if
 * it was taken. */
static bool find_live(const struct raffia_pool *pool, const void *address, size_t requested,
                      struct space_block *block, struct pool_pending **taken_p)
{
    /* An address below the base wraps to an offset beyond any range. */
    const size_t offset = (uintptr_t)address - (uintptr_t)pool->base;
    if (offset >= pool->range_bytes)
        return false;
    struct pool_pending *record = pool_record_find(pool->order, offset);
    *taken_p = record;
    if (!record)
        return !space_find(pool->space, offset, block) && block->state == SPACE_HELD &&
               pool_is_size(block, requested);
    *block = (struct space_block){
        .handle = record->handle, .offset = record->offset, .bytes = record->bytes};
    return record->state == POOL_TAKEN && has_size(pool, record, requested);
}

/* Pool lock held. Whether the pool has to be looked at again once it is let go. */
static bool pin_if(struct raffia_pool *pool, bool wanted)
{
    const bool pins = wanted || (pool->orphaned && !pool->live_blocks);
    pool->order->pins += pins;
    return pins;
}

static raffia_status free_in_no_order(struct raffia_pool *pool, const void *address,
                                      size_t requested)
{
    struct space_block block;
    struct pool_pending *taken;
    raffia_status status = RAFFIA_OK;
    core_lock_take(&pool->lock);
    if (!find_live(pool, address, requested, &block, &taken))
        return pool_refuse_free(pool, address, requested);
    bool last;
    if (taken)
        pool_pend(pool, taken, NULL, false);
    else
        status = pool_release_block(pool, &block, &last);
    const bool pinned = pin_if(pool, false);
    core_lock_leave(&pool->lock);
    if (pinned)
        pool_order_unpin(pool);
    return status ? pool_freeze(pool) : RAFFIA_OK;
}

/* Pool lock held. Whether another stream, which ours does not come behind, may still use the block
 * from before it was handed out. */
static bool has_foreign_use(const struct pool_pending *taken, uint64_t id)
{
    return taken && taken->taker != id && taken->batch->stream->id != id;
}

/* Pool lock held. The stream that the block was freed on is there. */
static raffia_status free_reached(struct raffia_pool *pool, const struct space_block *block,
                                  struct pool_pending *taken, uint64_t id)
{
    bool last;
    if (has_foreign_use(taken, id)) {
        pool_pend(pool, taken, NULL, false);
        return RAFFIA_OK;
    }
    if (taken)
        pool_taken_forget(pool->order, taken);
    return pool_release_block(pool, block, &last);
}

/* No lock held. There is no memory for a record: waits for the stream instead. */
static raffia_status free_waiting(struct raffia_pool *pool, driver_stream stream, uint64_t id,
                                  const void *address, size_t requested)
{
    struct space_block block;
    struct pool_pending *taken;
    core_lock_take(&pool->lock);
    if (!find_live(pool, address, requested, &block, &taken))
        return pool_refuse_free(pool, address, requested);
    if (taken)
        pool_taken_hide(pool->order, taken);
    pool_make_pending(pool, &block);
    pool->order->unlisted++;
    core_lock_leave(&pool->lock);

    raffia_status status = pool_wait_for(pool, stream);
    core_lock_take(&pool->lock);
    pool_make_held(pool, &block);
    pool->order->unlisted--;
    if (taken)
        taken = pool_taken_show(pool->order, taken);
    raffia_status freed = status ? RAFFIA_OK : free_reached(pool, &block, taken, id);
    const bool pinned = pin_if(pool, false);
    core_lock_leave(&pool->lock);
    if (pinned)
        pool_order_unpin(pool);
    return freed ? pool_freeze(pool) : status;
}

/* Pool lock held. Puts the block into the stream's open batch; NULL if there is no memory. */
static const struct pool_batch *pend_on(struct raffia_pool *pool, driver_stream handle, uint64_t id,
                                        const struct space_block *block, struct pool_pending *taken)
{
    struct pool_stream *stream = pool_stream_get(pool->order, id, handle);
    struct pool_batch *batch = stream ? pool_open_batch(pool->order, stream) : NULL;
    if (!batch || (!taken && !pool_pend_new(pool, block, batch)))
        return NULL;
    if (taken)
        pool_pend(pool, taken, batch, has_foreign_use(taken, id));
    return batch;
}

/* Pool lock held. Whether enough waits for it to be marked, or somebody asked for that. */
static inline bool is_full(const struct raffia_pool *pool, const struct pool_batch *batch)
{
    return batch->block_count >= POOL_BATCH_BLOCKS || batch->bytes >= pool->maximum_bytes / 2 ||
           batch->stream->wanted;
}

/* No lock held. The stream is asked for its id, whatever it was known by. */
static raffia_status free_asking(struct raffia_pool *pool, driver_stream stream,
                                 const void *address, size_t requested)
{
    const struct driver_device device = pool->device;
    struct space_block block;
    struct pool_pending *taken;
    uint64_t id;
    raffia_status status = device.driver->stream_id(device.index, stream, &id);
    if (status)
        return status;
    core_lock_take(&pool->lock);
    if (!find_live(pool, address, requested, &block, &taken))
        return pool_refuse_free(pool, address, requested);
    const struct pool_batch *batch = pend_on(pool, stream, id, &block, taken);
    const bool full = batch && is_full(pool, batch);
    const bool pinned = batch && pin_if(pool, full);
    core_lock_leave(&pool->lock);
    if (!batch)
        return free_waiting(pool, stream, id, address, requested);
    if (full)
        pool_order_close(pool, id, stream);
    if (pinned)
        pool_order_unpin(pool);
    return RAFFIA_OK;
}

/* ---- the short way -------------------------------------------------------------------------- */

/* Pool lock held. The stream that a block was handed out on, if it is freed by the same handle, as
 * order.h explains. Not for default streams: one handle may be a stream of its own in each thread.
 */
static inline struct pool_stream *
find_taker(const struct raffia_pool *pool, const struct pool_pending *record, driver_stream handle)
{
    if (!record || record->state != POOL_TAKEN || record->taker_handle != handle)
        return NULL;
    struct pool_stream *stream = pool_stream_find(pool->order, record->taker);
    return stream && !stream->retired ? stream : NULL;
}

/* No lock held, pinned. */
static __attribute__((noinline)) raffia_status end_short_way(struct raffia_pool *pool,
                                                             driver_stream handle, bool full)
{
    const struct driver_device device = pool->device;
    struct core_error_record before;
    uint64_t id;
    core_error_save(&before);
    if (full && !device.driver->stream_id(device.index, handle, &id))
        pool_order_close(pool, id, handle);
    core_error_restore(&before);
    pool_order_unpin(pool);
    return RAFFIA_OK;
}

raffia_status pool_free_on(struct raffia_pool *pool, driver_stream handle, const void *address,
                           size_t requested)
{
    struct pool_order *order = pool->order;
    /* An address below the base wraps to an offset beyond any range. */
    const size_t offset = (uintptr_t)address - (uintptr_t)pool->base;
    if (driver_stream_is_default(handle) || !pool_count_taken(order))
        return free_asking(pool, handle, address, requested);
    core_lock_take(&pool->lock);
    struct pool_pending *record = pool_record_find(order, offset);
    struct pool_stream *stream = find_taker(pool, record, handle);
    if (stream && !has_size(pool, record, requested))
        stream = NULL; /* which the long way says */
    struct pool_batch *batch = stream ? pool_open_batch(order, stream) : NULL;
    if (batch)
        pool_pend(pool, record, batch, false);
    const bool full = batch && is_full(pool, batch);
    const bool pinned = batch && pin_if(pool, full);
    core_lock_leave(&pool->lock);
    if (!batch)
        return free_asking(pool, handle, address, requested);
    return pinned ? end_short_way(pool, handle, full) : RAFFIA_OK;
}

raffia_status pool_free_ordered(struct raffia_pool *pool, const driver_stream *stream_p,
                                const void *address, size_t requested)
{
    return stream_p ? pool_free_on(pool, *stream_p, address, requested)
                    : free_in_no_order(pool, address, requested);
}

/* ---- resizing ------------------------------------------------------------------------------- */

/* What is not of the size that it is taken for is refused later, and nothing is cut. */
static bool would_cut_what_is_used(struct raffia_pool *pool, const void *address, size_t requested,
                                   size_t bytes)
{
    struct space_block block;
    struct pool_pending *taken = NULL;
    core_lock_take(&pool->lock);
    const bool used =
        find_live(pool, address, requested, &block, &taken) && taken && bytes < taken->bytes &&
        core_align_up_unchecked(core_max(bytes, (size_t)1), pool->granule) < taken->bytes;
    core_lock_leave(&pool->lock);
    return used;
}

raffia_status pool_order_before_resize(struct raffia_pool *pool, const void *address,
                                       size_t requested, size_t bytes)
{
    while (would_cut_what_is_used(pool, address, requested, bytes))
        /* Another thread may have seen to it that there is nothing to wait for any more. */
        if (!pool_order_wait_use(pool) && would_cut_what_is_used(pool, address, requested, bytes))
            return core_error(RAFFIA_ERROR_BUSY,
                              "pool '%s': the block at %p cannot shrink while the stream that it "
                              "was allocated on is being captured, or cannot be waited for",
                              pool->name, address);
    return RAFFIA_OK;
}

void pool_order_resized(struct pool_order *order, const struct space_block *block)
{
    struct pool_pending *taken = pool_record_find(order, block->offset);
    if (taken)
        pool_taken_resize(taken, block->bytes);
}
