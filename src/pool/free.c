/* Taking blocks back, and refusing what is none. */
#include "core/log.h"
#include "pool/arena.h"
#include "pool/guard.h"
#include "pool/history.h"
#include "pool/order.h"

#include <assert.h>

bool pool_find_live_in(const struct raffia_pool *pool, struct space *space, const void *address,
                       struct space_block *block)
{
    const uintptr_t base = (uintptr_t)pool->base, at = (uintptr_t)address;
    return at >= base && at - base < pool->range_bytes && !space_find(space, at - base, block) &&
           block->state == SPACE_HELD;
}

bool pool_find_live(const struct raffia_pool *pool, const void *address, struct space_block *block)
{
    return pool_find_live_in(pool, pool->space, address, block);
}

raffia_status pool_release_block(struct raffia_pool *pool, const struct space_block *block,
                                 bool *last_p)
{
    raffia_status status = space_free(pool->space, block->handle);
    if (!status)
        *last_p = pool_count_free(pool, block->bytes);
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

raffia_status pool_refuse_free(struct raffia_pool *pool, const void *address, size_t requested)
{
    struct pool_bad_address verdict;
    pool_judge_block(pool, pool->space, address, requested, &verdict);
    pool->bad_frees++;
    core_lock_leave(&pool->lock);
    return pool_refuse_address(pool, "free", &verdict);
}

/* Pool lock held. Whether no block may still be in use from before it was handed out. */
static bool has_no_past(const struct raffia_pool *pool)
{
    return !pool->order || !pool_count_taken(pool->order);
}

/* No lock held. Frees the block that starts at the address, if it is live and of that size; *last_p
 * as pool_release_block(). `certain`: the pool has no blocks with a past; `inner` as for
 * pool_leave(). Once the lock is let go the pool may be gone: another thread may have freed its
 * last block. */
static inline __attribute__((always_inline)) bool free_held(struct raffia_pool *pool,
                                                            const void *address, size_t requested,
                                                            bool certain, bool inner, bool *last_p)
{
    /* An address below the base wraps to an offset beyond any range. */
    const size_t offset = (uintptr_t)address - (uintptr_t)pool->base;
    size_t bytes;
    if (offset >= pool->range_bytes)
        return false;
    if (__builtin_expect(pool_arenas_of(pool) != NULL, 0)) {
        const enum pool_arena_answer answer = pool_arena_free(pool, offset, requested, last_p);
        if (answer != POOL_ARENA_OTHER)
            return answer == POOL_ARENA_DONE;
    }
    pool_lock_own(pool);
    const bool freed =
        (certain || has_no_past(pool)) && !space_free_held(pool->space, offset, requested, &bytes);
    if (freed)
        *last_p = pool_count_free(pool, bytes);
    pool_leave(pool, inner);
    return freed;
}

/* Of a pool with guards or a history, which is told of the free. False where there is a guard to be
 * looked at, which is not done here. */
static __attribute__((noinline)) bool tell_history(struct raffia_pool *pool, const void *address)
{
    if (pool->history)
        pool_history_gone(pool, address);
    return !pool->guard;
}

/* Its caller owns the pool, so that no block is the last. */
bool pool_give_mapped(raffia_pool *pool, const void *address)
{
    bool last = false;
    if (pool_is_inherited(pool) || (pool->long_way && !tell_history(pool, address)))
        return false;
    const bool freed = free_held(pool, address, 0, false, true, &last);
    assert(!last);
    return freed;
}

/* Says why the address cannot be freed. */
static __attribute__((noinline)) raffia_status refuse(struct raffia_pool *pool, const void *address,
                                                      size_t requested)
{
    struct pool_bad_address verdict;
    const struct pool_home home = pool_lock_home(pool, address);
    pool_judge_block(pool, home.space, address, requested, &verdict);
    if (home.arena)
        core_lock_take(&pool->lock);
    pool->bad_frees++;
    pool_leave(pool, home.arena);
    if (home.arena)
        core_lock_leave(home.lock);
    return pool_refuse_address(pool, "free", &verdict);
}

/* Takes back what a caller names. */
static inline __attribute__((always_inline)) raffia_status
free_plainly(struct raffia_pool *pool, const void *address, size_t requested)
{
    assert(pool);
    core_log_debug("pool '%s': free of %p", pool->name, address);
    bool last;
    if (!free_held(pool, address, requested, true, false, &last))
        return refuse(pool, address, requested);
    if (last)
        pool_tear_down(pool);
    return RAFFIA_OK;
}

/* The same for those in whose frame it would be in the way. */
static raffia_status free_now(struct raffia_pool *pool, const void *address, size_t requested)
{
    return free_plainly(pool, address, requested);
}

static __attribute__((noinline)) raffia_status free_specially(struct raffia_pool *pool,
                                                              const raffia_stream *stream_p,
                                                              const void *address, size_t requested)
{
    /* The block may be the last one, and take the pool with it. */
    if (pool->history)
        pool_history_gone(pool, address);
    if (!pool->guard && !pool->order)
        return free_now(pool, address, requested);
    core_log_debug("pool '%s': free of %p", pool->name, address);
    return pool->guard ? pool_free_guarded(pool, stream_p, address, requested)
                       : pool_free_ordered(pool, stream_p, address, requested);
}

raffia_status raffia_pool_free(raffia_pool *pool, void *address)
{
    if (!address)
        return RAFFIA_OK;
    if (!pool)
        return pool_refuse_entry(pool);
    if (pool_is_inherited(pool))
        return RAFFIA_OK;
    return pool->plain ? free_plainly(pool, address, 0) : free_specially(pool, NULL, address, 0);
}

raffia_status pool_refuse_stream(const struct raffia_pool *pool)
{
    raffia_status status = pool_enter(pool);
    if (status)
        return status;
    assert(pool);
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

/* `stream` as for raffia_pool_free_on(); `requested` is 0 where no size was named. */
static inline raffia_status free_on(raffia_pool *pool, raffia_stream stream, void *address,
                                    size_t requested)
{
    if (pool->order && !pool->history && core_log_level() < RAFFIA_LOG_DEBUG)
        return pool_free_on(pool, stream, address, requested);
    return pool->plain ? free_now(pool, address, requested)
                       : free_specially(pool, &stream, address, requested);
}

raffia_status raffia_pool_free_on(raffia_pool *pool, raffia_stream stream, void *address)
{
    if (!address || pool_is_inherited(pool))
        return RAFFIA_OK;
    raffia_status status = pool_check_stream(pool, stream);
    return status ? status : free_on(pool, stream, address, 0);
}

raffia_status pool_free_sized(raffia_pool *pool, raffia_stream stream, void *address, size_t bytes)
{
    if (!address || pool_is_inherited(pool))
        return RAFFIA_OK;
    raffia_status status = pool_check_stream(pool, stream);
    return status ? status : free_on(pool, stream, address, pool_requested(pool, bytes));
}
