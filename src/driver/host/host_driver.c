/* The host driver's table of verbs. */
#include "driver/host/host.h"
#include "driver/host/verbs.h"

const struct driver host_driver = {
    .name = "host",
    .capabilities = DRIVER_CAN_REMAP | DRIVER_CAN_ALIAS | DRIVER_CAN_EXPORT | DRIVER_CAN_VERIFY |
                    DRIVER_CPU_ACCESSIBLE | DRIVER_SURVIVES_FORK | DRIVER_CAN_PROTECT,

    .devices = host_devices,
    .device_info = host_device_info,

    .range_reserve = host_range_reserve,
    .range_release = host_range_release,

    .chunk_create = host_chunk_create,
    .chunk_destroy = host_chunk_destroy,
    .chunk_map = host_chunk_map,
    .chunk_unmap = host_chunk_unmap,
    .set_access = host_set_access,
    .chunk_export = host_chunk_export,
    .chunk_import = host_chunk_import,
    .page_size_of = host_page_size_of,

    .mem_alloc = host_mem_alloc,
    .mem_free = host_mem_free,

    .host_register = host_register_memory,
    .host_unregister = host_unregister_memory,
    .host_alloc = host_alloc_pinned,
    .host_free = host_free_pinned,

    .stream_create = host_stream_create,
    .stream_destroy = host_stream_destroy,
    .stream_id = host_stream_id,
    .default_stream = host_default_stream,
    .stream_is_capturing = host_stream_is_capturing,
    .stream_retire = host_stream_retire,
    .stream_wait = host_stream_wait,
    .device_wait = host_device_wait,
    .event_create = host_event_create,
    .event_destroy = host_event_destroy,
    .event_record = host_event_record,
    .event_done = host_event_done,
    .event_wait = host_event_wait,
    .stream_wait_event = host_stream_wait_event,

    .pool_create = host_pool_create,
    .pool_destroy = host_pool_destroy,
    .pool_alloc = host_pool_alloc,
    .pool_free = host_pool_free,
    .pool_trim = host_pool_trim,

    .copy = host_copy,
    .copy_batch = host_copy_batch,
    .fill = host_fill_memory,
    .find_memory = host_find_memory,

    .module_load = host_module_load,
    .module_unload = host_module_unload,
    .module_function = host_module_function,
    .launch = host_launch,

    .context_state = host_context_state,
};
