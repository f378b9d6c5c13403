#include "driver/sim/queue.h"

#include "core/checked.h"
#include "core/error.h"
#include "core/fault.h"
#include "core/memory.h"
#include "core/sys.h"
#include "driver/sim/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Never reset: an id is not given twice in the life of the process. Guarded by the lock. */
static uint64_t streams_made;

struct sim_mark *sim_mark_create(void)
{
    struct sim_mark *mark = core_calloc(1, sizeof *mark);
    if (mark)
        mark->references = 1;
    return mark;
}

void sim_mark_retain(struct sim_mark *mark)
{
    mark->references++;
}

void sim_mark_release(struct sim_mark *mark)
{
    if (mark && --mark->references == 0)
        core_free(mark);
}

struct sim_op *sim_op_create(enum sim_op_kind kind, size_t piece_count)
{
    size_t bytes;
    if (!core_multiply(piece_count, 2 * sizeof(struct driver_copy), &bytes) ||
        !core_add(bytes, sizeof(struct sim_op), &bytes))
        bytes = SIZE_MAX;
    struct sim_op *op = core_calloc(1, bytes);
    if (!op)
        return NULL;
    op->kind = kind;
    op->piece_count = piece_count;
    return op;
}

struct sim_op *sim_op_create_uncounted(enum sim_op_kind kind)
{
    struct sim_op *op = core_fault("sim.calloc") ? NULL : calloc(1, sizeof *op);
    if (!op) {
        core_error(RAFFIA_ERROR_OUT_OF_HOST_MEMORY, "sim: cannot allocate an operation");
        return NULL;
    }
    op->kind = kind;
    op->is_uncounted = true;
    return op;
}

void sim_op_free(struct sim_op *op)
{
    sim_mark_release(op->mark);
    if (op->is_uncounted)
        free(op);
    else
        core_free(op);
}

static void run_kernel(struct sim_op *op)
{
    void *arguments[SIM_ARGUMENTS_MAX];
    for (unsigned i = 0; i < SIM_ARGUMENTS_MAX; i++)
        arguments[i] = &op->arguments[i];
    for (unsigned i = 0; i < op->threads; i++)
        op->function(arguments, i);
}

void sim_op_real(struct sim_op *op)
{
    for (size_t i = 0; i < op->piece_count; i++)
        op->pieces[op->piece_count + i] =
            (struct driver_copy){sim_real_address(op->pieces[i].destination),
                                 sim_real_address(op->pieces[i].source), op->pieces[i].bytes};
}

void sim_op_execute(struct sim_op *op)
{
    const struct driver_copy *real = op->pieces + op->piece_count;
    switch (op->kind) {
    case SIM_OP_COPY:
        for (size_t i = 0; i < op->piece_count; i++)
            if (real[i].bytes)
                memmove(real[i].destination, real[i].source, real[i].bytes);
        break;
    case SIM_OP_FILL:
        if (real->bytes)
            memset(real->destination, op->value, real->bytes);
        break;
    case SIM_OP_LAUNCH:
        run_kernel(op);
        break;
    case SIM_OP_DELAY:
        sim_pause(op->microseconds);
        break;
    case SIM_OP_MARK:
    case SIM_OP_WAIT:
    case SIM_OP_POOL_ALLOC:
    case SIM_OP_POOL_FREE:
        break;
    }
}

/* Whether nothing that the default stream's rule puts before the operation is left. */
static bool its_turn(const struct sim_stream *stream, const struct sim_op *op)
{
    const struct sim_device *device = stream->device;
    for (const struct sim_stream *other = device->all; other; other = other->next) {
        bool ordered = stream == device->default_stream || other == device->default_stream;
        if (ordered && other != stream && other->first && other->first->sequence < op->sequence)
            return false;
    }
    return true;
}

static bool drops_work(const struct sim_device *device)
{
    return device->abandoned || device->poisoned;
}

static bool can_begin(const struct sim_stream *stream)
{
    const struct sim_op *op = stream->first;
    if (!op)
        return false;
    if (drops_work(stream->device))
        return true;
    if (stream->held || !its_turn(stream, op))
        return false;
    return op->kind != SIM_OP_WAIT || op->mark->done;
}

bool sim_op_can_come(const struct sim_device *device, const struct sim_op *op)
{
    for (const struct sim_stream *stream = device->all; stream; stream = stream->next)
        for (const struct sim_op *queued = stream->first; queued; queued = queued->next)
            if (queued == op)
                return stream->running || can_begin(stream);
    return false;
}

static void unlink_stream(struct sim_stream *stream)
{
    struct sim_stream **place = &stream->device->all;
    while (*place != stream)
        place = &(*place)->next;
    *place = stream->next;
}

/* Runs the first operation, which may begin, without the lock. */
static void run_first(struct sim_stream *stream)
{
    struct sim_op *op = stream->first;
    stream->running = true;
    if (!drops_work(stream->device)) {
        sim_pools_check_begun(stream->device, op);
        sim_leave();
        sim_op_execute(op);
        sim_acquire();
    }
    stream->running = false;
    stream->first = op->next;
    if (op->kind == SIM_OP_MARK)
        op->mark->done = true;
    sim_pool_arrive(stream->device, op);
    sim_op_free(op);
    pthread_cond_broadcast(&sim_changed);
}

static void *work(void *argument)
{
    struct sim_stream *stream = argument;
    sim_acquire();
    while (stream->first || !stream->closing) {
        if (can_begin(stream))
            run_first(stream);
        else
            pthread_cond_wait(&sim_changed, &sim_lock);
    }
    if (stream->detached) {
        unlink_stream(stream);
        free(stream);
        pthread_cond_broadcast(&sim_changed);
    }
    sim_leave();
    return NULL;
}

raffia_status sim_stream_start(struct sim_device *device, struct sim_stream **stream_p)
{
    struct sim_stream *stream = core_fault("sim.calloc") ? NULL : calloc(1, sizeof *stream);
    if (!stream)
        return core_error(RAFFIA_ERROR_OUT_OF_HOST_MEMORY,
                          "sim:%d: cannot allocate the record of a stream", device->index);
    stream->device = device;
    stream->id = ++streams_made;
    int error_number = sys_thread_create(&stream->worker, work, stream);
    if (error_number) {
        free(stream);
        return core_error_errno(RAFFIA_ERROR_LIMIT, error_number,
                                "sim:%d: cannot start the thread of a stream", device->index);
    }
    stream->next = device->all;
    device->all = stream;
    *stream_p = stream;
    return RAFFIA_OK;
}

static void free_list(struct sim_op *op)
{
    while (op) {
        struct sim_op *next = op->next;
        sim_op_free(op);
        op = next;
    }
}

/* Pre: the worker has nothing left to do, or drops it. */
static void join_and_free(struct sim_stream *stream)
{
    sim_leave();
    pthread_join(stream->worker, NULL);
    sim_acquire();
    unlink_stream(stream);
    free(stream);
}

void sim_stream_close(struct sim_stream *stream)
{
    free_list(stream->record);
    stream->record = NULL;
    while (stream->running || can_begin(stream))
        pthread_cond_wait(&sim_changed, &sim_lock);
    stream->closing = true;
    pthread_cond_broadcast(&sim_changed);
    if (!stream->first) {
        join_and_free(stream);
    } else {
        stream->detached = true;
        pthread_detach(stream->worker);
    }
}

void sim_streams_clear(struct sim_device *device)
{
    device->abandoned = true;
    pthread_cond_broadcast(&sim_changed);
    for (int i = 0; i < SIM_STREAMS_MAX; i++) {
        if (device->slots[i])
            sim_stream_close(device->slots[i]);
        device->slots[i] = NULL;
    }
    if (device->default_stream)
        sim_stream_close(device->default_stream);
    device->default_stream = NULL;
    while (device->all)
        pthread_cond_wait(&sim_changed, &sim_lock);
}

raffia_status sim_stream_find(struct sim_device *device, driver_stream handle, const char *verb,
                              struct sim_stream **stream_p)
{
    if (!handle) {
        raffia_status status = RAFFIA_OK;
        if (!device->default_stream)
            status = sim_stream_start(device, &device->default_stream);
        if (!status)
            *stream_p = device->default_stream;
        return status;
    }
    for (int i = 0; i < SIM_STREAMS_MAX; i++)
        if (handle == &device->slots[i] && device->slots[i]) {
            *stream_p = device->slots[i];
            return RAFFIA_OK;
        }
    return sim_misuse(device, "%s on stream %p, which does not exist or was destroyed", verb,
                      handle);
}

raffia_status sim_stream_find_open(struct sim_device *device, driver_stream handle,
                                   const char *verb, struct sim_stream **stream_p)
{
    struct sim_stream *stream;
    raffia_status status = sim_stream_find(device, handle, verb, &stream);
    if (status)
        return status;
    if (stream->retired)
        return sim_misuse(device, "%s on stream %llu, which was retired", verb,
                          (unsigned long long)stream->id);
    *stream_p = stream;
    return RAFFIA_OK;
}

static void append(struct sim_op **first, struct sim_op **last, struct sim_op *op)
{
    if (*first)
        (*last)->next = op;
    else
        *first = op;
    *last = op;
}

void sim_stream_enqueue(struct sim_stream *stream, struct sim_op *op)
{
    op->sequence = stream->device->next_sequence++;
    op->next = NULL;
    append(&stream->first, &stream->last, op);
    pthread_cond_broadcast(&sim_changed);
}

void sim_stream_submit(struct sim_stream *stream, struct sim_op *op)
{
    assert(!op->next);
    if (stream->capturing)
        append(&stream->record, &stream->record_last, op);
    else
        sim_stream_enqueue(stream, op);
}
