/* Order: that of the GPU. */
#include "driver/pinned/verbs.h"

enum driver_default_stream pinned_default_stream(int index)
{
    const struct driver_device gpu = pinned_gpu(index);
    return gpu.driver->default_stream(gpu.index);
}

raffia_status pinned_stream_create(int index, driver_stream *stream_p)
{
    const struct driver_device gpu = pinned_gpu(index);
    return gpu.driver->stream_create(gpu.index, stream_p);
}

raffia_status pinned_stream_destroy(int index, driver_stream stream)
{
    const struct driver_device gpu = pinned_gpu(index);
    return gpu.driver->stream_destroy(gpu.index, stream);
}

raffia_status pinned_stream_id(int index, driver_stream stream, uint64_t *id_p)
{
    const struct driver_device gpu = pinned_gpu(index);
    return gpu.driver->stream_id(gpu.index, stream, id_p);
}

raffia_status pinned_stream_is_capturing(int index, driver_stream stream, bool *capturing_p)
{
    const struct driver_device gpu = pinned_gpu(index);
    return gpu.driver->stream_is_capturing(gpu.index, stream, capturing_p);
}

raffia_status pinned_stream_retire(int index, driver_stream stream)
{
    const struct driver_device gpu = pinned_gpu(index);
    return gpu.driver->stream_retire(gpu.index, stream);
}

raffia_status pinned_stream_wait(int index, driver_stream stream)
{
    const struct driver_device gpu = pinned_gpu(index);
    return gpu.driver->stream_wait(gpu.index, stream);
}

raffia_status pinned_device_wait(int index)
{
    const struct driver_device gpu = pinned_gpu(index);
    return gpu.driver->device_wait(gpu.index);
}

raffia_status pinned_event_create(int index, driver_event *event_p)
{
    const struct driver_device gpu = pinned_gpu(index);
    return gpu.driver->event_create(gpu.index, event_p);
}

raffia_status pinned_event_destroy(int index, driver_event event)
{
    const struct driver_device gpu = pinned_gpu(index);
    return gpu.driver->event_destroy(gpu.index, event);
}

raffia_status pinned_event_record(int index, driver_event event, driver_stream stream)
{
    const struct driver_device gpu = pinned_gpu(index);
    return gpu.driver->event_record(gpu.index, event, stream);
}

raffia_status pinned_event_done(int index, driver_event event, bool *done_p)
{
    const struct driver_device gpu = pinned_gpu(index);
    return gpu.driver->event_done(gpu.index, event, done_p);
}

raffia_status pinned_event_wait(int index, driver_event event)
{
    const struct driver_device gpu = pinned_gpu(index);
    return gpu.driver->event_wait(gpu.index, event);
}

raffia_status pinned_stream_wait_event(int index, driver_stream stream, driver_event event)
{
    const struct driver_device gpu = pinned_gpu(index);
    return gpu.driver->stream_wait_event(gpu.index, stream, event);
}
