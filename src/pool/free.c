/* Taking blocks back, and refusing what is none. */
#include "core/log.h"
#include "pool/pool_internal.h"

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
    return pool->orphaned && pool->live_blocks == 0;
}

/* Pool lock held. Returns a block to the free space; *last_p says that the pool goes with it. */
static raffia_status release_block(struct raffia_pool *pool, const struct space_block *block,
                                   bool *last_p)
{
    raffia_status status = space_free(pool->space, block->handle);
    if (!status)
        *last_p = count_free(pool, block->bytes);
    return status;
}

/* Pool lock held for both: SPACE_PENDING blocks are nobody's, yet not free. */
static void make_pending(struct raffia_pool *pool, const struct space_block *block)
{
    space_set_state(pool->space, block->handle, SPACE_PENDING);
    pool->pending_blocks++;
}

static void make_held(struct raffia_pool *pool, const struct space_block *block)
{
    space_set_state(pool->space, block->handle, SPACE_HELD);
    pool->pending_blocks--;
}

/* A damaged guard is reported, but the block goes all the same: the caller has given it up. It is
 * pending meanwhile, which keeps an orphaned pool alive until the sentence is made. */
static raffia_status free_damaged(struct raffia_pool *pool, const struct space_block *block,
                                  const struct pool_damage *damage)
{
    bool last = false;
    raffia_status status = pool_report_damage(pool, damage);
    core_lock_take(&pool->lock);
    make_held(pool, block);
    (void)release_block(pool, block, &last);
    core_lock_leave(&pool->lock);
    if (last)
        pool_tear_down(pool);
    return status;
}

/* Pool lock held; it is let go. */
static raffia_status refuse_free(struct raffia_pool *pool, const void *address)
{
    struct pool_bad_address verdict;
    pool_judge_address(pool, address, &verdict);
    pool->bad_frees++;
    core_lock_leave(&pool->lock);
    return pool_refuse_address(pool, "free", &verdict);
}

static raffia_status free_guarded(struct raffia_pool *pool, const void *address)
{
    struct space_block block;
    struct pool_damage damage;
    bool last = false;
    core_lock_take(&pool->lock);
    if (!pool_find_live(pool, address, &block))
        return refuse_free(pool, address);
    raffia_status status = RAFFIA_OK;
    const bool intact = pool_guard_intact(pool, &block, &damage);
    if (intact)
        status = release_block(pool, &block, &last);
    else
        make_pending(pool, &block);
    core_lock_leave(&pool->lock);
    if (!intact)
        return free_damaged(pool, &block, &damage);
    if (last)
        pool_tear_down(pool);
    return status ? pool_freeze(pool) : RAFFIA_OK;
}

/*
 * Takes back what a caller names. Once the lock is let go the pool may be gone: another thread may
 * have freed its last block.
 */
static raffia_status free_now(struct raffia_pool *pool, const void *address)
{
    assert(pool);
    core_log_debug("pool '%s': free of %p", pool->name, address);
    if (pool->guard_bytes)
        return free_guarded(pool, address);
    /* An address below the base wraps to an offset beyond any range. */
    const size_t offset = (uintptr_t)address - (uintptr_t)pool->base;
    size_t bytes;
    core_lock_take(&pool->lock);
    if (offset >= pool->range_bytes || space_free_held(pool->space, offset, &bytes))
        return refuse_free(pool, address);
    const bool last = count_free(pool, bytes);
    core_lock_leave(&pool->lock);
    if (last)
        pool_tear_down(pool);
    return RAFFIA_OK;
}

raffia_status raffia_pool_free(raffia_pool *pool, void *address)
{
    if (!address || pool_is_inherited(pool))
        return RAFFIA_OK;
    raffia_status status = pool_enter(pool);
    return status ? status : free_now(pool, address);
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

/* Waits until the stream has done all that was submitted to it. A stream that records its work
 * instead of doing it would never get there. */
static raffia_status wait_for(const struct raffia_pool *pool, raffia_stream stream)
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

/*
 * The block is pending while the stream gets there, and free when it has: the call waits, with no
 * lock held, so that the block can then be handed out on any stream.
 */
static raffia_status free_after(struct raffia_pool *pool, raffia_stream stream, void *address)
{
    struct space_block block;
    core_lock_take(&pool->lock);
    if (!pool_find_live(pool, address, &block))
        return refuse_free(pool, address);
    make_pending(pool, &block);
    core_lock_leave(&pool->lock);

    raffia_status status = wait_for(pool, stream);
    struct pool_damage damage;
    bool last = false;
    core_lock_take(&pool->lock);
    if (!status && !pool_guard_intact(pool, &block, &damage)) {
        core_lock_leave(&pool->lock);
        return free_damaged(pool, &block, &damage);
    }
    make_held(pool, &block);
    raffia_status freed = status ? RAFFIA_OK : release_block(pool, &block, &last);
    core_lock_leave(&pool->lock);
    if (last)
        pool_tear_down(pool);
    return freed ? pool_freeze(pool) : status;
}

raffia_status raffia_pool_free_on(raffia_pool *pool, raffia_stream stream, void *address)
{
    if (!address || pool_is_inherited(pool))
        return RAFFIA_OK;
    raffia_status status = pool_check_stream(pool, stream);
    if (status)
        return status;
    assert(pool);
    if (!pool->asynchronous)
        return free_now(pool, address);
    return free_after(pool, stream, address);
}
