#include "resource/order.h"

#include "core/error.h"
#include "core/log.h"

void resource_order_init(struct resource_order *order, raffia_resource_ref upstream)
{
    struct core_error_record before;
    core_error_save(&before);
    *order = (struct resource_order){0};
    if (resource_find_device(upstream, &order->device))
        core_error_restore(&before);
    else
        order->asynchronous = order->device.driver->capabilities & DRIVER_IS_ASYNCHRONOUS;
}

raffia_status resource_order_check(const struct resource_order *order, raffia_stream stream)
{
    if (!stream || order->asynchronous)
        return RAFFIA_OK;
    if (order->device.driver)
        return resource_check_stream(order->device, stream);
    return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                      "a stream was given, but the resource below does not say on which device: "
                      "give its table a `device` function, or pass NULL");
}

raffia_status resource_order_id(const struct resource_order *order, raffia_stream stream,
                                uint64_t *id_p)
{
    const struct driver_device device = order->device;
    if (order->asynchronous)
        return device.driver->stream_id(device.index, stream, id_p);
    *id_p = 0;
    return resource_order_check(order, stream);
}

static raffia_status refuse_capture(const struct resource_order *order, raffia_stream stream)
{
    bool capturing;
    raffia_status status =
        order->device.driver->stream_is_capturing(order->device.index, stream, &capturing);
    if (status || !capturing)
        return status;
    return core_error(RAFFIA_ERROR_BUSY, "a block cannot be freed on a stream that is being "
                                         "captured: free it when the capture has ended");
}

raffia_status resource_order_mark(const struct resource_order *order, raffia_stream stream,
                                  struct resource_mark *mark)
{
    const struct driver_device device = order->device;
    uint64_t id;
    if (!order->asynchronous)
        return resource_order_check(order, stream);
    raffia_status status = refuse_capture(order, stream);
    if (!status)
        status = device.driver->stream_id(device.index, stream, &id);
    if (!status && !mark->event)
        status = device.driver->event_create(device.index, &mark->event);
    if (!status)
        status = device.driver->event_record(device.index, mark->event, stream);
    if (status)
        return status;
    mark->stream_id = id;
    mark->pending = true;
    return RAFFIA_OK;
}

raffia_status resource_order_mark_birth(const struct resource_order *order, raffia_stream stream,
                                        struct resource_mark *mark)
{
    const struct driver_device device = order->device;
    bool capturing = false;
    if (!order->asynchronous)
        return RAFFIA_OK;
    raffia_status status = device.driver->stream_is_capturing(device.index, stream, &capturing);
    if (status || capturing)
        return status;
    return resource_order_mark(order, stream, mark);
}

raffia_status resource_order_follow(const struct resource_order *order, raffia_stream stream,
                                    const struct resource_mark *mark)
{
    struct resource_mark copy = *mark;
    return resource_order_join(order, stream, &copy);
}

raffia_status resource_order_join(const struct resource_order *order, raffia_stream stream,
                                  struct resource_mark *mark)
{
    const struct driver_device device = order->device;
    uint64_t id;
    if (!mark->pending)
        return resource_order_check(order, stream);
    if (device.driver->capabilities & DRIVER_REUSE_BY_EVENT)
        return resource_order_wait(order, mark);
    raffia_status status = device.driver->stream_id(device.index, stream, &id);
    if (!status && id != mark->stream_id)
        status = device.driver->stream_wait_event(device.index, stream, mark->event);
    if (!status)
        mark->pending = false;
    return status;
}

raffia_status resource_order_wait(const struct resource_order *order, struct resource_mark *mark)
{
    raffia_status status = mark->pending
                               ? order->device.driver->event_wait(order->device.index, mark->event)
                               : RAFFIA_OK;
    if (!status)
        mark->pending = false;
    return status;
}

raffia_status resource_order_drain(const struct resource_order *order, raffia_stream stream)
{
    return order->asynchronous ? resource_wait_for(order->device, stream)
                               : resource_order_check(order, stream);
}

raffia_status resource_order_wait_at_end(const struct resource_order *order,
                                         struct resource_mark *mark)
{
    struct core_error_record before;
    core_error_save(&before);
    if (!resource_order_wait(order, mark))
        return RAFFIA_OK;
    raffia_status status = resource_order_wait(order, mark);
    if (!status)
        core_error_restore(&before);
    return status;
}

void resource_order_end(const struct resource_order *order, struct resource_mark *mark)
{
    if (mark->event && order->device.driver->event_destroy(order->device.index, mark->event))
        core_log_error("an event is lost: %s", raffia_last_error());
    *mark = (struct resource_mark){0};
}
