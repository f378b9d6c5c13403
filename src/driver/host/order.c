/* What the host driver does not have: streams, events, registration, code. Work is done on return,
 * so the one stream there is, NULL, is always idle. */
#include "core/error.h"
#include "driver/host/host.h"
#include "driver/host/verbs.h"

raffia_status host_check_stream(driver_stream stream)
{
    if (stream)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "the host has no streams: only NULL, the default stream, is accepted");
    return RAFFIA_OK;
}

static raffia_status unsupported(const char *verb)
{
    return driver_unsupported(host_driver.name, verb);
}

raffia_status host_register_memory(int device, void *at, size_t bytes)
{
    (void)device, (void)at, (void)bytes;
    return unsupported("registration of host memory");
}

raffia_status host_unregister_memory(int device, void *at, size_t bytes)
{
    (void)device, (void)at, (void)bytes;
    return unsupported("registration of host memory");
}

raffia_status host_alloc_pinned(int device, size_t bytes, void **at_p)
{
    (void)device, (void)bytes, (void)at_p;
    return unsupported("allocation of pinned memory");
}

raffia_status host_free_pinned(int device, void *at, size_t bytes)
{
    (void)device, (void)at, (void)bytes;
    return unsupported("allocation of pinned memory");
}

raffia_status host_stream_create(int device, driver_stream *stream_p)
{
    (void)device, (void)stream_p;
    return unsupported("streams");
}

raffia_status host_stream_destroy(int device, driver_stream stream)
{
    (void)device, (void)stream;
    return unsupported("streams");
}

raffia_status host_stream_id(int device, driver_stream stream, uint64_t *id_p)
{
    (void)device;
    raffia_status status = host_check_stream(stream);
    if (!status)
        *id_p = 0;
    return status;
}

enum driver_default_stream host_default_stream(int device)
{
    (void)device;
    return DRIVER_DEFAULT_STREAM_NONE;
}

raffia_status host_stream_is_capturing(int device, driver_stream stream, bool *capturing_p)
{
    (void)device;
    raffia_status status = host_check_stream(stream);
    if (!status)
        *capturing_p = false;
    return status;
}

raffia_status host_stream_retire(int device, driver_stream stream)
{
    (void)device;
    return host_check_stream(stream);
}

raffia_status host_stream_wait(int device, driver_stream stream)
{
    (void)device;
    return host_check_stream(stream);
}

raffia_status host_device_wait(int device)
{
    (void)device;
    return RAFFIA_OK;
}

raffia_status host_event_create(int device, driver_event *event_p)
{
    (void)device, (void)event_p;
    return unsupported("events");
}

raffia_status host_event_destroy(int device, driver_event event)
{
    (void)device, (void)event;
    return unsupported("events");
}

raffia_status host_event_record(int device, driver_event event, driver_stream stream)
{
    (void)device, (void)event, (void)stream;
    return unsupported("events");
}

raffia_status host_event_done(int device, driver_event event, bool *done_p)
{
    (void)device, (void)event, (void)done_p;
    return unsupported("events");
}

raffia_status host_event_wait(int device, driver_event event)
{
    (void)device, (void)event;
    return unsupported("events");
}

raffia_status host_stream_wait_event(int device, driver_stream stream, driver_event event)
{
    (void)device, (void)stream, (void)event;
    return unsupported("events");
}

raffia_status host_pool_create(int device, const struct driver_pool_spec *spec, driver_pool *pool_p)
{
    (void)device, (void)spec, (void)pool_p;
    return unsupported("pools of its own");
}

raffia_status host_pool_destroy(int device, driver_pool pool)
{
    (void)device, (void)pool;
    return unsupported("pools of its own");
}

raffia_status host_pool_alloc(int device, driver_pool pool, driver_stream stream, size_t bytes,
                              void **address_p)
{
    (void)device, (void)pool, (void)stream, (void)bytes, (void)address_p;
    return unsupported("pools of its own");
}

raffia_status host_pool_free(int device, driver_pool pool, driver_stream stream, void *address)
{
    (void)device, (void)pool, (void)stream, (void)address;
    return unsupported("pools of its own");
}

raffia_status host_pool_trim(int device, driver_pool pool, size_t keep_bytes)
{
    (void)device, (void)pool, (void)keep_bytes;
    return unsupported("pools of its own");
}

raffia_status host_find_memory(int device, const void *at, struct driver_memory *memory)
{
    (void)device, (void)at, (void)memory;
    return unsupported("kernels, which would ask about memory");
}

raffia_status host_module_load(int device, const void *image, size_t bytes, driver_module *module_p)
{
    (void)device, (void)image, (void)bytes, (void)module_p;
    return unsupported("modules");
}

raffia_status host_module_unload(int device, driver_module module)
{
    (void)device, (void)module;
    return unsupported("modules");
}

raffia_status host_module_function(int device, driver_module module, const char *name,
                                   driver_function *function_p)
{
    (void)device, (void)module, (void)name, (void)function_p;
    return unsupported("modules");
}

raffia_status host_launch(int device, driver_stream stream, driver_function function,
                          const struct driver_launch *launch)
{
    (void)device, (void)stream, (void)function, (void)launch;
    return unsupported("kernels");
}
