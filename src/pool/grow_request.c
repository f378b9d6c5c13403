/* Growth for one request: find where it is cheapest, map, and take the block before others can. */
#include "pool/pool_internal.h"

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
        status = space_allocate(pool->space, growth->request, growth->block);
    if (!status) {
        pool_count_block(pool, growth->block);
        pool->misses++;
    }
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

/* Both locks held. Where the request would fit with what may still be borrowed; failing that, where
 * it would fit if idle chunks were moved. */
static bool choose_window(const struct growth *growth, size_t budget,
                          struct pool_interval *interval)
{
    const enum pool_view view =
        growth->thefts < POOL_THEFTS_SUFFERED ? POOL_VIEW_GROWTH : POOL_VIEW_ALONE;
    if (!pool_find_window(growth->pool, growth->request, view, interval))
        return false;
    return interval->missing <= budget ||
           pool_find_window(growth->pool, growth->request, POOL_VIEW_MOVE, interval);
}

static enum outcome attempt(struct growth *growth, raffia_status *status_p)
{
    struct raffia_pool *pool = growth->pool;
    struct pool_interval interval;
    const size_t budget = pool_budget(pool);
    core_lock_take(&pool->lock);
    *status_p = space_allocate(pool->space, growth->request, growth->block);
    if (!*status_p) {
        pool_count_block(pool, growth->block);
        pool->hits++;
    }
    const bool short_of_space = *status_p == RAFFIA_ERROR_OUT_OF_MEMORY;
    const bool found = short_of_space && choose_window(growth, budget, &interval);
    core_lock_leave(&pool->lock);
    if (!short_of_space)
        return OUTCOME_DONE;
    growth->device_refused = false;
    if (!found)
        return OUTCOME_REFUSE;
    if (interval.missing <= budget)
        return fill_and_take(growth, &interval, status_p);
    const size_t shortfall = interval.missing - budget;
    return pool_make_room(pool, &interval, shortfall, shortfall) ? OUTCOME_AGAIN : OUTCOME_REFUSE;
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
    struct growth growth = {
        .pool = pool, .request = request, .block = block, .refusal = &end->device};
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
