/* Giving memory back: idle chunks, and the limit. */
#include "core/log.h"
#include "core/text.h"
#include "pool/arena.h"
#include "pool/history.h"
#include "pool/order.h"

raffia_status pool_withdraw(struct raffia_pool *pool, size_t slot)
{
    const size_t offset = pool_slot_offset(pool, slot), bytes = pool_slot_bytes(pool, slot);
    if (!space_is_free(pool->space, offset, bytes))
        return RAFFIA_ERROR_BUSY;
    raffia_status status = space_remove(pool->space, offset, bytes);
    if (status)
        return status;
    pool->slots[slot].state = POOL_SLOT_LOANED;
    pool->mapped_bytes -= bytes;
    pool->mapped_slots--;
    return RAFFIA_OK;
}

/* Takes one chunk out of use and returns it; what cannot be returned is put to use again. BUSY if
 * it is not idle. */
static raffia_status give_back(struct raffia_pool *pool, size_t slot)
{
    if (pool->slots[slot].state == POOL_SLOT_ABSENT)
        return RAFFIA_ERROR_BUSY;
    if (pool->slots[slot].state == POOL_SLOT_MAPPED) {
        (void)pool_lock_whole(pool);
        raffia_status status = pool_withdraw(pool, slot);
        core_lock_leave(&pool->lock);
        if (status)
            return status;
    }
    raffia_status status = page_store_return(pool->store, &pool->slots[slot].loan);
    if (!status) {
        pool->slots[slot].state = POOL_SLOT_ABSENT;
        return RAFFIA_OK;
    }
    const struct pool_interval here = {pool_slot_offset(pool, slot), 1, 0};
    struct core_error_record cause;
    core_error_save(&cause);
    core_lock_take(&pool->lock);
    (void)pool_admit(pool, &here); /* or it stays LOANED */
    core_lock_leave(&pool->lock);
    return core_error_restore(&cause);
}

raffia_status pool_reclaim(struct raffia_pool *pool, size_t wanted,
                           const struct pool_interval *spared, size_t *released_p)
{
    raffia_status status = pool_settle(pool);
    size_t released = 0;
    if (pool->history)
        pool_history_look(pool->history);
    for (size_t i = pool->slot_count; i-- > 0 && released < wanted && !status;) {
        if (pool_is_spared(pool, i, spared))
            continue;
        status = give_back(pool, i);
        if (!status)
            released += pool_slot_bytes(pool, i);
        else if (status == RAFFIA_ERROR_BUSY)
            status = RAFFIA_OK;
    }
    core_lock_take(&pool->lock);
    pool_refresh_report(pool);
    core_lock_leave(&pool->lock);
    *released_p = released;
    return status;
}

bool pool_make_room(struct raffia_pool *pool, const struct pool_interval *spared, size_t wanted,
                    size_t minimum)
{
    size_t released = 0;
    (void)pool_lock_whole(pool);
    const bool worthwhile = pool_idle_bytes(pool, spared) >= minimum;
    core_lock_leave(&pool->lock);
    if (worthwhile)
        (void)pool_reclaim(pool, wanted, spared, &released);
    return released > 0;
}

/* Growth lock held. */
static raffia_status trim(struct raffia_pool *pool, size_t keep_bytes, size_t *released_p)
{
    struct page_store_stats stats;
    page_store_query(pool->store, &stats);
    size_t wanted = stats.lent_bytes > keep_bytes ? stats.lent_bytes - keep_bytes : 0;
    raffia_status status = pool_reclaim(pool, wanted, NULL, released_p);
    if (!status)
        status = page_store_trim(pool->store, 0, NULL);
    return status;
}

raffia_status raffia_pool_trim(raffia_pool *pool, size_t keep_bytes, size_t *released_p)
{
    raffia_status status = pool_enter_to_change(pool);
    if (status)
        return status;
    size_t released = 0;
    if (!(pool->flags & RAFFIA_POOL_FIXED)) { /* what went would be gone for good */
        pool_order_refresh(pool);
        pool_lock(&pool->growth_lock);
        status = trim(pool, keep_bytes, &released);
        pool_unlock(&pool->growth_lock);
    }
    if (status)
        return status;
    core_log_info("pool '%s': gave back %zu bytes", pool->name, released);
    if (released_p)
        *released_p = released;
    return RAFFIA_OK;
}

/* No lock held. *excess_p: what is mapped beyond the limit all the same. */
static raffia_status limit(struct raffia_pool *pool, size_t maximum_bytes, size_t *excess_p)
{
    struct page_store_stats stats;
    size_t released;
    pool_order_refresh(pool);
    pool_lock(&pool->growth_lock);
    core_lock_take(&pool->lock);
    pool->maximum_bytes = maximum_bytes;
    core_lock_leave(&pool->lock);
    page_store_set_limit(pool->store, maximum_bytes);
    raffia_status status = trim(pool, maximum_bytes, &released);
    page_store_query(pool->store, &stats);
    pool_unlock(&pool->growth_lock);
    *excess_p = stats.lent_bytes > maximum_bytes ? stats.lent_bytes - maximum_bytes : 0;
    return status;
}

raffia_status raffia_pool_set_maximum(raffia_pool *pool, size_t maximum_bytes)
{
    raffia_status status = pool_enter_to_change(pool);
    if (status)
        return status;
    if (pool->flags & RAFFIA_POOL_FIXED)
        return core_error(RAFFIA_ERROR_UNSUPPORTED,
                          "pool '%s' is a fixed pool: its size was settled when it was created",
                          pool->name);
    if (maximum_bytes > pool->range_bytes) {
        char asked[CORE_SIZE_TEXT_MAX], range[CORE_SIZE_TEXT_MAX];
        if (maximum_bytes == RAFFIA_NONE)
            return core_error(RAFFIA_ERROR_LIMIT,
                              "pool '%s' cannot do without a maximum: it reserved addresses for %s "
                              "when it was created",
                              pool->name, core_format_size(pool->range_bytes, range));
        return core_error(
            RAFFIA_ERROR_LIMIT,
            "pool '%s' cannot be allowed %s: it reserved addresses for %s when it was "
            "created",
            pool->name, core_format_size(maximum_bytes, asked),
            core_format_size(pool->range_bytes, range));
    }
    size_t excess;
    status = limit(pool, maximum_bytes, &excess);
    if (!status && excess && pool_press(pool, NULL, excess))
        status = limit(pool, maximum_bytes, &excess);
    return status;
}
