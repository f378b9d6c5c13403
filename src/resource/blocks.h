/*
 * A record of blocks of regular memory, found by their address: what frees them must know what
 * allocated them, and how large they were.
 */
#ifndef RESOURCE_BLOCKS_H
#define RESOURCE_BLOCKS_H

#include <raffia/base.h>
#include <raffia/status.h>

/* Most blocks at once. */
#define RESOURCE_BLOCKS_MAX ((size_t)1 << 20)

struct resource_block {
    void *address; /* as handed out */
    void *start;   /* as the driver allocated it, `bytes` of it */
    size_t bytes;
    size_t requested; /* what the caller asked for, of regular memory */
};

/* All zero is an empty record, and an empty record holds no memory, unless it stays ready. Not
 * thread-safe: the owner's lock covers it. */
struct resource_blocks {
    struct resource_block *places; /* open addressing; address NULL: empty */
    size_t capacity;               /* a power of two, or 0 */
    size_t count;
    size_t lent;      /* taken out for now: they have room to come back */
    bool stays_ready; /* keeps its memory when it gets empty, until resource_blocks_end() */
};

/* The address must not be there yet. LIMIT, OUT_OF_HOST_MEMORY. */
raffia_status resource_blocks_add(struct resource_blocks *blocks,
                                  const struct resource_block *block);

/* The block that starts at the address; false if there is none. */
bool resource_blocks_find(const struct resource_blocks *blocks, const void *address,
                          struct resource_block *block);

/* Takes the block out that starts at the address; false if there is none. Cannot fail. */
bool resource_blocks_take(struct resource_blocks *blocks, const void *address,
                          struct resource_block *block);

/* Takes the block out for now: for a free that may yet be refused. One of the two below follows,
 * and neither can fail. */
bool resource_blocks_lend(struct resource_blocks *blocks, const void *address,
                          struct resource_block *block);

/* Puts a block back that was lent. */
void resource_blocks_put_back(struct resource_blocks *blocks, const struct resource_block *block);

/* A block that was lent is gone for good. */
void resource_blocks_settle(struct resource_blocks *blocks);

/* Pre: it is empty. Frees what memory it has kept. */
void resource_blocks_end(struct resource_blocks *blocks);

#endif
