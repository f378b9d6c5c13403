/* The ways of a block in a pool with guards. */
#include "core/log.h"
#include "pool/guard.h"

/* A stream that records its work would write the guard each time the record runs, and never now. */
static raffia_status refuse_capture(const struct raffia_pool *pool, raffia_stream stream)
{
    bool capturing = false;
    raffia_status status =
        pool->device.driver->stream_is_capturing(pool->device.index, stream, &capturing);
    if (!status && capturing)
        status = core_error(RAFFIA_ERROR_BUSY,
                            "pool '%s': a block with a guard cannot be allocated on a stream that "
                            "is being captured: allocate it before",
                            pool->name);
    return status;
}

/* Nobody has seen the block yet. */
static void take_back(struct raffia_pool *pool, const struct space_block *block)
{
    bool last;
    core_lock_take(&pool->lock);
    (void)pool_release_block(pool, block, &last);
    core_lock_leave(&pool->lock);
}

raffia_status pool_alloc_guarded(struct raffia_pool *pool, const struct space_request *request,
                                 size_t bytes, const raffia_stream *stream_p,
                                 struct space_block *block)
{
    raffia_status status = stream_p ? refuse_capture(pool, *stream_p) : RAFFIA_OK;
    if (status)
        return status;
    pool_lock(&pool->guard->lock);
    status = pool_guard_reserve_census(pool);
    if (!status)
        status = pool_take(pool, request, bytes, block);
    const bool taken = !status;
    if (taken)
        status = stream_p ? pool_guard_put_on(pool, *stream_p, block) : pool_guard_put(pool, block);
    if (taken && status)
        take_back(pool, block);
    pool_unlock(&pool->guard->lock);
    return status;
}

static void make_held(struct raffia_pool *pool, const struct space_block *block)
{
    core_lock_take(&pool->lock);
    pool_make_held(pool, block);
    core_lock_leave(&pool->lock);
}

/* What became of the guard of a block that is going. Guard lock not held. */
static raffia_status take_guard_away(struct raffia_pool *pool, const struct space_block *block,
                                     enum pool_guard_verdict *verdict, struct pool_damage *damage)
{
    pool_lock(&pool->guard->lock);
    pool_guard_forget(pool, block);
    *verdict = pool_guard_inspect(pool, block, damage);
    if (*verdict == POOL_GUARD_UNREAD)
        core_log_warn("pool '%s': the guard of the block at %p could not be looked at: %s",
                      pool->name, (void *)(pool->base + block->offset), raffia_last_error());
    raffia_status status = pool_guard_lift(pool, block);
    pool_unlock(&pool->guard->lock);
    return status;
}

/* A part that cannot be written to is nobody's any more: the block stays pending for good. */
static raffia_status lose_block(const struct raffia_pool *pool, const struct space_block *block)
{
    core_log_error("pool '%s': %zu bytes at %p are lost, as they stay read-only: %s", pool->name,
                   block->bytes, (void *)(pool->base + block->offset), raffia_last_error());
    return core_error_prefix("pool '%s' cannot take a guard away", pool->name);
}

/*
 * The block is pending, which is to say ours alone, until it is free: while streams get there,
 * while its guard is looked at, and until the sentence about a damaged one is made, so that an
 * orphaned pool lives as long.
 */
raffia_status pool_free_guarded(struct raffia_pool *pool, const raffia_stream *stream_p,
                                const void *address, size_t requested)
{
    struct space_block block;
    enum pool_guard_verdict verdict;
    struct pool_damage damage;
    core_lock_take(&pool->lock);
    if (!pool_find_live(pool, address, &block) || !pool_is_size(&block, requested))
        return pool_refuse_free(pool, address, requested);
    pool_make_pending(pool, &block);
    core_lock_leave(&pool->lock);

    raffia_status status = stream_p ? pool_wait_for(pool, *stream_p) : RAFFIA_OK;
    if (!status)
        status = pool_guard_wait(pool, &block);
    if (status) {
        make_held(pool, &block);
        return status;
    }
    status = take_guard_away(pool, &block, &verdict, &damage);
    if (status)
        return lose_block(pool, &block);
    if (verdict == POOL_GUARD_DAMAGED)
        status = pool_report_damage(pool, &damage);
    bool last = false;
    core_lock_take(&pool->lock);
    pool_make_held(pool, &block);
    raffia_status freed = pool_release_block(pool, &block, &last);
    core_lock_leave(&pool->lock);
    if (last)
        pool_tear_down(pool);
    return freed ? pool_freeze(pool) : status;
}

/* Guard lock held. The block may have its old size or the new one; unless another thread freed it
 * meanwhile, which was a mistake of the caller's, it needs a guard again. */
static void put_again(struct raffia_pool *pool, const void *address)
{
    struct space_block block;
    core_lock_take(&pool->lock);
    const bool live = pool_find_live(pool, address, &block);
    core_lock_leave(&pool->lock);
    if (!live)
        return;
    struct core_error_record before;
    core_error_save(&before);
    raffia_status status = RAFFIA_ERROR_DRIVER;
    for (int i = 0; status && i < POOL_DRIVER_ATTEMPTS; i++)
        status = pool_guard_put(pool, &block);
    if (status)
        core_log_error("pool '%s': the guard of the block at %p could not be written: %s",
                       pool->name, address, raffia_last_error());
    core_error_restore(&before);
}

raffia_status pool_resize_guarded(struct raffia_pool *pool, const void *address, size_t requested,
                                  size_t bytes)
{
    struct space_block block;
    struct pool_damage damage;
    struct pool_bad_address verdict;
    core_lock_take(&pool->lock);
    const bool found = pool_find_live(pool, address, &block) && pool_is_size(&block, requested);
    if (found)
        pool_make_pending(pool, &block);
    else
        pool_judge_block(pool, pool->space, address, requested, &verdict);
    core_lock_leave(&pool->lock);
    if (!found)
        return pool_refuse_address(pool, "resize", &verdict);

    raffia_status status = pool_guard_wait(pool, &block);
    pool_lock(&pool->guard->lock);
    bool damaged = false;
    if (!status) {
        pool_guard_forget(pool, &block);
        damaged = pool_guard_inspect(pool, &block, &damage) == POOL_GUARD_DAMAGED;
        status = damaged ? RAFFIA_OK : pool_guard_lift(pool, &block);
    }
    make_held(pool, &block);
    if (!status && !damaged) {
        status = pool_resize_plain(pool, address, requested, bytes);
        put_again(pool, address);
    }
    pool_unlock(&pool->guard->lock);
    return damaged ? pool_report_damage(pool, &damage) : status;
}
