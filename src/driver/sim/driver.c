/* The simulated device's table of verbs, and the verbs about devices themselves. */
#include "driver/sim/memory.h"
#include "driver/sim/queue.h"
#include "driver/sim/verbs.h"

#include <stdio.h>
#include <string.h>

static raffia_status sim_count_devices(int *count_p)
{
    raffia_status status = sim_enter_process(SIM_VERB_devices);
    if (status)
        return status;
    sim_acquire();
    *count_p = sim_device_count;
    sim_leave();
    return RAFFIA_OK;
}

static raffia_status sim_device_info(int index, raffia_device_info *info)
{
    struct sim_device *device;
    raffia_status status = sim_enter(SIM_VERB_device_info, index, NULL, &device);
    if (status)
        return status;
    const struct sim_config *config = &device->config;
    *info = (raffia_device_info){
        .total_bytes = config->capacity_bytes,
        .free_bytes = sim_free_memory(device),
        .numa_node = -1,
        .cpu_accessible = !config->cpu_inaccessible,
        .verifies_pages = !config->hides_page_sizes,
        .asynchronous = !config->synchronous,
        .page_count = config->page_count,
    };
    memcpy(info->pages, config->pages, sizeof info->pages);
    snprintf(info->name, sizeof info->name, "%s:%d", sim_driver.name, index);
    snprintf(info->model, sizeof info->model, "simulated device");
    sim_leave();
    return RAFFIA_OK;
}

static raffia_status sim_context_state(int index)
{
    struct sim_device *device;
    raffia_status status = sim_enter(SIM_VERB_context_state, index, NULL, &device);
    if (!status)
        sim_leave();
    return status;
}

const struct driver sim_driver = {
    .name = "sim",
    .capabilities = DRIVER_CAN_REMAP | DRIVER_CAN_ALIAS | DRIVER_CAN_EXPORT | DRIVER_CAN_VERIFY |
                    DRIVER_CPU_ACCESSIBLE | DRIVER_IS_ASYNCHRONOUS | DRIVER_CAN_REGISTER |
                    DRIVER_CAN_LAUNCH | DRIVER_HAS_PEERS | DRIVER_CAN_ALLOC_HOST | DRIVER_HAS_POOLS,
    .devices = sim_count_devices,
    .device_info = sim_device_info,
    .range_reserve = sim_range_reserve,
    .range_release = sim_range_release,
    .chunk_create = sim_chunk_create,
    .chunk_destroy = sim_chunk_destroy,
    .chunk_map = sim_chunk_map,
    .chunk_unmap = sim_chunk_unmap,
    .set_access = sim_set_access,
    .chunk_export = sim_chunk_export,
    .chunk_import = sim_chunk_import,
    .page_size_of = sim_page_size_of,
    .mem_alloc = sim_mem_alloc,
    .mem_free = sim_mem_free,
    .host_register = sim_host_register,
    .host_unregister = sim_host_unregister,
    .host_alloc = sim_host_alloc,
    .host_free = sim_host_free,
    .stream_create = sim_stream_create,
    .stream_destroy = sim_stream_destroy,
    .stream_id = sim_stream_id,
    .default_stream = sim_default_stream,
    .stream_is_capturing = sim_stream_is_capturing,
    .stream_retire = sim_stream_retire,
    .stream_wait = sim_stream_wait,
    .device_wait = sim_device_wait,
    .event_create = sim_event_create,
    .event_destroy = sim_event_destroy,
    .event_record = sim_event_record,
    .event_done = sim_event_done,
    .event_wait = sim_event_wait,
    .stream_wait_event = sim_stream_wait_event,
    .pool_create = sim_pool_create,
    .pool_destroy = sim_pool_destroy,
    .pool_alloc = sim_pool_alloc,
    .pool_free = sim_pool_free,
    .pool_trim = sim_pool_trim,
    .copy = sim_copy,
    .copy_batch = sim_copy_batch,
    .fill = sim_fill,
    .find_memory = sim_find_memory,
    .module_load = sim_module_load,
    .module_unload = sim_module_unload,
    .module_function = sim_module_function,
    .launch = sim_launch,
    .context_state = sim_context_state,
};
