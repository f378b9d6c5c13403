/*
 * Pools of the device's own: memory in the order of streams.
 *
 * An allocation and a free are operations on their stream, so that the device knows when each took
 * effect. A block may be used again at once on the stream that freed it, and elsewhere when its
 * free has come. What the real thing would answer with wrong bytes is a misuse here: work that is
 * run before the allocation has come, or that is left when the free comes.
 *
 * A block that was freed is kept whole, or cut in two for a smaller request; neighbours are not
 * joined again, since idle blocks are given back before a request is refused.
 */
#include "core/checked.h"
#include "core/error.h"
#include "core/fault.h"
#include "core/sys.h"
#include "driver/sim/memory.h"
#include "driver/sim/queue.h"
#include "driver/sim/verbs.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* What fresh memory begins with, so that nobody relies on zeros. */
#define FRESH_BYTE  0xcd
#define FRESH_BYTES ((size_t)4096)

struct driver_pool {
    size_t threshold;
    size_t bytes; /* of the device's memory; of the blocks, live and kept */
    size_t blocks;
    bool destroyed; /* only frees that have not come keep it */
};

/* Plain calloc(3): what a pool keeps is the device's, and no leak of the code under test. */
static void *make_record(size_t bytes)
{
    void *record = core_fault("sim.calloc") ? NULL : calloc(1, bytes);
    if (!record)
        core_error(RAFFIA_ERROR_OUT_OF_HOST_MEMORY, "sim: cannot allocate the record of a pool");
    return record;
}

static raffia_status find_pool(struct sim_device *device, driver_pool handle, const char *verb,
                               struct driver_pool **pool_p)
{
    const struct sim_span *span = sim_spans_exactly(&device->pools, handle);
    if (!span)
        return sim_misuse(device, "%s on pool %p, which does not exist or was destroyed", verb,
                          (void *)handle);
    *pool_p = span->owner;
    return RAFFIA_OK;
}

/* The stream of an allocation or a free, which is not for a graph to record. */
static raffia_status find_stream(struct sim_device *device, driver_stream handle, const char *verb,
                                 struct sim_stream **stream_p)
{
    struct sim_stream *stream;
    raffia_status status = sim_stream_find_open(device, handle, verb, &stream);
    if (status)
        return status;
    if (stream->capturing)
        return core_error(RAFFIA_ERROR_BUSY, "sim:%d: %s on stream %llu, which is being captured",
                          device->index, verb, (unsigned long long)stream->id);
    *stream_p = stream;
    return RAFFIA_OK;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static char *map(size_t bytes, int protection)
{
    return sys_mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

/* Addresses and, for a device that hides its memory, what is behind them elsewhere. */
static raffia_status map_block(const struct sim_device *device, size_t bytes, char **start_p,
                               char **twin_p)
{
    const bool hidden = device->config.cpu_inaccessible;
    char *start = map(bytes, hidden ? PROT_NONE : PROT_READ | PROT_WRITE), *twin = NULL;
    if (start != MAP_FAILED && hidden)
        twin = map(bytes, PROT_READ | PROT_WRITE);
    if (start == MAP_FAILED || twin == MAP_FAILED) {
        const int error_number = errno;
        if (start != MAP_FAILED)
            sys_munmap(start, bytes);
        return core_error_errno(core_status_of_errno(error_number), error_number,
                                "sim:%d: cannot map %zu bytes for a pool", device->index, bytes);
    }
    memset(twin ? twin : start, FRESH_BYTE, core_min(bytes, FRESH_BYTES));
    *start_p = start;
    *twin_p = twin;
    return RAFFIA_OK;
}

/* Takes memory of the device into the pool, as a block that is not live. Pre: there is room for its
 * span. */
static raffia_status take(struct sim_device *device, struct driver_pool *pool, size_t bytes,
                          struct sim_span **span_p)
{
    struct sim_pool_block *block = make_record(sizeof *block);
    if (!block)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    raffia_status status = sim_take_memory(device, bytes);
    char *start = NULL, *twin = NULL;
    if (!status) {
        status = map_block(device, bytes, &start, &twin);
        if (status)
            sim_give_memory(device, bytes);
    }
    if (status) {
        free(block);
        return status;
    }
    *block = (struct sim_pool_block){.pool = pool, .twin = twin};
    sim_spans_insert(&device->pool_blocks, start, bytes, block);
    pool->bytes += bytes;
    pool->blocks++;
    *span_p = sim_spans_exactly(&device->pool_blocks, start);
    return RAFFIA_OK;
}

static void disown(struct sim_op **op_p)
{
    if (*op_p)
        (*op_p)->block = NULL;
    *op_p = NULL;
}

/* Gives a block's memory back to the device, and with its last one the record of a pool that is
 * destroyed. */
static void release(struct sim_device *device, const struct sim_span *span)
{
    struct sim_pool_block *block = span->owner;
    struct driver_pool *pool = block->pool;
    const size_t bytes = span->bytes;
    void *start = (void *)span->start;
    disown(&block->allocating);
    disown(&block->freeing);
    if (block->free_op)
        sim_op_free(block->free_op);
    sim_spans_remove(&device->pool_blocks, start);
    sys_munmap(start, bytes);
    if (block->twin)
        sys_munmap(block->twin, bytes);
    free(block);
    sim_give_memory(device, bytes);
    pool->bytes -= bytes;
    if (--pool->blocks == 0 && pool->destroyed)
        free(pool);
}

/* Nobody's, and no free is under way for it. */
static bool is_idle(const struct sim_pool_block *block)
{
    return !block->live && !block->freeing;
}

/* Gives back idle blocks until no more than `keep` bytes are left, or no such block is. */
static void shrink(struct sim_device *device, struct driver_pool *pool, size_t keep)
{
    for (size_t i = device->pool_blocks.count; i-- > 0 && pool->bytes > keep;) {
        const struct sim_span *span = &device->pool_blocks.items[i];
        const struct sim_pool_block *block = span->owner;
        if (block->pool == pool && is_idle(block))
            release(device, span);
    }
}

void sim_pools_settle(struct sim_device *device)
{
    for (size_t i = 0; i < device->pools.count; i++) {
        struct driver_pool *pool = device->pools.items[i].owner;
        shrink(device, pool, pool->threshold);
    }
}

/* The smallest block of those that the stream may have now, or NULL. */
static struct sim_span *find_kept(struct sim_device *device, const struct driver_pool *pool,
                                  size_t bytes, uint64_t stream_id)
{
    struct sim_span *best = NULL;
    for (size_t i = 0; i < device->pool_blocks.count; i++) {
        struct sim_span *span = &device->pool_blocks.items[i];
        const struct sim_pool_block *block = span->owner;
        if (block->pool == pool && !block->live && span->bytes >= bytes &&
            (!block->freeing || block->freed_on == stream_id) &&
            (!best || span->bytes < best->bytes))
            best = span;
    }
    return best;
}

/* Cuts what is too much off an idle block, where there is memory for its record. */
static struct sim_span *cut(struct sim_device *device, struct sim_span *span, size_t bytes)
{
    const struct sim_pool_block *block = span->owner;
    struct sim_pool_block *rest = NULL;
    char *start = (char *)span->start;
    const size_t left = span->bytes - bytes;
    if (left && is_idle(block))
        rest = make_record(sizeof *rest);
    if (!rest)
        return span;
    *rest = (struct sim_pool_block){.pool = block->pool,
                                    .twin = block->twin ? block->twin + bytes : NULL};
    span->bytes = bytes;
    rest->pool->blocks++;
    sim_spans_insert(&device->pool_blocks, start + bytes, left, rest);
    return sim_spans_exactly(&device->pool_blocks, start);
}

/* ---- allocation ------------------------------------------------------------------------------ */

static raffia_status get_memory(struct sim_device *device, struct driver_pool *pool, size_t bytes,
                                uint64_t stream_id, struct sim_span **span_p)
{
    raffia_status status = sim_spans_reserve(&device->pool_blocks, 2);
    if (status)
        return status;
    struct sim_span *kept = find_kept(device, pool, bytes, stream_id);
    if (kept) {
        *span_p = cut(device, kept, bytes);
        return RAFFIA_OK;
    }
    status = take(device, pool, bytes, span_p);
    if (status != RAFFIA_ERROR_OUT_OF_MEMORY)
        return status;
    shrink(device, pool, 0);
    return take(device, pool, bytes, span_p);
}

static raffia_status alloc(struct sim_device *device, driver_pool handle, driver_stream stream_of,
                           size_t bytes, void **address_p)
{
    struct driver_pool *pool;
    struct sim_stream *stream;
    struct sim_span *span;
    size_t whole;
    if (!bytes)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "sim:%d: a block of 0 bytes is no block",
                          device->index);
    if (!core_align_up(bytes, SIM_BASE_PAGE, &whole))
        return core_error(RAFFIA_ERROR_OUT_OF_MEMORY, "sim:%d: no pool has %zu bytes",
                          device->index, bytes);
    raffia_status status = find_pool(device, handle, "pool_alloc", &pool);
    if (!status)
        status = find_stream(device, stream_of, "pool_alloc", &stream);
    if (status)
        return status;
    struct sim_op *allocating = sim_op_create_uncounted(SIM_OP_POOL_ALLOC);
    struct sim_op *freeing = allocating ? sim_op_create_uncounted(SIM_OP_POOL_FREE) : NULL;
    status = freeing ? get_memory(device, pool, whole, stream->id, &span)
                     : RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    if (status) {
        free(allocating);
        free(freeing);
        return status;
    }
    struct sim_pool_block *block = span->owner;
    disown(&block->allocating);
    disown(&block->freeing);
    block->live = true;
    block->bytes = bytes;
    block->allocating = allocating;
    block->free_op = freeing;
    allocating->block = freeing->block = block;
    *address_p = (void *)span->start;
    sim_stream_submit(stream, allocating);
    return RAFFIA_OK;
}

raffia_status sim_pool_alloc(int index, driver_pool pool, driver_stream stream, size_t bytes,
                             void **address_p)
{
    struct sim_device *device;
    raffia_status status = sim_enter_ordered(SIM_VERB_pool_alloc, index, &device);
    if (status)
        return status;
    status = alloc(device, pool, stream, bytes, address_p);
    sim_leave();
    return status;
}

static raffia_status deallocate(struct sim_device *device, driver_pool handle,
                                driver_stream stream_of, const void *address)
{
    struct driver_pool *pool;
    struct sim_stream *stream;
    raffia_status status = find_pool(device, handle, "pool_free", &pool);
    if (status)
        return status;
    const struct sim_span *span = sim_spans_exactly(&device->pool_blocks, address);
    struct sim_pool_block *block = span ? span->owner : NULL;
    if (!block || block->pool != pool)
        return sim_misuse(device, "pool_free at %p, where no block of the pool starts", address);
    if (!block->live)
        return sim_misuse(device, "pool_free at %p, which was freed before", address);
    status = find_stream(device, stream_of, "pool_free", &stream);
    if (status)
        return status;
    block->live = false;
    block->freed_on = stream->id;
    block->freeing = block->free_op;
    block->free_op = NULL;
    sim_stream_submit(stream, block->freeing);
    return RAFFIA_OK;
}

raffia_status sim_pool_free(int index, driver_pool pool, driver_stream stream, void *address)
{
    struct sim_device *device;
    raffia_status status = sim_enter_ordered(SIM_VERB_pool_free, index, &device);
    if (status)
        return status;
    status = deallocate(device, pool, stream, address);
    sim_leave();
    return status;
}

/* ---- what the streams come to ---------------------------------------------------------------- */

static const struct sim_span *span_of(const struct sim_device *device,
                                      const struct sim_pool_block *block)
{
    for (size_t i = 0; i < device->pool_blocks.count; i++)
        if (device->pool_blocks.items[i].owner == block)
            return &device->pool_blocks.items[i];
    return NULL;
}

void sim_pool_arrive(struct sim_device *device, struct sim_op *op)
{
    struct sim_pool_block *block = op->block;
    if (!block)
        return;
    if (block->allocating == op)
        block->allocating = NULL;
    if (block->freeing != op)
        return;
    const struct sim_span *span = span_of(device, block);
    block->freeing = NULL;
    assert(span);
    if (!device->poisoned && !device->abandoned)
        (void)!sim_check_quiet(device, (void *)span->start, block->bytes, "pool_free");
    if (block->pool->destroyed)
        release(device, span);
}

/* Work that was submitted before the allocation is of those who had the memory before. */
void sim_pools_check_begun(struct sim_device *device, const struct sim_op *op)
{
    for (size_t i = 0; i < 2 * op->piece_count; i++) {
        const struct driver_copy *piece = &op->pieces[i / 2];
        const void *at = i % 2 ? piece->source : piece->destination;
        const struct sim_span *span =
            at && piece->bytes ? sim_spans_at(&device->pool_blocks, at) : NULL;
        const struct sim_pool_block *block = span ? span->owner : NULL;
        if (block && block->allocating && op->sequence > block->allocating->sequence)
            (void)!sim_misuse(device,
                              "work touches %p before the stream of its pool_alloc got there: an "
                              "event must order it behind",
                              at);
    }
}

/* ---- pools ----------------------------------------------------------------------------------- */

raffia_status sim_pool_create(int index, const struct driver_pool_spec *spec, driver_pool *pool_p)
{
    struct sim_device *device;
    raffia_status status = sim_enter_ordered(SIM_VERB_pool_create, index, &device);
    if (status)
        return status;
    status = sim_spans_reserve(&device->pools, 1);
    struct driver_pool *pool = status ? NULL : make_record(sizeof *pool);
    if (pool) {
        *pool = (struct driver_pool){.threshold = spec->release_threshold};
        sim_spans_insert(&device->pools, pool, sizeof *pool, pool);
        *pool_p = pool;
    } else if (!status) {
        status = RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    }
    sim_leave();
    return status;
}

/* A block of the pool that is live, or whose free has not come but can; NULL if there is none. */
static const struct sim_span *find_block(const struct sim_device *device,
                                         const struct driver_pool *pool, bool live)
{
    for (size_t i = 0; i < device->pool_blocks.count; i++) {
        const struct sim_span *span = &device->pool_blocks.items[i];
        const struct sim_pool_block *block = span->owner;
        if (block->pool == pool &&
            (live ? block->live
                  : !block->live && block->freeing && sim_op_can_come(device, block->freeing)))
            return span;
    }
    return NULL;
}

static raffia_status destroy(struct sim_device *device, driver_pool handle)
{
    struct driver_pool *pool;
    raffia_status status = find_pool(device, handle, "pool_destroy", &pool);
    if (status)
        return status;
    const struct sim_span *live = find_block(device, pool, true);
    if (live)
        return sim_misuse(device, "pool_destroy of pool %p while the block at %p is live",
                          (void *)handle, (void *)live->start);
    sim_spans_remove(&device->pools, handle);
    /* As for streams that are closed: frees that can come are waited for, the others come later. */
    while (find_block(device, pool, false))
        pthread_cond_wait(&sim_changed, &sim_lock);
    shrink(device, pool, 0);
    if (pool->blocks)
        pool->destroyed = true;
    else
        free(pool);
    return RAFFIA_OK;
}

raffia_status sim_pool_destroy(int index, driver_pool pool)
{
    struct sim_device *device;
    raffia_status status = sim_enter_ordered(SIM_VERB_pool_destroy, index, &device);
    if (status)
        return status;
    status = destroy(device, pool);
    sim_leave();
    return status;
}

raffia_status sim_pool_trim(int index, driver_pool handle, size_t keep_bytes)
{
    struct sim_device *device;
    struct driver_pool *pool;
    raffia_status status = sim_enter_ordered(SIM_VERB_pool_trim, index, &device);
    if (status)
        return status;
    status = find_pool(device, handle, "pool_trim", &pool);
    if (!status)
        shrink(device, pool, keep_bytes);
    sim_leave();
    return status;
}

void sim_pools_clear(struct sim_device *device)
{
    for (size_t i = 0; i < device->pools.count; i++) {
        struct driver_pool *pool = device->pools.items[i].owner;
        if (pool->blocks)
            pool->destroyed = true; /* it goes with its last block */
        else
            free(pool);
    }
    while (device->pool_blocks.count)
        release(device, &device->pool_blocks.items[device->pool_blocks.count - 1]);
    sim_spans_clear(&device->pool_blocks);
    sim_spans_clear(&device->pools);
}
