/* Handing out blocks in a pool whose device has streams. */
#include "pool/order.h"

/* Rounds of waiting for one request: others may take what became free. */
#define WAITS_MAX 1024

/* A request, and on behalf of which stream. */
struct asking {
    const struct space_request *request;
    struct space_block *block;
    size_t bytes; /* in whole granules; 0: more than a number can be */
    size_t alignment;
    bool ordered; /* on a stream that works, and does not record */
    bool reuses;  /* the stream may have what waits for it, and be made to wait for others */
    bool wanted;  /* somebody waits for what the stream has no event behind */
    struct pool_taker taker;
};

/* What the driver says of a stream. */
struct answer {
    struct pool_taker taker;
    bool capturing;
};

static inline raffia_status ask(const struct raffia_pool *pool, driver_stream handle,
                                struct answer *answer)
{
    const struct driver_device device = pool->device;
    answer->taker.handle = handle;
    raffia_status status = device.driver->stream_id(device.index, handle, &answer->taker.id);
    return status ? status
                  : device.driver->stream_is_capturing(device.index, handle, &answer->capturing);
}

/* `answer` is NULL where no order was asked for. */
static void begin(const struct raffia_pool *pool, const struct space_request *request,
                  const struct answer *answer, struct space_block *block, struct asking *asking)
{
    *asking = (struct asking){.request = request, .block = block};
    asking->alignment = core_max(request->alignment, pool->granule);
    if (!core_align_up(request->bytes, pool->granule, &asking->bytes))
        asking->bytes = 0;
    if (!answer)
        return;
    asking->taker = answer->taker;
    /* What is recorded runs later, and maybe on another stream: behind nothing that we know of. */
    asking->ordered = !answer->capturing;
    asking->reuses = asking->ordered && asking->bytes && asking->bytes <= pool->range_bytes &&
                     !pool->order->by_event;
}

/* How much larger than the request a block may be. The space counts what was not asked for in 32
 * bits. */
static inline size_t most_of(size_t bytes, bool loosely)
{
    return bytes + core_min(loosely ? bytes : bytes / 8, UINT32_MAX / 2);
}

/* Pool lock held. Hands out what was found for the request. */
static raffia_status hand_out(struct raffia_pool *pool, struct pool_pending *fit,
                              const struct asking *asking)
{
    const size_t requested = asking->request->bytes;
    *asking->block =
        (struct space_block){fit->handle, fit->offset, fit->bytes, requested, SPACE_HELD};
    return pool_unpend(pool, fit, asking->taker, requested);
}

/* Pool lock held. OUT_OF_MEMORY, without a sentence, if the stream has nothing that fits. */
static raffia_status take_own(struct raffia_pool *pool, const struct asking *asking,
                              const struct pool_stream *stream, bool loosely)
{
    const size_t most = most_of(asking->bytes, loosely);
    struct pool_pending *fit =
        stream ? pool_find_fit(stream, asking->bytes, most, asking->alignment) : NULL;
    return fit ? hand_out(pool, fit, asking) : RAFFIA_ERROR_OUT_OF_MEMORY;
}

/* Pool lock held. */
static raffia_status take_free(struct raffia_pool *pool, const struct space_request *request,
                               struct space_block *block)
{
    raffia_status status = space_allocate(pool->space, request, block);
    if (!status) {
        pool_count_block(pool, block);
        pool->hits++;
    }
    return status;
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
    if (status == RAFFIA_ERROR_OUT_OF_MEMORY)
        status = take_free(pool, asking->request, asking->block);
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
        fit = pool_find_fit(stream, asking->bytes, most_of(asking->bytes, true), asking->alignment);
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
            status = hand_out(pool, fit, asking);
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

/* `answer` as for begin(). */
static __attribute__((noinline)) raffia_status
take_with_answer(struct raffia_pool *pool, const struct space_request *request, size_t bytes,
                 const struct answer *answer, struct space_block *block)
{
    struct asking asking;
    begin(pool, request, answer, block, &asking);
    raffia_status status = take_at_hand(pool, &asking, false);
    if (status == RAFFIA_ERROR_OUT_OF_MEMORY)
        return take_dearly(pool, &asking, bytes);
    if (asking.wanted)
        mark_own(pool, &asking);
    return status;
}

raffia_status pool_take_ordered(struct raffia_pool *pool, const struct space_request *request,
                                size_t bytes, const driver_stream *stream_p,
                                struct space_block *block)
{
    struct answer answer;
    raffia_status status = stream_p ? ask(pool, *stream_p, &answer) : RAFFIA_OK;
    return status ? status
                  : take_with_answer(pool, request, bytes, stream_p ? &answer : NULL, block);
}

/* ---- the short way -------------------------------------------------------------------------- */

/* Pool lock held. Takes what the stream has, or free space, as take_at_hand() does. Not for
 * captures, nor where blocks are reused by event. */
static inline raffia_status take_shortly(struct raffia_pool *pool, const struct pool_stream *stream,
                                         struct pool_taker taker,
                                         const struct space_request *request, size_t *offset_p)
{
    const size_t bytes = core_align_up_unchecked(request->bytes, pool->granule);
    struct pool_pending *fit =
        stream ? pool_find_fit(stream, bytes, most_of(bytes, false), request->alignment) : NULL;
    if (fit) {
        *offset_p = fit->offset;
        return pool_unpend(pool, fit, taker, request->bytes);
    }
    struct space_block block;
    raffia_status status = take_free(pool, request, &block);
    if (!status)
        *offset_p = block.offset;
    return status;
}

static __attribute__((noinline)) raffia_status
take_the_long_way(struct raffia_pool *pool, const struct space_request *request,
                  const struct answer *answer, void **address_p)
{
    struct space_block block;
    raffia_status status = take_with_answer(pool, request, request->bytes, answer, &block);
    if (!status)
        *address_p = pool->base + block.offset;
    return status;
}

raffia_status pool_take_on(struct raffia_pool *pool, driver_stream handle, size_t bytes,
                           size_t alignment, void **address_p)
{
    struct space_request request = {.bytes = bytes, .alignment = core_max(alignment, (size_t)1)};
    struct answer answer;
    raffia_status status = ask(pool, handle, &answer);
    if (status)
        return status;
    if (answer.capturing || pool->order->by_event || bytes > pool->range_bytes)
        return take_the_long_way(pool, &request, &answer, address_p);
    size_t offset = 0;
    core_lock_take(&pool->lock);
    const struct pool_stream *stream = pool_stream_find(pool->order, answer.taker.id);
    const bool wanted = stream && stream->wanted;
    status = take_shortly(pool, stream, answer.taker, &request, &offset);
    core_lock_leave(&pool->lock);
    if (status == RAFFIA_ERROR_OUT_OF_MEMORY)
        return take_the_long_way(pool, &request, &answer, address_p);
    if (status)
        return status;
    if (wanted)
        pool_order_close(pool, answer.taker.id, handle);
    *address_p = pool->base + offset;
    return RAFFIA_OK;
}
