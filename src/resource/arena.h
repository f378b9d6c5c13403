/*
 * The bookkeeping of an arena: which part of its memory belongs to which stream, and what of it is
 * free. No memory is touched.
 */
#ifndef RESOURCE_ARENA_H
#define RESOURCE_ARENA_H

#include "resource/adaptor.h"
#include "resource/order.h"
#include "space/space.h"

#include <pthread.h>

#define ARENA_UNIT       ((size_t)RAFFIA_DEFAULT_ALIGNMENT)
#define ARENA_SUPERBLOCK ((size_t)1 << 20)
#define ARENA_LOCALS_MAX 256u

/* The arena of one stream: superblocks out of the whole, cut up by a space of their own. */
struct arena_local {
    uint64_t stream_id;
    struct space *space;
    struct resource_mark mark; /* of the last free on its stream */
};

struct arena_resource {
    struct resource_adaptor adaptor;
    struct resource_order order;
    char *base;
    size_t bytes, alignment; /* as asked of upstream */

    pthread_mutex_t gathering; /* one thread at a time waits for streams; taken before the other */
    pthread_mutex_t lock;      /* of what follows; under it nothing is waited for */
    struct space *whole;
    uint16_t *owners; /* for each superblock: the local it belongs to, plus one; 0: none */
    unsigned local_count;
    struct arena_local locals[ARENA_LOCALS_MAX];
};

/* Lock held. The stream's arena, or NULL. */
struct arena_local *arena_find_local(struct arena_resource *self, uint64_t stream_id);

/* Lock held. The space that an offset belongs to: the whole's or a stream's. */
struct space *arena_space_of(struct arena_resource *self, size_t offset);

struct arena_stream {
    raffia_stream handle;
    uint64_t id;
};

/* Takes a block for a stream. OUT_OF_MEMORY, with no sentence recorded. */
raffia_status arena_place(struct arena_resource *self, const struct arena_stream *stream,
                          const struct space_request *request, size_t *offset_p);

/* Takes free superblocks back of streams that are done with them; waits for none. No lock is held.
 */
void arena_gather_done(struct arena_resource *self);

/* Waits for what streams have left, and takes their free superblocks back. No lock is held. */
raffia_status arena_gather(struct arena_resource *self);

#endif
