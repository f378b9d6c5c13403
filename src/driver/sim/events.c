/* Events. An event points at the mark of its last recording; recording it again makes a new one. */
#include "core/memory.h"
#include "driver/sim/queue.h"
#include "driver/sim/verbs.h"

struct driver_event {
    struct sim_mark *mark; /* NULL: never recorded */
};

static raffia_status find(struct sim_device *device, driver_event handle, const char *verb)
{
    if (sim_spans_exactly(&device->events, handle))
        return RAFFIA_OK;
    return sim_misuse(device, "%s on event %p, which does not exist or was destroyed", verb,
                      (void *)handle);
}

static raffia_status create(struct sim_device *device, driver_event *event_p)
{
    raffia_status status = sim_spans_reserve(&device->events, 1);
    if (status)
        return status;
    struct driver_event *event = core_calloc(1, sizeof *event);
    if (!event)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    sim_spans_insert(&device->events, event, sizeof *event, event);
    *event_p = event;
    return RAFFIA_OK;
}

raffia_status sim_event_create(int index, driver_event *event_p)
{
    struct sim_device *device;
    raffia_status status = sim_enter_ordered(SIM_VERB_event_create, index, &device);
    if (status)
        return status;
    status = create(device, event_p);
    sim_leave();
    return status;
}

raffia_status sim_event_destroy(int index, driver_event event)
{
    struct sim_device *device;
    raffia_status status = sim_enter_ordered(SIM_VERB_event_destroy, index, &device);
    if (status)
        return status;
    status = find(device, event, "event_destroy");
    if (!status) {
        sim_spans_remove(&device->events, event);
        sim_mark_release(event->mark);
        core_free(event);
    }
    sim_leave();
    return status;
}

static raffia_status record(struct sim_device *device, driver_event event, driver_stream handle)
{
    struct sim_stream *stream;
    raffia_status status = find(device, event, "event_record");
    if (!status)
        status = sim_stream_find_open(device, handle, "event_record", &stream);
    if (status)
        return status;
    struct sim_op *op = sim_op_create(SIM_OP_MARK, 0);
    if (!op)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    op->mark = sim_mark_create();
    if (!op->mark) {
        sim_op_free(op);
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    }
    op->mark->captured = stream->capturing;
    sim_mark_release(event->mark);
    event->mark = op->mark;
    sim_mark_retain(event->mark);
    sim_stream_submit(stream, op);
    return RAFFIA_OK;
}

raffia_status sim_event_record(int index, driver_event event, driver_stream handle)
{
    struct sim_device *device;
    raffia_status status = sim_enter_ordered(SIM_VERB_event_record, index, &device);
    if (status)
        return status;
    status = record(device, event, handle);
    sim_leave();
    return status;
}

/* The mark to ask, NULL if the event was never recorded. */
static raffia_status find_mark(struct sim_device *device, driver_event event, const char *verb,
                               struct sim_mark **mark_p)
{
    raffia_status status = find(device, event, verb);
    if (status)
        return status;
    if (event->mark && event->mark->captured)
        return sim_misuse(device, "%s on event %p, which was recorded while its stream captured",
                          verb, (void *)event);
    *mark_p = event->mark;
    return RAFFIA_OK;
}

raffia_status sim_event_done(int index, driver_event event, bool *done_p)
{
    struct sim_device *device;
    struct sim_mark *mark = NULL;
    raffia_status status = sim_enter_ordered(SIM_VERB_event_done, index, &device);
    if (status)
        return status;
    status = find_mark(device, event, "event_done", &mark);
    if (!status)
        *done_p = !mark || mark->done;
    sim_leave();
    return status;
}

raffia_status sim_event_wait(int index, driver_event event)
{
    struct sim_device *device;
    struct sim_mark *mark = NULL;
    raffia_status status = sim_enter_ordered(SIM_VERB_event_wait, index, &device);
    if (status)
        return status;
    status = find_mark(device, event, "event_wait", &mark);
    if (!status && mark) {
        sim_mark_retain(mark);
        while (!mark->done && !device->poisoned)
            pthread_cond_wait(&sim_changed, &sim_lock);
        sim_mark_release(mark);
        sim_pools_settle(device);
        if (device->poisoned)
            status = sim_poisoned_error(device, SIM_VERB_event_wait);
    }
    sim_leave();
    return status;
}

static raffia_status wait_on_stream(struct sim_device *device, driver_stream handle,
                                    driver_event event)
{
    struct sim_stream *stream;
    raffia_status status = find(device, event, "stream_wait_event");
    if (!status)
        status = sim_stream_find_open(device, handle, "stream_wait_event", &stream);
    if (status || !event->mark)
        return status;
    if (event->mark->captured && !stream->capturing)
        return sim_misuse(device,
                          "stream_wait_event for event %p, which was recorded while its stream "
                          "captured",
                          (void *)event);
    struct sim_op *op = sim_op_create(SIM_OP_WAIT, 0);
    if (!op)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    op->mark = event->mark;
    sim_mark_retain(op->mark);
    sim_stream_submit(stream, op);
    return RAFFIA_OK;
}

raffia_status sim_stream_wait_event(int index, driver_stream handle, driver_event event)
{
    struct sim_device *device;
    raffia_status status = sim_enter_ordered(SIM_VERB_stream_wait_event, index, &device);
    if (status)
        return status;
    status = wait_on_stream(device, handle, event);
    sim_leave();
    return status;
}

void sim_events_clear(struct sim_device *device)
{
    for (size_t i = 0; i < device->events.count; i++) {
        struct driver_event *event = device->events.items[i].owner;
        sim_mark_release(event->mark);
        core_free(event);
    }
    sim_spans_clear(&device->events);
}
