/* What arenas borrow from the space of their pool. */
#include "pool/arena.h"

#include <assert.h>

/* The largest lease, and the share of the range that it may have. */
#define LEASE_MAX         ((size_t)256 << 20)
#define LEASES_IN_RANGE   32
#define LEASES_IN_CHUNK   4 /* where a pool grows by chunks: what comes with one can be leased */
#define GRANULES_AT_LEAST 32

/* Leases leave so much of what is mapped to requests that arenas cannot serve. */
#define SHARED_SHARE 16

/* How many requests an arena leaves to the pool before it asks for a lease again: after the pool
 * had nothing to spare; and after all leases were taken away because a request did not fit
 * otherwise, which doubles each time up to the most, unless so many requests were served in
 * between. So a pool that is too full for arenas soon has none, and packs as if there never had
 * been any. */
#define PATIENCE     64u
#define PATIENCE_MAX 65536u

size_t pool_lease_bytes(const struct raffia_pool *pool)
{
    size_t most = core_min(LEASE_MAX, pool->range_bytes / LEASES_IN_RANGE);
    if (!(pool->flags & RAFFIA_POOL_FIXED))
        most = core_min(most, pool->chunk_bytes / LEASES_IN_CHUNK);
    if (pool->guard || pool->order || most < GRANULES_AT_LEAST * pool->granule)
        return 0;
    return (size_t)1 << (63 - __builtin_clzll(most));
}

/* Pool lock held. */
static bool has_to_spare(const struct raffia_pool *pool, const struct pool_arenas *arenas)
{
    const size_t taken = pool->in_use_bytes + arenas->leased_bytes;
    return pool->mapped_bytes - taken >= arenas->lease_bytes + pool->mapped_bytes / SHARED_SHARE;
}

/* Lock of the arena and pool lock held. */
static bool borrow(struct raffia_pool *pool, struct pool_arenas *arenas, struct pool_arena *arena)
{
    /* Low, as all that zones keep together: at the high end it is in the way of large blocks. */
    const struct space_request request = {.bytes = arenas->lease_bytes,
                                          .alignment = arenas->lease_bytes,
                                          .placement = SPACE_PLACE_LOW};
    struct space_block block;
    if (pool->orphaned || !has_to_spare(pool, arenas) ||
        space_allocate(pool->space, &request, &block))
        return false;
    if (space_add(arena->space, block.offset, block.bytes)) {
        (void)space_free(pool->space, block.handle);
        return false;
    }
    (void)space_set_state(pool->space, block.handle, SPACE_CACHED);
    const size_t lease = block.offset >> arenas->lease_shift;
    assert(arenas->leases[lease].blocks == 0);
    arenas->leases[lease].handle = block.handle;
    atomic_store_explicit(&arenas->owners[lease], (unsigned char)(arena - arenas->arenas + 1),
                          memory_order_release);
    arenas->leased_bytes += block.bytes;
    arena->leases++;
    arena->idle_leases++;
    pool->peak_in_use_bytes = core_max(pool->peak_in_use_bytes, pool_arenas_in_use(pool));
    return true;
}

static bool has_space(const struct raffia_pool *pool, struct pool_arena *arena)
{
    const struct space_options options = pool_space_options(pool);
    return arena->space || !space_create(&options, &arena->space);
}

bool pool_lease_more(struct raffia_pool *pool, struct pool_arena *arena)
{
    struct pool_arenas *arenas = pool_arenas_of(pool);
    struct core_error_record before;
    if (arena->patience) {
        arena->patience--;
        return false;
    }
    core_error_save(&before);
    bool borrowed = false;
    if (has_space(pool, arena)) {
        core_lock_take(&pool->lock);
        borrowed = borrow(pool, arenas, arena);
        core_lock_leave_inner(&pool->lock);
    }
    core_error_restore(&before);
    if (!borrowed)
        arena->patience = PATIENCE;
    return borrowed;
}

void pool_lease_return_locked(struct raffia_pool *pool, struct pool_arena *arena, size_t lease)
{
    struct pool_arenas *arenas = pool_arenas_of(pool);
    struct core_error_record before;
    core_error_save(&before);
    /* Cutting it out of a longer stretch may want memory for a record. It then stays idle. */
    if (!space_remove(arena->space, lease << arenas->lease_shift, arenas->lease_bytes)) {
        (void)space_free(pool->space, arenas->leases[lease].handle);
        atomic_store_explicit(&arenas->owners[lease], 0, memory_order_release);
        arenas->leased_bytes -= arenas->lease_bytes;
        arena->leases--;
        arena->idle_leases--;
    }
    core_error_restore(&before);
}

void pool_lease_return(struct raffia_pool *pool, struct pool_arena *arena, size_t lease)
{
    core_lock_take(&pool->lock);
    pool_lease_return_locked(pool, arena, lease);
    core_lock_leave_inner(&pool->lock);
}

void pool_leases_lost(struct pool_arenas *arenas)
{
    uint64_t hits = 0;
    for (int i = 0; i < POOL_ARENAS; i++)
        hits += arenas->arenas[i].hits;
    const bool calm = hits - arenas->hits_then >= PATIENCE_MAX;
    const unsigned more = 2 * arenas->penalty;
    arenas->penalty = calm || !more ? PATIENCE : more < PATIENCE_MAX ? more : PATIENCE_MAX;
    arenas->hits_then = hits;
    for (int i = 0; i < POOL_ARENAS; i++)
        arenas->arenas[i].patience = arenas->penalty;
}
