/* Handing out blocks. */
#include "core/checked.h"
#include "core/log.h"
#include "core/text.h"
#include "pool/guard.h"

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
    *request = (struct space_request){.alignment = alignment, .placement = pool_placement(hints)};
    if (!core_add(bytes ? bytes : pool->granule, pool->guard_bytes, &request->bytes))
        request->bytes = RAFFIA_NONE;
    return RAFFIA_OK;
}

/* The path that is meant to be taken: one lock, no driver call. */
static raffia_status allocate_mapped(struct raffia_pool *pool, const struct space_request *request,
                                     struct space_block *block)
{
    core_lock_take(&pool->lock);
    raffia_status status = space_allocate(pool->space, request, block);
    if (!status) {
        pool_count_block(pool, block);
        pool->hits++;
    }
    core_lock_leave(&pool->lock);
    return status;
}

raffia_status pool_take(struct raffia_pool *pool, const struct space_request *request, size_t bytes,
                        struct space_block *block)
{
    raffia_status status = allocate_mapped(pool, request, block);
    if (status != RAFFIA_ERROR_OUT_OF_MEMORY)
        return status;
    /* The first look was a short one. */
    struct space_request thorough = *request;
    thorough.thorough = true;
    if (!(pool->flags & RAFFIA_POOL_FIXED))
        return pool_grow_for_request(pool, &thorough, block);
    status = allocate_mapped(pool, &thorough, block);
    return status == RAFFIA_ERROR_OUT_OF_MEMORY ? pool_refuse_request(pool, bytes, NULL) : status;
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
    if (!address_p)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "pool '%s': there is no place to put the address of the block",
                          pool->name);
    status = make_request(pool, bytes, alignment, hints, &request);
    if (status)
        return status;
    status = pool->guard ? pool_alloc_guarded(pool, &request, bytes, stream_p, &block)
                         : pool_take(pool, &request, bytes, &block);
    if (status)
        return status;
    *address_p = pool->base + block.offset;
    core_log_debug("pool '%s': %zu bytes at %p", pool->name, bytes, *address_p);
    return RAFFIA_OK;
}

raffia_status raffia_pool_alloc(raffia_pool *pool, size_t bytes, size_t alignment, void **address_p)
{
    return allocate(pool, bytes, alignment, RAFFIA_HINT_NONE, NULL, address_p);
}

raffia_status raffia_pool_alloc_hint(raffia_pool *pool, size_t bytes, size_t alignment,
                                     unsigned hints, void **address_p)
{
    raffia_status status = pool_check_hints(hints);
    return status ? status : allocate(pool, bytes, alignment, hints, NULL, address_p);
}

/* A block is free only when no stream uses it any more, so it may be used on any at once; only its
 * guard cares which it will be. */
raffia_status raffia_pool_alloc_on(raffia_pool *pool, raffia_stream stream, size_t bytes,
                                   size_t alignment, void **address_p)
{
    raffia_status status = pool_check_stream(pool, stream);
    return status ? status : allocate(pool, bytes, alignment, RAFFIA_HINT_NONE, &stream, address_p);
}
