/* Where growth costs least. */
#include "core/checked.h"
#include "pool/pool_internal.h"

struct search {
    const struct raffia_pool *pool;
    size_t bytes;
    size_t alignment;
    bool alone;
    size_t window_start; /* end of the last thing that is in the way */
    bool found;
    struct pool_interval best;
};

static size_t missing_bytes(const struct raffia_pool *pool, size_t slot)
{
    return pool->slots[slot].state == POOL_SLOT_ABSENT ? pool_slot_bytes(pool, slot) : 0;
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
    size_t first = offset / pool->chunk_bytes, counted = first, missing = 0;
    while (offset < end && end - offset >= search->bytes) {
        const struct pool_interval here = {offset, search->bytes, 0};
        for (; counted < pool_end_slot(pool, &here); counted++)
            missing += missing_bytes(pool, counted);
        for (; first < pool_first_slot(pool, &here); first++)
            missing -= missing_bytes(pool, first);
        if (!search->found || missing < search->best.missing) {
            search->found = true;
            search->best = (struct pool_interval){offset, search->bytes, missing};
        }
        size_t leaving = first;
        while (leaving < counted && !missing_bytes(pool, leaving))
            leaving++;
        if (leaving == counted)
            return;
        offset = core_align_up_unchecked(pool_slot_offset(pool, leaving + 1), search->alignment);
    }
}

static bool visit(void *context, const struct space_block *item)
{
    struct search *search = context;
    if (item->state == SPACE_FREE && !search->alone)
        return true;
    search_window(search, item->offset);
    search->window_start = item->offset + item->bytes;
    return true;
}

bool pool_find_window(struct raffia_pool *pool, const struct space_request *request, bool alone,
                      struct pool_interval *best)
{
    struct search search = {.pool = pool, .alone = alone};
    search.alignment = core_max(request->alignment, pool->granule);
    if (!core_align_up(request->bytes, pool->granule, &search.bytes) ||
        search.bytes > pool->range_bytes)
        return false;
    space_walk(pool->space, visit, &search);
    search_window(&search, pool->range_bytes);
    if (search.found)
        *best = search.best;
    return search.found;
}
