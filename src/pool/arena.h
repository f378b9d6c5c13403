/*
 * Arenas: how threads that meet at a pool's lock get out of each other's way.
 *
 * An arena is a lock and a space of its own over the range of the pool. What is present in it are
 * its **leases**: aligned parts of the range, all of one size, that it borrowed from the space of
 * the pool, where each is a block that is SPACE_CACHED. A thread that found the lock of the pool
 * taken again and again gets a **seat** at an arena, and takes its smaller blocks there. A free
 * goes to whoever has the block: a table says it for each place that can be leased.
 *
 * So each byte is in one state: what is leased is the arena's to say, anything else the pool's. A
 * lease without blocks goes back, but for one; and whoever needs to see the pool in one piece,
 * above all before it grows or refuses, has all that is leased **gathered**: the blocks move to the
 * space of the pool, at their addresses. They never move the other way.
 *
 * Pools with guards or stream order have no arenas, nor have pools that nobody ever had to wait
 * for. Lock order: arenas by their number, then the pool lock.
 */
#ifndef POOL_ARENA_H
#define POOL_ARENA_H

#include "pool/pool_internal.h"

#define POOL_ARENAS 16

/* Lines are fetched by pairs: what different threads write lies so far apart. */
#define POOL_ARENA_APART 128

struct pool_arena {
    struct core_lock lock; /* guards the rest, but for in_use_bytes when it is read */
    bool orphaned;         /* the pool counts the blocks */
    struct space *space;   /* NULL until the first lease */
    atomic_size_t in_use_bytes;
    size_t live_blocks;
    uint64_t hits, frees;
    unsigned leases, idle_leases; /* idle: without blocks */
    unsigned patience;            /* requests to be refused before a lease is asked for again */
    char apart[POOL_ARENA_APART];
};

/* A place that can be leased. */
struct pool_lease {
    uint32_t blocks;     /* that it touches; lock of the owner */
    space_handle handle; /* in the space of the pool; both locks */
    char apart[POOL_ARENA_APART - 16];
};

struct pool_arenas {
    uint64_t id; /* of these arenas, in the process */
    size_t lease_bytes;
    unsigned lease_shift;
    size_t local_bytes; /* larger blocks are the pool's */
    size_t lease_count;
    atomic_uint next_seat;
    size_t leased_bytes;       /* pool lock */
    struct pool_lease *leases; /* by offset */
    atomic_uchar *owners;      /* by offset: 0, or one more than the number of the arena;
                                  changed under the locks of both, read under any or none */
    unsigned penalty;          /* all locks: the last patience when leases were taken away */
    uint64_t hits_then;        /* all locks: hits of all arenas at that time */
    char apart[POOL_ARENA_APART];
    struct pool_arena arenas[POOL_ARENAS];
};

static inline struct pool_arenas *pool_arenas_of(const struct raffia_pool *pool)
{
    return atomic_load_explicit(&pool->arenas, memory_order_acquire);
}

/* ---- the short ways (arena.c), which stay out of line: the frames of those that nobody needs an
 * arena for would grow. No lock held -------------------------------------------------- */

/* A lock of the pool, or of one of its arenas, was found taken. The thread may get a seat. */
void pool_arena_met(struct raffia_pool *pool, bool at_arena) __attribute__((cold));

/* Takes the lock of the pool, for its space alone. */
static inline void pool_lock_own(struct raffia_pool *pool)
{
    if (__builtin_expect(core_lock_take_free(&pool->lock), 1))
        return;
    pool_arena_met(pool, false);
    core_lock_wait(&pool->lock);
}

/* False: to be asked of the pool. */
bool pool_arena_take(struct raffia_pool *pool, const struct space_request *request,
                     struct space_block *block) __attribute__((noinline));

enum pool_arena_answer {
    POOL_ARENA_DONE,
    POOL_ARENA_REFUSED, /* no such block starts there */
    POOL_ARENA_OTHER,   /* it is not in an arena, and will not be while it lives */
};

/* `offset` is in the range, `requested` as for space_free_held(). *last_p as pool_release_block(),
 * on success. */
enum pool_arena_answer pool_arena_free(struct raffia_pool *pool, size_t offset, size_t requested,
                                       bool *last_p) __attribute__((noinline));

/* Lock of the arena held. The block has another size now. */
void pool_arena_resized(struct raffia_pool *pool, struct pool_arena *arena,
                        const struct space_block *before, size_t bytes);

/* ---- leases (lease.c) ------------------------------------------------------------------------ */

/* What the pool may lease; 0 if that is too little to be worth it. */
size_t pool_lease_bytes(const struct raffia_pool *pool);

/* Lock of the arena held. False if the pool has nothing to spare. */
bool pool_lease_more(struct raffia_pool *pool, struct pool_arena *arena);

/* Lock of the arena held. Gives a lease without blocks back. */
void pool_lease_return(struct raffia_pool *pool, struct pool_arena *arena, size_t lease);

/* The same with the pool lock held as well. */
void pool_lease_return_locked(struct raffia_pool *pool, struct pool_arena *arena, size_t lease);

/* All locks held. Leases had to be taken away. */
void pool_leases_lost(struct pool_arenas *arenas);

/* Lock of the arena held: a block has come, or gone. The first and the last lease it touches are
 * different ones where leases lie next to each other. */
static inline void pool_lease_enter(struct pool_arenas *arenas, struct pool_arena *arena,
                                    size_t offset, size_t bytes)
{
    const size_t first = offset >> arenas->lease_shift;
    const size_t last = (offset + bytes - 1) >> arenas->lease_shift;
    arena->idle_leases -= arenas->leases[first].blocks++ == 0;
    if (last != first)
        arena->idle_leases -= arenas->leases[last].blocks++ == 0;
}

/* True if a lease is idle now that was not. */
static inline bool pool_lease_leave(struct pool_arenas *arenas, struct pool_arena *arena,
                                    size_t offset, size_t bytes)
{
    const unsigned before = arena->idle_leases;
    const size_t first = offset >> arenas->lease_shift;
    const size_t last = (offset + bytes - 1) >> arenas->lease_shift;
    arena->idle_leases += --arenas->leases[first].blocks == 0;
    if (last != first)
        arena->idle_leases += --arenas->leases[last].blocks == 0;
    return arena->idle_leases != before;
}

/* ---- all of a pool (gather.c). No lock of pool or arena held for those that take them ---------
 */

/* Takes the lock of the pool when nothing is leased any more; OUT_OF_HOST_MEMORY, with the lock
 * taken too, if something still is. Who has no use for the status gives up that much. Keeps the
 * last error but then. */
raffia_status pool_lock_whole(struct raffia_pool *pool);

/* Takes the locks of all arenas, and that of the pool; returns the arenas, or NULL. */
struct pool_arenas *pool_lock_all(struct raffia_pool *pool);
void pool_unlock_all(struct raffia_pool *pool, struct pool_arenas *arenas);

/* All locks held, here and below; `arenas`, which may be NULL, are those that were locked. Gives
 * all leases without blocks back. */
void pool_return_idle(struct raffia_pool *pool, struct pool_arenas *arenas);

/* Adds what the arenas count and hold to what the pool says of itself. */
void pool_arenas_add_up(const struct pool_arenas *arenas, raffia_pool_stats *stats);

/* From now on the pool counts the blocks of arenas too. */
void pool_arenas_orphan(struct raffia_pool *pool, struct pool_arenas *arenas);

/* No lock held. Takes all, and looks at what only arenas have. OUT_OF_HOST_MEMORY and CORRUPT, the
 * latter with `text`. Lets all locks go but that of the pool, with nothing leased on success. */
raffia_status pool_lock_checked(struct raffia_pool *pool, char text[static CORE_ERROR_MAX]);

void pool_arenas_destroy(struct raffia_pool *pool);

/* Bytes in use, arenas included. The pool lock is held; others may go on in arenas. */
size_t pool_arenas_in_use(const struct raffia_pool *pool);

/* ---- whose an address is --------------------------------------------------------------------- */

struct pool_home {
    struct core_lock *lock;
    struct space *space;
    struct pool_arena *arena; /* NULL: the pool's own */
};

/* Takes the lock that guards what lies at the address, which may be in no pool. */
struct pool_home pool_lock_home(struct raffia_pool *pool, const void *address);

#endif
