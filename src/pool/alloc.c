/* Handing out blocks. */
#include "core/checked.h"
#include "core/log.h"
#include "core/text.h"
#include "pool/arena.h"
#include "pool/guard.h"
#include "pool/history.h"
#include "pool/order.h"

#include <assert.h>

static raffia_status check_alignment(const struct raffia_pool *pool, size_t alignment)
{
    if (!core_is_power_of_two(alignment))
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "pool '%s': an alignment of %zu bytes is not a power of two", pool->name,
                          alignment);
    if (alignment > pool->largest_alignment) {
        char asked[CORE_SIZE_TEXT_MAX], most[CORE_SIZE_TEXT_MAX];
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "pool '%s' cannot align to %s: the most is %s, as its chunks are that "
                          "large",
                          pool->name, core_format_size(alignment, asked),
                          core_format_size(pool->largest_alignment, most));
    }
    return RAFFIA_OK;
}

/* Turns the caller's words into a request. Sizes beyond the range become RAFFIA_NONE, which nothing
 * can serve; no alignment is that of the granule to the space. */
static raffia_status make_request(const struct raffia_pool *pool, size_t bytes, size_t alignment,
                                  unsigned hints, struct space_request *request)
{
    if (alignment) {
        raffia_status status = check_alignment(pool, alignment);
        if (status)
            return status;
    }
    *request = (struct space_request){.bytes = pool_requested(pool, bytes),
                                      .alignment = alignment,
                                      .placement = pool_placement(hints)};
    return RAFFIA_OK;
}

/* The path that is meant to be taken: one lock, no driver call; `inner` as for pool_leave(). In
 * line, with take_mapped() below: a tenth of what an allocation costs was to get from one of these
 * functions into the next. */
static inline __attribute__((always_inline)) raffia_status
allocate_mapped(struct raffia_pool *pool, const struct space_request *request, bool inner,
                struct space_block *block)
{
    if (__builtin_expect(pool_arenas_of(pool) != NULL, 0) && pool_arena_take(pool, request, block))
        return RAFFIA_OK;
    pool_lock_own(pool);
    raffia_status status = space_allocate(pool->space, request, block);
    if (!status) {
        pool_count_block(pool, block);
        pool->hits++;
    }
    pool_leave(pool, inner);
    return status;
}

/* Of a pool with guards or a history. */
static __attribute__((noinline)) bool take_mapped_specially(struct raffia_pool *pool, size_t bytes,
                                                            size_t alignment, bool inner,
                                                            void **address_p)
{
    struct space_block block;
    if (pool->guard)
        return false;
    const struct space_request request = {
        .bytes = bytes, .alignment = alignment, .placement = pool_history_placement(pool, bytes)};
    if (allocate_mapped(pool, &request, inner, &block))
        return false;
    pool_history_born(pool, &request, &block);
    *address_p = pool->base + block.offset;
    return true;
}

static inline __attribute__((always_inline)) bool
take_mapped(raffia_pool *pool, size_t bytes, size_t alignment, bool inner, void **address_p)
{
    const struct space_request request = {.bytes = bytes, .alignment = alignment};
    struct space_block block;
    if (!pool_is_open(pool) || alignment > pool->largest_alignment)
        return false;
    if (pool->long_way)
        return take_mapped_specially(pool, bytes, alignment, inner, address_p);
    if (allocate_mapped(pool, &request, inner, &block))
        return false;
    *address_p = pool->base + block.offset;
    return true;
}

bool pool_take_mapped(raffia_pool *pool, size_t bytes, size_t alignment, void **address_p)
{
    return take_mapped(pool, bytes, alignment, true, address_p);
}

/* What is left to try with nothing left in arenas. */
static raffia_status allocate_gathered(struct raffia_pool *pool,
                                       const struct space_request *request,
                                       struct space_block *block)
{
    (void)pool_lock_whole(pool);
    raffia_status status = space_allocate(pool->space, request, block);
    if (!status) {
        pool_count_block(pool, block);
        pool->hits++;
    }
    core_lock_leave(&pool->lock);
    return status;
}

static raffia_status try_anew(struct raffia_pool *pool, const struct space_request *request,
                              struct space_block *block, struct pool_growth_end *end)
{
    *end = (struct pool_growth_end){.gave_up = false};
    return pool_is_rigid(pool) ? allocate_gathered(pool, request, block)
                               : pool_try_growth(pool, request, block, end);
}

/* The path that is not. It stays out of line, as do the special pools: the frame of the one above
 * would grow. */
static __attribute__((noinline)) raffia_status allocate_anew(struct raffia_pool *pool,
                                                             const struct space_request *request,
                                                             size_t bytes,
                                                             struct space_block *block)
{
    struct pool_growth_end end;
    /* The first look was a short one. */
    struct space_request thorough = *request;
    thorough.thorough = true;
    raffia_status status = try_anew(pool, &thorough, block, &end);
    /* Guarded pools hold their guard lock here: take_guarded() asks for them. */
    if (status == RAFFIA_ERROR_OUT_OF_MEMORY && !pool->guard && pool_press(pool, &thorough, bytes))
        status = try_anew(pool, &thorough, block, &end);
    return status == RAFFIA_ERROR_OUT_OF_MEMORY ? pool_refuse_grown(pool, request, bytes, &end)
                                                : status;
}

raffia_status pool_take(struct raffia_pool *pool, const struct space_request *request, size_t bytes,
                        struct space_block *block)
{
    raffia_status status = allocate_mapped(pool, request, false, block);
    return status == RAFFIA_ERROR_OUT_OF_MEMORY ? allocate_anew(pool, request, bytes, block)
                                                : status;
}

static raffia_status take_guarded(struct raffia_pool *pool, const struct space_request *request,
                                  size_t bytes, const raffia_stream *stream_p,
                                  struct space_block *block)
{
    raffia_status status = pool_alloc_guarded(pool, request, bytes, stream_p, block);
    if (status != RAFFIA_ERROR_OUT_OF_MEMORY || !pool_press(pool, request, bytes))
        return status;
    core_lock_take(&pool->lock);
    pool->failures--; /* it was not the last word */
    core_lock_leave(&pool->lock);
    return pool_alloc_guarded(pool, request, bytes, stream_p, block);
}

static raffia_status take_in_its_way(struct raffia_pool *pool, const struct space_request *request,
                                     size_t bytes, const raffia_stream *stream_p,
                                     struct space_block *block)
{
    if (pool->guard)
        return take_guarded(pool, request, bytes, stream_p, block);
    return pool->order ? pool_take_ordered(pool, request, bytes, stream_p, block)
                       : pool_take(pool, request, bytes, block);
}

static __attribute__((noinline)) raffia_status
take_specially(struct raffia_pool *pool, const struct space_request *request, size_t bytes,
               unsigned hints, const raffia_stream *stream_p, struct space_block *block)
{
    /* Blocks with hints say nothing of others of their size. */
    if (!pool->history || hints & POOL_HINTS_OF_LIFE)
        return take_in_its_way(pool, request, bytes, stream_p, block);
    struct space_request placed = *request;
    placed.placement = pool_history_placement(pool, request->bytes);
    raffia_status status = take_in_its_way(pool, &placed, bytes, stream_p, block);
    if (!status)
        pool_history_born(pool, &placed, block);
    return status;
}

/* `stream_p` is NULL where the block is asked for in no order. */
static raffia_status allocate(raffia_pool *pool, size_t bytes, size_t alignment, unsigned hints,
                              const raffia_stream *stream_p, void **address_p)
{
    struct space_request request;
    struct space_block block;
    raffia_status status = pool_enter_to_change(pool);
    if (status)
        return status;
    assert(pool);
    if (!address_p)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "pool '%s': there is no place to put the address of the block",
                          pool->name);
    status = make_request(pool, bytes, alignment, hints, &request);
    if (status)
        return status;
    status = pool->plain ? pool_take(pool, &request, bytes, &block)
                         : take_specially(pool, &request, bytes, hints, stream_p, &block);
    if (status)
        return status;
    *address_p = pool->base + block.offset;
    core_log_debug("pool '%s': %zu bytes at %p", pool->name, bytes, *address_p);
    return RAFFIA_OK;
}

raffia_status raffia_pool_alloc(raffia_pool *pool, size_t bytes, size_t alignment, void **address_p)
{
    if (pool && address_p && bytes && !(alignment & (alignment - 1)) &&
        core_log_level() < RAFFIA_LOG_DEBUG &&
        take_mapped(pool, bytes, alignment, false, address_p))
        return RAFFIA_OK;
    return allocate(pool, bytes, alignment, RAFFIA_HINT_NONE, NULL, address_p);
}

raffia_status raffia_pool_alloc_hint(raffia_pool *pool, size_t bytes, size_t alignment,
                                     unsigned hints, void **address_p)
{
    raffia_status status = pool_check_hints(hints);
    return status ? status : allocate(pool, bytes, alignment, hints, NULL, address_p);
}

/* Whether there is nothing to refuse, and nothing to say: frozen pools have no short way. */
static inline bool needs_no_words(const struct raffia_pool *pool, size_t bytes, size_t alignment,
                                  void *const *address_p)
{
    return address_p && bytes && !(alignment & (alignment - 1)) &&
           alignment <= pool->largest_alignment && pool_is_open(pool) &&
           core_log_level() < RAFFIA_LOG_DEBUG;
}

raffia_status raffia_pool_alloc_on(raffia_pool *pool, raffia_stream stream, size_t bytes,
                                   size_t alignment, void **address_p)
{
    raffia_status status = pool_check_stream(pool, stream);
    if (status)
        return status;
    if (pool->order && !pool->history && needs_no_words(pool, bytes, alignment, address_p))
        return pool_take_on(pool, stream, bytes, alignment, address_p);
    return allocate(pool, bytes, alignment, RAFFIA_HINT_NONE, &stream, address_p);
}
