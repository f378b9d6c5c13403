/*
 * Stream order: what a pool knows of blocks that were freed on a stream.
 *
 * Such a block waits in a **batch** of its stream, and is in the space as SPACE_PENDING. The same
 * stream may have it back at once, since its later work comes behind its earlier; anybody else when
 * the batch has **passed**: when an event recorded behind its last free was found done. A batch is
 * open until it is **marked** with an event. Batches of one stream pass in order, so a later event
 * speaks for the earlier batches that have none.
 *
 * A stream is marked only by a call that was given its handle: any other time it may have been
 * destroyed, and no driver has to survive being asked about it. Whoever else needs the memory
 * leaves word that it is **wanted**, which the stream's next call sees to; who cannot do without
 * waits for the whole device. Default streams live as long as the device, and are marked by
 * anybody.
 *
 * A block that was handed out again before its batch passed is **taken**: it is HELD, but the
 * stream may still be using it from before. Its record stays, so that a free in no order, and a
 * resize, do not call free what is in use. Freed on a stream that does not come behind that use, it
 * has a **past**: it waits for the stream first, without being handed out meanwhile, and then for
 * the batch it came from.
 *
 * A record is made when its block is first freed on a stream, and dropped when the batch it is in
 * passes: then a block that waits is free, and one that is taken has no past any more. All that
 * while it is in the table by offset and in the list of its batch; a block that goes back and forth
 * between its stream and a caller changes its state and enters and leaves the list of its class.
 *
 * Which stream a handle names is asked for in each call, but for a block that is freed under the
 * handle it was handed out by: that is taken for the same stream. If it is not (the first was
 * destroyed, and its handle given to the next, without a word to us), the block waits among those
 * of the first, and is free when the whole device has been waited for: nobody can be given what
 * waits for a stream that is gone, and whoever marks a stream asks for its id first, so that no
 * event of the next one speaks for it. When the next one is put on record under its own id, the
 * first is known to be gone.
 *
 * Locks: the lists (streams, batches, records) are the pool lock's. Whatever asks the driver about
 * events goes under the order lock, which comes before the pool lock: batches pass, and streams go,
 * only under both, so who holds the order lock may look at them with the pool lock let go. Driver
 * calls that can block (waits) are made under neither. Stream ids, and whether a stream is being
 * captured, are asked for before the pool lock is taken.
 *
 * Pools with guards have no order: they wait for the stream when a block is freed, and look at its
 * guard.
 */
#ifndef POOL_ORDER_H
#define POOL_ORDER_H

#include "pool/pool_internal.h"

/* A batch is closed when it holds so many blocks, or half of the pool's maximum in bytes. What
 * the stream took back does not count, so that a stream that lives on its own blocks records no
 * events. */
#define POOL_BATCH_BLOCKS 256

/* Blocks looked at for one request. */
#define POOL_FIT_TRIES 8

/* Sizes by octave, eighths in each, from 256 B; what is larger than all is in the last. */
#define POOL_ORDER_CLASSES     320
#define POOL_ORDER_CLASS_WORDS (POOL_ORDER_CLASSES / 64)

#define POOL_STREAM_BUCKETS 64
#define POOL_STREAMS_KEPT   64 /* beyond so many, those with nothing in them are forgotten */
#define POOL_EVENTS_KEPT    16

struct pool_stream;

/* What becomes of a block on record. */
enum pool_pending_state {
    POOL_WAITS = 0, /* in its batch; listed by class if its stream may have it back */
    POOL_DETACHED,  /* the same, but somebody is about to take it: nobody else may find it */
    POOL_TAKEN,     /* handed out again */
    POOL_HIDDEN,    /* it was taken, and is being freed by a call that waits for its stream */
};

/* What is known of one block. What a pair of calls on one stream needs comes first. */
struct pool_pending {
    size_t offset;
    size_t bytes;
    space_handle handle;
    struct pool_batch *batch; /* the use it had is over when this passes; NULL if it was HIDDEN
                                 when that happened */
    struct pool_pending *previous, *next; /* while it is listed, of its class */
    driver_stream taker_handle; /* TAKEN: what the stream it was handed out on was called then. To
                                   be compared with another, and for nothing else */
    uint64_t taker;             /* and its id */
    enum pool_pending_state state;
    unsigned class;                                   /* of its size */
    struct pool_batch *past;                          /* if not NULL, of another stream: it has to
                                                         pass as well */
    struct pool_pending *batch_previous, *batch_next; /* of the batch */
    struct pool_pending *table_next;
};

struct pool_batch {
    struct pool_stream *stream;   /* not to be followed once passed */
    struct pool_batch *next;      /* newer */
    struct pool_pending *records; /* whose `batch` this is, in whatever state */
    size_t block_count;           /* those that wait */
    size_t bytes;                 /* of these */
    size_t taken;                 /* the others, and those that have it as their past */
    unsigned waiters;             /* threads that wait for the event with no lock held */
    uint64_t born;
    bool sealed;        /* takes no more blocks */
    bool passed;        /* in no list of a stream any more */
    driver_event event; /* NULL: not marked */
    uint64_t marked;    /* when, among all marks of the pool */
};

struct pool_stream {
    uint64_t id;
    driver_stream handle; /* what it was called last. Used only if it is that of a default stream;
                             any other is compared, as that of a taker */
    bool is_default;
    bool retired; /* it is gone, or will be */
    bool wanted;  /* somebody waits for what has no event */
    struct pool_stream *bucket_next, *next;
    struct pool_batch *oldest, *newest;
    uint64_t classes_in_use[POOL_ORDER_CLASS_WORDS];
    struct pool_pending *classes[POOL_ORDER_CLASSES]; /* waiting blocks, the last freed first */
};

struct pool_record_slab;

struct pool_order {
    bool by_event; /* nothing is handed out before its batch passed (DRIVER_REUSE_BY_EVENT) */
    pthread_mutex_t lock;

    /* Pool lock. */
    struct pool_stream *buckets[POOL_STREAM_BUCKETS];
    struct pool_stream *streams; /* all of them */
    struct pool_stream *last;    /* the one that was looked up last */
    size_t stream_count;
    struct pool_batch *spare_batches;      /* by `next` */
    struct pool_pending *spares;           /* by `next` */
    struct pool_record_slab *record_slabs; /* what the records lie in */
    struct pool_pending **table;           /* all records that are no spares, by offset */
    size_t table_size;                     /* in buckets, a power of two */
    size_t record_count;
    atomic_size_t taken_count; /* those that are TAKEN. Changed under the pool lock, looked at
                                  without it as well */
    size_t unlisted;           /* pending blocks in no batch: somebody is working on them */
    uint64_t births;
    bool draining; /* somebody waits for the last blocks of a pool without owners */
    unsigned pins; /* calls that will look at the pool once more */
    bool ended;    /* somebody is tearing the pool down */

    /* Order lock. */
    driver_event events[POOL_EVENTS_KEPT];
    unsigned event_count;
    uint64_t marks;
    uint64_t passes; /* batches that passed */
};

/* ---- records (records.c). Pool lock held for all -------------------------------------------- */

/* A record in the table. NULL, without a sentence, if there is no memory. */
struct pool_pending *pool_record_new(struct pool_order *order, const struct space_block *block);

/* Forgets a block that is in no list. */
void pool_record_drop(struct pool_order *order, struct pool_pending *pending);

static inline struct pool_pending **pool_record_bucket(const struct pool_order *order,
                                                       size_t offset)
{
    const uint64_t hash = (uint64_t)offset * 0x9E3779B97F4A7C15u;
    return &order->table[(hash >> 32) & (order->table_size - 1)];
}

/* The record of the block that starts there, or NULL. */
static inline struct pool_pending *pool_record_find(const struct pool_order *order, size_t offset)
{
    struct pool_pending *one = *pool_record_bucket(order, offset);
    while (one && one->offset != offset)
        one = one->table_next;
    return one;
}

/* Gives the memory of all records back. */
void pool_records_free(struct pool_order *order);

/* ---- lists (pending.c). Pool lock held for all ---------------------------------------------- */

/* Puts a HELD block into a batch that has not passed. Counts it as freed. False, and nothing
 * changes, if there is no memory. */
bool pool_pend_new(struct raffia_pool *pool, const struct space_block *block,
                   struct pool_batch *batch);

/* The same for a TAKEN block, which goes into the batch it came from if `batch` is NULL; with
 * `has_past` that one has to pass as well. */
void pool_pend(struct raffia_pool *pool, struct pool_pending *pending, struct pool_batch *batch,
               bool has_past);

/* Who takes a block. */
struct pool_taker {
    driver_stream handle;
    uint64_t id;
};

/* Hands a waiting block out for a request that it was found for. */
raffia_status pool_unpend(struct raffia_pool *pool, struct pool_pending *pending,
                          struct pool_taker taker, size_t requested);

/* How many blocks are TAKEN. */
static inline size_t pool_count_taken(const struct pool_order *order)
{
    return atomic_load_explicit(&order->taken_count, memory_order_relaxed);
}

/* Forgets that a block was taken. */
void pool_taken_forget(struct pool_order *order, struct pool_pending *pending);

/* Hides a taken block, so that nobody frees it meanwhile, and shows it again: NULL if its batch has
 * passed meanwhile, and its record with it. */
void pool_taken_hide(struct pool_order *order, struct pool_pending *pending);
struct pool_pending *pool_taken_show(struct pool_order *order, struct pool_pending *pending);

/* Sees to it that nobody else finds a waiting block, and puts it back. Under the order lock, so
 * that its batch does not pass meanwhile. */
void pool_detach(struct raffia_pool *pool, struct pool_pending *pending);
void pool_attach(struct raffia_pool *pool, struct pool_pending *pending);

/* The block has another size now. */
void pool_taken_resize(struct pool_pending *pending, size_t bytes);

/* A waiting block of at least `bytes` and at most `most` bytes. */
struct pool_pending *pool_find_fit(const struct pool_stream *stream, size_t bytes, size_t most,
                                   size_t alignment);

/* Order lock held as well. Frees what waits in the oldest batch of the stream, which has passed;
 * blocks with a past go on to wait for that, and those that were taken from it have none any more.
 * Returns an event to give back, or NULL. */
driver_event pool_pass_oldest(struct raffia_pool *pool, struct pool_stream *stream);

/* A passed batch that nobody needs any more becomes a spare one. */
void pool_batch_settle(struct pool_order *order, struct pool_batch *batch);

/* ---- streams (streams.c). Pool lock held for all -------------------------------------------- */

/* NULL if nothing was ever freed on it. */
struct pool_stream *pool_stream_find(struct pool_order *order, uint64_t id);

/* For a call that was given the handle. NULL, without a sentence, if there is no memory. */
struct pool_stream *pool_stream_get(struct pool_order *order, uint64_t id, driver_stream handle);

/* The batch that takes blocks now, which may be made for it; NULL, without a sentence, if there is
 * no memory. */
struct pool_batch *pool_new_batch(struct pool_order *order, struct pool_stream *stream);

static inline struct pool_batch *pool_open_batch(struct pool_order *order,
                                                 struct pool_stream *stream)
{
    struct pool_batch *batch = stream->newest;
    return batch && !batch->sealed ? batch : pool_new_batch(order, stream);
}

/* The oldest batch from `batch` on that has an event, or NULL. */
struct pool_batch *pool_marked_from(struct pool_batch *batch);

/* Pool lock not held: the newest stream. With the order lock held, those behind it stay. */
struct pool_stream *pool_streams_first(struct raffia_pool *pool);

/* Order lock held as well. Forgets streams with nothing in them if there are many. */
void pool_streams_sweep(struct pool_order *order);

/* ---- life (order.c) ------------------------------------------------------------------------- */

/* For a pool of an asynchronous device without guards. OUT_OF_HOST_MEMORY. */
raffia_status pool_order_create(struct raffia_pool *pool);

/* As core_calloc(), for a call that can do without: the last error stays. */
void *pool_order_calloc(size_t count, size_t size);

/* Nothing is pending. Ignores a pool without order. */
void pool_order_destroy(struct raffia_pool *pool);

/* Says the first thing in the lists that does not hold; false if all does. Pool lock held. */
bool pool_order_is_wrong(struct raffia_pool *pool, char text[static CORE_ERROR_MAX]);

/* ---- events (marks.c) ----------------------------------------------------------------------- */

enum pool_mark_result {
    POOL_MARKED,         /* or there was nothing to mark */
    POOL_MARK_CAPTURING, /* the stream records its work */
    POOL_MARK_FAILED,    /* nobody can name the stream here, or the driver refused */
};

/* Order lock held, pool lock not, here and below. Marks the newest batch with an event, in a call
 * that was given the stream's handle. */
enum pool_mark_result pool_mark_stream(struct raffia_pool *pool, struct pool_stream *stream,
                                       driver_stream handle);

/* The same in any other call: marks a default stream, and leaves word for any other. */
void pool_want_stream(struct raffia_pool *pool, struct pool_stream *stream);

/* Frees the batches that passed. */
void pool_poll_stream(struct raffia_pool *pool, struct pool_stream *stream);

/* Frees the oldest batch of the stream, which has passed; and all up to `batch`, which is one of
 * the stream's. */
void pool_pass_one(struct raffia_pool *pool, struct pool_stream *stream);
void pool_pass_until(struct raffia_pool *pool, struct pool_stream *stream,
                     const struct pool_batch *batch);

/* A thread that waited for the batch's event is done. */
void pool_waiter_leaves(struct raffia_pool *pool, struct pool_batch *batch);

void pool_event_destroy(struct raffia_pool *pool, driver_event event);

/* Makes what is submitted to the stream from now on wait until the batch, another stream's, has
 * passed. BUSY if that has no event, or what the driver says. */
raffia_status pool_order_behind(struct raffia_pool *pool, driver_stream handle,
                                struct pool_batch *batch);

/* ---- waiting (wait.c). No lock held for all ------------------------------------------------- */

/* Frees all that has passed, and leaves word that what has no event is wanted. Keeps the last
 * error. Does nothing to a pool without order. */
void pool_order_refresh(struct raffia_pool *pool);

/* Waits until some batch has passed. False if nothing is pending, or it cannot be waited for. Keeps
 * the last error. */
bool pool_order_wait(struct raffia_pool *pool);

/* Frees all that has passed, and waits for the device if blocks wait for what has no event. Does
 * nothing to a pool without order. */
void pool_order_wait_unmarked(struct raffia_pool *pool);

/* As pool_order_wait(), also for what only taken blocks are left of. */
bool pool_order_wait_use(struct raffia_pool *pool);

/* Marks the stream whose handle the caller was given, and frees what of it has passed. */
void pool_order_close(struct raffia_pool *pool, uint64_t id, driver_stream handle);

/* The stream's handle is valid for the last time. */
raffia_status pool_order_retire(struct raffia_pool *pool, uint64_t id, driver_stream handle);

/* Takes a pin away that was set under the pool lock, and tears the pool down if it was the last
 * thing that kept it. With no owner and no block left but pending ones, waits for them first. */
void pool_order_unpin(struct raffia_pool *pool);

/* Tears down pools that were left behind because their streams could not be waited for. */
void pool_order_reap(void);

/* ---- calls (ordered.c, ordered_free.c), as those of alloc.c and free.c ---------------------- */

/* `stream_p` is NULL where no order was asked for. */
raffia_status pool_take_ordered(struct raffia_pool *pool, const struct space_request *request,
                                size_t bytes, const driver_stream *stream_p,
                                struct space_block *block);

/* The short way of raffia_pool_alloc_on(), for words that need no looking at: `bytes` is at least
 * 1, the alignment is 0 or one that the pool can do. */
raffia_status pool_take_on(struct raffia_pool *pool, driver_stream handle, size_t bytes,
                           size_t alignment, void **address_p);

raffia_status pool_free_ordered(struct raffia_pool *pool, const driver_stream *stream_p,
                                const void *address, size_t requested);

/* The same on a stream. */
raffia_status pool_free_on(struct raffia_pool *pool, driver_stream handle, const void *address,
                           size_t requested);

/* No lock held. What is cut off a block becomes free at once: waits until nobody uses it from
 * before. BUSY if it cannot be waited for. `requested` is what it is taken for, 0 going for all. */
raffia_status pool_order_before_resize(struct raffia_pool *pool, const void *address,
                                       size_t requested, size_t bytes);

/* Pool lock held. A block has another size now. */
void pool_order_resized(struct pool_order *order, const struct space_block *block);

#endif
