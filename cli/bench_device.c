#include "cli/bench_device.h"

#include "cli/interrupt.h"
#include "core/checked.h"
#include "core/clock.h"
#include "core/error.h"

#include <stdio.h>

/* Room for "pinned:" and the name of a device. */
#define PINNED_NAME_MAX (RAFFIA_DEVICE_NAME_MAX + 8)

raffia_status bench_device_open(const char *name, struct bench_device *device)
{
    struct bench_device opened = {0};
    const double started = core_clock_seconds();
    raffia_status status = driver_open(name, &opened.device);
    if (status)
        return status;
    const struct driver *driver = opened.device.driver;
    status = driver->device_info(opened.device.index, &opened.info);
    if (!status && !(driver->capabilities & DRIVER_IS_ASYNCHRONOUS))
        status = core_error(RAFFIA_ERROR_UNSUPPORTED,
                            "device '%s' has no streams: leave --device out to measure it", name);
    if (!status)
        status = driver->stream_create(opened.device.index, &opened.stream);
    if (status)
        return status;
    opened.open_seconds = core_clock_seconds() - started;
    *device = opened;
    return RAFFIA_OK;
}

void bench_device_close(struct bench_device *device)
{
    if (!device->device.driver)
        return;
    const struct driver *driver = device->device.driver;
    (void)!driver->stream_retire(device->device.index, device->stream);
    (void)!driver->stream_destroy(device->device.index, device->stream);
    *device = (struct bench_device){0};
}

raffia_status bench_device_pool(const struct bench_device *device, size_t bytes,
                                raffia_pool **pool_p)
{
    const raffia_pool_options options = {
        .struct_size = sizeof options,
        .device = device->info.name,
        .name = "bench",
        .pages = RAFFIA_PAGES_TRY,
        .initial_bytes = bytes,
        .chunk_bytes = bytes,
        .granule = RAFFIA_NONE,
        .flags = RAFFIA_POOL_FIXED,
    };
    return raffia_pool_create(&options, pool_p);
}

raffia_status bench_device_pinned_pool(const struct bench_device *device, size_t bytes,
                                       const struct bench_options *options, raffia_pool **pool_p)
{
    char name[PINNED_NAME_MAX];
    snprintf(name, sizeof name, "pinned:%s", device->info.name);
    const raffia_pool_options pool = {
        .struct_size = sizeof pool,
        .device = name,
        .name = "bench pinned",
        .pages = options->pages,
        .page_size = options->page_size,
        .initial_bytes = bytes,
        .chunk_bytes = bytes,
        .flags = RAFFIA_POOL_FIXED,
        .threads = options->threads,
    };
    return raffia_pool_create(&pool, pool_p);
}

raffia_status bench_device_wait(const struct bench_device *device)
{
    return device->device.driver->stream_wait(device->device.index, device->stream);
}

raffia_status bench_device_copies(const struct bench_device *device, void *to, const void *from,
                                  size_t piece, size_t bytes)
{
    const struct driver_device *on = &device->device;
    raffia_status status = RAFFIA_OK;
    for (size_t done = 0; !status && done < bytes; done += piece) {
        status =
            on->driver->copy(on->index, device->stream, to, from, core_min(piece, bytes - done));
        if (!status)
            status = cli_interrupt_check();
    }
    /* What was submitted must end before anybody takes the memory away. */
    raffia_status waited = bench_device_wait(device);
    return status ? status : waited;
}
