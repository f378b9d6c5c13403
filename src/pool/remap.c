/*
 * Moving free chunks to other addresses, so that a request fails only where fewer whole ones are
 * free than it needs. docs/allocator.md tells what it costs.
 *
 * Only free space moves: what a device may still be using is pending until its event has passed,
 * and is not free until then; so nothing has to be waited for here.
 */
#include "core/clock.h"
#include "pool/arena.h"
#include "pool/remap_plan.h"

#include <assert.h>

bool pool_can_remap(const struct raffia_pool *pool)
{
    return pool->remap.view && pool->kind != RAFFIA_PAGE_REGULAR;
}

/* ---- former addresses ----------------------------------------------------------------------- */

static void *address_of(const struct raffia_pool *pool, size_t slot)
{
    return pool->base + pool_slot_offset(pool, slot);
}

/* The chunk has left the slot, or never got there. */
static void leave(struct raffia_pool *pool, size_t slot, const struct page_loan *loan)
{
    const bool former = page_store_former(loan) == address_of(pool, slot);
    pool->slots[slot].loan = former ? *loan : (struct page_loan){0};
    pool->slots[slot].state = former ? POOL_SLOT_FORMER : POOL_SLOT_ABSENT;
    pool->remap.formers += former;
}

raffia_status pool_settle(struct raffia_pool *pool)
{
    raffia_status first = RAFFIA_OK;
    if (!pool->remap.formers)
        return RAFFIA_OK;
    const uint64_t started = core_clock_ns();
    for (size_t i = 0; pool->remap.formers && i < pool->slot_count; i++) {
        struct pool_slot *slot = &pool->slots[i];
        if (slot->state != POOL_SLOT_FORMER)
            continue;
        raffia_status status = page_store_settle(pool->store, &slot->loan);
        first = first ? first : status;
        if (status)
            continue;
        *slot = (struct pool_slot){.state = POOL_SLOT_ABSENT};
        pool->remap.formers--;
    }
    core_lock_take(&pool->lock);
    pool->remap.unmap_ns += core_clock_ns() - started;
    core_lock_leave(&pool->lock);
    return first;
}

/* ---- there and back ------------------------------------------------------------------------- */

static raffia_status move(struct raffia_pool *pool, size_t to, raffia_fallback_reason *reason)
{
    struct pool_slot *target = &pool->slots[to], *source = &pool->slots[target->partner];
    struct page_loan loan = source->loan;
    assert(source->state == POOL_SLOT_LOANED && target->state == POOL_SLOT_ABSENT);
    raffia_status status = page_store_move(pool->store, &loan, address_of(pool, to), reason);
    if (!loan.record) {
        *source = (struct pool_slot){.state = POOL_SLOT_ABSENT};
    } else if (status) {
        leave(pool, to, &loan);
    } else {
        target->loan = loan;
        target->state = POOL_SLOT_LOANED;
        leave(pool, target->partner, &loan);
    }
    return status;
}

/* A chunk that cannot be moved back stays where it is. */
static void move_back(struct raffia_pool *pool, size_t to)
{
    struct pool_slot *target = &pool->slots[to], *source = &pool->slots[target->partner];
    struct page_loan loan = target->loan;
    if (target->state != POOL_SLOT_LOANED)
        return;
    raffia_status status =
        page_store_move_back(pool->store, &loan, address_of(pool, target->partner));
    if (!loan.record) {
        target->loan = loan;
        target->state = POOL_SLOT_ABSENT;
    } else if (!status) {
        pool->remap.formers -= source->state == POOL_SLOT_FORMER;
        source->loan = loan;
        source->state = POOL_SLOT_LOANED;
        leave(pool, to, &loan);
    }
}

/* Pool lock held: puts what is LOANED among the slots to use, or leaves it for a later growth. */
static void admit_donors(struct raffia_pool *pool)
{
    for (size_t i = 0; i < pool->slot_count; i++) {
        const struct pool_interval here = {pool_slot_offset(pool, i), 1, 0};
        if (pool->remap.view[i] == REMAP_DONOR && pool->slots[i].state == POOL_SLOT_LOANED)
            (void)pool_admit(pool, &here);
    }
}

/* Pool lock not held. Keeps the last error. */
static void undo(struct raffia_pool *pool, const struct remap_plan *plan)
{
    struct core_error_record cause;
    core_error_save(&cause);
    for (size_t i = pool_first_slot(pool, &plan->place); i < pool_end_slot(pool, &plan->place);
         i++) {
        const struct pool_interval here = {pool_slot_offset(pool, i), 1, 0};
        if (pool->remap.view[i] == REMAP_TARGET)
            move_back(pool, i);
        else if (pool->remap.view[i] == REMAP_NEW)
            pool_drop_loaned(pool, &here);
    }
    core_lock_take(&pool->lock);
    admit_donors(pool);
    core_lock_leave(&pool->lock);
    core_error_restore(&cause);
}

/* Pool lock held. Takes the donors out of use, all or none. */
static raffia_status withdraw_donors(struct raffia_pool *pool)
{
    raffia_status status = RAFFIA_OK;
    for (size_t i = 0; !status && i < pool->slot_count; i++)
        if (pool->remap.view[i] == REMAP_DONOR && pool->slots[i].state == POOL_SLOT_MAPPED)
            status = pool_withdraw(pool, i);
    if (status)
        admit_donors(pool);
    return status;
}

/* New chunks first: whether there are any is the most likely thing to fail. */
static raffia_status carry_out(struct raffia_pool *pool, const struct remap_plan *plan,
                               uint64_t *moving_ns)
{
    const size_t first = pool_first_slot(pool, &plan->place),
                 end = pool_end_slot(pool, &plan->place);
    raffia_fallback_reason reason;
    raffia_status status = RAFFIA_OK;
    for (size_t i = first; plan->loans && !status && i < end; i++) {
        const struct pool_interval here = {pool_slot_offset(pool, i), 1, pool->chunk_bytes};
        if (pool->remap.view[i] == REMAP_NEW)
            status = pool_fill(pool, &here, &reason);
    }
    const uint64_t started = core_clock_ns();
    for (size_t i = first; !status && i < end; i++)
        if (pool->remap.view[i] == REMAP_TARGET)
            status = move(pool, i, &reason);
    *moving_ns = core_clock_ns() - started;
    return status;
}

/* Pool lock held. What was put to use is taken out again: nobody had a chance to take it. */
static void withdraw_place(struct raffia_pool *pool, const struct remap_plan *plan)
{
    for (size_t i = pool_first_slot(pool, &plan->place); i < pool_end_slot(pool, &plan->place); i++)
        if ((pool->remap.view[i] == REMAP_TARGET || pool->remap.view[i] == REMAP_NEW) &&
            pool->slots[i].state == POOL_SLOT_MAPPED)
            (void)pool_withdraw(pool, i);
}

/* ---- one request ---------------------------------------------------------------------------- */

static enum pool_remap_end choose(struct raffia_pool *pool, const struct pool_remap_wish *wish,
                                  struct remap_plan *plan, raffia_status *status_p)
{
    struct pool_remap *remap = &pool->remap;
    enum pool_remap_end end = POOL_REMAP_REFUSED;
    (void)pool_lock_whole(pool); /* what arenas hold could be moved too */
    const enum remap_choice choice = remap_choose(pool, wish, plan);
    const bool doubled = (pool->device.driver->capabilities & DRIVER_CAN_ALIAS) != 0;
    size_t mappings = 0;
    if (choice == REMAP_CHOSEN)
        mappings = pool->mapped_slots + plan->loans + (doubled ? plan->moves : 0);
    if (choice == REMAP_NO_ADDRESSES) {
        remap->address_refusals++;
        end = POOL_REMAP_NO_ADDRESSES;
    } else if (mappings > remap->mapping_limit) {
        remap->mapping_refusals++;
        end = POOL_REMAP_NO_MAPPINGS;
    } else if (choice == REMAP_CHOSEN) {
        *status_p = withdraw_donors(pool);
        end = *status_p ? POOL_REMAP_FAILED : POOL_REMAP_SERVED;
    }
    core_lock_leave(&pool->lock);
    return end;
}

static enum pool_remap_end admit_and_take(struct raffia_pool *pool,
                                          const struct pool_remap_wish *wish,
                                          const struct remap_plan *plan, uint64_t moving_ns,
                                          raffia_status *status_p)
{
    core_lock_take(&pool->lock);
    raffia_status status = pool_admit(pool, &plan->place);
    const bool admitted = !status;
    if (admitted) {
        pool->remap.remaps += plan->moves > 0;
        pool->remap.chunks += plan->moves;
        pool->remap.ns += moving_ns;
        status = wish->take(pool, wish->context);
    } else {
        withdraw_place(pool, plan);
    }
    core_lock_leave(&pool->lock);
    if (!admitted)
        undo(pool, plan);
    *status_p = status;
    if (admitted && status == RAFFIA_ERROR_OUT_OF_MEMORY)
        return POOL_REMAP_STOLEN;
    return status ? POOL_REMAP_FAILED : POOL_REMAP_SERVED;
}

enum pool_remap_end pool_remap(struct raffia_pool *pool, const struct pool_remap_wish *wish,
                               raffia_status *status_p)
{
    struct remap_plan plan;
    assert(pool_can_remap(pool));
    const enum pool_remap_end choice = choose(pool, wish, &plan, status_p);
    if (choice != POOL_REMAP_SERVED)
        return choice;
    uint64_t moving_ns;
    raffia_status status = carry_out(pool, &plan, &moving_ns);
    if (status) {
        undo(pool, &plan);
        *status_p = status;
        return status == RAFFIA_ERROR_OUT_OF_MEMORY || status == RAFFIA_ERROR_LIMIT
                   ? POOL_REMAP_SHORT
                   : POOL_REMAP_FAILED;
    }
    return admit_and_take(pool, wish, &plan, moving_ns, status_p);
}
