/*
 * Which chunks move where: chosen under the pool lock, carried out without it.
 */
#ifndef POOL_REMAP_PLAN_H
#define POOL_REMAP_PLAN_H

#include "pool/pool_internal.h"

/* What is at a slot, in pool_remap.view. */
enum remap_slot {
    REMAP_ABSENT = 0, /* addresses that a chunk may move to */
    REMAP_IDLE,       /* a whole chunk that nobody uses */
    REMAP_USED,       /* a chunk that is partly in use, or not of the common size */
    REMAP_SHORT,      /* absent, and not of the common size */
    REMAP_DONOR,      /* idle, and chosen to move */
    REMAP_TARGET,     /* absent, and a donor moves here */
    REMAP_NEW,        /* absent, and a chunk is borrowed for it */
};

struct remap_plan {
    struct pool_interval place; /* where the block will be */
    size_t moves;               /* donors, and targets */
    size_t loans;               /* chunks to borrow besides */
};

enum remap_choice {
    REMAP_CHOSEN,
    REMAP_NO_CHUNKS,    /* fewer are free than the request needs */
    REMAP_NO_ADDRESSES, /* enough are free, but no addresses to put them together */
};

/* Both locks held. Marks what it chose in the view; nothing else changes. */
enum remap_choice remap_choose(struct raffia_pool *pool, const struct pool_remap_wish *wish,
                               struct remap_plan *plan);

#endif
