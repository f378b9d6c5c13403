/*
 * The allocators that the command itself can replay on.
 */
#ifndef CLI_REPLAY_WAYS_H
#define CLI_REPLAY_WAYS_H

#include "cli/replay.h"
#include "space/space.h"

#include <raffia/pool.h>

/* Does nothing: what is left is the cost of the loop, the table of names and the two calls. */
struct replay_way replay_way_floor(void);

/* raffia_pool_alloc() and raffia_pool_free(): a block is named by its address. */
struct replay_way replay_way_pool(raffia_pool *pool);

/* The same, and writes a byte into each 4 KiB of what it gets. */
struct replay_way replay_way_pool_touching(raffia_pool *pool);

/* The pool's index of free space alone: a block is named by its handle. For one thread. */
struct replay_way replay_way_space(struct space *space);

#endif
