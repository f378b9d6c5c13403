/* Blocks that wait for a stream: their records, the lists they are found by, and the table of those
 * that were handed out again. */
#include "core/memory.h"
#include "pool/order.h"

#include <assert.h>

#define SLAB_RECORDS 64

struct pool_slab {
    struct pool_slab *next;
    struct pool_pending records[SLAB_RECORDS];
};

/* ---- records -------------------------------------------------------------------------------- */

static bool add_slab(struct pool_order *order)
{
    struct core_error_record before;
    core_error_save(&before);
    struct pool_slab *slab = core_malloc(sizeof *slab);
    core_error_restore(&before);
    if (!slab)
        return false;
    slab->next = order->slabs;
    order->slabs = slab;
    for (size_t i = 0; i < SLAB_RECORDS; i++)
        pool_pending_drop(order, &slab->records[i]);
    return true;
}

struct pool_pending *pool_pending_new(struct pool_order *order, const struct space_block *block)
{
    if (!order->spares && !add_slab(order))
        return NULL;
    struct pool_pending *pending = order->spares;
    order->spares = pending->next;
    *pending = (struct pool_pending){
        .handle = block->handle, .offset = block->offset, .bytes = block->bytes};
    return pending;
}

void pool_pending_drop(struct pool_order *order, struct pool_pending *pending)
{
    pending->next = order->spares;
    order->spares = pending;
}

void pool_pending_free_slabs(struct pool_order *order)
{
    while (order->slabs) {
        struct pool_slab *slab = order->slabs;
        order->slabs = slab->next;
        core_free(slab);
    }
}

/* ---- by size -------------------------------------------------------------------------------- */

static unsigned class_of(size_t bytes)
{
    if (bytes < 256)
        return 0;
    const unsigned octave = 63 - (unsigned)__builtin_clzll(bytes);
    const unsigned class = (octave - 8) * 8 + (unsigned)(bytes >> (octave - 3) & 7);
    return class < POOL_ORDER_CLASSES ? class : POOL_ORDER_CLASSES - 1;
}

static void list(struct pool_stream *stream, struct pool_pending *pending)
{
    const unsigned class = class_of(pending->bytes);
    pending->previous = NULL;
    pending->next = stream->classes[class];
    if (pending->next)
        pending->next->previous = pending;
    stream->classes[class] = pending;
    stream->classes_in_use[class / 64] |= (uint64_t)1 << class % 64;
}

static void unlist(struct pool_stream *stream, const struct pool_pending *pending)
{
    const unsigned class = class_of(pending->bytes);
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

struct pool_pending *pool_find_fit(const struct pool_stream *stream, size_t bytes, size_t most,
                                   size_t alignment)
{
    const unsigned last = class_of(most);
    int tries = 0;
    for (unsigned class = next_class(stream, class_of(bytes)); class <= last;
         class = next_class(stream, class + 1)) {
        if (class >= POOL_ORDER_CLASSES)
            break;
        for (struct pool_pending *one = stream->classes[class]; one; one = one->next) {
            if (one->bytes >= bytes && one->bytes <= most &&
                core_is_aligned(one->offset, alignment))
                return one;
            if (++tries == POOL_FIT_TRIES)
                return NULL;
        }
    }
    return NULL;
}

/* ---- batches -------------------------------------------------------------------------------- */

/* Whether the batch's stream may have the block back. */
static bool is_listed(const struct pool_order *order, const struct pool_pending *pending)
{
    return !order->by_event && !pending->past;
}

static void enter_batch(struct pool_order *order, struct pool_pending *pending)
{
    struct pool_batch *batch = pending->batch;
    assert(!batch->passed);
    pending->batch_previous = NULL;
    pending->batch_next = batch->blocks;
    if (batch->blocks)
        batch->blocks->batch_previous = pending;
    batch->blocks = pending;
    batch->block_count++;
    batch->bytes += pending->bytes;
    if (is_listed(order, pending))
        list(batch->stream, pending);
}

static void leave_batch(struct pool_order *order, struct pool_pending *pending)
{
    struct pool_batch *batch = pending->batch;
    if (pending->batch_next)
        pending->batch_next->batch_previous = pending->batch_previous;
    if (pending->batch_previous)
        pending->batch_previous->batch_next = pending->batch_next;
    else
        batch->blocks = pending->batch_next;
    batch->block_count--;
    batch->bytes -= pending->bytes;
    if (is_listed(order, pending))
        unlist(batch->stream, pending);
}

void pool_batch_settle(struct pool_order *order, struct pool_batch *batch)
{
    if (!batch->passed || batch->taken || batch->waiters)
        return;
    assert(!batch->event && !batch->blocks);
    batch->next = order->spare_batches;
    order->spare_batches = batch;
}

/* A record lets go of the batch that it was taken from. */
static void let_go(struct pool_order *order, struct pool_batch *batch)
{
    batch->taken--;
    pool_batch_settle(order, batch);
}

/* The stream that a block was freed on is there. True if the block has to wait for its past. */
static bool waits_for_past(struct pool_order *order, struct pool_pending *pending)
{
    struct pool_batch *past = pending->past;
    pending->past = NULL;
    if (!past)
        return false;
    if (past->passed) {
        let_go(order, past);
        return false;
    }
    past->taken--;
    pending->batch = past;
    enter_batch(order, pending);
    return true;
}

driver_event pool_pass_oldest(struct raffia_pool *pool, struct pool_stream *stream)
{
    struct pool_order *order = pool->order;
    struct pool_batch *batch = stream->oldest;
    driver_event event = NULL;
    while (batch->blocks) {
        struct pool_pending *pending = batch->blocks;
        leave_batch(order, pending);
        if (waits_for_past(order, pending))
            continue;
        if (space_free(pool->space, pending->handle))
            pool_freeze(pool);
        pool->pending_blocks--;
        pool->pending_bytes -= pending->bytes;
        pool_pending_drop(order, pending);
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

static struct pool_pending **bucket_of(const struct pool_order *order, size_t offset)
{
    const uint64_t hash = (uint64_t)offset * 0x9E3779B97F4A7C15u;
    return &order->taken[(hash >> 32) & (order->taken_buckets - 1)];
}

struct pool_pending *pool_taken_find(const struct pool_order *order, size_t offset)
{
    struct pool_pending *one = *bucket_of(order, offset);
    while (one && one->offset != offset)
        one = one->next;
    return one;
}

static void insert_taken(struct pool_order *order, struct pool_pending *pending)
{
    struct pool_pending **bucket = bucket_of(order, pending->offset);
    pending->next = *bucket;
    *bucket = pending;
}

/* Without memory the buckets only get fuller. */
static void widen(struct pool_order *order)
{
    struct core_error_record before;
    core_error_save(&before);
    const size_t old_buckets = order->taken_buckets;
    struct pool_pending **old = order->taken;
    struct pool_pending **wider = core_calloc(2 * old_buckets, sizeof(struct pool_pending *));
    core_error_restore(&before);
    if (!wider)
        return;
    order->taken = wider;
    order->taken_buckets = 2 * old_buckets;
    for (size_t i = 0; i < old_buckets; i++)
        while (old[i]) {
            struct pool_pending *one = old[i];
            old[i] = one->next;
            insert_taken(order, one);
        }
    core_free(old);
}

static void add_taken(struct pool_order *order, struct pool_pending *pending, uint64_t taker)
{
    if (order->taken_count >= 2 * order->taken_buckets)
        widen(order);
    pending->taken = true;
    pending->taker = taker;
    insert_taken(order, pending);
    order->taken_count++;
}

static void remove_taken(struct pool_order *order, struct pool_pending *pending)
{
    struct pool_pending **place = bucket_of(order, pending->offset);
    while (*place != pending)
        place = &(*place)->next;
    *place = pending->next;
    pending->taken = false;
    order->taken_count--;
}

void pool_taken_hide(struct pool_order *order, struct pool_pending *pending)
{
    remove_taken(order, pending);
}

void pool_taken_show(struct pool_order *order, struct pool_pending *pending)
{
    add_taken(order, pending, pending->taker);
}

void pool_taken_forget(struct pool_order *order, struct pool_pending *pending)
{
    remove_taken(order, pending);
    let_go(order, pending->batch);
    pool_pending_drop(order, pending);
}

/* ---- ways of a block ------------------------------------------------------------------------ */

void pool_pend(struct raffia_pool *pool, struct pool_pending *pending, struct pool_batch *batch,
               bool has_past)
{
    struct pool_order *order = pool->order;
    (void)space_set_state(pool->space, pending->handle, SPACE_PENDING);
    if (pending->taken) {
        struct pool_batch *own = pending->batch;
        remove_taken(order, pending);
        batch = batch ? batch : own;
        if (has_past)
            pending->past = own;
        else if (own != batch)
            let_go(order, own);
        else
            own->taken--;
    }
    pending->batch = batch;
    enter_batch(order, pending);
    pool_count_pending(pool, pending->bytes);
    pool->frees++;
}

raffia_status pool_unpend(struct raffia_pool *pool, struct pool_pending *pending, uint64_t taker,
                          const struct space_request *request, struct space_block *block)
{
    raffia_status status = space_reuse(pool->space, pending->handle, request->bytes);
    if (status)
        return status;
    leave_batch(pool->order, pending);
    pending->batch->taken++;
    add_taken(pool->order, pending, taker);
    pool->pending_blocks--;
    pool->pending_bytes -= pending->bytes;
    *block = (struct space_block){pending->handle, pending->offset, pending->bytes, request->bytes,
                                  SPACE_HELD};
    pool_count_block(pool, block);
    pool->hits++;
    return RAFFIA_OK;
}

/* A detached block keeps its batch from being forgotten. */
void pool_detach(struct raffia_pool *pool, struct pool_pending *pending)
{
    leave_batch(pool->order, pending);
    pending->batch->taken++;
    pool->order->unlisted++;
}

void pool_attach(struct raffia_pool *pool, struct pool_pending *pending)
{
    pending->batch->taken--;
    pool->order->unlisted--;
    enter_batch(pool->order, pending);
}
