/* Where growth costs least. */
#include "core/checked.h"
#include "pool/pool_internal.h"

struct search {
    const struct raffia_pool *pool;
    size_t bytes;
    size_t alignment;
    enum pool_view view;
    size_t window_start; /* end of the last thing that is in the way */
    bool found;
    struct pool_interval best;
};

static size_t cost(const struct search *search, size_t slot)
{
    const struct raffia_pool *pool = search->pool;
    const size_t bytes = pool_slot_bytes(pool, slot);
    const bool costs =
        pool->slots[slot].state == POOL_SLOT_ABSENT ||
        (search->view == POOL_VIEW_MOVE && pool->slots[slot].state == POOL_SLOT_MAPPED &&
         space_is_free(pool->space, pool_slot_offset(pool, slot), bytes));
    return costs ? bytes : 0;
}

/*
 * Slides the request through one window. Moving it up costs a slot when its end enters one and
 * saves a slot when its start leaves one, so the only places worth a look are the start of the
 * window and the ends of absent slots. Each slot is counted in once and counted out once.
 */
static void search_window(struct search *search, size_t end)
{
    const struct raffia_pool *pool = search->pool;
    size_t offset;
    if (!core_align_up(search->window_start, search->alignment, &offset))
        return;
    size_t first = offset / pool->chunk_bytes, counted = first, total = 0;
    while (offset < end && end - offset >= search->bytes) {
        const struct pool_interval here = {offset, search->bytes, 0};
        for (; counted < pool_end_slot(pool, &here); counted++)
            total += cost(search, counted);
        for (; first < pool_first_slot(pool, &here); first++)
            total -= cost(search, first);
        if (!search->found || total < search->best.missing) {
            search->found = true;
            search->best = (struct pool_interval){offset, search->bytes, total};
        }
        size_t leaving = first;
        while (leaving < counted && !cost(search, leaving))
            leaving++;
        if (leaving == counted)
            return;
        offset = core_align_up_unchecked(pool_slot_offset(pool, leaving + 1), search->alignment);
    }
}

static bool visit(void *context, const struct space_block *item)
{
    struct search *search = context;
    if (item->state == SPACE_FREE && search->view != POOL_VIEW_ALONE)
        return true;
    search_window(search, item->offset);
    search->window_start = item->offset + item->bytes;
    return true;
}

size_t pool_absent_bytes(const struct raffia_pool *pool, const struct pool_interval *interval)
{
    size_t bytes = 0;
    for (size_t i = pool_first_slot(pool, interval); i < pool_end_slot(pool, interval); i++)
        if (pool->slots[i].state == POOL_SLOT_ABSENT)
            bytes += pool_slot_bytes(pool, i);
    return bytes;
}

bool pool_find_window(struct raffia_pool *pool, const struct space_request *request,
                      enum pool_view view, struct pool_interval *best)
{
    struct search search = {.pool = pool, .view = view};
    search.alignment = core_max(request->alignment, pool->granule);
    if (!core_align_up(request->bytes, pool->granule, &search.bytes) ||
        search.bytes > pool->range_bytes)
        return false;
    space_walk_places(pool->space, visit, &search);
    search_window(&search, pool->range_bytes);
    if (!search.found)
        return false;
    *best = search.best;
    best->missing = pool_absent_bytes(pool, best);
    return true;
}
