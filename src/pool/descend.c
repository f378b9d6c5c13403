/*
 * The pages of a pool that has none yet. It was made for the best there are, without knowing
 * whether it would get them; its first growth finds out, and takes the next lower ones if it does
 * not. Once a page was held, that is the size of all (SPEC B10).
 */
#include "core/fallbacks.h"
#include "pool/pool_internal.h"

raffia_status pool_make_store(const struct raffia_pool *pool, raffia_page_offer pages,
                              struct page_store **store_p)
{
    const struct page_store_options options = {
        .device = pool->device,
        .kind = pages.kind,
        .page_size = pages.size,
        .limit_bytes = pool->maximum_bytes,
        .remappable = (pool->flags & RAFFIA_POOL_REMAPPABLE) != 0,
        .handle = pool->flags & RAFFIA_POOL_SHAREABLE ? DRIVER_HANDLE_FD : DRIVER_HANDLE_NONE,
        .numa_node = pool->ladder.numa_node,
        .threads = pool->ladder.threads,
    };
    raffia_status status = page_store_create(&options, store_p);
    return status ? core_error_prefix("pool '%s'", pool->name) : status;
}

/* A chunk that could not be given back after a refusal is still lent. */
static bool holds_pages(const struct raffia_pool *pool)
{
    struct page_store_stats stats;
    page_store_query(pool->store, &stats);
    return pool->ladder.held || stats.lent_bytes > 0;
}

bool pool_descend(struct raffia_pool *pool, raffia_fallback_reason reason)
{
    struct pool_ladder *ladder = &pool->ladder;
    if (ladder->next == ladder->count || !(ladder->reasons >> reason & 1) || holds_pages(pool))
        return false;
    const raffia_page_offer pages = ladder->lower[ladder->next];
    struct core_error_record refusal;
    struct page_store *store;
    core_error_save(&refusal);
    if (pool_make_store(pool, pages, &store)) {
        core_error_restore(&refusal);
        return false;
    }
    core_fallback(pool->kind, pool->page_size, pages.kind, pages.size, reason, refusal.text);

    struct page_store *refused = pool->store;
    core_lock_take(&pool->lock);
    pool->store = store;
    pool->kind = pages.kind;
    pool->page_size = pages.size;
    if (pool->asked_refused == RAFFIA_REASON_NONE)
        pool->asked_refused = reason;
    pool_refresh_report(pool);
    core_lock_leave(&pool->lock);
    page_store_destroy(refused);
    ladder->next++;
    return true;
}
