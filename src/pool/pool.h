/*
 * Pools from the inside: how policy makes one. Everything else about a pool is in raffia/pool.h.
 *
 * A pool is an address range, a page store it borrows chunks from, and a space that says which
 * bytes of the chunks are free. The range is cut into slots of one chunk each; a slot is mapped or
 * not.
 *
 * Lock order, outermost first:
 *  0. guard lock, of pools with guards only: their calls, one after the other; held during driver
 *     calls;
 *  1. pool growth lock: the slots and the store; one grower (or trimmer) at a time; held during
 *     driver calls;
 *  2. order lock, of pools on devices with streams (order.h): events; held while one is recorded or
 *     asked, and never during a wait;
 *  3. pool lock: the space, the counters, and the lists of blocks that wait for streams; held
 * during no driver call at all, as even an event's takes a lock of the driver's;
 *  4. page store lock.
 * The list of all pools (registry.h) is guarded by the lock of the process, a leaf.
 */
#ifndef POOL_POOL_H
#define POOL_POOL_H

#include "driver/driver.h"

#include <raffia/pool.h>

#define POOL_LOWER_MAX RAFFIA_PAGE_SIZES_MAX

/* What addresses of huge pages are counted on to be aligned to, even where the ladder falls to
 * smaller pages: a huge page on every device there is. */
#define POOL_HUGE_ALIGNMENT ((size_t)2 << 20)

/* Everything about a new pool, decided. */
struct pool_plan {
    struct driver_device device;
    const char *name; /* copied */
    raffia_page_kind kind;
    size_t page_size;
    /* Sizes are multiples of the page size and of the granule. */
    size_t initial_bytes; /* may be 0; rounded up to whole chunks */
    size_t maximum_bytes; /* at least initial_bytes */
    size_t chunk_bytes;   /* cut to the maximum */
    size_t address_bytes; /* addresses to reserve, rounded up to whole chunks; 0 or less than the
                             maximum: as many as that */
    size_t mapping_limit; /* mappings that moving chunks may lead to (remap.c); 0: no limit */
    size_t granule;       /* a power of two; may exceed the page size when the ladder fell back */
    unsigned flags;       /* raffia_pool_flags */
    unsigned threads;
    int numa_node; /* -1: any */

    /*
     * What to take instead when the pages above are refused at the first growth of a pool that was
     * made without any, in this order; each for a reason that has its bit (1 << reason) in
     * `reasons_to_descend`. Once a page was held there are no others.
     */
    raffia_page_offer lower[POOL_LOWER_MAX];
    size_t lower_count;
    unsigned reasons_to_descend;

    /* For the report: the first rung tried, and why it was refused if it was. */
    raffia_page_kind asked_kind;
    size_t asked_size;
    raffia_fallback_reason asked_refused;
};

/*
 * Builds the pool and maps its initial bytes, all or nothing. On failure *reason says why this kind
 * of page could not be had, or is NONE when the failure has nothing to do with pages.
 */
raffia_status pool_create(const struct pool_plan *plan, raffia_pool **pool_p,
                          raffia_fallback_reason *reason);

/* INVALID_ARGUMENT for flags of raffia_hint that are unknown or contradict each other. */
raffia_status pool_check_hints(unsigned hints);

/*
 * The short ways of raffia_pool_alloc() and raffia_pool_free(), for what can be done at once: no
 * driver call, no waiting, nothing logged, no sentence recorded. False: nothing was done, and the
 * long way either does it or says why not. `bytes` is at least 1, `alignment` a power of two. The
 * caller may hold a small lock.
 */
bool pool_take_mapped(raffia_pool *pool, size_t bytes, size_t alignment, void **address_p);
bool pool_give_mapped(raffia_pool *pool, const void *address);

/*
 * raffia_pool_free_on() and raffia_pool_resize() for a caller who has to know how large the block
 * is: `bytes` is what was asked for last. INVALID_ARGUMENT, and nothing changes, if it is not that
 * of the block, which then is maybe another one that starts in the same place.
 */
raffia_status pool_free_sized(raffia_pool *pool, raffia_stream stream, void *address, size_t bytes);
raffia_status pool_resize_sized(raffia_pool *pool, void *address, size_t bytes, size_t new_bytes);

/* Blocks handed out and not freed. Takes the pool's lock and no other. */
size_t pool_live_blocks(raffia_pool *pool);

/* Where the pool's addresses begin. */
void *pool_base(const raffia_pool *pool);

/* The device whose memory the pool hands out. */
struct driver_device pool_device(const raffia_pool *pool);

#endif
