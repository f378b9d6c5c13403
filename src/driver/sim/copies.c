/* Copies and fills. What they touch is checked when they are submitted and cannot go until they are
 * done. */
#include "core/error.h"
#include "driver/sim/memory.h"
#include "driver/sim/queue.h"
#include "driver/sim/verbs.h"

#include <string.h>

/* Takes the operation over: submits it, or where there are no streams runs it at once. */
static raffia_status submit(struct sim_device *device, driver_stream handle, const char *verb,
                            struct sim_op *op)
{
    if (!device->config.synchronous) {
        struct sim_stream *stream;
        raffia_status status = sim_stream_find_open(device, handle, verb, &stream);
        if (status) {
            sim_op_free(op);
            return status;
        }
        sim_stream_submit(stream, op);
        return RAFFIA_OK;
    }
    if (!handle)
        sim_op_execute(op);
    sim_op_free(op);
    return handle ? core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                               "sim:%d has no streams: %s takes NULL only", device->index, verb)
                  : RAFFIA_OK;
}

static raffia_status copy(struct sim_device *device, driver_stream handle, const char *verb,
                          const struct driver_copy *copies, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        raffia_status status =
            sim_check_touch(device, copies[i].destination, copies[i].bytes, true, verb);
        if (!status)
            status = sim_check_touch(device, copies[i].source, copies[i].bytes, false, verb);
        if (status)
            return status;
    }
    struct sim_op *op = sim_op_create(SIM_OP_COPY, count);
    if (!op)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    memcpy(op->pieces, copies, count * sizeof *copies);
    sim_op_real(op);
    return submit(device, handle, verb, op);
}

raffia_status sim_copy(int index, driver_stream handle, void *destination, const void *source,
                       size_t bytes)
{
    struct sim_device *device;
    raffia_status status = sim_enter(SIM_VERB_copy, index, NULL, &device);
    if (status)
        return status;
    status = copy(device, handle, "copy", &(struct driver_copy){destination, source, bytes}, 1);
    sim_leave();
    return status;
}

raffia_status sim_copy_batch(int index, driver_stream handle, const struct driver_copy *copies,
                             size_t count)
{
    struct sim_device *device;
    raffia_status status = sim_enter(SIM_VERB_copy_batch, index, NULL, &device);
    if (status)
        return status;
    if (count)
        status = copy(device, handle, "copy_batch", copies, count);
    sim_leave();
    return status;
}

static raffia_status fill(struct sim_device *device, driver_stream handle, void *destination,
                          unsigned char value, size_t bytes)
{
    raffia_status status = sim_check_touch(device, destination, bytes, true, "fill");
    if (status)
        return status;
    struct sim_op *op = sim_op_create(SIM_OP_FILL, 1);
    if (!op)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    op->value = value;
    op->pieces[0] = (struct driver_copy){destination, NULL, bytes};
    sim_op_real(op);
    return submit(device, handle, "fill", op);
}

raffia_status sim_fill(int index, driver_stream handle, void *destination, unsigned char value,
                       size_t bytes)
{
    struct sim_device *device;
    raffia_status status = sim_enter(SIM_VERB_fill, index, NULL, &device);
    if (status)
        return status;
    status = fill(device, handle, destination, value, bytes);
    sim_leave();
    return status;
}

static void look(const struct sim_device *device, const void *at, struct driver_memory *memory)
{
    const struct {
        const struct sim_spans *spans;
        enum driver_memory_kind kind;
    } places[] = {
        {&device->mappings, DRIVER_MEMORY_DEVICE},
        {&device->blocks, DRIVER_MEMORY_DEVICE},
        {&device->registrations, DRIVER_MEMORY_PINNED},
        {&device->host_blocks, DRIVER_MEMORY_PINNED},
    };
    *memory = (struct driver_memory){0};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const struct sim_span *span = sim_spans_at(places[i].spans, at);
        if (span)
            *memory = (struct driver_memory){places[i].kind, span->start, span->bytes};
    }
    const struct sim_span *pooled = sim_spans_at(&device->pool_blocks, at);
    const struct sim_pool_block *block = pooled ? pooled->owner : NULL;
    if (block && block->live && (uintptr_t)at - pooled->start < block->bytes)
        *memory = (struct driver_memory){DRIVER_MEMORY_DEVICE, pooled->start, block->bytes};
}

raffia_status sim_find_memory(int index, const void *at, struct driver_memory *memory)
{
    struct sim_device *device;
    raffia_status status = sim_enter_ordered(SIM_VERB_find_memory, index, &device);
    if (status)
        return status;
    look(device, at, memory);
    sim_leave();
    return RAFFIA_OK;
}
