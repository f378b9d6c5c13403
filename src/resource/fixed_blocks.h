/*
 * The bookkeeping of a fixed-size resource: its chunks, and the list of free blocks.
 */
#ifndef RESOURCE_FIXED_BLOCKS_H
#define RESOURCE_FIXED_BLOCKS_H

#include "resource/adaptor.h"
#include "resource/order.h"

#include <pthread.h>

struct fixed_block {
    struct fixed_block *next; /* in the list of free ones */
    char *address;
    bool live;
    size_t bytes;                     /* what was asked for, while it is live */
    struct resource_mark mark;        /* of its last use */
    const struct resource_mark *born; /* its chunk's, until the first use; then NULL */
};

struct fixed_chunk {
    char *base;
    struct fixed_block *blocks;
    struct resource_mark *born; /* what its memory comes after, in the order of who asked for it */
};

struct fixed_size_resource {
    struct resource_adaptor adaptor;
    struct resource_order order;
    size_t block_bytes, blocks_per_chunk;
    size_t alignment; /* that every block has */

    pthread_mutex_t growth; /* one grower at a time; held during calls to upstream */
    pthread_mutex_t lock;   /* of what follows; taken after the other */
    struct fixed_block *first, *last;
    struct fixed_chunk *chunks; /* in order of address */
    size_t chunk_count;
};

/* Lock held. The block comes last, or first. */
void fixed_blocks_append(struct fixed_size_resource *self, struct fixed_block *block);
void fixed_blocks_put_first(struct fixed_size_resource *self, struct fixed_block *block);

/* Lock held. The first free block, which is then live, or NULL. */
struct fixed_block *fixed_blocks_take(struct fixed_size_resource *self);

/* Lock held. The block the address is in, or NULL. */
struct fixed_block *fixed_blocks_at(const struct fixed_size_resource *self, const void *address);

size_t fixed_blocks_chunk_bytes(const struct fixed_size_resource *self);

/* Frees what a chunk consists of, but for its memory. */
void fixed_blocks_end_chunk(const struct fixed_size_resource *self,
                            const struct fixed_chunk *chunk);

/* Takes one chunk more of upstream. Growth lock held, the other not. */
raffia_status fixed_blocks_grow(struct fixed_size_resource *self, raffia_stream stream);

#endif
