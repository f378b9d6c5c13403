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
 *  2. pool lock: the space and the counters; never held during a driver call that can block;
 *  3. page store lock.
 * The list of all pools (registry.h) is guarded by the lock of the process, a leaf.
 */
#ifndef POOL_POOL_H
#define POOL_POOL_H

#include "driver/driver.h"

#include <raffia/pool.h>

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
    size_t granule;       /* a power of two; may exceed the page size when the ladder fell back */
    unsigned flags;       /* raffia_pool_flags */
    unsigned threads;
    int numa_node; /* -1: any */

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

/* Where the pool's addresses begin. */
void *pool_base(const raffia_pool *pool);

/* The device whose memory the pool hands out. */
struct driver_device pool_device(const raffia_pool *pool);

#endif
