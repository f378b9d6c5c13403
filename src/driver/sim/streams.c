/* The verbs of streams, and what tests do with streams. */
#include "core/error.h"
#include "driver/sim/memory.h"
#include "driver/sim/queue.h"
#include "driver/sim/verbs.h"

static raffia_status create(struct sim_device *device, driver_stream *stream_p)
{
    int slot = 0;
    while (slot < SIM_STREAMS_MAX && device->slots[slot])
        slot++;
    if (slot == SIM_STREAMS_MAX)
        return core_error(RAFFIA_ERROR_LIMIT, "sim:%d has %d streams and takes no more",
                          device->index, SIM_STREAMS_MAX);
    raffia_status status = sim_stream_start(device, &device->slots[slot]);
    if (!status)
        *stream_p = &device->slots[slot];
    return status;
}

raffia_status sim_stream_create(int index, driver_stream *stream_p)
{
    struct sim_device *device;
    raffia_status status = sim_enter_ordered(SIM_VERB_stream_create, index, &device);
    if (status)
        return status;
    status = create(device, stream_p);
    sim_leave();
    return status;
}

static raffia_status destroy(struct sim_device *device, driver_stream handle)
{
    struct sim_stream *stream;
    if (!handle)
        return sim_misuse(device, "stream_destroy of the default stream");
    raffia_status status = sim_stream_find(device, handle, "stream_destroy", &stream);
    if (status)
        return status;
    if (stream->waiters)
        return sim_misuse(device, "stream_destroy of stream %llu while a thread waits for it",
                          (unsigned long long)stream->id);
    *(struct sim_stream **)handle = NULL;
    sim_stream_close(stream);
    return RAFFIA_OK;
}

raffia_status sim_stream_destroy(int index, driver_stream handle)
{
    struct sim_device *device;
    raffia_status status = sim_enter_ordered(SIM_VERB_stream_destroy, index, &device);
    if (status)
        return status;
    status = destroy(device, handle);
    sim_leave();
    return status;
}

/* Begins a verb that a device without streams answers too, for NULL, as a stream that is always
 * idle. On success the lock is held, and *stream_p is NULL for that idle one. */
static raffia_status enter_any(enum sim_verb verb, int index, driver_stream handle,
                               const char *name, struct sim_stream **stream_p)
{
    struct sim_device *device;
    struct sim_stream *stream = NULL;
    raffia_status status = sim_enter(verb, index, NULL, &device);
    if (status)
        return status;
    if (!device->config.synchronous)
        status = sim_stream_find(device, handle, name, &stream);
    else if (handle)
        status = core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                            "sim:%d has no streams: %s takes NULL only", index, name);
    if (status)
        sim_leave();
    else
        *stream_p = stream;
    return status;
}

raffia_status sim_stream_id(int index, driver_stream handle, uint64_t *id_p)
{
    struct sim_stream *stream = NULL;
    raffia_status status = enter_any(SIM_VERB_stream_id, index, handle, "stream_id", &stream);
    if (status)
        return status;
    *id_p = stream ? stream->id : 0;
    sim_leave();
    return RAFFIA_OK;
}

raffia_status sim_stream_is_capturing(int index, driver_stream handle, bool *capturing_p)
{
    struct sim_stream *stream = NULL;
    raffia_status status =
        enter_any(SIM_VERB_stream_is_capturing, index, handle, "stream_is_capturing", &stream);
    if (status)
        return status;
    *capturing_p = stream && stream->capturing;
    sim_leave();
    return RAFFIA_OK;
}

/* The default stream cannot be destroyed, so retiring it means nothing. */
raffia_status sim_stream_retire(int index, driver_stream handle)
{
    struct sim_stream *stream = NULL;
    raffia_status status =
        enter_any(SIM_VERB_stream_retire, index, handle, "stream_retire", &stream);
    if (status)
        return status;
    if (handle)
        stream->retired = true;
    sim_leave();
    return RAFFIA_OK;
}

/* Whether work submitted before `end` is left: of the stream, or of the whole device for the
 * default stream, which stands behind all others. */
static bool has_work_before(const struct sim_device *device, const struct sim_stream *stream,
                            uint64_t end)
{
    for (const struct sim_stream *other = device->all; other; other = other->next)
        if ((other == stream || stream == device->default_stream) && other->first &&
            other->first->sequence < end)
            return true;
    return false;
}

static raffia_status wait_for(struct sim_stream *stream)
{
    struct sim_device *device = stream->device;
    if (stream->capturing)
        return sim_misuse(device, "stream_wait on stream %llu, which is capturing",
                          (unsigned long long)stream->id);
    uint64_t end = device->next_sequence;
    stream->waiters++;
    while (!device->poisoned && has_work_before(device, stream, end))
        pthread_cond_wait(&sim_changed, &sim_lock);
    stream->waiters--;
    sim_pools_settle(device);
    return device->poisoned ? sim_poisoned_error(device, SIM_VERB_stream_wait) : RAFFIA_OK;
}

raffia_status sim_stream_wait(int index, driver_stream handle)
{
    struct sim_stream *stream = NULL;
    raffia_status status = enter_any(SIM_VERB_stream_wait, index, handle, "stream_wait", &stream);
    if (status)
        return status;
    if (stream)
        status = wait_for(stream);
    sim_leave();
    return status;
}

static bool is_capturing(const struct sim_device *device)
{
    for (const struct sim_stream *stream = device->all; stream; stream = stream->next)
        if (stream->capturing)
            return true;
    return false;
}

static bool has_any_before(const struct sim_device *device, uint64_t end)
{
    for (const struct sim_stream *stream = device->all; stream; stream = stream->next)
        if (stream->first && stream->first->sequence < end)
            return true;
    return false;
}

raffia_status sim_device_wait(int index)
{
    struct sim_device *device;
    raffia_status status = sim_enter(SIM_VERB_device_wait, index, NULL, &device);
    if (status)
        return status;
    if (is_capturing(device))
        status = core_error(RAFFIA_ERROR_BUSY,
                            "sim:%d: device_wait while a stream is being captured", index);
    const uint64_t end = device->next_sequence;
    while (!status && has_any_before(device, end)) {
        pthread_cond_wait(&sim_changed, &sim_lock);
        if (device->poisoned)
            status = sim_poisoned_error(device, SIM_VERB_device_wait);
    }
    if (!status)
        sim_pools_settle(device);
    sim_leave();
    return status;
}

enum driver_default_stream sim_default_stream(int index)
{
    if (sim_is_forked())
        return DRIVER_DEFAULT_STREAM_NONE;
    sim_acquire();
    bool ordered = index >= 0 && index < sim_device_count && !sim_devices[index].config.synchronous;
    sim_leave();
    return ordered ? DRIVER_DEFAULT_STREAM_LEGACY : DRIVER_DEFAULT_STREAM_NONE;
}

/* Begins a call of a test on a stream; on success the lock is held. Such calls are no verbs: they
 * are neither counted nor failed. */
static raffia_status enter_stream(int index, driver_stream handle, const char *call,
                                  struct sim_stream **stream_p)
{
    if (sim_is_forked())
        return core_error(RAFFIA_ERROR_FORKED, "sim: %s in a forked child", call);
    sim_acquire();
    raffia_status status;
    if (index < 0 || index >= sim_device_count)
        status = core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "sim: %s on device %d", call, index);
    else if (sim_devices[index].config.synchronous)
        status = driver_unsupported(sim_driver.name, call);
    else
        status = sim_stream_find(&sim_devices[index], handle, call, stream_p);
    if (status)
        sim_leave();
    return status;
}

static raffia_status set_held(int index, driver_stream handle, bool held)
{
    struct sim_stream *stream;
    raffia_status status = enter_stream(index, handle, "sim_stream_hold", &stream);
    if (status)
        return status;
    stream->held = held;
    pthread_cond_broadcast(&sim_changed);
    sim_leave();
    return RAFFIA_OK;
}

raffia_status sim_stream_hold(int index, driver_stream handle)
{
    return set_held(index, handle, true);
}

raffia_status sim_stream_resume(int index, driver_stream handle)
{
    return set_held(index, handle, false);
}

raffia_status sim_stream_delay(int index, driver_stream handle, unsigned microseconds)
{
    struct sim_stream *stream;
    raffia_status status = enter_stream(index, handle, "sim_stream_delay", &stream);
    if (status)
        return status;
    struct sim_op *op = sim_op_create(SIM_OP_DELAY, 0);
    if (op) {
        op->microseconds = microseconds;
        sim_stream_submit(stream, op);
    }
    sim_leave();
    return op ? RAFFIA_OK : RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
}

raffia_status sim_stream_pending(int index, driver_stream handle, size_t *count_p)
{
    struct sim_stream *stream;
    raffia_status status = enter_stream(index, handle, "sim_stream_pending", &stream);
    if (status)
        return status;
    size_t count = 0;
    for (const struct sim_op *op = stream->first; op; op = op->next)
        count++;
    sim_leave();
    *count_p = count;
    return RAFFIA_OK;
}

raffia_status sim_stream_capture_begin(int index, driver_stream handle)
{
    struct sim_stream *stream;
    raffia_status status = enter_stream(index, handle, "sim_stream_capture_begin", &stream);
    if (status)
        return status;
    if (stream->capturing)
        status = sim_misuse(stream->device, "a capture begins on stream %llu, which is capturing",
                            (unsigned long long)stream->id);
    stream->capturing = true;
    sim_leave();
    return status;
}

/* Memory may have gone since the operation was recorded. */
static raffia_status recheck(struct sim_device *device, const struct sim_op *op)
{
    raffia_status status = RAFFIA_OK;
    for (size_t i = 0; i < op->piece_count && !status; i++) {
        const struct driver_copy *piece = &op->pieces[i];
        status = sim_check_touch(device, piece->destination, piece->bytes, true, "a graph");
        if (!status && piece->source)
            status = sim_check_touch(device, piece->source, piece->bytes, false, "a graph");
    }
    return status;
}

raffia_status sim_stream_capture_end(int index, driver_stream handle, bool submit)
{
    struct sim_stream *stream;
    raffia_status status = enter_stream(index, handle, "sim_stream_capture_end", &stream);
    if (status)
        return status;
    if (!stream->capturing)
        status = sim_misuse(stream->device, "a capture ends on stream %llu, which has none",
                            (unsigned long long)stream->id);
    stream->capturing = false;
    while (stream->record) {
        struct sim_op *op = stream->record;
        stream->record = op->next;
        if (submit && !status)
            status = recheck(stream->device, op);
        if (submit && !status) {
            if (op->kind == SIM_OP_MARK)
                op->mark->captured = false;
            sim_stream_enqueue(stream, op);
        } else {
            sim_op_free(op);
        }
    }
    sim_leave();
    return status;
}
