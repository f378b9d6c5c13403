/* Growth for one request: find where it is cheapest, map, and take the block before others can. */
#include "pool/arena.h"

/* Free space next to a new chunk can be taken by others while the chunk is being mapped. After so
 * many thefts the request is given a stretch of new chunks only, which nobody can take. */
#define POOL_THEFTS_SUFFERED 3

/* Bounds the loop: each attempt maps something or gives something back, but none is wasted twice.
 */
#define POOL_GROW_ATTEMPTS 16

struct growth {
    struct raffia_pool *pool;
    const struct space_request *request;
    struct space_block *block;
    unsigned thefts;
    bool device_refused;
    size_t missing;                    /* what the device refused */
    struct core_error_record *refusal; /* what the device said */
    enum pool_remap_end *remap;
};

enum outcome {
    OUTCOME_DONE,   /* with a status that is final */
    OUTCOME_AGAIN,  /* something changed: worth another attempt */
    OUTCOME_REFUSE, /* out of memory; the sentence is still to be made */
};

/* Whether failing to borrow means that there is no memory, rather than that something broke. */
static bool is_shortage(raffia_status status)
{
    return status == RAFFIA_ERROR_OUT_OF_MEMORY || status == RAFFIA_ERROR_LIMIT;
}

/* Both locks held. What growth or moved chunks made room for. */
static raffia_status take(struct raffia_pool *pool, void *context)
{
    const struct growth *growth = context;
    raffia_status status = space_allocate(pool->space, growth->request, growth->block);
    if (!status) {
        pool_count_block(pool, growth->block);
        pool->misses++;
    }
    return status;
}

/* Puts free chunks together, with what may still be borrowed. */
static enum outcome remap_and_take(struct growth *growth, size_t budget, raffia_status *status_p)
{
    const struct pool_remap_wish wish = {
        .request = growth->request,
        .budget = budget,
        .alone = growth->thefts >= POOL_THEFTS_SUFFERED,
        .take = take,
        .context = growth,
    };
    *growth->remap = pool_remap(growth->pool, &wish, status_p);
    switch (*growth->remap) {
    case POOL_REMAP_SERVED:
        return OUTCOME_DONE;
    case POOL_REMAP_STOLEN:
        growth->thefts++;
        return OUTCOME_AGAIN;
    case POOL_REMAP_REFUSED:
    case POOL_REMAP_NO_ADDRESSES:
    case POOL_REMAP_NO_MAPPINGS:
        return OUTCOME_REFUSE;
    case POOL_REMAP_SHORT:
        growth->device_refused = true;
        growth->missing = growth->pool->chunk_bytes;
        core_error_save(growth->refusal);
        return OUTCOME_REFUSE;
    default:
        *status_p = core_error_prefix("pool '%s' cannot move its chunks", growth->pool->name);
        return OUTCOME_DONE;
    }
}

static enum outcome fill_and_take(struct growth *growth, const struct pool_interval *interval,
                                  raffia_status *status_p)
{
    struct raffia_pool *pool = growth->pool;
    raffia_fallback_reason reason;
    raffia_status status = pool_fill(pool, interval, &reason);
    growth->device_refused = is_shortage(status);
    if (growth->device_refused) {
        growth->missing = interval->missing;
        core_error_save(growth->refusal);
        const enum outcome outcome =
            pool_can_remap(pool) ? remap_and_take(growth, 0, status_p) : OUTCOME_REFUSE;
        if (outcome != OUTCOME_REFUSE)
            return outcome;
        return pool_make_room(pool, interval, interval->missing, 1) ? OUTCOME_AGAIN
                                                                    : OUTCOME_REFUSE;
    }
    if (status) {
        *status_p = core_error_prefix("pool '%s' cannot grow", pool->name);
        return OUTCOME_DONE;
    }
    core_lock_take(&pool->lock);
    status = pool_admit(pool, interval);
    const bool admitted = !status;
    if (admitted)
        status = take(pool, growth);
    core_lock_leave(&pool->lock);
    if (!admitted)
        pool_drop_loaned(pool, interval);
    *status_p = status;
    if (admitted && status == RAFFIA_ERROR_OUT_OF_MEMORY) {
        growth->thefts++;
        return OUTCOME_AGAIN;
    }
    return OUTCOME_DONE;
}

/* Where the pool cannot grow as far as the request needs: its own idle chunks are moved, or, if
 * they cannot be, given back and taken anew. */
static enum outcome make_place(struct growth *growth, size_t budget, raffia_status *status_p)
{
    struct raffia_pool *pool = growth->pool;
    struct pool_interval interval;
    if (pool_can_remap(pool)) {
        const enum outcome outcome = remap_and_take(growth, budget, status_p);
        /* Chunks of another size than the rest are not moved. */
        if (outcome != OUTCOME_REFUSE || pool->range_bytes % pool->chunk_bytes == 0)
            return outcome;
    }
    (void)pool_lock_whole(pool);
    const bool found = pool_find_window(pool, growth->request, POOL_VIEW_MOVE, &interval);
    core_lock_leave(&pool->lock);
    if (!found)
        return OUTCOME_REFUSE;
    if (interval.missing <= budget)
        return fill_and_take(growth, &interval, status_p);
    const size_t shortfall = interval.missing - budget;
    return pool_make_room(pool, &interval, shortfall, shortfall) ? OUTCOME_AGAIN : OUTCOME_REFUSE;
}

static enum outcome attempt(struct growth *growth, raffia_status *status_p)
{
    struct raffia_pool *pool = growth->pool;
    struct pool_interval interval;
    const enum pool_view view =
        growth->thefts < POOL_THEFTS_SUFFERED ? POOL_VIEW_GROWTH : POOL_VIEW_ALONE;
    const size_t budget = pool_budget(pool);
    *status_p = pool_settle(pool); /* also what the attempt before may have moved in vain */
    if (*status_p) {
        *status_p = core_error_prefix("pool '%s' cannot grow", pool->name);
        return OUTCOME_DONE;
    }
    (void)pool_lock_whole(pool);
    *status_p = space_allocate(pool->space, growth->request, growth->block);
    if (!*status_p) {
        pool_count_block(pool, growth->block);
        pool->hits++;
    }
    const bool short_of_space = *status_p == RAFFIA_ERROR_OUT_OF_MEMORY;
    const bool found = short_of_space && pool_find_window(pool, growth->request, view, &interval);
    core_lock_leave(&pool->lock);
    if (!short_of_space)
        return OUTCOME_DONE;
    growth->device_refused = false;
    if (found && interval.missing <= budget)
        return fill_and_take(growth, &interval, status_p);
    return make_place(growth, budget, status_p);
}

static enum outcome grow(struct growth *growth, raffia_status *status_p)
{
    enum outcome outcome = OUTCOME_AGAIN;
    pool_lock(&growth->pool->growth_lock);
    for (int i = 0; outcome == OUTCOME_AGAIN && i < POOL_GROW_ATTEMPTS; i++)
        outcome = attempt(growth, status_p);
    pool_unlock(&growth->pool->growth_lock);
    return outcome;
}

raffia_status pool_try_growth(struct raffia_pool *pool, const struct space_request *request,
                              struct space_block *block, struct pool_growth_end *end)
{
    struct growth growth = {.pool = pool,
                            .request = request,
                            .block = block,
                            .refusal = &end->device,
                            .remap = &end->remap};
    raffia_status status = RAFFIA_ERROR_OUT_OF_MEMORY;
    enum outcome outcome = grow(&growth, &status);
    /* What the pool itself had idle has gone already. */
    if (outcome == OUTCOME_REFUSE && growth.device_refused &&
        pool_others_make_room(pool, growth.missing))
        outcome = grow(&growth, &status);
    if (outcome == OUTCOME_DONE)
        return status;
    end->gave_up = outcome == OUTCOME_AGAIN;
    if (!growth.device_refused || end->gave_up)
        end->device.status = RAFFIA_OK;
    return RAFFIA_ERROR_OUT_OF_MEMORY;
}
