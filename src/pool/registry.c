/* Every pool of the process. */
#include "pool/registry.h"

#include "core/log.h"
#include "core/process.h"
#include "pool/arena.h"
#include "pool/order.h"

#include <assert.h>

/*
 * The newest pool, with the links and counts of all of them: guarded by the lock of the process,
 * which is held for a few instructions only, and which a fork() waits for. A child finds its
 * parent's pools listed, and knows them by their generation; none of them is ever taken out there,
 * since a child tears none down.
 */
static raffia_pool *newest;

void pool_registry_add(raffia_pool *pool)
{
    core_process_lock();
    pool->registry.listed = true;
    pool->registry.older = newest;
    if (newest)
        newest->registry.newer = pool;
    newest = pool;
    core_process_unlock();
}

/* Lock of the process held. */
static void unlink_pool(raffia_pool *pool)
{
    struct pool_registry_link *link = &pool->registry;
    if (link->newer)
        link->newer->registry.older = link->older;
    else
        newest = link->older;
    if (link->older)
        link->older->registry.newer = link->newer;
    link->listed = false;
}

bool pool_registry_remove(raffia_pool *pool)
{
    core_process_lock();
    pool->registry.doomed = pool->registry.visitors > 0;
    const bool gone = !pool->registry.doomed;
    if (gone && pool->registry.listed)
        unlink_pool(pool);
    core_process_unlock();
    return gone;
}

/* Lock of the process held. The first pool from `pool` on that may be visited, or NULL. */
static raffia_pool *enter_first(raffia_pool *pool, unsigned long generation)
{
    while (pool && (pool->generation != generation || pool->registry.doomed))
        pool = pool->registry.older;
    if (pool)
        pool->registry.visitors++;
    return pool;
}

/* Leaves one pool for the next, which is NULL if that was wanted or there is none. */
static raffia_pool *move_on(raffia_pool *pool, bool wanted, unsigned long generation)
{
    core_process_lock();
    raffia_pool *next = wanted ? enter_first(pool->registry.older, generation) : NULL;
    assert(pool->registry.visitors > 0);
    const bool tear_down = --pool->registry.visitors == 0 && pool->registry.doomed;
    core_process_unlock();
    if (tear_down)
        pool_tear_down(pool);
    return next;
}

void pool_registry_for_each(pool_registry_visitor visitor, void *context)
{
    const unsigned long generation = core_fork_generation();
    core_process_lock();
    raffia_pool *pool = enter_first(newest, generation);
    core_process_unlock();
    while (pool)
        pool = move_on(pool, visitor(context, pool), generation);
}

static bool same_device(const raffia_pool *pool, struct driver_device device)
{
    return pool->device.driver == device.driver && pool->device.index == device.index;
}

struct trimming {
    const struct pool_need *need;
    size_t released;
};

/* A lock of the pool held. A fixed pool could not get its chunks again. */
static bool can_help(const raffia_pool *pool, const struct pool_need *need)
{
    if (pool == need->spared || !same_device(pool, need->device) ||
        pool->flags & RAFFIA_POOL_FIXED ||
        atomic_load_explicit(&pool->frozen, memory_order_relaxed))
        return false;
    const bool reserved = pool->kind == RAFFIA_PAGE_HUGETLB;
    if (need->kind == RAFFIA_PAGE_HUGETLB)
        return reserved && pool->page_size == need->page_size;
    return !reserved;
}

static bool trim(void *context, raffia_pool *pool)
{
    struct trimming *trimming = context;
    size_t released = 0;
    if (pool == trimming->need->spared)
        return true;
    pool_order_refresh(pool);
    pool_lock(&pool->growth_lock);
    if (can_help(pool, trimming->need)) {
        (void)pool_reclaim(pool, trimming->need->bytes - trimming->released, NULL, &released);
        /* Chunks that can be remapped are kept by the store when they are returned. */
        (void)page_store_trim(pool->store, 0, NULL);
    }
    pool_unlock(&pool->growth_lock);
    if (released)
        core_log_info("pool '%s': gave back %zu bytes because memory is short", pool->name,
                      released);
    trimming->released += released;
    return trimming->released < trimming->need->bytes;
}

/* Makes free what waits for streams that nobody can name. */
static bool settle(void *context, raffia_pool *pool)
{
    const struct pool_need *need = context;
    core_lock_take(&pool->lock);
    const bool helps = pool != need->spared && pool->pending_blocks && can_help(pool, need);
    core_lock_leave(&pool->lock);
    if (helps)
        pool_order_wait_unmarked(pool);
    return true;
}

struct idleness {
    struct driver_device device;
    const struct pool_need *need; /* only pools that can help it count; NULL = all of the device */
    size_t bytes;
};

static bool add_idle(void *context, raffia_pool *pool)
{
    struct idleness *idleness = context;
    if (idleness->need ? pool == idleness->need->spared : !same_device(pool, idleness->device))
        return true;
    pool_order_refresh(pool);
    (void)pool_lock_whole(pool);
    if (!idleness->need || can_help(pool, idleness->need))
        idleness->bytes += pool_idle_bytes(pool, NULL);
    core_lock_leave(&pool->lock);
    return true;
}

/* A request beyond all reason must not empty every pool. What is free of reserved pages is not
 * known here, so that all of the device's memory is the bound for them. */
static bool is_worthwhile(const struct pool_need *need)
{
    struct idleness idleness = {.need = need};
    raffia_device_info asked = {0};
    const raffia_device_info *info = need->info ? need->info : &asked;
    pool_registry_for_each(add_idle, &idleness);
    if (!idleness.bytes ||
        (!need->info && need->device.driver->device_info(need->device.index, &asked)))
        return false;
    if (need->kind == RAFFIA_PAGE_HUGETLB)
        return need->bytes <= info->total_bytes;
    return need->bytes <= idleness.bytes || need->bytes - idleness.bytes <= info->free_bytes;
}

size_t pool_registry_trim(const struct pool_need *need)
{
    struct trimming trimming = {.need = need};
    struct core_error_record cause;
    core_error_save(&cause);
    if (is_worthwhile(need))
        pool_registry_for_each(trim, &trimming);
    if (trimming.released < need->bytes) {
        struct pool_need pending = *need;
        pool_registry_for_each(settle, &pending);
        if (is_worthwhile(need))
            pool_registry_for_each(trim, &trimming);
    }
    core_error_restore(&cause);
    return trimming.released;
}

bool pool_others_make_room(struct raffia_pool *pool, size_t bytes)
{
    core_lock_take(&pool->lock);
    const struct pool_need need = {pool->device, pool->kind, pool->page_size, bytes, pool, NULL};
    core_lock_leave(&pool->lock);
    return pool_registry_trim(&need) > 0;
}

size_t pool_registry_idle_bytes(struct driver_device device)
{
    struct idleness idleness = {.device = device};
    pool_registry_for_each(add_idle, &idleness);
    return idleness.bytes;
}
