/* Which memory an operation may touch, and which memory operations still touch. */
#include "core/checked.h"
#include "driver/sim/memory.h"
#include "driver/sim/queue.h"

static raffia_status check_mappings(struct sim_device *device, const struct sim_device *owner,
                                    const void *at, size_t bytes, bool write, const char *verb)
{
    if (!sim_spans_cover(&owner->mappings, at, bytes))
        return sim_misuse(device, "%s touches %zu bytes at %p, which are not all mapped", verb,
                          bytes, at);
    if (owner == device)
        return RAFFIA_OK;
    uintptr_t end = (uintptr_t)at + bytes;
    for (const struct sim_span *span = sim_spans_first(&owner->mappings, at, bytes);
         span < owner->mappings.items + owner->mappings.count && span->start < end; span++) {
        const struct sim_mapping *mapping = span->owner;
        unsigned allowed = write ? mapping->writers : mapping->readers;
        if (!(allowed & 1u << device->index))
            return sim_misuse(device, "%s %s %zu bytes at %p of sim:%d, which gave it no access",
                              verb, write ? "writes" : "reads", bytes, at, owner->index);
    }
    return RAFFIA_OK;
}

static raffia_status check_pool_block(struct sim_device *device, const struct sim_span *span,
                                      const void *at, size_t bytes, const char *verb)
{
    const struct sim_pool_block *block = span->owner;
    const struct sim_span used = {span->start, block->bytes, NULL};
    if (!block->live)
        return sim_misuse(device, "%s of %zu bytes at %p touches memory that was freed to its pool",
                          verb, bytes, at);
    if (!sim_span_contains(&used, at, bytes))
        return sim_misuse(device, "%s of %zu bytes at %p crosses the edge of a pool's block of %zu",
                          verb, bytes, at, block->bytes);
    return RAFFIA_OK;
}

/* The part of the check that concerns what one device owns. */
static raffia_status check_owner(struct sim_device *device, const struct sim_device *owner,
                                 const void *at, size_t bytes, bool write, const char *verb)
{
    const struct sim_span *span = sim_spans_first(&owner->ranges, at, bytes);
    if (span) {
        if (!sim_span_contains(span, at, bytes))
            return sim_misuse(device, "%s of %zu bytes at %p crosses the edge of a reserved range",
                              verb, bytes, at);
        return check_mappings(device, owner, at, bytes, write, verb);
    }
    span = sim_spans_first(&owner->blocks, at, bytes);
    if (span && !sim_span_contains(span, at, bytes))
        return sim_misuse(device, "%s of %zu bytes at %p crosses the edge of a block of %zu", verb,
                          bytes, at, span->bytes);
    span = sim_spans_first(&owner->pool_blocks, at, bytes);
    if (span)
        return check_pool_block(device, span, at, bytes, verb);
    /* A real driver looks up the memory of a copy by its start and refuses what goes beyond. */
    span = sim_spans_first(&owner->registrations, at, bytes);
    if (span && owner == device && !sim_span_contains(span, at, bytes))
        return sim_misuse(device, "%s of %zu bytes at %p crosses the edge of a registration", verb,
                          bytes, at);
    if (sim_spans_first(&owner->graves, at, bytes))
        return sim_misuse(device, "%s of %zu bytes at %p touches memory that was freed", verb,
                          bytes, at);
    return RAFFIA_OK;
}

raffia_status sim_check_touch(struct sim_device *device, const void *at, size_t bytes, bool write,
                              const char *verb)
{
    if (!bytes)
        return RAFFIA_OK;
    uintptr_t end;
    if (!at || !core_add((uintptr_t)at, bytes, &end))
        return sim_misuse(device, "%s of %zu bytes at %p, which is no memory", verb, bytes, at);
    raffia_status status = RAFFIA_OK;
    for (int i = 0; i < SIM_DEVICES_MAX && !status; i++)
        status = check_owner(device, &sim_devices[i], at, bytes, write, verb);
    return status;
}

bool sim_is_device_memory(const void *at)
{
    for (int i = 0; i < SIM_DEVICES_MAX; i++)
        if (sim_spans_at(&sim_devices[i].ranges, at) || sim_spans_at(&sim_devices[i].blocks, at) ||
            sim_spans_at(&sim_devices[i].graves, at) ||
            sim_spans_at(&sim_devices[i].pool_blocks, at))
            return true;
    return false;
}

static void *twin_address(const struct sim_spans *spans, const void *at)
{
    const struct sim_span *span = sim_spans_at(spans, at);
    return span && span->owner ? (char *)span->owner + ((uintptr_t)at - span->start) : NULL;
}

static void *pool_twin_address(const struct sim_spans *spans, const void *at)
{
    const struct sim_span *span = sim_spans_at(spans, at);
    const struct sim_pool_block *block = span ? span->owner : NULL;
    return block && block->twin ? block->twin + ((uintptr_t)at - span->start) : NULL;
}

void *sim_real_address(const void *at)
{
    for (int i = 0; at && i < SIM_DEVICES_MAX; i++) {
        void *real = twin_address(&sim_devices[i].ranges, at);
        if (!real)
            real = twin_address(&sim_devices[i].blocks, at);
        if (!real)
            real = pool_twin_address(&sim_devices[i].pool_blocks, at);
        if (real)
            return real;
    }
    return (void *)(uintptr_t)at;
}

static bool overlaps(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
    uintptr_t a_start = (uintptr_t)a, b_start = (uintptr_t)b;
    return a && b && a_start < b_start + b_bytes && b_start < a_start + a_bytes;
}

static bool op_touches(const struct sim_op *op, const void *at, size_t bytes)
{
    for (size_t i = 0; i < op->piece_count; i++) {
        const struct driver_copy *piece = &op->pieces[i];
        if (overlaps(piece->destination, piece->bytes, at, bytes) ||
            overlaps(piece->source, piece->bytes, at, bytes))
            return true;
    }
    return false;
}

raffia_status sim_check_quiet(struct sim_device *device, const void *at, size_t bytes,
                              const char *verb)
{
    for (int i = 0; i < SIM_DEVICES_MAX; i++)
        for (const struct sim_stream *stream = sim_devices[i].all; stream; stream = stream->next)
            for (const struct sim_op *op = stream->first; op; op = op->next)
                if (op_touches(op, at, bytes))
                    return sim_misuse(device,
                                      "%s at %p before stream %llu of sim:%d got there: work "
                                      "submitted to it still uses the memory",
                                      verb, at, (unsigned long long)stream->id, i);
    return RAFFIA_OK;
}
