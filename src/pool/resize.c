/* Blocks that grow and shrink where they are. */
#include "core/checked.h"
#include "core/text.h"
#include "pool/arena.h"
#include "pool/guard.h"
#include "pool/order.h"

#include <stdio.h>

/* Pool lock held. */
static void count_resize(struct raffia_pool *pool, size_t old_bytes, size_t new_bytes)
{
    pool->in_use_bytes = pool->in_use_bytes - old_bytes + new_bytes;
    pool->peak_in_use_bytes = core_max(pool->peak_in_use_bytes, pool->in_use_bytes);
}

/* What is asked, and what became of one try. Sizes include the guard. */
struct resizing {
    size_t requested; /* the size it is taken for; 0 goes for all */
    size_t bytes;     /* the size it shall have */
    bool found;
    bool hopeless;            /* it cannot grow, whatever is gathered or mapped */
    struct space_block block; /* as it was before */
    struct pool_bad_address verdict;
};

/* Lock of the home held, which is where the address is looked for. */
static raffia_status resize_in_place(struct raffia_pool *pool, const struct pool_home *home,
                                     const void *address, struct resizing *resizing)
{
    struct space_block *block = &resizing->block, after;
    resizing->found = pool_find_live_in(pool, home->space, address, block) &&
                      pool_is_size(block, resizing->requested);
    if (!resizing->found) {
        pool_judge_block(pool, home->space, address, resizing->requested, &resizing->verdict);
        return RAFFIA_ERROR_BAD_ADDRESS;
    }
    if (resizing->bytes > pool->range_bytes - block->offset)
        return RAFFIA_ERROR_OUT_OF_MEMORY;
    raffia_status status = space_resize(home->space, block->handle, resizing->bytes);
    if (!status)
        status = space_find(home->space, block->offset, &after);
    if (status)
        return status;
    if (home->arena)
        pool_arena_resized(pool, home->arena, block, after.bytes);
    else
        count_resize(pool, block->bytes, after.bytes);
    if (pool->order)
        pool_order_resized(pool->order, &after);
    return RAFFIA_OK;
}

/* Lock of the home held. Whether the first thing behind the block that is not free is another
 * block, no lease and nothing absent: then it is of no use to gather all that is leased. */
static bool is_hemmed_in(const struct pool_home *home, const struct space_block *block)
{
    struct space_block behind = *block;
    do
        if (space_containing(home->space, behind.offset + behind.bytes, &behind))
            return false;
    while (behind.state == SPACE_FREE);
    return behind.state != SPACE_CACHED;
}

static raffia_status resize_at_home(struct raffia_pool *pool, const void *address,
                                    struct resizing *resizing)
{
    const struct pool_home home = pool_lock_home(pool, address);
    raffia_status status = resize_in_place(pool, &home, address, resizing);
    resizing->hopeless = status == RAFFIA_ERROR_OUT_OF_MEMORY && pool_arenas_of(pool) &&
                         is_hemmed_in(&home, &resizing->block);
    core_lock_leave(home.lock);
    return status;
}

/* Takes the lock of the pool with nothing left in arenas, and tries again. OUT_OF_HOST_MEMORY if
 * something is left: the block may be there. */
static raffia_status resize_gathered(struct raffia_pool *pool, const void *address,
                                     struct resizing *resizing)
{
    const struct pool_home home = {&pool->lock, pool->space, NULL};
    raffia_status status = pool_lock_whole(pool);
    return status ? status : resize_in_place(pool, &home, address, resizing);
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

/* What the pool lock is taken for. */
struct retry {
    const void *address;
    struct resizing *resizing;
};

static raffia_status resize_again(struct raffia_pool *pool, void *context)
{
    /* What was gathered does not go back to an arena. */
    const struct pool_home own = {&pool->lock, pool->space, NULL};
    const struct retry *retry = context;
    return resize_in_place(pool, &own, retry->address, retry->resizing);
}

/* Growth lock held, pool lock not. Moves free chunks behind the block. OUT_OF_MEMORY without a
 * sentence. */
static raffia_status remap_behind(struct raffia_pool *pool, const struct pool_interval *interval,
                                  size_t budget, struct retry *retry)
{
    const struct pool_remap_wish wish = {
        .place = interval, .budget = budget, .take = resize_again, .context = retry};
    raffia_status status = RAFFIA_OK;
    switch (pool_remap(pool, &wish, &status)) {
    case POOL_REMAP_SERVED:
    case POOL_REMAP_FAILED:
        return status;
    default:
        return RAFFIA_ERROR_OUT_OF_MEMORY;
    }
}

/* Growth lock held, pool lock not. OUT_OF_MEMORY without a sentence. */
static raffia_status grow_behind(struct raffia_pool *pool, const void *address,
                                 struct resizing *resizing)
{
    const struct pool_home own = {&pool->lock, pool->space, NULL};
    struct pool_interval interval;
    raffia_fallback_reason reason;
    raffia_status status = pool_settle(pool);
    if (status)
        return status;
    status = resize_gathered(pool, address, resizing);
    const bool promising =
        status == RAFFIA_ERROR_OUT_OF_MEMORY && may_grow_behind(pool, resizing, &interval);
    core_lock_leave(&pool->lock);
    if (!promising)
        return status;
    const size_t budget = pool_budget(pool);
    struct retry retry = {address, resizing};
    if (interval.missing > budget && pool_can_remap(pool) &&
        pool->range_bytes % pool->chunk_bytes == 0)
        return remap_behind(pool, &interval, budget, &retry);
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
        status = resize_in_place(pool, &own, address, resizing);
    core_lock_leave(&pool->lock);
    if (!admitted)
        pool_drop_loaned(pool, &interval);
    return status;
}

/* After it did not fit as things were. */
static raffia_status resize_anew(struct raffia_pool *pool, const void *address,
                                 struct resizing *resizing)
{
    raffia_status status = RAFFIA_ERROR_OUT_OF_MEMORY;
    if (!pool_is_rigid(pool)) {
        pool_lock(&pool->growth_lock);
        status = grow_behind(pool, address, resizing);
        pool_unlock(&pool->growth_lock);
    } else if (pool_arenas_of(pool)) {
        status = resize_gathered(pool, address, resizing);
        core_lock_leave(&pool->lock);
    }
    return status;
}

/* With a guard a block may have to grow for a size that is less than what it takes now. */
static raffia_status refuse(const struct raffia_pool *pool, const void *address, size_t bytes,
                            const struct resizing *resizing)
{
    char asked[CORE_SIZE_TEXT_MAX], now[CORE_SIZE_TEXT_MAX], guarded[64] = "";
    size_t needed = bytes;
    if (pool->guard_bytes) {
        snprintf(guarded, sizeof guarded, " (%zu bytes%s and a guard)", bytes,
                 bytes ? "" : ", which are one granule,");
        if (!core_align_up(resizing->bytes, pool->granule, &needed))
            needed = RAFFIA_NONE;
    }
    return core_error(RAFFIA_ERROR_OUT_OF_MEMORY,
                      "pool '%s': the block at %p cannot grow from %s to %s%s where it is: the "
                      "space behind it is taken or cannot be had; allocate a new block and copy",
                      pool->name, address, core_format_size(resizing->block.bytes, now),
                      core_format_size(needed, asked), guarded);
}

raffia_status pool_resize_plain(struct raffia_pool *pool, const void *address, size_t requested,
                                size_t bytes)
{
    struct resizing resizing = {.requested = requested, .bytes = pool_requested(pool, bytes)};
    raffia_status status = resize_at_home(pool, address, &resizing);
    if (status == RAFFIA_ERROR_OUT_OF_MEMORY && !resizing.hopeless)
        status = resize_anew(pool, address, &resizing);
    if (!resizing.found)
        return pool_refuse_address(pool, "resize", &resizing.verdict);
    if (status == RAFFIA_ERROR_OUT_OF_MEMORY)
        return refuse(pool, address, bytes, &resizing);
    return status;
}

static raffia_status resize(struct raffia_pool *pool, const void *address, size_t requested,
                            size_t bytes)
{
    if (pool->guard)
        return pool_resize_guarded(pool, address, requested, bytes);
    raffia_status status =
        pool->order ? pool_order_before_resize(pool, address, requested, bytes) : RAFFIA_OK;
    return status ? status : pool_resize_plain(pool, address, requested, bytes);
}

raffia_status raffia_pool_resize(raffia_pool *pool, void *address, size_t bytes)
{
    raffia_status status = pool_enter_to_change(pool);
    return status ? status : resize(pool, address, 0, bytes);
}

raffia_status pool_resize_sized(raffia_pool *pool, void *address, size_t bytes, size_t new_bytes)
{
    raffia_status status = pool_enter_to_change(pool);
    return status ? status : resize(pool, address, pool_requested(pool, bytes), new_bytes);
}
