/*
 * The record of a resource's blocks of regular memory, by address: what it did not allocate is
 * noticed.
 */
#ifndef RESOURCE_RECORD_H
#define RESOURCE_RECORD_H

#include "resource/blocks.h"
#include "resource/resource.h"

struct resource_record;

/* OUT_OF_HOST_MEMORY. */
raffia_status resource_record_create(struct resource_record **record_p);

/* No block is in it. NULL is ignored. */
void resource_record_destroy(struct resource_record *record);

/* As resource_blocks_add(). */
raffia_status resource_record_add(struct resource_record *record,
                                  const struct resource_block *block);

/* Takes the block out that starts at the address, was allocated with so many bytes and so aligned.
 * With `peek` it stays in. BAD_ADDRESS if there is none such; INVALID_ARGUMENT for another size. */
raffia_status resource_record_take(struct resource_record *record, const void *address,
                                   size_t bytes, size_t alignment, bool peek,
                                   struct resource_block *block);

/* The same, but the block can be put back without fail: for a free that may yet be refused. What
 * became of it is told to resource_record_settle(). */
raffia_status resource_record_lend(struct resource_record *record, const void *address,
                                   size_t bytes, size_t alignment, struct resource_block *block);

/* `freed`: the block is gone for good; else it is live as before. */
void resource_record_settle(struct resource_record *record, const struct resource_block *block,
                            bool freed);

/* What a resource begins with that has such a record, and entries of its table that need no more.
 */
struct resource_on_record {
    struct raffia_resource base;
    struct resource_record *record;
};

/* Linear in the number of blocks. */
raffia_status resource_on_record_find(void *context, const void *address, raffia_block *block);

raffia_status resource_on_record_usable_size(void *context, const void *address, size_t *bytes_p);

raffia_status resource_on_record_walk(void *context, raffia_block_visitor visitor, void *argument);

#endif
