/* Every invariant of a pool, looked at at once. For tests and diagnosis: it costs a pass over all
 * blocks and slots. */
#include "pool/arena.h"
#include "pool/guard.h"
#include "pool/order.h"

#include <stdio.h>

/* Collects what the walk over the space must agree with. Both locks held. */
struct audit {
    struct raffia_pool *pool;
    size_t present_bytes;
    size_t in_use_bytes;
    size_t blocks;
    size_t pending_bytes;
    size_t pending_blocks;
    size_t requested_bytes; /* room for guards included */
    bool outside;           /* something lies where nothing is mapped */
};

static bool lies_in_mapped_slots(const struct raffia_pool *pool, const struct space_block *item)
{
    const struct pool_interval extent = {item->offset, item->bytes, 0};
    if (item->bytes == 0 || item->offset >= pool->range_bytes ||
        item->bytes > pool->range_bytes - item->offset)
        return false;
    for (size_t i = pool_first_slot(pool, &extent); i < pool_end_slot(pool, &extent); i++)
        if (pool->slots[i].state != POOL_SLOT_MAPPED)
            return false;
    return true;
}

static bool visit(void *context, const struct space_block *item)
{
    struct audit *audit = context;
    audit->present_bytes += item->bytes;
    audit->outside = audit->outside || !lies_in_mapped_slots(audit->pool, item);
    if (audit->outside)
        return false;
    if (item->state == SPACE_FREE)
        return true;
    if (item->state == SPACE_PENDING) {
        audit->pending_blocks++;
        audit->pending_bytes += item->bytes;
        return true;
    }
    audit->blocks++;
    audit->in_use_bytes += item->bytes;
    if (item->state == SPACE_HELD)
        audit->requested_bytes += item->requested;
    return true;
}

/* The first comparison that fails, as "what: one against other" in `text`; false if none does. */
static bool differs(char text[static CORE_ERROR_MAX], const char *what, size_t one, size_t other)
{
    if (one == other)
        return false;
    snprintf(text, CORE_ERROR_MAX, "%s: %zu against %zu", what, one, other);
    return true;
}

static bool slots_are_wrong(struct raffia_pool *pool, char text[static CORE_ERROR_MAX])
{
    struct page_store_stats store;
    size_t lent = 0, mapped = 0, mapped_slots = 0, formers = 0;
    for (size_t i = 0; i < pool->slot_count; i++) {
        const struct pool_slot *slot = &pool->slots[i];
        if (slot->state == POOL_SLOT_ABSENT)
            continue;
        if (slot->state == POOL_SLOT_FORMER) {
            formers++;
            if (page_store_former(&slot->loan) == pool->base + pool_slot_offset(pool, i))
                continue;
            snprintf(text, CORE_ERROR_MAX, "slot %zu is the former place of no chunk", i);
            return true;
        }
        if (slot->loan.at != pool->base + pool_slot_offset(pool, i) ||
            slot->loan.bytes != pool_slot_bytes(pool, i)) {
            snprintf(text, CORE_ERROR_MAX, "the chunk of slot %zu lies at another place", i);
            return true;
        }
        lent += slot->loan.bytes;
        mapped += slot->state == POOL_SLOT_MAPPED ? slot->loan.bytes : 0;
        mapped_slots += slot->state == POOL_SLOT_MAPPED;
    }
    page_store_query(pool->store, &store);
    return differs(text, "bytes borrowed, slots and store", lent, store.lent_bytes) ||
           differs(text, "bytes mapped, slots and counter", mapped, pool->mapped_bytes) ||
           differs(text, "mapped slots and counter", mapped_slots, pool->mapped_slots) ||
           differs(text, "slots that chunks moved from and counter", formers, pool->remap.formers);
}

static bool counters_are_wrong(struct raffia_pool *pool, const struct audit *audit,
                               char text[static CORE_ERROR_MAX])
{
    struct space_stats space;
    space_query(pool->space, &space);
    return differs(text, "bytes present, walk and slots", audit->present_bytes,
                   pool->mapped_bytes) ||
           differs(text, "bytes present, space and slots", space.present_bytes,
                   pool->mapped_bytes) ||
           differs(text, "bytes in use, walk and counter", audit->in_use_bytes,
                   pool->in_use_bytes) ||
           differs(text, "bytes free, space and counter", space.free_bytes,
                   pool->mapped_bytes - pool->in_use_bytes - pool->pending_bytes) ||
           differs(text, "live blocks, walk and counter", audit->blocks, pool->live_blocks) ||
           differs(text, "pending blocks, walk and counter", audit->pending_blocks,
                   pool->pending_blocks) ||
           differs(text, "pending bytes, walk and counter", audit->pending_bytes,
                   pool->pending_bytes) ||
           differs(text, "bytes requested, walk and space", audit->requested_bytes,
                   space.requested_bytes);
}

/* Both locks held. */
static raffia_status audit_pool(struct raffia_pool *pool, struct audit *audit,
                                char text[static CORE_ERROR_MAX])
{
    raffia_status status = space_check(pool->space);
    if (status) {
        snprintf(text, CORE_ERROR_MAX, "%s", raffia_last_error());
        return status;
    }
    space_walk(pool->space, visit, audit);
    if (audit->outside)
        snprintf(text, CORE_ERROR_MAX, "the space has bytes where no chunk is mapped");
    else if (!slots_are_wrong(pool, text) && !counters_are_wrong(pool, audit, text) &&
             !pool_order_is_wrong(pool, text))
        return RAFFIA_OK;
    return RAFFIA_ERROR_CORRUPT;
}

raffia_status raffia_pool_check(raffia_pool *pool)
{
    char text[CORE_ERROR_MAX] = "";
    struct audit audit = {.pool = pool};
    raffia_guard_report guards;
    raffia_status status = pool_enter(pool);
    if (!status && pool->guard)
        status = pool_guard_check(pool, &guards);
    if (status)
        return status;
    pool_lock(&pool->growth_lock);
    status = pool_lock_checked(pool, text);
    if (!status)
        status = audit_pool(pool, &audit, text);
    core_lock_leave(&pool->lock);
    pool_unlock(&pool->growth_lock);
    if (status == RAFFIA_ERROR_CORRUPT) {
        pool_freeze(pool);
        return core_error(status, "pool '%s' is damaged (%s) and frozen", pool->name, text);
    }
    return status;
}
