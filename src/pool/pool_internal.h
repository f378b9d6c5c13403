/*
 * What the files of this floor share: the pool itself and the steps its calls are made of. The lock
 * order stands in pool/pool.h.
 */
#ifndef POOL_POOL_INTERNAL_H
#define POOL_POOL_INTERNAL_H

#include "core/checked.h"
#include "core/error.h"
#include "core/lock.h"
#include "core/log.h"
#include "core/process.h"
#include "pages/page_store.h"
#include "pool/pool.h"
#include "space/space.h"

#include <pthread.h>
#include <stdatomic.h>

/* A driver call that nobody could make good for (an undo, a teardown, a wait, reading a guard back)
 * is tried this often before it is given up. */
#define POOL_DRIVER_ATTEMPTS 3

/* A slot goes ABSENT -> LOANED -> MAPPED and back the same way. It stays LOANED when the step to
 * either side fails; the next growth or trim that passes takes it along. */
enum pool_slot_state {
    POOL_SLOT_ABSENT = 0,
    POOL_SLOT_LOANED, /* a chunk is behind it, but the space does not know */
    POOL_SLOT_MAPPED, /* the space has it */
    POOL_SLOT_FORMER, /* absent, but the chunk that moved away is still mapped here as well: `loan`
                         says which. pool_settle() makes it ABSENT */
};

struct pool_slot {
    struct page_loan loan;
    enum pool_slot_state state;
    size_t partner; /* while a chunk moves here: the slot it comes from (remap.c) */
};

/* What moving chunks needs and has done (remap.c). */
struct pool_remap {
    size_t mapping_limit;
    unsigned char *view; /* what is at each slot; NULL unless the pool is remappable. Growth lock */
    size_t formers;      /* slots that are FORMER. Growth lock */
    /* Pool lock. */
    uint64_t remaps;
    uint64_t chunks;
    uint64_t ns, unmap_ns;
    uint64_t address_refusals;
    uint64_t mapping_refusals;
};

/* Pages that a pool may take instead of those it has, as long as it has never held any. Guarded by
 * the growth lock. */
struct pool_ladder {
    raffia_page_offer lower[POOL_LOWER_MAX];
    size_t next, count;
    unsigned reasons; /* as pool_plan.reasons_to_descend */
    unsigned threads; /* for the next store */
    int numa_node;
    bool held; /* a page was held: there is one page size from then on */
};

/* Whom to ask for memory (pressure.c). Guarded by the pool lock. */
struct pool_pressure {
    raffia_pool_pressure callback; /* may be NULL */
    void *context;
    uint64_t calls;
};

/* A pool's place among all of the process (registry.h). Guarded by the lock of the process. */
struct pool_registry_link {
    struct raffia_pool *newer, *older;
    unsigned visitors;
    bool listed;
    bool doomed; /* the last visitor tears it down */
};

struct pool_arenas;
struct pool_history;

struct raffia_pool {
    /* Fixed at creation. */
    struct driver_device device;
    char *name;
    char *base;
    size_t range_bytes; /* addresses reserved */
    size_t chunk_bytes;
    size_t granule;
    size_t largest_alignment; /* that of the base; offsets are aligned where addresses are */
    size_t slot_count;
    size_t guard_bytes;           /* least room for the pattern behind a block; 0 without guards */
    struct pool_guard *guard;     /* guard.h; NULL without guards */
    struct pool_order *order;     /* order.h; NULL with guards, and where there are no streams */
    struct pool_history *history; /* history.h; NULL unless the pool is adaptive */
    bool plain;                   /* none of them */
    bool long_way; /* guards or a history: each block has more to it than its space */
    _Atomic(struct pool_arenas *) arenas; /* arena.h; NULL until threads met */
    size_t lease_bytes;                   /* 0: there will be none */
    unsigned flags;
    bool asynchronous; /* the device has streams */
    raffia_page_kind asked_kind;
    size_t asked_size;
    unsigned long generation; /* core_fork_generation() of the process that owns it */

    /* Fixed when the first page is held. Until then changed under both locks, read under either. */
    raffia_page_kind kind;
    size_t page_size;
    raffia_fallback_reason asked_refused;
    struct page_store *store;

    struct pool_registry_link registry;
    atomic_size_t owners;
    atomic_bool frozen; /* damage was found */

    pthread_mutex_t growth_lock; /* guards the slots; the store is only changed under it */
    struct pool_slot *slots;
    struct pool_ladder ladder;
    struct pool_remap remap;
    bool split_told; /* the warning that pages were split has been given */

    struct core_lock lock; /* guards the rest */
    struct space *space;
    bool orphaned;        /* the last owner has gone; the last block takes the pool with it */
    size_t maximum_bytes; /* changed under both locks, read under either */
    size_t mapped_bytes;  /* of MAPPED slots */
    size_t mapped_slots;
    size_t in_use_bytes;
    size_t live_blocks;
    size_t pending_bytes; /* freed on a stream that is not there yet; neither in use nor free */
    size_t pending_blocks;
    size_t peak_in_use_bytes;
    size_t peak_mapped_bytes;
    uint64_t hits;
    uint64_t misses;
    uint64_t failures;
    uint64_t frees;
    uint64_t bad_frees;
    struct pool_pressure pressure;
    raffia_page_report report;
};

/* A part of the address range. */
struct pool_interval {
    size_t offset;
    size_t bytes;
    size_t missing; /* bytes of the ABSENT slots it touches */
};

/* ---- locks ---------------------------------------------------------------------------------- */

/* The growth lock, and those of orders and guards, under which things are said: what is said comes
 * out when the thread has left the last of them, as a sink may call the pool. */
static inline void pool_lock(pthread_mutex_t *lock)
{
    core_log_hold();
    pthread_mutex_lock(lock);
}

static inline void pool_unlock(pthread_mutex_t *lock)
{
    pthread_mutex_unlock(lock);
    core_log_let_go();
}

/* ---- slots -------------------------------------------------------------------------------- */

static inline size_t pool_slot_offset(const struct raffia_pool *pool, size_t slot)
{
    return slot * pool->chunk_bytes;
}

/* The last slot may be short. */
static inline size_t pool_slot_bytes(const struct raffia_pool *pool, size_t slot)
{
    const size_t left = pool->range_bytes - pool_slot_offset(pool, slot);
    return left < pool->chunk_bytes ? left : pool->chunk_bytes;
}

static inline size_t pool_first_slot(const struct raffia_pool *pool,
                                     const struct pool_interval *interval)
{
    return interval->offset / pool->chunk_bytes;
}

/* One past the last slot that the interval touches. */
static inline size_t pool_end_slot(const struct raffia_pool *pool,
                                   const struct pool_interval *interval)
{
    return (interval->offset + interval->bytes - 1) / pool->chunk_bytes + 1;
}

/* Whether the interval, which may be NULL, touches the slot. */
static inline bool pool_is_spared(const struct raffia_pool *pool, size_t slot,
                                  const struct pool_interval *spared)
{
    return spared && slot >= pool_first_slot(pool, spared) && slot < pool_end_slot(pool, spared);
}

/* Guards lie behind blocks, which are then larger than what is small. */
static inline struct space_options pool_space_options(const struct raffia_pool *pool)
{
    return (struct space_options){
        .range_bytes = pool->range_bytes, .granule = pool->granule, .slabs = !pool->guard_bytes};
}

/* ---- entering (pool.c) ---------------------------------------------------------------------- */

/* NULL is not. */
static inline bool pool_is_inherited(const struct raffia_pool *pool)
{
    return pool && pool->generation != core_fork_generation();
}

/* Why a pool cannot be entered: NULL, inherited, or else frozen. */
raffia_status pool_refuse_entry(const struct raffia_pool *pool) __attribute__((cold));

/* First thing in each call, before any lock is touched: the locks of a forked child may be held by
 * threads that it does not have. INVALID_ARGUMENT for NULL, FORKED. */
static inline raffia_status pool_enter(const struct raffia_pool *pool)
{
    return pool && !pool_is_inherited(pool) ? RAFFIA_OK : pool_refuse_entry(pool);
}

/* Not NULL: this process's, and not frozen. */
static inline bool pool_is_open(const struct raffia_pool *pool)
{
    return !pool_is_inherited(pool) && !atomic_load_explicit(&pool->frozen, memory_order_relaxed);
}

/* The same for calls that give out or move memory: CORRUPT once the pool is frozen. */
static inline raffia_status pool_enter_to_change(const struct raffia_pool *pool)
{
    return pool && pool_is_open(pool) ? RAFFIA_OK : pool_refuse_entry(pool);
}

/* No more memory is handed out after this. Returns CORRUPT. */
raffia_status pool_freeze(struct raffia_pool *pool);

/* No lock held, no owner and no block left. While somebody visits the pool this is put off until
 * the visit ends. */
void pool_tear_down(struct raffia_pool *pool);

/* Leaves the pool lock; `inner`: the caller holds another small lock. */
static inline __attribute__((always_inline)) void pool_leave(struct raffia_pool *pool, bool inner)
{
    if (inner)
        core_lock_leave_inner(&pool->lock);
    else
        core_lock_leave(&pool->lock);
}

/* ---- blocks (alloc.c, free.c, resize.c) ----------------------------------------------------- */

/* Pool lock held. The counters after a block was taken from the space. */
static inline void pool_count_block(struct raffia_pool *pool, const struct space_block *block)
{
    pool->live_blocks++;
    pool->in_use_bytes += block->bytes;
    pool->peak_in_use_bytes = core_max(pool->peak_in_use_bytes, pool->in_use_bytes);
}

/* Pool lock held. The counters after a block was freed; true if the pool goes with it. */
static inline bool pool_count_free(struct raffia_pool *pool, size_t bytes)
{
    pool->live_blocks--;
    pool->in_use_bytes -= bytes;
    pool->frees++;
    return pool->orphaned && pool->live_blocks == 0 && pool->pending_blocks == 0;
}

/* Pool lock held. The counters after a live block became pending. */
static inline void pool_count_pending(struct raffia_pool *pool, size_t bytes)
{
    pool->live_blocks--;
    pool->in_use_bytes -= bytes;
    pool->pending_blocks++;
    pool->pending_bytes += bytes;
}

/* No lock held. Takes a block, after growth if need be; `bytes` is what the caller asked for. */
raffia_status pool_take(struct raffia_pool *pool, const struct space_request *request, size_t bytes,
                        struct space_block *block);

/* Pool lock held: the block that starts at the address, if it is live (SPACE_HELD). */
bool pool_find_live(const struct raffia_pool *pool, const void *address, struct space_block *block);

/* The same in any space of the pool, the lock of which is held. */
bool pool_find_live_in(const struct raffia_pool *pool, struct space *space, const void *address,
                       struct space_block *block);

/* Pool lock held. Returns a HELD block to the free space. *last_p, written on success, says that
 * the pool must be torn down when the lock is let go. */
raffia_status pool_release_block(struct raffia_pool *pool, const struct space_block *block,
                                 bool *last_p);

/* Pool lock held for both: SPACE_PENDING blocks are nobody's, yet not free. For calls that work on
 * a block that nobody else may have; those that wait for a stream are order.h's. */
void pool_make_pending(struct raffia_pool *pool, const struct space_block *block);
void pool_make_held(struct raffia_pool *pool, const struct space_block *block);

/* Pool lock held; it is let go. Says why the address cannot be freed. */
raffia_status pool_refuse_free(struct raffia_pool *pool, const void *address, size_t requested);

/* What the space is asked for so that a caller has `bytes`, which may be 0: more than any range has
 * where they are too many. Where blocks are freed and resized a `requested` of 0 goes for all. */
static inline size_t pool_requested(const struct raffia_pool *pool, size_t bytes)
{
    size_t requested;
    return core_add(bytes ? bytes : pool->granule, pool->guard_bytes, &requested) ? requested
                                                                                  : RAFFIA_NONE;
}

/* Whether a block is of the size that somebody takes it for. */
static inline bool pool_is_size(const struct space_block *block, size_t requested)
{
    return !requested || block->requested == requested;
}

/* No lock held. Waits until the stream has done all that was submitted to it; BUSY if it records
 * its work instead of doing it, and would never get there. */
raffia_status pool_wait_for(const struct raffia_pool *pool, raffia_stream stream);

/* No lock but that of the guards held. Resizes a block where it is. */
raffia_status pool_resize_plain(struct raffia_pool *pool, const void *address, size_t requested,
                                size_t bytes);

/* What pool_check_stream() found wrong. */
raffia_status pool_refuse_stream(const struct raffia_pool *pool) __attribute__((cold));

/* INVALID_ARGUMENT for a stream on a device without streams, and as pool_enter(). */
static inline raffia_status pool_check_stream(const struct raffia_pool *pool, raffia_stream stream)
{
    return pool && !pool_is_inherited(pool) && (!stream || pool->asynchronous)
               ? RAFFIA_OK
               : pool_refuse_stream(pool);
}

/* Hints about how long a block lives. */
#define POOL_HINTS_OF_LIFE                                                                         \
    ((unsigned)(RAFFIA_HINT_LONG_LIVED | RAFFIA_HINT_SHORT_LIVED | RAFFIA_HINT_WILL_GROW))

/* Where a block with these hints goes; they were checked. Short-lived ones are best off where any
 * block goes: at the high end they cost more than they are worth (docs/allocator.md). */
static inline enum space_placement pool_placement(unsigned hints)
{
    const bool stays = hints & (RAFFIA_HINT_LONG_LIVED | RAFFIA_HINT_WILL_GROW);
    return stays ? SPACE_PLACE_LOW : SPACE_PLACE_ANY;
}

/* What a caller sees of a block. */
void pool_describe_block(const struct raffia_pool *pool, const struct space_block *block,
                         raffia_block *description);

/* ---- growth (window.c, grow.c, trim.c) --------------------------------------------------------
 */

/* What a window may consist of, and what it costs. */
enum pool_view {
    POOL_VIEW_GROWTH, /* free space, which costs nothing, and absent slots */
    POOL_VIEW_ALONE,  /* absent slots only: nobody can take them away in the meantime */
    POOL_VIEW_MOVE,   /* as growth, but idle chunks cost what absent ones do: they could be moved */
};

/*
 * Both locks held. Finds where a block would cost the least: a stretch of addresses without blocks,
 * at the lowest offset among equals.
 */
bool pool_find_window(struct raffia_pool *pool, const struct space_request *request,
                      enum pool_view view, struct pool_interval *best);

/* Growth lock held: bytes of the ABSENT slots that the interval touches. */
size_t pool_absent_bytes(const struct raffia_pool *pool, const struct pool_interval *interval);

/* Growth lock held, pool lock not: puts chunks behind the absent slots of the interval, all or
 * none. */
raffia_status pool_fill(struct raffia_pool *pool, const struct pool_interval *interval,
                        raffia_fallback_reason *reason);

/* Growth lock held, pool lock not: takes the next lower pages after those of the pool were refused
 * (the failure is the last error). False, and nothing changes, if there are none, the reason is no
 * reason for it, or pages were held. */
bool pool_descend(struct raffia_pool *pool, raffia_fallback_reason reason);

/* Makes the store for the pages that the pool has. */
raffia_status pool_make_store(const struct raffia_pool *pool, raffia_page_offer pages,
                              struct page_store **store_p);

/* Both locks held: adds the LOANED slots of the interval to the space. Those that were added stay
 * when a later one fails. */
raffia_status pool_admit(struct raffia_pool *pool, const struct pool_interval *interval);

/* Both locks held: MAPPED -> LOANED if all of the slot is free; BUSY, or OUT_OF_HOST_MEMORY. */
raffia_status pool_withdraw(struct raffia_pool *pool, size_t slot);

/* Growth lock held, pool lock not: returns chunks that are LOANED. Keeps the last error. */
void pool_drop_loaned(struct raffia_pool *pool, const struct pool_interval *interval);

/*
 * Growth lock held, pool lock not. Gives idle chunks outside `spared` (may be NULL) back to the
 * store, the highest first, until `wanted` bytes have gone or there are no more. *released_p is
 * written in any case.
 */
raffia_status pool_reclaim(struct raffia_pool *pool, size_t wanted,
                           const struct pool_interval *spared, size_t *released_p);

/* Growth lock held, pool lock not. Reclaims up to `wanted` bytes, if at least `minimum` can be had.
 * True if anything was. */
bool pool_make_room(struct raffia_pool *pool, const struct pool_interval *spared, size_t wanted,
                    size_t minimum);

/* What became of a try to serve a request by moving chunks. */
enum pool_remap_end {
    POOL_REMAP_SERVED,
    POOL_REMAP_STOLEN,  /* chunks were moved, and others took the place */
    POOL_REMAP_REFUSED, /* not enough whole chunks are free */
    POOL_REMAP_NO_ADDRESSES,
    POOL_REMAP_NO_MAPPINGS,
    POOL_REMAP_SHORT,  /* the device refused: its sentence is the last error */
    POOL_REMAP_FAILED, /* with the status, which is not OUT_OF_MEMORY or LIMIT */
};

/* Why growth came to nothing. */
struct pool_growth_end {
    struct core_error_record device; /* what it said, if it was the one to refuse */
    bool gave_up;                    /* others took what was found, again and again */
    enum pool_remap_end remap;       /* of the last try; SERVED where none was made */
};

/* No lock held. Grows the pool so that the request fits and takes the block in one step.
 * OUT_OF_MEMORY, without a sentence, if it cannot; *end is then written. */
raffia_status pool_try_growth(struct raffia_pool *pool, const struct space_request *request,
                              struct space_block *block, struct pool_growth_end *end);

/* ---- moving chunks (remap.c) ---------------------------------------------------------------- */

/* Whether free chunks can be moved to other addresses, and are large enough for it to pay: mapping
 * small pages costs a step for each. */
bool pool_can_remap(const struct raffia_pool *pool);

/* Whether what is mapped, and where, is all that there will be. */
static inline bool pool_is_rigid(const struct raffia_pool *pool)
{
    return pool->flags & RAFFIA_POOL_FIXED && !pool_can_remap(pool);
}

struct pool_remap_wish {
    const struct space_request *request;
    const struct pool_interval *place; /* free space and absent slots that are wanted instead of a
                                          place for the request; or NULL */
    size_t budget;                     /* bytes that may be borrowed besides */
    bool alone;                        /* use no free space that others could take meanwhile */

    /* Both locks held: takes what was wanted. OUT_OF_MEMORY if others were quicker. */
    raffia_status (*take)(struct raffia_pool *pool, void *context);
    void *context;
};

/*
 * Growth lock held, pool lock not. Collects chunks that are free, wherever they are, behind one run
 * of addresses, and has what was wanted taken there. All or nothing: on failure each chunk is where
 * it was. Blocks do not move. *status_p is written for POOL_REMAP_SERVED (OK), _SHORT and _FAILED.
 */
enum pool_remap_end pool_remap(struct raffia_pool *pool, const struct pool_remap_wish *wish,
                               raffia_status *status_p);

/* Growth lock held, pool lock not: unmaps the addresses that chunks were moved from. No slot is
 * FORMER afterwards. */
raffia_status pool_settle(struct raffia_pool *pool);

/* Growth lock held, pool lock not: makes all of the interval present, without giving it to anybody.
 */
raffia_status pool_map_interval(struct raffia_pool *pool, const struct pool_interval *interval,
                                raffia_fallback_reason *reason);

/* No lock held: asks the program to free `bytes` (pressure.c). True if it says that it freed
 * anything. It is not asked for what no freeing could help (`request`, as the space sees it; may be
 * NULL). Keeps the last error. */
bool pool_press(struct raffia_pool *pool, const struct space_request *request, size_t bytes);

/* No lock held: has other pools of the device give idle chunks back. True if any did. */
bool pool_others_make_room(struct raffia_pool *pool, size_t bytes);

/* Growth lock held: what may still be borrowed. */
size_t pool_budget(struct raffia_pool *pool);

/* ---- reports (report.c, refusal.c) ------------------------------------------------------------
 */

/* Both locks held: makes the page report agree with the slots. */
void pool_refresh_report(struct raffia_pool *pool);

/* Pool lock held: bytes of whole slots that are present and free, outside `spared` (may be NULL);
 * none in a fixed pool, which keeps what it has. */
size_t pool_idle_bytes(struct raffia_pool *pool, const struct pool_interval *spared);

/* Why a request cannot be served. */
struct pool_refusal {
    size_t bytes;                        /* asked for */
    const struct space_request *request; /* as the space saw it, guard included */
    const char *device_says; /* the driver's own sentence; NULL if it was not the one to refuse */
    bool gave_up;            /* others took what was found, again and again */
    enum pool_remap_end remap;
};

/* No lock held. Says so in a sentence. */
raffia_status pool_refuse_request(struct raffia_pool *pool, const struct pool_refusal *refusal);

/* The same after growth, or where there was none. `bytes` is what was asked for. */
raffia_status pool_refuse_grown(struct raffia_pool *pool, const struct space_request *request,
                                size_t bytes, const struct pool_growth_end *end);

/* Why an address is no live block. Gathered under the lock, said after it. */
struct pool_bad_address {
    const void *address;
    enum {
        POOL_ADDRESS_FOREIGN,  /* not in this pool's range */
        POOL_ADDRESS_ABSENT,   /* in the range, where nothing is mapped */
        POOL_ADDRESS_FREE,     /* free space */
        POOL_ADDRESS_PENDING,  /* freed on a stream before */
        POOL_ADDRESS_INTERIOR, /* inside `block` */
        POOL_ADDRESS_SIZE,     /* the start of `block`, which is not of the size it is taken for */
    } fault;
    raffia_block block;
    size_t bytes; /* it is taken for */
};

/* The lock of the space held, which is the one that has the address. */
void pool_judge_address(struct raffia_pool *pool, struct space *space, const void *address,
                        struct pool_bad_address *verdict);

/* The same of what somebody takes for a block of that size. */
void pool_judge_block(struct raffia_pool *pool, struct space *space, const void *address,
                      size_t requested, struct pool_bad_address *verdict);

/* No lock held. Returns BAD_ADDRESS; INVALID_ARGUMENT where it is the size that is wrong. */
raffia_status pool_refuse_address(const struct raffia_pool *pool, const char *verb,
                                  const struct pool_bad_address *verdict);

#endif
