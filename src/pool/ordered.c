/* The ways of a block in a pool whose device has streams. */
#include "pool/order.h"

/* Rounds of waiting for one request: others may take what became free. */
#define WAITS_MAX 1024

/* ---- allocation ----------------------------------------------------------------------------- */

/* A request, and on behalf of which stream. */
struct asking {
    const struct space_request *request;
    struct space_block *block;
    size_t bytes; /* in whole granules; 0: more than there can be */
    size_t alignment;
    bool ordered; /* on a stream that works, and does not record */
    bool reuses;  /* the stream may have what waits for it, and be made to wait for others */
    bool wanted;  /* somebody waits for what the stream has no event behind */
    struct pool_taker taker;
};

static raffia_status begin(const struct raffia_pool *pool, const struct space_request *request,
                           const driver_stream *stream_p, struct space_block *block,
                           struct asking *asking)
{
    const struct driver_device device = pool->device;
    bool capturing = false;
    *asking = (struct asking){.request = request, .block = block};
    asking->alignment = core_max(request->alignment, pool->granule);
    if (!core_align_up(request->bytes, pool->granule, &asking->bytes))
        asking->bytes = 0;
    if (!stream_p)
        return RAFFIA_OK;
    raffia_status status = device.driver->stream_id(device.index, *stream_p, &asking->taker.id);
    if (!status)
        status = device.driver->stream_is_capturing(device.index, *stream_p, &capturing);
    asking->taker.handle = *stream_p;
    /* What is recorded runs later, and maybe on another stream: behind nothing that we know of. */
    asking->ordered = !status && !capturing;
    asking->reuses = asking->ordered && asking->bytes && !pool->order->by_event;
    return status;
}

/* How much larger than the request a block may be. The space counts what was not asked for in 32
 * bits. */
static size_t most_of(const struct asking *asking, bool loosely)
{
    size_t most;
    const size_t more = core_min(loosely ? asking->bytes : asking->bytes / 8, UINT32_MAX / 2);
    return core_add(asking->bytes, more, &most) ? most : SIZE_MAX;
}

/* Pool lock held. OUT_OF_MEMORY, without a sentence, if the stream has nothing that fits. */
static raffia_status take_own(struct raffia_pool *pool, const struct asking *asking,
                              const struct pool_stream *stream, bool loosely)
{
    struct pool_pending *fit =
        stream ? pool_find_fit(stream, asking->bytes, most_of(asking, loosely), asking->alignment)
               : NULL;
    return fit ? pool_unpend(pool, fit, asking->taker, asking->request, asking->block)
               : RAFFIA_ERROR_OUT_OF_MEMORY;
}

/* No lock held. What costs no driver call. */
static raffia_status take_at_hand(struct raffia_pool *pool, struct asking *asking, bool loosely)
{
    raffia_status status = RAFFIA_ERROR_OUT_OF_MEMORY;
    core_lock_take(&pool->lock);
    const struct pool_stream *stream =
        asking->ordered ? pool_stream_find(pool->order, asking->taker.id) : NULL;
    asking->wanted = stream && stream->wanted;
    if (asking->reuses)
        status = take_own(pool, asking, stream, false);
    if (status == RAFFIA_ERROR_OUT_OF_MEMORY) {
        status = space_allocate(pool->space, asking->request, asking->block);
        if (!status) {
            pool_count_block(pool, asking->block);
            pool->hits++;
        }
    }
    if (status == RAFFIA_ERROR_OUT_OF_MEMORY && loosely && asking->reuses)
        status = take_own(pool, asking, stream, true);
    core_lock_leave(&pool->lock);
    return status;
}

/* Order lock held. Takes what fits out of the stream's lists. */
static struct pool_pending *detach_fit(struct raffia_pool *pool, struct pool_stream *stream,
                                       const struct asking *asking)
{
    struct pool_pending *fit = NULL;
    core_lock_take(&pool->lock);
    if (stream->id != asking->taker.id)
        fit = pool_find_fit(stream, asking->bytes, most_of(asking, true), asking->alignment);
    if (fit)
        pool_detach(pool, fit);
    core_lock_leave(&pool->lock);
    return fit;
}

/* No lock held. A block that waits for another stream, which ours is made to wait for. */
static raffia_status take_from_others(struct raffia_pool *pool, const struct asking *asking)
{
    struct pool_order *order = pool->order;
    struct core_error_record before;
    raffia_status status = RAFFIA_ERROR_OUT_OF_MEMORY;
    core_error_save(&before);
    pool_lock(&order->lock);
    for (struct pool_stream *stream = pool_streams_first(pool); status && stream;
         stream = stream->next) {
        struct pool_pending *fit = detach_fit(pool, stream, asking);
        if (!fit)
            continue;
        const bool behind = !pool_order_behind(pool, asking->taker.handle, fit->batch);
        core_lock_take(&pool->lock);
        pool_attach(pool, fit);
        if (behind)
            status = pool_unpend(pool, fit, asking->taker, asking->request, asking->block);
        core_lock_leave(&pool->lock);
    }
    pool_unlock(&order->lock);
    core_error_restore(&before);
    return status ? RAFFIA_ERROR_OUT_OF_MEMORY : RAFFIA_OK;
}

/* No lock held. What can be had by growing, or is at hand by now. */
static raffia_status take_or_grow(struct raffia_pool *pool, struct asking *asking,
                                  struct pool_growth_end *end)
{
    raffia_status status = take_at_hand(pool, asking, false);
    if (status == RAFFIA_ERROR_OUT_OF_MEMORY && !pool_is_rigid(pool))
        status = pool_try_growth(pool, asking->request, asking->block, end);
    return status;
}

/* No lock held. Here, and only here, the stream can be named. */
static void mark_own(struct raffia_pool *pool, const struct asking *asking)
{
    if (asking->ordered)
        pool_order_close(pool, asking->taker.id, asking->taker.handle);
}

/* Dearer step by step: events that have passed, growth, a wait on the device, a wait of ours. */
static raffia_status take_by_any_means(struct raffia_pool *pool, struct asking *asking,
                                       struct pool_growth_end *end)
{
    *end = (struct pool_growth_end){.gave_up = false};
    const bool hopeless = !asking->bytes || asking->bytes > pool->range_bytes;
    mark_own(pool, asking);
    pool_order_refresh(pool);
    raffia_status status = take_or_grow(pool, asking, end);
    for (int i = 0; status == RAFFIA_ERROR_OUT_OF_MEMORY && !hopeless && i < WAITS_MAX; i++) {
        if (asking->reuses) {
            status = take_at_hand(pool, asking, true);
            if (status == RAFFIA_ERROR_OUT_OF_MEMORY)
                status = take_from_others(pool, asking);
        }
        if (status != RAFFIA_ERROR_OUT_OF_MEMORY || !pool_order_wait(pool))
            break;
        mark_own(pool, asking);
        status = take_or_grow(pool, asking, end);
    }
    return status;
}

static raffia_status take_dearly(struct raffia_pool *pool, const struct asking *first, size_t bytes)
{
    struct pool_growth_end end;
    /* The first look was a short one. */
    struct space_request thorough = *first->request;
    struct asking asking = *first;
    thorough.thorough = true;
    asking.request = &thorough;
    raffia_status status = take_by_any_means(pool, &asking, &end);
    if (status == RAFFIA_ERROR_OUT_OF_MEMORY && pool_press(pool, &thorough, bytes))
        status = take_by_any_means(pool, &asking, &end);
    if (status != RAFFIA_ERROR_OUT_OF_MEMORY)
        return status;
    return pool_refuse_grown(pool, &thorough, bytes, &end);
}

raffia_status pool_take_ordered(struct raffia_pool *pool, const struct space_request *request,
                                size_t bytes, const driver_stream *stream_p,
                                struct space_block *block)
{
    struct asking asking;
    raffia_status status = begin(pool, request, stream_p, block, &asking);
    if (status)
        return status;
    status = take_at_hand(pool, &asking, false);
    if (status == RAFFIA_ERROR_OUT_OF_MEMORY)
        return take_dearly(pool, &asking, bytes);
    if (asking.wanted)
        mark_own(pool, &asking);
    return status;
}

/* ---- free ----------------------------------------------------------------------------------- */

/* Pool lock held. The live block at the address, and its record if it was taken. */
static bool find_live(const struct raffia_pool *pool, const void *address,
                      struct space_block *block, struct pool_pending **taken_p)
{
    /* An address below the base wraps to an offset beyond any range. */
    const size_t offset = (uintptr_t)address - (uintptr_t)pool->base;
    if (offset >= pool->range_bytes)
        return false;
    struct pool_pending *record = pool_record_find(pool->order, offset);
    *taken_p = record;
    if (!record)
        return !space_find(pool->space, offset, block) && block->state == SPACE_HELD;
    *block = (struct space_block){
        .handle = record->handle, .offset = record->offset, .bytes = record->bytes};
    return record->state == POOL_TAKEN;
}

/* Pool lock held. Whether the pool has to be looked at again once it is let go. */
static bool pin_if(struct raffia_pool *pool, bool wanted)
{
    const bool pins = wanted || (pool->orphaned && !pool->live_blocks);
    pool->order->pins += pins;
    return pins;
}

static raffia_status free_in_no_order(struct raffia_pool *pool, const void *address)
{
    struct space_block block;
    struct pool_pending *taken;
    raffia_status status = RAFFIA_OK;
    core_lock_take(&pool->lock);
    if (!find_live(pool, address, &block, &taken))
        return pool_refuse_free(pool, address);
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
                                  const void *address)
{
    struct space_block block;
    struct pool_pending *taken;
    core_lock_take(&pool->lock);
    if (!find_live(pool, address, &block, &taken))
        return pool_refuse_free(pool, address);
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

static raffia_status free_on(struct raffia_pool *pool, driver_stream stream, const void *address)
{
    const struct driver_device device = pool->device;
    struct space_block block;
    struct pool_pending *taken;
    uint64_t id;
    raffia_status status = device.driver->stream_id(device.index, stream, &id);
    if (status)
        return status;
    core_lock_take(&pool->lock);
    if (!find_live(pool, address, &block, &taken))
        return pool_refuse_free(pool, address);
    const struct pool_batch *batch = pend_on(pool, stream, id, &block, taken);
    const bool full = batch && (batch->block_count >= POOL_BATCH_BLOCKS ||
                                batch->bytes >= pool->maximum_bytes / 4 || batch->stream->wanted);
    const bool pinned = batch && pin_if(pool, full);
    core_lock_leave(&pool->lock);
    if (!batch)
        return free_waiting(pool, stream, id, address);
    if (full)
        pool_order_close(pool, id, stream);
    if (pinned)
        pool_order_unpin(pool);
    return RAFFIA_OK;
}

raffia_status pool_free_ordered(struct raffia_pool *pool, const driver_stream *stream_p,
                                const void *address)
{
    return stream_p ? free_on(pool, *stream_p, address) : free_in_no_order(pool, address);
}

/* ---- resizing ------------------------------------------------------------------------------- */

static bool would_cut_what_is_used(struct raffia_pool *pool, const void *address, size_t bytes)
{
    struct space_block block;
    struct pool_pending *taken = NULL;
    core_lock_take(&pool->lock);
    const bool used = find_live(pool, address, &block, &taken) && taken && bytes < taken->bytes;
    core_lock_leave(&pool->lock);
    return used;
}

raffia_status pool_order_before_resize(struct raffia_pool *pool, const void *address, size_t bytes)
{
    while (would_cut_what_is_used(pool, address, bytes))
        /* Another thread may have seen to it that there is nothing to wait for any more. */
        if (!pool_order_wait_use(pool) && would_cut_what_is_used(pool, address, bytes))
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
