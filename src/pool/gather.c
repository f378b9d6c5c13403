/* A pool with arenas, seen as one. */
#include "pool/arena.h"

#include <stdio.h>

size_t pool_arenas_in_use(const struct raffia_pool *pool)
{
    const struct pool_arenas *arenas = pool_arenas_of(pool);
    size_t bytes = pool->in_use_bytes;
    for (int i = 0; arenas && i < POOL_ARENAS; i++)
        bytes += atomic_load_explicit(&arenas->arenas[i].in_use_bytes, memory_order_relaxed);
    return bytes;
}

struct pool_arenas *pool_lock_all(struct raffia_pool *pool)
{
    for (;;) {
        struct pool_arenas *arenas = pool_arenas_of(pool);
        for (int i = 0; arenas && i < POOL_ARENAS; i++)
            core_lock_take(&arenas->arenas[i].lock);
        core_lock_take(&pool->lock);
        if (arenas == pool_arenas_of(pool)) /* or they were made meanwhile */
            return arenas;
        pool_unlock_all(pool, arenas);
    }
}

/* Whether somebody starves for one of them. */
static bool unlock_arenas(struct pool_arenas *arenas)
{
    bool starving = false;
    for (int i = 0; arenas && i < POOL_ARENAS; i++) {
        starving = starving || core_lock_starves(&arenas->arenas[i].lock);
        core_lock_leave_inner(&arenas->arenas[i].lock);
    }
    return starving;
}

void pool_unlock_all(struct raffia_pool *pool, struct pool_arenas *arenas)
{
    const bool starving = core_lock_starves(&pool->lock);
    core_lock_leave_inner(&pool->lock);
    if (unlock_arenas(arenas) || starving)
        core_lock_stay_away();
}

/* The counters of the arena's blocks become the pool's. All locks held. */
static void count_in(struct raffia_pool *pool, struct pool_arena *arena)
{
    pool->live_blocks += arena->live_blocks;
    pool->in_use_bytes += atomic_load_explicit(&arena->in_use_bytes, memory_order_relaxed);
    pool->peak_in_use_bytes = core_max(pool->peak_in_use_bytes, pool->in_use_bytes);
    arena->live_blocks = 0;
    atomic_store_explicit(&arena->in_use_bytes, 0, memory_order_relaxed);
}

/* All locks held. Ends all leases of an arena, whose blocks become the pool's. */
static raffia_status gather(struct raffia_pool *pool, struct pool_arenas *arenas, int number)
{
    struct pool_arena *arena = &arenas->arenas[number];
    if (!arena->leases)
        return RAFFIA_OK;
    raffia_status status = space_prepare_absorb(pool->space, arena->space);
    if (status)
        return status;
    for (size_t i = 0; i < arenas->lease_count; i++) {
        if (atomic_load_explicit(&arenas->owners[i], memory_order_relaxed) != number + 1)
            continue;
        (void)space_free(pool->space, arenas->leases[i].handle);
        arenas->leases[i].blocks = 0;
        atomic_store_explicit(&arenas->owners[i], 0, memory_order_release);
        arenas->leased_bytes -= arenas->lease_bytes;
    }
    space_absorb(pool->space, arena->space);
    count_in(pool, arena);
    arena->leases = arena->idle_leases = 0;
    return RAFFIA_OK;
}

/* All locks held. */
static raffia_status gather_all(struct raffia_pool *pool, struct pool_arenas *arenas)
{
    raffia_status status = RAFFIA_OK;
    for (int i = 0; arenas && arenas->leased_bytes && i < POOL_ARENAS; i++) {
        raffia_status gathered = gather(pool, arenas, i);
        status = status ? status : gathered;
    }
    return status;
}

raffia_status pool_lock_whole(struct raffia_pool *pool)
{
    struct core_error_record before;
    core_error_save(&before);
    struct pool_arenas *arenas = pool_lock_all(pool);
    if (arenas && arenas->leased_bytes)
        pool_leases_lost(arenas);
    raffia_status status = gather_all(pool, arenas);
    (void)unlock_arenas(arenas);
    if (!status)
        core_error_restore(&before);
    return status;
}

void pool_return_idle(struct raffia_pool *pool, struct pool_arenas *arenas)
{
    for (size_t i = 0; arenas && arenas->leased_bytes && i < arenas->lease_count; i++) {
        const unsigned owner = atomic_load_explicit(&arenas->owners[i], memory_order_relaxed);
        if (owner && arenas->leases[i].blocks == 0)
            pool_lease_return_locked(pool, &arenas->arenas[owner - 1], i);
    }
}

void pool_arenas_add_up(const struct pool_arenas *arenas, raffia_pool_stats *stats)
{
    for (int i = 0; arenas && i < POOL_ARENAS; i++) {
        const struct pool_arena *arena = &arenas->arenas[i];
        struct space_stats space;
        stats->hits += arena->hits;
        stats->frees += arena->frees;
        if (!arena->leases)
            continue;
        space_query(arena->space, &space);
        stats->in_use_bytes += atomic_load_explicit(&arena->in_use_bytes, memory_order_relaxed);
        stats->requested_bytes += space.requested_bytes;
        stats->free_bytes += space.free_bytes;
        stats->largest_free_bytes = core_max(stats->largest_free_bytes, space.largest_free);
        stats->live_blocks += arena->live_blocks;
        stats->free_blocks += space.free_blocks;
    }
}

void pool_arenas_orphan(struct raffia_pool *pool, struct pool_arenas *arenas)
{
    for (int i = 0; arenas && i < POOL_ARENAS; i++) {
        count_in(pool, &arenas->arenas[i]);
        arenas->arenas[i].orphaned = true;
    }
}

struct pool_home pool_lock_home(struct raffia_pool *pool, const void *address)
{
    /* An address below the base wraps to an offset beyond any range. */
    const size_t offset = (uintptr_t)address - (uintptr_t)pool->base;
    for (;;) {
        struct pool_arenas *arenas = pool_arenas_of(pool);
        atomic_uchar *owner_p = arenas && offset < pool->range_bytes
                                    ? &arenas->owners[offset >> arenas->lease_shift]
                                    : NULL;
        const unsigned owner = owner_p ? atomic_load_explicit(owner_p, memory_order_acquire) : 0;
        struct pool_home home = {&pool->lock, pool->space, NULL};
        if (owner) {
            home.arena = &arenas->arenas[owner - 1];
            home.lock = &home.arena->lock;
        }
        core_lock_take(home.lock);
        const bool still =
            arenas == pool_arenas_of(pool) &&
            (!owner_p || atomic_load_explicit(owner_p, memory_order_relaxed) == owner);
        if (still && owner)
            home.space = home.arena->space;
        if (still)
            return home;
        core_lock_leave(home.lock);
    }
}

/* ---- checks --------------------------------------------------------------------------------- */

/* What a walk over the space of an arena must agree with. */
struct audit {
    struct pool_arenas *arenas;
    unsigned owner;
    uint32_t step; /* to add to the count of a lease for each block that touches it */
    size_t blocks, in_use_bytes;
    bool outside;
};

static bool visit(void *context, const struct space_block *block)
{
    struct audit *audit = context;
    struct pool_arenas *arenas = audit->arenas;
    const size_t first = block->offset >> arenas->lease_shift;
    const size_t last = (block->offset + block->bytes - 1) >> arenas->lease_shift;
    const bool live = block->state != SPACE_FREE;
    for (size_t i = first; i <= last; i++) {
        if (atomic_load_explicit(&arenas->owners[i], memory_order_relaxed) != audit->owner)
            audit->outside = true;
        arenas->leases[i].blocks += live ? audit->step : 0;
    }
    audit->blocks += live;
    audit->in_use_bytes += live ? block->bytes : 0;
    return true;
}

/* The counts of leases must all be 0 when each block was taken off; then they are put back. */
static const char *wrong_with(struct pool_arenas *arenas, unsigned owner)
{
    const struct pool_arena *arena = &arenas->arenas[owner - 1];
    struct audit down = {.arenas = arenas, .owner = owner, .step = -1u};
    struct audit up = {.arenas = arenas, .owner = owner, .step = 1};
    unsigned leases = 0, idle = 0;
    bool counted = true;
    for (size_t i = 0; i < arenas->lease_count; i++)
        if (atomic_load_explicit(&arenas->owners[i], memory_order_relaxed) == owner) {
            leases++;
            idle += arenas->leases[i].blocks == 0;
        }
    space_walk(arena->space, visit, &down);
    for (size_t i = 0; i < arenas->lease_count; i++)
        if (atomic_load_explicit(&arenas->owners[i], memory_order_relaxed) == owner)
            counted = counted && arenas->leases[i].blocks == 0;
    space_walk(arena->space, visit, &up);
    return down.outside                               ? "an arena has bytes outside of its leases"
           : !counted                                 ? "the blocks of a lease are miscounted"
           : leases != arena->leases                  ? "the leases of an arena are miscounted"
           : idle != arena->idle_leases               ? "idle leases are miscounted"
           : arena->orphaned                          ? NULL
           : down.blocks != arena->live_blocks        ? "the blocks of an arena are miscounted"
           : down.in_use_bytes != arena->in_use_bytes ? "the bytes of an arena are miscounted"
                                                      : NULL;
}

static raffia_status check_arenas(const struct raffia_pool *pool, struct pool_arenas *arenas,
                                  char text[static CORE_ERROR_MAX])
{
    struct space_stats shared;
    const char *wrong = NULL;
    for (unsigned i = 0; !wrong && i < POOL_ARENAS; i++) {
        if (!arenas->arenas[i].space)
            continue;
        if (space_check(arenas->arenas[i].space))
            wrong = raffia_last_error();
        else
            wrong = wrong_with(arenas, i + 1);
    }
    space_query(pool->space, &shared);
    if (!wrong && shared.state_bytes[SPACE_CACHED] != arenas->leased_bytes)
        wrong = "what is leased is miscounted";
    if (wrong)
        snprintf(text, CORE_ERROR_MAX, "%s", wrong);
    return wrong ? RAFFIA_ERROR_CORRUPT : RAFFIA_OK;
}

raffia_status pool_lock_checked(struct raffia_pool *pool, char text[static CORE_ERROR_MAX])
{
    struct pool_arenas *arenas = pool_lock_all(pool);
    raffia_status status = arenas ? check_arenas(pool, arenas, text) : RAFFIA_OK;
    if (!status)
        status = gather_all(pool, arenas);
    (void)unlock_arenas(arenas);
    return status;
}
