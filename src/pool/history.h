/*
 * What a pool with RAFFIA_POOL_ADAPTIVE remembers of its blocks, and what it makes of it.
 *
 * A small block that is alive when memory is given back keeps a whole chunk. So the question is not
 * how long blocks live, but which sizes have blocks alive at such a moment, a **look**. A sample of
 * the blocks is followed: at a look those that are still there are counted for their size class and
 * let go, and those that were freed before are counted too. Sizes of which half or more survive,
 * and those that nothing is known of, go to the low end (docs/allocator.md says why there, and what
 * else was tried). The others, which are most allocations, go where any block goes.
 *
 * Nothing here takes a lock or fails. Where threads meet at a sample or a counter, one may be lost,
 * or counted once too often.
 */
#ifndef POOL_HISTORY_H
#define POOL_HISTORY_H

#include "pool/pool_internal.h"

#define POOL_HISTORY_CLASSES 256 /* a quarter of an octave each */
#define POOL_HISTORY_SAMPLES 512 /* a power of two */

struct pool_history {
    size_t most_bytes; /* larger blocks are neither followed nor placed */
    unsigned granule_shift;
    atomic_uint placed_since;                       /* blocks placed since the last look */
    atomic_ullong placed;                           /* blocks placed in all */
    atomic_flag looking;                            /* guards kept and seen */
    atomic_uchar brief[POOL_HISTORY_CLASSES];       /* 1: few of its blocks survive a look */
    _Atomic uint64_t samples[POOL_HISTORY_SAMPLES]; /* 0, or place << 8 | class */
    atomic_uint gone[POOL_HISTORY_CLASSES];         /* samples freed since the last look */
    /* Sums over looks, older ones counting less, in 16ths of a sample. */
    uint64_t kept[POOL_HISTORY_CLASSES]; /* samples that survived */
    uint64_t seen[POOL_HISTORY_CLASSES]; /* all */
};

/* A fixed pool never gives anything back: it has none, and pool->history stays NULL.
 * OUT_OF_HOST_MEMORY. */
raffia_status pool_history_create(struct raffia_pool *pool);
void pool_history_destroy(struct raffia_pool *pool);

/* Memory is about to be given back. */
void pool_history_look(struct pool_history *history);

/* Size classes that are known to be brief. */
size_t pool_history_brief_classes(const struct pool_history *history);

/* No lock held, here and below. Where a block of a size should go. */
enum space_placement pool_history_placement(const struct raffia_pool *pool, size_t bytes);

/* A block was handed out for a request that has its placement from here. */
void pool_history_born(struct raffia_pool *pool, const struct space_request *request,
                       const struct space_block *block);

/* Somebody is about to free what is at the address, which need not be a block. */
void pool_history_gone(struct raffia_pool *pool, const void *address);

#endif
