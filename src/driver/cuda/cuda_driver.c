/* The CUDA driver's table of verbs. */
#include "driver/cuda/cuda_driver.h"

#include "driver/cuda/verbs.h"

const struct driver cuda_driver = {
    .name = "cuda",
    .capabilities = DRIVER_CAN_REMAP | DRIVER_CAN_ALIAS | DRIVER_CAN_EXPORT |
                    DRIVER_IS_ASYNCHRONOUS | DRIVER_CAN_REGISTER | DRIVER_CAN_ALLOC_HOST |
                    DRIVER_CAN_LAUNCH | DRIVER_HAS_PEERS | DRIVER_HAS_POOLS,

    .devices = cuda_devices,
    .device_info = cuda_device_info,

    .range_reserve = cuda_range_reserve,
    .range_release = cuda_range_release,

    .chunk_create = cuda_chunk_create,
    .chunk_destroy = cuda_chunk_destroy,
    .chunk_map = cuda_chunk_map,
    .chunk_unmap = cuda_chunk_unmap,
    .set_access = cuda_set_access,
    .chunk_export = cuda_chunk_export,
    .chunk_import = cuda_chunk_import,
    .page_size_of = cuda_page_size_of,

    .mem_alloc = cuda_mem_alloc,
    .mem_free = cuda_mem_free,

    .host_register = cuda_host_register,
    .host_unregister = cuda_host_unregister,
    .host_alloc = cuda_host_alloc,
    .host_free = cuda_host_free,

    .stream_create = cuda_stream_create,
    .stream_destroy = cuda_stream_destroy,
    .stream_id = cuda_stream_id,
    .default_stream = cuda_default_stream,
    .stream_is_capturing = cuda_stream_is_capturing,
    .stream_retire = cuda_stream_retire,
    .stream_wait = cuda_stream_wait,
    .device_wait = cuda_device_wait,
    .event_create = cuda_event_create,
    .event_destroy = cuda_event_destroy,
    .event_record = cuda_event_record,
    .event_done = cuda_event_done,
    .event_wait = cuda_event_wait,
    .stream_wait_event = cuda_stream_wait_event,

    .pool_create = cuda_pool_create,
    .pool_destroy = cuda_pool_destroy,
    .pool_alloc = cuda_pool_alloc,
    .pool_free = cuda_pool_free,
    .pool_trim = cuda_pool_trim,

    .copy = cuda_copy,
    .copy_batch = cuda_copy_batch,
    .fill = cuda_fill,
    .find_memory = cuda_find_memory,

    .module_load = cuda_module_load,
    .module_unload = cuda_module_unload,
    .module_function = cuda_module_function,
    .launch = cuda_launch,

    .context_state = cuda_context_state,
};
