/* Birth and death of a pool. */
#include "core/checked.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/process.h"
#include "core/text.h"
#include "pool/arena.h"
#include "pool/guard.h"
#include "pool/history.h"
#include "pool/order.h"
#include "pool/registry.h"

#include <assert.h>
#include <string.h>

/* How often a range is asked for before a driver that misaligns it is given up. */
#define POOL_RESERVE_ATTEMPTS 3

/* Least room behind each block for the guard pattern: none is left without a guard, and what fills
 * its granules exactly gets one more. */
#define POOL_GUARD_BYTES 1

raffia_status pool_refuse_entry(const struct raffia_pool *pool)
{
    if (!pool)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "there is no pool (NULL)");
    if (pool_is_inherited(pool))
        return core_error(RAFFIA_ERROR_FORKED,
                          "pool '%s' belongs to the parent of this process: make one of your own",
                          pool->name);
    return core_error(RAFFIA_ERROR_CORRUPT,
                      "pool '%s' was frozen when it was found damaged: nothing more is handed out "
                      "of it",
                      pool->name);
}

raffia_status pool_freeze(struct raffia_pool *pool)
{
    atomic_store_explicit(&pool->frozen, true, memory_order_relaxed);
    return RAFFIA_ERROR_CORRUPT;
}

/* ---- birth ---------------------------------------------------------------------------------- */

static raffia_status refuse_plan(const struct pool_plan *plan, const char *what, size_t value)
{
    return core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "pool '%s': %s (%zu)",
                      plan->name ? plan->name : "pool", what, value);
}

static raffia_status check_plan(const struct pool_plan *plan)
{
    if (!core_is_power_of_two(plan->page_size))
        return refuse_plan(plan, "the page size is not a power of two", plan->page_size);
    if (!core_is_power_of_two(plan->granule))
        return refuse_plan(plan, "the granule is not a power of two", plan->granule);
    /* Whole pages, and where the ladder fell below the granule, whole granules. */
    const size_t unit = core_max(plan->page_size, plan->granule);
    if (plan->maximum_bytes == 0 || !core_is_aligned(plan->maximum_bytes, unit))
        return refuse_plan(plan, "the maximum is not a number of whole pages", plan->maximum_bytes);
    if (plan->initial_bytes > plan->maximum_bytes || !core_is_aligned(plan->initial_bytes, unit))
        return refuse_plan(plan, "the initial size is not whole pages within the maximum",
                           plan->initial_bytes);
    if (plan->chunk_bytes == 0 || !core_is_aligned(plan->chunk_bytes, unit))
        return refuse_plan(plan, "the chunk size is not a number of whole pages",
                           plan->chunk_bytes);
    if (plan->address_bytes > plan->maximum_bytes &&
        !core_is_aligned(plan->address_bytes, plan->chunk_bytes))
        return refuse_plan(plan, "the addresses are not a number of whole chunks",
                           plan->address_bytes);
    return RAFFIA_OK;
}

static size_t power_of_two_within(size_t value)
{
    return (size_t)1 << (63 - __builtin_clzll(value));
}

/* Blocks can be aligned up to the chunk size because the base is: offsets then speak for addresses.
 */
static void copy_plan(struct raffia_pool *pool, const struct pool_plan *plan)
{
    pool->device = plan->device;
    pool->range_bytes = pool->maximum_bytes = plan->maximum_bytes;
    pool->page_size = plan->page_size;
    pool->chunk_bytes = core_min(plan->chunk_bytes, plan->maximum_bytes);
    if (plan->address_bytes > plan->maximum_bytes)
        pool->range_bytes = plan->address_bytes;
    pool->remap.mapping_limit = plan->mapping_limit ? plan->mapping_limit : SIZE_MAX;
    pool->granule = plan->granule;
    pool->largest_alignment = power_of_two_within(pool->chunk_bytes);
    pool->slot_count = (pool->range_bytes - 1) / pool->chunk_bytes + 1;
    pool->guard_bytes = plan->flags & RAFFIA_POOL_GUARD ? POOL_GUARD_BYTES : 0;
    pool->flags = plan->flags;
    pool->kind = plan->kind;
    pool->asked_kind = plan->asked_kind;
    pool->asked_size = plan->asked_size;
    pool->asked_refused = plan->asked_refused;
    pool->generation = core_fork_generation();
    pool->ladder = (struct pool_ladder){
        .count = plan->lower_count,
        .reasons = plan->reasons_to_descend,
        .threads = plan->threads,
        .numa_node = plan->numa_node,
    };
    memcpy(pool->ladder.lower, plan->lower, sizeof plan->lower);
}

/* Nobody can be told that it failed, so it is tried again and then logged. */
static void release_range(struct raffia_pool *pool, void *base)
{
    struct core_error_record cause;
    core_error_save(&cause);
    raffia_status status = RAFFIA_ERROR_DRIVER;
    for (int i = 0; status && i < POOL_DRIVER_ATTEMPTS; i++)
        status = pool->device.driver->range_release(pool->device.index, base, pool->range_bytes);
    if (status)
        core_log_error("pool '%s': %zu bytes of addresses at %p could not be released: %s",
                       pool->name, pool->range_bytes, base, raffia_last_error());
    core_error_restore(&cause);
}

/*
 * A misaligned base is held until the end, so that the next attempt cannot be given it again.
 */
static raffia_status reserve_range(struct raffia_pool *pool, raffia_fallback_reason *reason)
{
    const struct driver_device device = pool->device;
    const size_t alignment =
        core_max(core_max(pool->page_size, POOL_HUGE_ALIGNMENT), pool->largest_alignment);
    void *misaligned[POOL_RESERVE_ATTEMPTS];
    int refused = 0;
    raffia_status status = RAFFIA_OK;
    while (!status && !pool->base && refused < POOL_RESERVE_ATTEMPTS) {
        void *base;
        status = device.driver->range_reserve(device.index, pool->range_bytes, alignment, &base);
        if (status)
            break;
        if (core_is_aligned((uintptr_t)base, alignment))
            pool->base = base;
        else
            misaligned[refused++] = base;
    }
    for (int i = 0; i < refused; i++)
        release_range(pool, misaligned[i]);
    if (status || pool->base)
        return status;
    *reason = RAFFIA_REASON_MISALIGNED;
    char asked[CORE_SIZE_TEXT_MAX];
    return core_error(
        RAFFIA_ERROR_DRIVER,
        "pool '%s': the %s driver was asked %d times for addresses aligned to %s, and "
        "each time returned others (last %p)",
        pool->name, device.driver->name, refused, core_format_size(alignment, asked),
        misaligned[refused - 1]);
}

static raffia_status make_bookkeeping(struct raffia_pool *pool, const struct pool_plan *plan)
{
    const struct space_options options = pool_space_options(pool);
    pool->name = core_strdup(plan->name ? plan->name : "pool");
    pool->slots = pool->name ? core_calloc(pool->slot_count, sizeof *pool->slots) : NULL;
    char maximum[CORE_SIZE_TEXT_MAX];
    const bool remaps = (plan->flags & RAFFIA_POOL_REMAPPABLE) != 0;
    if (pool->slots && remaps)
        pool->remap.view = core_calloc(pool->slot_count, sizeof *pool->remap.view);
    if (pool->slots && (!remaps || pool->remap.view) && !space_create(&options, &pool->space))
        return RAFFIA_OK;
    return core_error_prefix("pool '%s' of at most %s", plan->name ? plan->name : "pool",
                             core_format_size(pool->range_bytes, maximum));
}

static raffia_status map_initial(struct raffia_pool *pool, size_t bytes,
                                 raffia_fallback_reason *reason)
{
    const struct pool_interval initial = {0, bytes, bytes};
    raffia_status status = RAFFIA_OK;
    pool_lock(&pool->growth_lock);
    if (bytes)
        status = pool_map_interval(pool, &initial, reason);
    core_lock_take(&pool->lock);
    pool_refresh_report(pool);
    core_lock_leave(&pool->lock);
    pool_unlock(&pool->growth_lock);
    if (!status)
        return RAFFIA_OK;
    /* The driver speaks of one chunk; whoever sets pages aside needs to know the sum. */
    char size[CORE_SIZE_TEXT_MAX];
    return core_error_prefix("pool '%s' needs %s at once", pool->name,
                             core_format_size(bytes, size));
}

raffia_status pool_create(const struct pool_plan *plan, raffia_pool **pool_p,
                          raffia_fallback_reason *reason)
{
    *reason = RAFFIA_REASON_NONE;
    core_lock_prepare();
    raffia_device_info info;
    raffia_status status = check_plan(plan);
    if (!status)
        status = plan->device.driver->device_info(plan->device.index, &info);
    if (status)
        return status;
    struct raffia_pool *pool = core_calloc(1, sizeof *pool);
    if (!pool)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    copy_plan(pool, plan);
    pool->asynchronous = info.asynchronous;
    atomic_init(&pool->owners, 1);
    pthread_mutex_init(&pool->growth_lock, NULL);
    status = make_bookkeeping(pool, plan);
    if (!status && plan->flags & RAFFIA_POOL_GUARD)
        status = pool_guard_create(pool, &info);
    else if (!status && pool->asynchronous)
        status = pool_order_create(pool);
    if (!status && plan->flags & RAFFIA_POOL_ADAPTIVE)
        status = pool_history_create(pool);
    pool->plain = !pool->guard && !pool->order && !pool->history;
    pool->long_way = pool->guard || pool->history;
    pool->lease_bytes = pool_lease_bytes(pool);
    if (!status)
        status =
            pool_make_store(pool, (raffia_page_offer){pool->kind, pool->page_size}, &pool->store);
    if (!status)
        status = reserve_range(pool, reason);
    if (!status)
        status = map_initial(pool, plan->initial_bytes, reason);
    if (status) {
        struct core_error_record cause;
        core_error_save(&cause);
        pool_tear_down(pool);
        return core_error_restore(&cause);
    }
    core_log_info("pool '%s': %zu bytes of %s pages mapped at %p", pool->name, pool->mapped_bytes,
                  raffia_page_kind_name(pool->kind), (void *)pool->base);
    pool_registry_add(pool);
    pool_order_reap();
    *pool_p = pool;
    return RAFFIA_OK;
}

/* ---- death ---------------------------------------------------------------------------------- */

/* False if a chunk is still mapped: its addresses must then stay reserved. *kept_p: the store keeps
 * account of it, as its driver may still know it; no driver does of what went with its context. */
static bool return_chunks(struct raffia_pool *pool, bool *kept_p)
{
    bool all = true;
    *kept_p = false;
    for (int attempt = 0; pool_settle(pool) && attempt < POOL_DRIVER_ATTEMPTS; attempt++)
        ;
    for (size_t i = 0; pool->store && i < pool->slot_count; i++) {
        struct pool_slot *slot = &pool->slots[i];
        if (slot->state == POOL_SLOT_FORMER)
            continue; /* its chunk stands at another slot, and cannot be returned either */
        raffia_status status = slot->state == POOL_SLOT_ABSENT ? RAFFIA_OK : RAFFIA_ERROR_DRIVER;
        for (int attempt = 0; status && attempt < POOL_DRIVER_ATTEMPTS; attempt++)
            status = page_store_return(pool->store, &slot->loan);
        if (status)
            core_log_error("pool '%s': a chunk of %zu bytes could not be given back: %s",
                           pool->name, slot->loan.bytes, raffia_last_error());
        all = all && !status;
        if (status && pool->device.driver->context_state(pool->device.index))
            page_store_forget(pool->store, &slot->loan);
        else if (status)
            *kept_p = true;
    }
    return all;
}

/* What the driver will not take back is leaked, and logged: the alternative is to hand out
 * addresses that still have somebody else's memory behind them. */
void pool_tear_down(struct raffia_pool *pool)
{
    assert(pool->live_blocks == 0 && pool->pending_blocks == 0);
    if (!pool_registry_remove(pool))
        return;
    bool kept;
    const bool returned = return_chunks(pool, &kept);
    if (!kept)
        page_store_destroy(pool->store);
    if (returned && pool->base)
        release_range(pool, pool->base);
    pool_guard_destroy(pool);
    pool_order_destroy(pool);
    pool_history_destroy(pool);
    pool_arenas_destroy(pool);
    space_destroy(pool->space);
    pthread_mutex_destroy(&pool->growth_lock);
    core_free(pool->remap.view);
    core_free(pool->slots);
    core_free(pool->name);
    core_free(pool);
}

raffia_pool *raffia_pool_retain(raffia_pool *pool)
{
    if (pool)
        atomic_fetch_add_explicit(&pool->owners, 1, memory_order_relaxed);
    return pool;
}

/* A forked child leaves its copy alone: the chunks are the parent's to give back. */
void raffia_pool_release(raffia_pool *pool)
{
    if (!pool || pool_is_inherited(pool) ||
        atomic_fetch_sub_explicit(&pool->owners, 1, memory_order_acq_rel) != 1)
        return;
    struct pool_arenas *arenas = pool_lock_all(pool);
    pool_arenas_orphan(pool, arenas);
    pool->orphaned = true;
    const bool idle = pool->live_blocks == 0 && pool->pending_blocks == 0;
    if (pool->order)
        pool->order->pins++;
    pool_unlock_all(pool, arenas);
    if (pool->order)
        pool_order_unpin(pool);
    else if (idle)
        pool_tear_down(pool);
    pool_order_reap();
}

size_t pool_live_blocks(raffia_pool *pool)
{
    struct pool_arenas *arenas = pool_lock_all(pool);
    size_t live = pool->live_blocks;
    for (int i = 0; arenas && i < POOL_ARENAS; i++)
        live += arenas->arenas[i].live_blocks;
    pool_unlock_all(pool, arenas);
    return live;
}

void *pool_base(const raffia_pool *pool)
{
    return pool->base;
}

struct driver_device pool_device(const raffia_pool *pool)
{
    return pool->device;
}
