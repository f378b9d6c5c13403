#include "cli/bench_copy_ways.h"

#include "core/clock.h"
#include "core/memory.h"

raffia_status copy_list_open(struct bench_device *device, struct copy_list *list)
{
    *list = (struct copy_list){.device = device};
    list->copies = core_calloc(COPY_LIST_MAX, sizeof *list->copies);
    list->listed = core_calloc(COPY_LIST_MAX, sizeof *list->listed);
    if (!list->copies || !list->listed)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    return copy_device_open(device->info.name, &list->on);
}

void copy_list_close(struct copy_list *list)
{
    core_free(list->copies);
    core_free(list->listed);
}

void copy_list_fill(struct copy_list *list, void *to, const void *from, size_t count, size_t bytes)
{
    list->count = count;
    list->bytes = bytes;
    for (size_t i = 0; i < count; i++) {
        char *at = (char *)to + 2 * i * bytes;
        const char *source = (const char *)from + 2 * i * bytes;
        list->copies[i] = (raffia_copy_element){at, source, bytes};
        list->listed[i] = (struct driver_copy){at, source, bytes};
    }
}

raffia_status copy_way_loop(struct copy_list *list)
{
    const struct driver_device on = list->on.device;
    raffia_status status = RAFFIA_OK;
    for (size_t i = 0; i < list->count && !status; i++)
        status = on.driver->copy(on.index, list->device->stream, list->listed[i].destination,
                                 list->listed[i].source, list->bytes);
    return status;
}

raffia_status copy_way_batch(struct copy_list *list)
{
    const struct driver_device on = list->on.device;
    return on.driver->copy_batch(on.index, list->device->stream, list->listed, list->count);
}

raffia_status copy_list_sample(struct copy_list *list, copy_way way, struct bench_row *row)
{
    const double started = core_clock_seconds();
    raffia_status status = way(list);
    raffia_status waited = bench_device_wait(list->device);
    if (!status)
        status = waited;
    if (!status && row)
        bench_row_add(row, core_clock_seconds() - started);
    return status;
}
