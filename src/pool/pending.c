/* Blocks that wait for a stream: the lists they are found by, and their ways. A record stays in its
 * batch, and in the table, while its block goes back and forth between the stream and its caller:
 * only its state and some counts change. */
#include "pool/order.h"

#include <assert.h>

/* ---- by size -------------------------------------------------------------------------------- */

static inline unsigned class_of(size_t bytes)
{
    if (bytes < 256)
        return 0;
    const unsigned octave = 63 - (unsigned)__builtin_clzll(bytes);
    const unsigned class = (octave - 8) * 8 + (unsigned)(bytes >> (octave - 3) & 7);
    return class < POOL_ORDER_CLASSES ? class : POOL_ORDER_CLASSES - 1;
}

static inline void list(struct pool_stream *stream, struct pool_pending *pending)
{
    const unsigned class = pending->class;
    pending->previous = NULL;
    pending->next = stream->classes[class];
    if (pending->next)
        pending->next->previous = pending;
    stream->classes[class] = pending;
    stream->classes_in_use[class / 64] |= (uint64_t)1 << class % 64;
}

static inline void unlist(struct pool_stream *stream, const struct pool_pending *pending)
{
    const unsigned class = pending->class;
    if (pending->next)
        pending->next->previous = pending->previous;
    if (pending->previous)
        pending->previous->next = pending->next;
    else
        stream->classes[class] = pending->next;
    if (!stream->classes[class])
        stream->classes_in_use[class / 64] &= ~((uint64_t)1 << class % 64);
}

/* The first class from `class` on with a block in it; POOL_ORDER_CLASSES if there is none. */
static unsigned next_class(const struct pool_stream *stream, unsigned class)
{
    for (unsigned word = class / 64; word < POOL_ORDER_CLASS_WORDS; word++) {
        uint64_t bits = stream->classes_in_use[word];
        if (word == class / 64)
            bits &= ~(uint64_t)0 << class % 64;
        if (bits)
            return word * 64 + (unsigned)__builtin_ctzll(bits);
    }
    return POOL_ORDER_CLASSES;
}

static inline bool fits(const struct pool_pending *one, size_t bytes, size_t most, size_t alignment)
{
    return one->bytes >= bytes && one->bytes <= most && core_is_aligned(one->offset, alignment);
}

static __attribute__((noinline)) struct pool_pending *find_further(const struct pool_stream *stream,
                                                                   unsigned first, size_t bytes,
                                                                   size_t most, size_t alignment)
{
    const unsigned last = class_of(most);
    int tries = 0;
    for (unsigned class = next_class(stream, first); class <= last;
         class = next_class(stream, class + 1)) {
        if (class >= POOL_ORDER_CLASSES)
            break;
        for (struct pool_pending *one = stream->classes[class]; one; one = one->next) {
            if (fits(one, bytes, most, alignment))
                return one;
            if (++tries == POOL_FIT_TRIES)
                return NULL;
        }
    }
    return NULL;
}

/* As a rule the stream wants what it has just given back. */
struct pool_pending *pool_find_fit(const struct pool_stream *stream, size_t bytes, size_t most,
                                   size_t alignment)
{
    const unsigned class = class_of(bytes);
    struct pool_pending *one = stream->classes[class];
    return one && fits(one, bytes, most, alignment)
               ? one
               : find_further(stream, class, bytes, most, alignment);
}

/* ---- batches -------------------------------------------------------------------------------- */

static void join(struct pool_batch *batch, struct pool_pending *pending)
{
    assert(!batch->passed);
    pending->batch = batch;
    pending->batch_previous = NULL;
    pending->batch_next = batch->records;
    if (batch->records)
        batch->records->batch_previous = pending;
    batch->records = pending;
}

static void quit(struct pool_pending *pending)
{
    if (pending->batch_next)
        pending->batch_next->batch_previous = pending->batch_previous;
    if (pending->batch_previous)
        pending->batch_previous->batch_next = pending->batch_next;
    else
        pending->batch->records = pending->batch_next;
}

/* Takes the first record out of a batch that has some. */
static struct pool_pending *pop(struct pool_batch *batch)
{
    struct pool_pending *pending = batch->records;
    batch->records = pending->batch_next;
    if (batch->records)
        batch->records->batch_previous = NULL;
    return pending;
}

/* Whether the batch's stream may have the block back. */
static inline bool is_listed(const struct pool_order *order, const struct pool_pending *pending)
{
    return !order->by_event && !pending->past;
}

/* The block waits from now on. */
static inline void begin_waiting(const struct pool_order *order, struct pool_pending *pending)
{
    struct pool_batch *batch = pending->batch;
    pending->state = POOL_WAITS;
    batch->block_count++;
    batch->bytes += pending->bytes;
    if (is_listed(order, pending))
        list(batch->stream, pending);
}

/* The block does not wait any more; what its state is now is the caller's to say. */
static inline void end_waiting(const struct pool_order *order, const struct pool_pending *pending)
{
    struct pool_batch *batch = pending->batch;
    batch->block_count--;
    batch->bytes -= pending->bytes;
    if (is_listed(order, pending))
        unlist(batch->stream, pending);
}

void pool_batch_settle(struct pool_order *order, struct pool_batch *batch)
{
    if (!batch->passed || batch->taken || batch->waiters)
        return;
    assert(!batch->event && !batch->records);
    batch->next = order->spare_batches;
    order->spare_batches = batch;
}

/* The stream that a block was freed on is there. True if the block has to wait for its past. */
static bool waits_for_past(struct pool_order *order, struct pool_pending *pending)
{
    struct pool_batch *past = pending->past;
    pending->past = NULL;
    if (!past)
        return false;
    past->taken--;
    if (past->passed) {
        pool_batch_settle(order, past);
        return false;
    }
    join(past, pending);
    begin_waiting(order, pending);
    return true;
}

/* What it waited for has passed. */
static void release(struct raffia_pool *pool, struct pool_pending *pending)
{
    if (space_free(pool->space, pending->handle))
        pool_freeze(pool);
    pool->pending_blocks--;
    pool->pending_bytes -= pending->bytes;
    pool_record_drop(pool->order, pending);
}

/* Under the pool lock, so that it need not be one step. */
static inline void count_taken(struct pool_order *order, int more)
{
    atomic_store_explicit(&order->taken_count, pool_count_taken(order) + (size_t)more,
                          memory_order_relaxed);
}

/* A record that does not wait left its batch, which has passed: the block has no past any more. */
static void lose_past(struct pool_order *order, struct pool_batch *batch,
                      struct pool_pending *pending)
{
    assert(pending->state != POOL_DETACHED);
    batch->taken--;
    if (pending->state == POOL_HIDDEN) {
        pending->batch = NULL;
        return;
    }
    count_taken(order, -1);
    pool_record_drop(order, pending);
}

driver_event pool_pass_oldest(struct raffia_pool *pool, struct pool_stream *stream)
{
    struct pool_order *order = pool->order;
    struct pool_batch *batch = stream->oldest;
    driver_event event = NULL;
    while (batch->records) {
        struct pool_pending *pending = pop(batch);
        if (pending->state != POOL_WAITS) {
            lose_past(order, batch, pending);
            continue;
        }
        end_waiting(order, pending);
        if (!waits_for_past(order, pending))
            release(pool, pending);
    }
    stream->oldest = batch->next;
    if (!stream->oldest)
        stream->newest = NULL;
    batch->passed = true;
    if (!batch->waiters) {
        event = batch->event;
        batch->event = NULL;
    }
    pool_batch_settle(order, batch);
    return event;
}

/* ---- blocks that were taken ----------------------------------------------------------------- */

void pool_taken_hide(struct pool_order *order, struct pool_pending *pending)
{
    pending->state = POOL_HIDDEN;
    count_taken(order, -1);
}

struct pool_pending *pool_taken_show(struct pool_order *order, struct pool_pending *pending)
{
    if (!pending->batch) {
        pool_record_drop(order, pending);
        return NULL;
    }
    pending->state = POOL_TAKEN;
    count_taken(order, 1);
    return pending;
}

void pool_taken_forget(struct pool_order *order, struct pool_pending *pending)
{
    quit(pending);
    lose_past(order, pending->batch, pending);
}

void pool_taken_resize(struct pool_pending *pending, size_t bytes)
{
    pending->bytes = bytes;
    pending->class = class_of(bytes);
}

/* ---- ways of a block ------------------------------------------------------------------------ */

static inline void count_as_freed(struct raffia_pool *pool, const struct pool_pending *pending)
{
    (void)space_set_state(pool->space, pending->handle, SPACE_PENDING);
    pool_count_pending(pool, pending->bytes);
    pool->frees++;
}

bool pool_pend_new(struct raffia_pool *pool, const struct space_block *block,
                   struct pool_batch *batch)
{
    struct pool_pending *pending = pool_record_new(pool->order, block);
    if (!pending)
        return false;
    pending->class = class_of(block->bytes);
    join(batch, pending);
    begin_waiting(pool->order, pending);
    count_as_freed(pool, pending);
    return true;
}

/* The block was taken from another batch, which stays its past if it still counts. */
static __attribute__((noinline)) void change_batch(struct pool_pending *pending,
                                                   struct pool_batch *batch, bool has_past)
{
    struct pool_batch *own = pending->batch;
    quit(pending);
    join(batch, pending);
    if (has_past)
        pending->past = own;
    else
        own->taken--;
}

void pool_pend(struct raffia_pool *pool, struct pool_pending *pending, struct pool_batch *batch,
               bool has_past)
{
    struct pool_order *order = pool->order;
    assert(pending->state == POOL_TAKEN);
    count_taken(order, -1);
    if (batch && batch != pending->batch)
        change_batch(pending, batch, has_past);
    else
        pending->batch->taken--;
    begin_waiting(order, pending);
    count_as_freed(pool, pending);
}

raffia_status pool_unpend(struct raffia_pool *pool, struct pool_pending *pending,
                          struct pool_taker taker, size_t requested)
{
    struct pool_order *order = pool->order;
    raffia_status status = space_reuse(pool->space, pending->handle, requested);
    if (status)
        return status;
    end_waiting(order, pending);
    pending->state = POOL_TAKEN;
    pending->taker = taker.id;
    pending->taker_handle = taker.handle;
    pending->batch->taken++;
    count_taken(order, 1);
    pool->pending_blocks--;
    pool->pending_bytes -= pending->bytes;
    pool_count_block(pool, &(struct space_block){.bytes = pending->bytes});
    pool->hits++;
    return RAFFIA_OK;
}

void pool_detach(struct raffia_pool *pool, struct pool_pending *pending)
{
    end_waiting(pool->order, pending);
    pending->state = POOL_DETACHED;
    pending->batch->taken++; /* keeps it from being forgotten */
    pool->order->unlisted++;
}

void pool_attach(struct raffia_pool *pool, struct pool_pending *pending)
{
    pending->batch->taken--;
    pool->order->unlisted--;
    begin_waiting(pool->order, pending);
}
