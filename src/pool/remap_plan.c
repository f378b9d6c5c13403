/* Choosing where free chunks are put together, and which. */
#include "pool/remap_plan.h"

#include "core/checked.h"

/* ---- what there is -------------------------------------------------------------------------- */

/* A chunk that the space does not know yet is nobody's. */
static enum remap_slot look(const struct raffia_pool *pool, size_t slot)
{
    const bool whole = pool_slot_bytes(pool, slot) == pool->chunk_bytes;
    switch (pool->slots[slot].state) {
    case POOL_SLOT_ABSENT:
        return whole ? REMAP_ABSENT : REMAP_SHORT;
    case POOL_SLOT_LOANED:
        return whole ? REMAP_IDLE : REMAP_USED;
    default:
        return REMAP_USED;
    }
}

static bool mark_idle(void *context, const struct space_block *item)
{
    const struct raffia_pool *pool = context;
    if (item->state != SPACE_FREE)
        return true;
    const size_t chunk = pool->chunk_bytes;
    const size_t first = (item->offset + chunk - 1) / chunk,
                 end = (item->offset + item->bytes) / chunk;
    for (size_t i = first; i < end; i++)
        pool->remap.view[i] = REMAP_IDLE;
    return true;
}

/* Returns how many chunks may be used up: those that are idle, and `budget` new ones. While the
 * pool is beyond its limit, because that was lowered, only as many as will be within it. */
static size_t survey(struct raffia_pool *pool, size_t budget)
{
    unsigned char *view = pool->remap.view;
    const size_t most = pool->maximum_bytes / pool->chunk_bytes;
    size_t idle = 0, used = 0;
    for (size_t i = 0; i < pool->slot_count; i++)
        view[i] = (unsigned char)look(pool, i);
    space_walk_places(pool->space, mark_idle, pool);
    for (size_t i = 0; i < pool->slot_count; i++) {
        idle += view[i] == REMAP_IDLE;
        used += view[i] == REMAP_USED;
    }
    return core_min(idle + budget, most - core_min(most, used));
}

/* ---- where ---------------------------------------------------------------------------------- */

/* What counts, in this order: whole chunks that are used up, so that requests are refused as late
 * as can be; then addresses, of which the shortest stretch that will do is taken; then moves. */
struct price {
    size_t used, stretch, moves;
};

static bool is_less(const struct price *one, const struct price *other)
{
    if (one->used != other->used)
        return one->used < other->used;
    if (one->stretch != other->stretch)
        return one->stretch < other->stretch;
    return one->moves < other->moves;
}

struct search {
    struct raffia_pool *pool;
    size_t bytes, alignment;
    bool alone;
    size_t affordable;     /* chunks that may be used up: idle ones, and what may be borrowed */
    size_t window_start;   /* end of the last thing that is in the way */
    size_t first, counted; /* slots [first, counted) are in the sums below */
    size_t absent, idle, unfit;
    size_t stretch; /* bytes between the blocks on both sides */
    bool found;
    struct pool_interval best;
    struct price price; /* of the best */
};

static void count(struct search *search, size_t slot, size_t by)
{
    const unsigned char what = search->pool->remap.view[slot];
    search->absent += what == REMAP_ABSENT ? by : 0;
    search->idle += what == REMAP_IDLE ? by : 0;
    search->unfit += what == REMAP_SHORT ? by : 0;
}

/* The lowest place among equals. */
static void consider(struct search *search, size_t offset)
{
    const struct price price = {search->absent + search->idle, search->stretch, search->absent};
    if (search->unfit || price.used > search->affordable ||
        (search->found && !is_less(&price, &search->price)))
        return;
    search->found = true;
    search->best = (struct pool_interval){offset, search->bytes, 0};
    search->price = price;
}

/* Slides the request through one window, as window.c does: only the start of the window and the
 * ends of slots that cost something are worth a look. */
static void search_window(struct search *search, size_t end)
{
    const struct raffia_pool *pool = search->pool;
    size_t offset;
    if (!core_align_up(search->window_start, search->alignment, &offset))
        return;
    search->first = search->counted = offset / pool->chunk_bytes;
    search->absent = search->idle = search->unfit = 0;
    search->stretch = end - search->window_start;
    while (offset < end && end - offset >= search->bytes) {
        const struct pool_interval here = {offset, search->bytes, 0};
        for (; search->counted < pool_end_slot(pool, &here); search->counted++)
            count(search, search->counted, 1);
        for (; search->first < pool_first_slot(pool, &here); search->first++)
            count(search, search->first, (size_t)-1);
        consider(search, offset);
        size_t leaving = search->first;
        while (leaving < search->counted && pool->remap.view[leaving] == REMAP_USED)
            leaving++;
        if (leaving == search->counted)
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

/* ---- which ---------------------------------------------------------------------------------- */

static size_t run_length(const struct raffia_pool *pool, size_t slot,
                         const struct pool_interval *place)
{
    size_t end = slot;
    while (end < pool->slot_count && pool->remap.view[end] == REMAP_IDLE &&
           !pool_is_spared(pool, end, place))
        end++;
    return end - slot;
}

/* Chunks that lie alone first, so that long runs stay for requests to come. */
static void choose_donors(struct raffia_pool *pool, const struct remap_plan *plan)
{
    size_t wanted = plan->moves;
    for (size_t longest = 1; wanted; longest *= 2) {
        for (size_t i = 0; wanted && i < pool->slot_count; i++) {
            const size_t run = run_length(pool, i, &plan->place);
            for (size_t j = 0; wanted && run <= longest && j < run; j++, wanted--)
                pool->remap.view[i + j] = REMAP_DONOR;
            i += run;
        }
    }
}

static void choose_targets(struct raffia_pool *pool, const struct remap_plan *plan)
{
    size_t moves = plan->moves, donor = 0;
    for (size_t i = pool_first_slot(pool, &plan->place); i < pool_end_slot(pool, &plan->place);
         i++) {
        if (pool->remap.view[i] != REMAP_ABSENT)
            continue;
        pool->remap.view[i] = moves ? REMAP_TARGET : REMAP_NEW;
        if (!moves)
            continue;
        while (pool->remap.view[donor] != REMAP_DONOR)
            donor++;
        pool->slots[i].partner = donor++;
        moves--;
    }
}

static void search_place(struct search *search, const struct pool_interval *place)
{
    const size_t end = pool_end_slot(search->pool, place);
    for (size_t i = pool_first_slot(search->pool, place); i < end; i++)
        count(search, i, 1);
    search->bytes = place->bytes;
    consider(search, place->offset);
}

/* False if no such place can be. */
static bool search_all(struct search *search, const struct space_request *request)
{
    struct raffia_pool *pool = search->pool;
    search->alignment = core_max(request->alignment, pool->granule);
    if (!core_align_up(request->bytes, pool->granule, &search->bytes) ||
        search->bytes > pool->range_bytes)
        return false;
    space_walk_places(pool->space, visit, search);
    search_window(search, pool->range_bytes);
    return true;
}

enum remap_choice remap_choose(struct raffia_pool *pool, const struct pool_remap_wish *wish,
                               struct remap_plan *plan)
{
    struct search search = {.pool = pool, .alone = wish->alone};
    const size_t budget = wish->budget / pool->chunk_bytes;
    search.affordable = survey(pool, budget);
    if (wish->place)
        search_place(&search, wish->place);
    else if (!search_all(&search, wish->request))
        return REMAP_NO_CHUNKS;
    if (!search.found &&
        (wish->place || (search.bytes - 1) / pool->chunk_bytes >= search.affordable))
        return REMAP_NO_CHUNKS;
    if (!search.found)
        return REMAP_NO_ADDRESSES;
    const size_t loans = core_min(budget, search.price.moves);
    *plan = (struct remap_plan){search.best, search.price.moves - loans, loans};
    choose_donors(pool, plan);
    choose_targets(pool, plan);
    return REMAP_CHOSEN;
}
