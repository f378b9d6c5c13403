/* Arenas, the short ways: seats, taking and giving blocks. */
#include "pool/arena.h"

#include "core/memory.h"

#include <assert.h>

/* A thread that found the lock of the pool taken so often gets a seat: a single meeting would give
 * each thread an arena that does not need one, and arenas cost packing. */
#define MEETINGS_FOR_A_SEAT 8

/* At an arena the other is more often somebody who frees what was handed out there, and moving
 * would not help. */
#define MEETINGS_FOR_ANOTHER 256

/* Of this thread, in the last pools where it met others. What it says of an arena is a preference
 * and nothing more: threads own no arena, so one that ends leaves nothing behind. */
struct seat {
    uint64_t arenas; /* their id */
    unsigned meetings;
    unsigned arena; /* 0: none; or one more than the number */
};

#define SEATS 4u

static _Thread_local struct seat seats[SEATS];

static struct seat *seat_of(const struct pool_arenas *arenas)
{
    return &seats[arenas->id % SEATS];
}

/* NULL, without a sentence, if there is no memory. */
static struct pool_arenas *create(const struct raffia_pool *pool)
{
    static atomic_uint_least64_t last_id;
    const size_t bytes = pool->lease_bytes;
    const size_t count = (pool->range_bytes - 1) / bytes + 1;
    struct pool_arenas *arenas = core_calloc(1, sizeof *arenas);
    struct pool_lease *leases = core_calloc(count, sizeof *leases);
    atomic_uchar *owners = core_calloc(count, sizeof *owners);
    if (!arenas || !leases || !owners) {
        core_free(arenas);
        core_free(leases);
        core_free(owners);
        return NULL;
    }
    arenas->id = 1 + atomic_fetch_add_explicit(&last_id, 1, memory_order_relaxed);
    arenas->lease_bytes = bytes;
    arenas->lease_shift = (unsigned)__builtin_ctzll(bytes);
    arenas->local_bytes = bytes / 4;
    arenas->lease_count = count;
    arenas->leases = leases;
    arenas->owners = owners;
    return arenas;
}

static void destroy(struct pool_arenas *arenas)
{
    for (int i = 0; i < POOL_ARENAS; i++)
        space_destroy(arenas->arenas[i].space);
    core_free(arenas->leases);
    core_free(arenas->owners);
    core_free(arenas);
}

void pool_arenas_destroy(struct raffia_pool *pool)
{
    struct pool_arenas *arenas = pool_arenas_of(pool);
    if (arenas)
        destroy(arenas);
}

/* Two threads may do it at once. */
static struct pool_arenas *create_once(struct raffia_pool *pool)
{
    struct core_error_record before;
    core_error_save(&before);
    struct pool_arenas *made = create(pool), *found = NULL;
    core_error_restore(&before);
    if (!made || atomic_compare_exchange_strong_explicit(
                     &pool->arenas, &found, made, memory_order_acq_rel, memory_order_acquire))
        return made;
    destroy(made);
    return found;
}

void pool_arena_met(struct raffia_pool *pool, bool at_arena)
{
    if (!pool->lease_bytes)
        return;
    struct pool_arenas *arenas = pool_arenas_of(pool);
    if (!arenas && !(arenas = create_once(pool)))
        return;
    struct seat *seat = seat_of(arenas);
    if (seat->arenas != arenas->id)
        *seat = (struct seat){.arenas = arenas->id};
    if (++seat->meetings < (at_arena ? MEETINGS_FOR_ANOTHER : MEETINGS_FOR_A_SEAT))
        return;
    seat->meetings = 0;
    /* Who has a seat and meets others at the pool is there for what arenas do not have. */
    if (at_arena || !seat->arena)
        seat->arena = 1 + atomic_fetch_add_explicit(&arenas->next_seat, 1, memory_order_relaxed) %
                              POOL_ARENAS;
}

static void lock_arena(struct raffia_pool *pool, struct pool_arena *arena)
{
    if (core_lock_take_free(&arena->lock))
        return;
    pool_arena_met(pool, true);
    core_lock_wait(&arena->lock);
}

/* Lock of the arena held. It is read without. */
static void add_in_use(struct pool_arena *arena, size_t bytes)
{
    const size_t now = atomic_load_explicit(&arena->in_use_bytes, memory_order_relaxed);
    atomic_store_explicit(&arena->in_use_bytes, now + bytes, memory_order_relaxed);
}

static bool take(struct raffia_pool *pool, struct pool_arenas *arenas, struct pool_arena *arena,
                 const struct space_request *request, struct space_block *block)
{
    if (arena->orphaned)
        return false;
    if ((!arena->space || space_allocate(arena->space, request, block)) &&
        (!pool_lease_more(pool, arena) || space_allocate(arena->space, request, block)))
        return false;
    pool_lease_enter(arenas, arena, block->offset, block->bytes);
    add_in_use(arena, block->bytes);
    arena->live_blocks++;
    arena->hits++;
    return true;
}

bool pool_arena_take(struct raffia_pool *pool, const struct space_request *request,
                     struct space_block *block)
{
    struct pool_arenas *arenas = pool_arenas_of(pool);
    const struct seat *seat = seat_of(arenas);
    if (seat->arenas != arenas->id || !seat->arena || request->bytes > arenas->local_bytes ||
        request->alignment > arenas->local_bytes || request->placement != SPACE_PLACE_ANY ||
        request->thorough)
        return false;
    struct pool_arena *arena = &arenas->arenas[seat->arena - 1];
    lock_arena(pool, arena);
    const bool taken = take(pool, arenas, arena, request, block);
    /* As below: the caller may hold another, and this one is held too shortly to starve for. */
    core_lock_leave_inner(&arena->lock);
    return taken;
}

/* Lock of the arena held. The pool has lost its last owner: it counts, so that it knows the last of
 * its blocks. */
static bool count_for_pool(struct raffia_pool *pool, size_t bytes)
{
    core_lock_take(&pool->lock);
    const bool last = pool_count_free(pool, bytes);
    core_lock_leave_inner(&pool->lock);
    return last;
}

/* Lock of the arena held. One idle lease is kept, so that a block that comes and goes does not take
 * a lease with it each time. */
static void return_idle(struct raffia_pool *pool, struct pool_arenas *arenas,
                        struct pool_arena *arena, size_t offset, size_t bytes)
{
    const size_t first = offset >> arenas->lease_shift;
    const size_t last = (offset + bytes - 1) >> arenas->lease_shift;
    for (size_t i = first; i <= last && arena->idle_leases > 1; i++)
        if (arenas->leases[i].blocks == 0)
            pool_lease_return(pool, arena, i);
}

void pool_arena_resized(struct raffia_pool *pool, struct pool_arena *arena,
                        const struct space_block *before, size_t bytes)
{
    struct pool_arenas *arenas = pool_arenas_of(pool);
    pool_lease_leave(arenas, arena, before->offset, before->bytes);
    pool_lease_enter(arenas, arena, before->offset, bytes);
    if (!arena->orphaned)
        add_in_use(arena, bytes - before->bytes);
}

static bool give(struct raffia_pool *pool, struct pool_arenas *arenas, struct pool_arena *arena,
                 size_t offset, size_t requested, bool *last_p)
{
    size_t bytes;
    if (space_free_held(arena->space, offset, requested, &bytes))
        return false;
    const bool idle = pool_lease_leave(arenas, arena, offset, bytes);
    *last_p = false;
    if (__builtin_expect(arena->orphaned, 0)) {
        *last_p = count_for_pool(pool, bytes);
        return true;
    }
    add_in_use(arena, 0 - bytes);
    arena->live_blocks--;
    arena->frees++;
    if (idle && arena->idle_leases > 1)
        return_idle(pool, arenas, arena, offset, bytes);
    return true;
}

/* Once the lock of the arena is let go the pool may be gone. */
enum pool_arena_answer pool_arena_free(struct raffia_pool *pool, size_t offset, size_t requested,
                                       bool *last_p)
{
    struct pool_arenas *arenas = pool_arenas_of(pool);
    atomic_uchar *owner_p = &arenas->owners[offset >> arenas->lease_shift];
    unsigned owner;
    while ((owner = atomic_load_explicit(owner_p, memory_order_acquire))) {
        struct pool_arena *arena = &arenas->arenas[owner - 1];
        lock_arena(pool, arena);
        const bool still = atomic_load_explicit(owner_p, memory_order_relaxed) == owner;
        const bool freed = still && give(pool, arenas, arena, offset, requested, last_p);
        core_lock_leave_inner(&arena->lock);
        if (still)
            return freed ? POOL_ARENA_DONE : POOL_ARENA_REFUSED;
    }
    return POOL_ARENA_OTHER;
}
