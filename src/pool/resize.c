/* Blocks that grow and shrink where they are. */
#include "core/checked.h"
#include "core/text.h"
#include "pool/guard.h"
#include "pool/order.h"

/* Pool lock held. */
static void count_resize(struct raffia_pool *pool, size_t old_bytes, size_t new_bytes)
{
    pool->in_use_bytes = pool->in_use_bytes - old_bytes + new_bytes;
    pool->peak_in_use_bytes = core_max(pool->peak_in_use_bytes, pool->in_use_bytes);
}

/* What became of one try. */
struct resizing {
    size_t bytes; /* guard included */
    bool found;
    struct space_block block; /* as it was before */
    struct pool_bad_address verdict;
};

/* Pool lock held. */
static raffia_status resize_in_place(struct raffia_pool *pool, const void *address,
                                     struct resizing *resizing)
{
    struct space_block *block = &resizing->block, after;
    resizing->found = pool_find_live(pool, address, block);
    if (!resizing->found) {
        pool_judge_address(pool, address, &resizing->verdict);
        return RAFFIA_ERROR_BAD_ADDRESS;
    }
    if (resizing->bytes > pool->range_bytes - block->offset)
        return RAFFIA_ERROR_OUT_OF_MEMORY;
    raffia_status status = space_resize(pool->space, block->handle, resizing->bytes);
    if (!status)
        status = space_find(pool->space, block->offset, &after);
    if (status)
        return status;
    count_resize(pool, block->bytes, after.bytes);
    if (pool->order)
        pool_order_resized(pool->order, &after);
    return RAFFIA_OK;
}

/* Pool lock held. Whether nothing but free space and absent slots lie behind the block as far as
 * its new end; if so, *interval is that part. */
static bool may_grow_behind(struct raffia_pool *pool, const struct resizing *resizing,
                            struct pool_interval *interval)
{
    const size_t start = resizing->block.offset + resizing->block.bytes;
    if (resizing->bytes > pool->range_bytes - resizing->block.offset)
        return false;
    const size_t end =
        core_align_up_unchecked(resizing->block.offset + resizing->bytes, pool->granule);
    if (end <= start)
        return false;
    *interval = (struct pool_interval){start, end - start, 0};
    for (size_t i = pool_first_slot(pool, interval); i < pool_end_slot(pool, interval); i++) {
        const size_t slot_start = pool_slot_offset(pool, i);
        const size_t from = core_max(start, slot_start);
        const size_t to = core_min(end, slot_start + pool_slot_bytes(pool, i));
        if (pool->slots[i].state == POOL_SLOT_ABSENT)
            interval->missing += pool_slot_bytes(pool, i);
        else if (pool->slots[i].state == POOL_SLOT_MAPPED &&
                 !space_is_free(pool->space, from, to - from))
            return false;
    }
    return true;
}

/* Growth lock held, pool lock not. OUT_OF_MEMORY without a sentence. */
static raffia_status grow_behind(struct raffia_pool *pool, const void *address,
                                 struct resizing *resizing)
{
    struct pool_interval interval;
    raffia_fallback_reason reason;
    core_lock_take(&pool->lock);
    raffia_status status = resize_in_place(pool, address, resizing);
    const bool promising =
        status == RAFFIA_ERROR_OUT_OF_MEMORY && may_grow_behind(pool, resizing, &interval);
    core_lock_leave(&pool->lock);
    if (!promising)
        return status;
    const size_t budget = pool_budget(pool);
    if (interval.missing > budget &&
        !pool_make_room(pool, &interval, interval.missing - budget, interval.missing - budget))
        return status;
    status = pool_fill(pool, &interval, &reason);
    if (status)
        return status == RAFFIA_ERROR_LIMIT ? RAFFIA_ERROR_OUT_OF_MEMORY : status;
    core_lock_take(&pool->lock);
    status = pool_admit(pool, &interval);
    const bool admitted = !status;
    if (admitted)
        status = resize_in_place(pool, address, resizing);
    core_lock_leave(&pool->lock);
    if (!admitted)
        pool_drop_loaned(pool, &interval);
    return status;
}

static raffia_status refuse(const struct raffia_pool *pool, const void *address, size_t bytes,
                            const struct resizing *resizing)
{
    char asked[CORE_SIZE_TEXT_MAX], now[CORE_SIZE_TEXT_MAX];
    return core_error(RAFFIA_ERROR_OUT_OF_MEMORY,
                      "pool '%s': the block at %p cannot grow from %s to %s where it is: the space "
                      "behind it is taken or cannot be had; allocate a new block and copy",
                      pool->name, address, core_format_size(resizing->block.bytes, now),
                      core_format_size(bytes, asked));
}

raffia_status pool_resize_plain(struct raffia_pool *pool, const void *address, size_t bytes)
{
    struct resizing resizing;
    if (!core_add(bytes ? bytes : pool->granule, pool->guard_bytes, &resizing.bytes))
        resizing.bytes = RAFFIA_NONE; /* more than any range has */
    core_lock_take(&pool->lock);
    raffia_status status = resize_in_place(pool, address, &resizing);
    core_lock_leave(&pool->lock);
    if (status == RAFFIA_ERROR_OUT_OF_MEMORY && !(pool->flags & RAFFIA_POOL_FIXED)) {
        pool_lock(&pool->growth_lock);
        status = grow_behind(pool, address, &resizing);
        pool_unlock(&pool->growth_lock);
    }
    if (!resizing.found)
        return pool_refuse_address(pool, "resize", &resizing.verdict);
    if (status == RAFFIA_ERROR_OUT_OF_MEMORY)
        return refuse(pool, address, bytes, &resizing);
    return status;
}

raffia_status raffia_pool_resize(raffia_pool *pool, void *address, size_t bytes)
{
    raffia_status status = pool_enter_to_change(pool);
    if (status)
        return status;
    if (pool->guard)
        return pool_resize_guarded(pool, address, bytes);
    status = pool->order ? pool_order_before_resize(pool, address, bytes) : RAFFIA_OK;
    return status ? status : pool_resize_plain(pool, address, bytes);
}
