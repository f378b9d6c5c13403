/* The pinned driver's table of verbs, and those that it does not have. */
#include "driver/host/host.h"
#include "driver/pinned/verbs.h"

#include <stdio.h>

static raffia_status unsupported(const char *verb)
{
    return driver_unsupported(pinned_driver.name, verb);
}

/* The host's memory near the GPU, with the GPU's streams. */
static raffia_status pinned_device_info(int index, raffia_device_info *info)
{
    const struct driver_device gpu = pinned_gpu(index);
    raffia_device_info host, device;
    raffia_status status = gpu.driver->device_info(gpu.index, &device);
    if (!status)
        status = host_driver.device_info(0, &host);
    if (status)
        return status;
    host.numa_node = device.numa_node;
    host.asynchronous = device.asynchronous;
    driver_device_name((struct driver_device){&pinned_driver, index}, host.name);
    *info = host;
    return RAFFIA_OK;
}

static raffia_status pinned_set_access(int index, void *at, size_t bytes, int peer, bool writable)
{
    (void)index, (void)at, (void)bytes, (void)peer, (void)writable;
    return unsupported("access for peers");
}

static raffia_status pinned_host_register(int index, void *at, size_t bytes)
{
    (void)index, (void)at, (void)bytes;
    return unsupported("registration of other memory: ask the GPU");
}

static raffia_status pinned_host_unregister(int index, void *at, size_t bytes)
{
    return pinned_host_register(index, at, bytes);
}

static raffia_status pinned_host_alloc(int index, size_t bytes, void **at_p)
{
    (void)index, (void)bytes, (void)at_p;
    return unsupported("another kind of pinned memory: ask the GPU");
}

static raffia_status pinned_host_free(int index, void *at, size_t bytes)
{
    (void)index, (void)at, (void)bytes;
    return unsupported("another kind of pinned memory: ask the GPU");
}

static raffia_status pinned_pool_create(int index, const struct driver_pool_spec *spec,
                                        driver_pool *pool_p)
{
    (void)index, (void)spec, (void)pool_p;
    return unsupported("pools of its own: ask the GPU");
}

static raffia_status pinned_pool_destroy(int index, driver_pool pool)
{
    (void)index, (void)pool;
    return unsupported("pools of its own: ask the GPU");
}

static raffia_status pinned_pool_alloc(int index, driver_pool pool, driver_stream stream,
                                       size_t bytes, void **address_p)
{
    (void)index, (void)pool, (void)stream, (void)bytes, (void)address_p;
    return unsupported("pools of its own: ask the GPU");
}

static raffia_status pinned_pool_free(int index, driver_pool pool, driver_stream stream,
                                      void *address)
{
    (void)index, (void)pool, (void)stream, (void)address;
    return unsupported("pools of its own: ask the GPU");
}

static raffia_status pinned_pool_trim(int index, driver_pool pool, size_t keep_bytes)
{
    (void)index, (void)pool, (void)keep_bytes;
    return unsupported("pools of its own: ask the GPU");
}

static raffia_status pinned_find_memory(int index, const void *at, struct driver_memory *memory)
{
    (void)index, (void)at, (void)memory;
    return unsupported("kernels, which would ask about memory: ask the GPU");
}

static raffia_status pinned_module_load(int index, const void *image, size_t bytes,
                                        driver_module *module_p)
{
    (void)index, (void)image, (void)bytes, (void)module_p;
    return unsupported("modules: ask the GPU");
}

static raffia_status pinned_module_unload(int index, driver_module module)
{
    (void)index, (void)module;
    return unsupported("modules: ask the GPU");
}

static raffia_status pinned_module_function(int index, driver_module module, const char *name,
                                            driver_function *function_p)
{
    (void)index, (void)module, (void)name, (void)function_p;
    return unsupported("modules: ask the GPU");
}

static raffia_status pinned_launch(int index, driver_stream stream, driver_function function,
                                   const struct driver_launch *launch)
{
    (void)index, (void)stream, (void)function, (void)launch;
    return unsupported("kernels: ask the GPU");
}

const struct driver pinned_driver = {
    .name = "pinned",
    .capabilities = DRIVER_CAN_REMAP | DRIVER_CAN_ALIAS | DRIVER_CAN_EXPORT | DRIVER_CAN_VERIFY |
                    DRIVER_CPU_ACCESSIBLE | DRIVER_IS_ASYNCHRONOUS | DRIVER_REUSE_BY_EVENT,
    .devices = pinned_devices,
    .device_info = pinned_device_info,
    .range_reserve = pinned_range_reserve,
    .range_release = pinned_range_release,
    .chunk_create = pinned_chunk_create,
    .chunk_destroy = pinned_chunk_destroy,
    .chunk_map = pinned_chunk_map,
    .chunk_unmap = pinned_chunk_unmap,
    .set_access = pinned_set_access,
    .chunk_export = pinned_chunk_export,
    .chunk_import = pinned_chunk_import,
    .page_size_of = pinned_page_size_of,
    .mem_alloc = pinned_mem_alloc,
    .mem_free = pinned_mem_free,
    .host_register = pinned_host_register,
    .host_unregister = pinned_host_unregister,
    .host_alloc = pinned_host_alloc,
    .host_free = pinned_host_free,
    .stream_create = pinned_stream_create,
    .stream_destroy = pinned_stream_destroy,
    .stream_id = pinned_stream_id,
    .default_stream = pinned_default_stream,
    .stream_is_capturing = pinned_stream_is_capturing,
    .stream_retire = pinned_stream_retire,
    .stream_wait = pinned_stream_wait,
    .device_wait = pinned_device_wait,
    .event_create = pinned_event_create,
    .event_destroy = pinned_event_destroy,
    .event_record = pinned_event_record,
    .event_done = pinned_event_done,
    .event_wait = pinned_event_wait,
    .stream_wait_event = pinned_stream_wait_event,
    .pool_create = pinned_pool_create,
    .pool_destroy = pinned_pool_destroy,
    .pool_alloc = pinned_pool_alloc,
    .pool_free = pinned_pool_free,
    .pool_trim = pinned_pool_trim,
    .copy = pinned_copy,
    .copy_batch = pinned_copy_batch,
    .fill = pinned_fill,
    .find_memory = pinned_find_memory,
    .module_load = pinned_module_load,
    .module_unload = pinned_module_unload,
    .module_function = pinned_module_function,
    .launch = pinned_launch,
    .context_state = pinned_context_state,
};
