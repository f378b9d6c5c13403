/* Taking blocks back, and refusing what is none. */
#include "core/log.h"
#include "pool/guard.h"
#include "pool/order.h"

#include <assert.h>

bool pool_find_live(const struct raffia_pool *pool, const void *address, struct space_block *block)
{
    const uintptr_t base = (uintptr_t)pool->base, at = (uintptr_t)address;
    return at >= base && at - base < pool->range_bytes &&
           !space_find(pool->space, at - base, block) && block->state == SPACE_HELD;
}

/* Pool lock held. The counters after a block was freed; true if the pool goes with it. */
static bool count_free(struct raffia_pool *pool, size_t bytes)
{
    pool->live_blocks--;
    pool->in_use_bytes -= bytes;
    pool->frees++;
    return pool->orphaned && pool->live_blocks == 0 && pool->pending_blocks == 0;
}

raffia_status pool_release_block(struct raffia_pool *pool, const struct space_block *block,
                                 bool *last_p)
{
    raffia_status status = space_free(pool->space, block->handle);
    if (!status)
        *last_p = count_free(pool, block->bytes);
    return status;
}

void pool_make_pending(struct raffia_pool *pool, const struct space_block *block)
{
    space_set_state(pool->space, block->handle, SPACE_PENDING);
    pool_count_pending(pool, block->bytes);
}

void pool_make_held(struct raffia_pool *pool, const struct space_block *block)
{
    space_set_state(pool->space, block->handle, SPACE_HELD);
    pool->pending_blocks--;
    pool->pending_bytes -= block->bytes;
    pool->live_blocks++;
    pool->in_use_bytes += block->bytes;
}

raffia_status pool_refuse_free(struct raffia_pool *pool, const void *address)
{
    struct pool_bad_address verdict;
    pool_judge_address(pool, address, &verdict);
    pool->bad_frees++;
    core_lock_leave(&pool->lock);
    return pool_refuse_address(pool, "free", &verdict);
}

/* Pool lock held. Frees the block that starts at the address, if it is live; *last_p as
 * pool_release_block(). */
static bool free_held(struct raffia_pool *pool, const void *address, bool *last_p)
{
    /* An address below the base wraps to an offset beyond any range. */
    const size_t offset = (uintptr_t)address - (uintptr_t)pool->base;
    size_t bytes;
    if (offset >= pool->range_bytes || space_free_held(pool->space, offset, &bytes))
        return false;
    *last_p = count_free(pool, bytes);
    return true;
}

/* Pool lock held. Whether no block may still be in use from before it was handed out. */
static bool has_no_past(const struct raffia_pool *pool)
{
    return pool->plain || !pool->order->taken_count;
}

/* Its caller owns the pool, so that no block is the last. */
bool pool_give_mapped(raffia_pool *pool, const void *address)
{
    if (pool_is_inherited(pool) || pool->guard)
        return false;
    bool last = false;
    core_lock_take(&pool->lock);
    const bool freed = has_no_past(pool) && free_held(pool, address, &last);
    core_lock_leave(&pool->lock);
    assert(!last);
    return freed;
}

/*
 * Takes back what a caller names. Once the lock is let go the pool may be gone: another thread may
 * have freed its last block.
 */
static raffia_status free_now(struct raffia_pool *pool, const void *address)
{
    assert(pool);
    core_log_debug("pool '%s': free of %p", pool->name, address);
    bool last;
    core_lock_take(&pool->lock);
    if (!free_held(pool, address, &last))
        return pool_refuse_free(pool, address);
    core_lock_leave(&pool->lock);
    if (last)
        pool_tear_down(pool);
    return RAFFIA_OK;
}

static __attribute__((noinline)) raffia_status
free_specially(struct raffia_pool *pool, const raffia_stream *stream_p, const void *address)
{
    core_log_debug("pool '%s': free of %p", pool->name, address);
    return pool->guard ? pool_free_guarded(pool, stream_p, address)
                       : pool_free_ordered(pool, stream_p, address);
}

raffia_status raffia_pool_free(raffia_pool *pool, void *address)
{
    if (!address || pool_is_inherited(pool))
        return RAFFIA_OK;
    raffia_status status = pool_enter(pool);
    if (status)
        return status;
    return pool->plain ? free_now(pool, address) : free_specially(pool, NULL, address);
}

raffia_status pool_check_stream(const struct raffia_pool *pool, raffia_stream stream)
{
    raffia_status status = pool_enter(pool);
    if (status)
        return status;
    assert(pool);
    if (!stream || pool->asynchronous)
        return RAFFIA_OK;
    return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                      "pool '%s' lies on a device (driver %s) that has no streams: pass NULL",
                      pool->name, pool->device.driver->name);
}

raffia_status pool_wait_for(const struct raffia_pool *pool, raffia_stream stream)
{
    const struct driver_device device = pool->device;
    bool capturing;
    raffia_status status = device.driver->stream_is_capturing(device.index, stream, &capturing);
    if (status)
        return status;
    if (capturing)
        return core_error(RAFFIA_ERROR_BUSY,
                          "pool '%s': a block cannot be freed on a stream that is being captured: "
                          "free it when the capture has ended",
                          pool->name);
    return device.driver->stream_wait(device.index, stream);
}

raffia_status raffia_pool_free_on(raffia_pool *pool, raffia_stream stream, void *address)
{
    if (!address || pool_is_inherited(pool))
        return RAFFIA_OK;
    raffia_status status = pool_check_stream(pool, stream);
    if (status)
        return status;
    assert(pool);
    return pool->plain ? free_now(pool, address) : free_specially(pool, &stream, address);
}
