/* The records of blocks that were freed on a stream: where their memory comes from, and the table
 * that finds them by offset. */
#include "core/memory.h"
#include "pool/order.h"

#define SLAB_RECORDS 64

struct pool_record_slab {
    struct pool_record_slab *next;
    struct pool_pending records[SLAB_RECORDS];
};

/* ---- memory --------------------------------------------------------------------------------- */

static void put_spare(struct pool_order *order, struct pool_pending *pending)
{
    pending->next = order->spares;
    order->spares = pending;
}

static bool add_slab(struct pool_order *order)
{
    struct pool_record_slab *slab = pool_order_calloc(1, sizeof *slab);
    if (!slab)
        return false;
    slab->next = order->record_slabs;
    order->record_slabs = slab;
    for (size_t i = 0; i < SLAB_RECORDS; i++)
        put_spare(order, &slab->records[i]);
    return true;
}

void pool_records_free(struct pool_order *order)
{
    while (order->record_slabs) {
        struct pool_record_slab *slab = order->record_slabs;
        order->record_slabs = slab->next;
        core_free(slab);
    }
}

/* ---- by offset ------------------------------------------------------------------------------ */

static void insert(struct pool_order *order, struct pool_pending *pending)
{
    struct pool_pending **bucket = pool_record_bucket(order, pending->offset);
    pending->table_next = *bucket;
    *bucket = pending;
}

/* Without memory the buckets only get fuller. */
static __attribute__((noinline)) void widen(struct pool_order *order)
{
    const size_t old_buckets = order->table_size;
    struct pool_pending **old = order->table;
    struct pool_pending **wider = pool_order_calloc(2 * old_buckets, sizeof(struct pool_pending *));
    if (!wider)
        return;
    order->table = wider;
    order->table_size = 2 * old_buckets;
    for (size_t i = 0; i < old_buckets; i++)
        while (old[i]) {
            struct pool_pending *one = old[i];
            old[i] = one->table_next;
            insert(order, one);
        }
    core_free(old);
}

struct pool_pending *pool_record_new(struct pool_order *order, const struct space_block *block)
{
    if (!order->spares && !add_slab(order))
        return NULL;
    if (order->record_count >= order->table_size)
        widen(order);
    struct pool_pending *pending = order->spares;
    order->spares = pending->next;
    *pending = (struct pool_pending){
        .handle = block->handle, .offset = block->offset, .bytes = block->bytes};
    insert(order, pending);
    order->record_count++;
    return pending;
}

void pool_record_drop(struct pool_order *order, struct pool_pending *pending)
{
    struct pool_pending **place = pool_record_bucket(order, pending->offset);
    while (*place != pending)
        place = &(*place)->table_next;
    *place = pending->table_next;
    order->record_count--;
    put_spare(order, pending);
}
