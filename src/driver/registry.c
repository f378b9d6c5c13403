/* Devices by name, and which one is the default. */
#include "core/error.h"
#include "core/settings.h"
#include "core/text.h"
#include "driver/cuda/cuda_driver.h"
#include "driver/driver.h"
#include "driver/host/host.h"
#include "driver/pinned/pinned.h"
#include "driver/sim/sim.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

static const struct driver *const drivers[] = {&host_driver, &cuda_driver, &sim_driver};

static const char *default_name(void)
{
    switch ((enum core_driver_choice)core_setting_choice(CORE_SETTING_DRIVER)) {
    case CORE_DRIVER_CUDA:
        return "cuda:0";
    case CORE_DRIVER_SIM:
        return "sim:0";
    case CORE_DRIVER_AUTO:
        return cuda_is_present() ? "cuda:0" : "host";
    case CORE_DRIVER_HOST:
        break;
    }
    return "host";
}

static const struct driver *find_driver(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof drivers / sizeof *drivers; i++)
        if (strlen(drivers[i]->name) == length && strncmp(drivers[i]->name, name, length) == 0)
            return drivers[i];
    return NULL;
}

static raffia_status refuse_name(const char *name)
{
    return core_error(RAFFIA_ERROR_NOT_FOUND,
                      "there is no device '%.40s'; devices are called 'host', 'cuda:0', 'sim:0' or "
                      "'pinned:cuda:0'",
                      name);
}

static raffia_status count_devices(const struct driver *driver, const char *name, int *count_p)
{
    return driver->devices(count_p) ? core_error_prefix("device '%.40s'", name) : RAFFIA_OK;
}

raffia_status driver_open_index(int index, struct driver_device *device_p)
{
    const char *name = default_name();
    const size_t length = strcspn(name, ":");
    const struct driver *driver = find_driver(name, length);
    if (!driver)
        return refuse_name(name);
    int count;
    raffia_status status = count_devices(driver, name, &count);
    if (status)
        return status;
    if (index < 0 || index >= count)
        return core_error(RAFFIA_ERROR_NOT_FOUND,
                          "there is no device %d: the %s driver, which is this process's, has %d",
                          index, driver->name, count);
    *device_p = (struct driver_device){driver, index};
    return RAFFIA_OK;
}

#define PINNED_PREFIX "pinned:"

/* "pinned:sim:0": host memory that the device behind the prefix can copy from and to directly. */
static raffia_status open_pinned(const char *name, struct driver_device *device_p)
{
    struct driver_device gpu = {0};
    int index;
    raffia_status status =
        strncmp(name, PINNED_PREFIX, strlen(PINNED_PREFIX)) == 0
            ? core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                         "memory is pinned for one device, not for '%.40s'", name)
            : driver_open(name, &gpu);
    if (!status)
        status = pinned_open(gpu, &index);
    if (status)
        return core_error_prefix("device 'pinned:%.40s'", name);
    *device_p = (struct driver_device){&pinned_driver, index};
    return RAFFIA_OK;
}

raffia_status driver_open(const char *name, struct driver_device *device_p)
{
    if (!name || !*name)
        name = default_name();
    if (strncmp(name, PINNED_PREFIX, strlen(PINNED_PREFIX)) == 0)
        return open_pinned(name + strlen(PINNED_PREFIX), device_p);
    size_t length = strcspn(name, ":");
    const struct driver *driver = find_driver(name, length);
    if (!driver)
        return refuse_name(name);
    uint64_t index = 0;
    if (name[length] == ':' && core_parse_count(name + length + 1, INT_MAX, &index) != RAFFIA_OK)
        return core_error_prefix("device '%.40s'", name);
    int count;
    raffia_status status = count_devices(driver, name, &count);
    if (status)
        return status;
    if (index >= (uint64_t)count)
        return core_error(
            RAFFIA_ERROR_NOT_FOUND,
            "there is no device '%.40s': the %s driver has %d device%s, numbered from 0", name,
            driver->name, count, count == 1 ? "" : "s");
    *device_p = (struct driver_device){driver, (int)index};
    return RAFFIA_OK;
}

const char *driver_device_name(struct driver_device device,
                               char buffer[static RAFFIA_DEVICE_NAME_MAX])
{
    char of[RAFFIA_DEVICE_NAME_MAX];
    if (device.driver == &pinned_driver)
        snprintf(buffer, RAFFIA_DEVICE_NAME_MAX, PINNED_PREFIX "%.40s",
                 driver_device_name(pinned_gpu(device.index), of));
    /* There is one host, so it needs no number. */
    else if (device.driver == &host_driver)
        snprintf(buffer, RAFFIA_DEVICE_NAME_MAX, "%s", device.driver->name);
    else
        snprintf(buffer, RAFFIA_DEVICE_NAME_MAX, "%s:%d", device.driver->name, device.index);
    return buffer;
}

struct driver_device driver_stream_owner(struct driver_device device)
{
    return device.driver == &pinned_driver ? pinned_gpu(device.index) : device;
}

raffia_status raffia_device_query(const char *name, raffia_device_info *info)
{
    if (!info)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "raffia_device_query: info is NULL");
    struct driver_device device;
    raffia_status status = driver_open(name, &device);
    if (status)
        return status;
    return device.driver->device_info(device.index, info);
}

raffia_status driver_cpu_accessible(struct driver_device device, bool *accessible_p)
{
    raffia_device_info info;
    bool accessible = (device.driver->capabilities & DRIVER_CPU_ACCESSIBLE) != 0;
    const bool is_host = device.driver == &host_driver || device.driver == &pinned_driver;
    if (accessible && !is_host) { /* whose description takes reading files */
        raffia_status status = device.driver->device_info(device.index, &info);
        if (status)
            return status;
        accessible = info.cpu_accessible;
    }
    *accessible_p = accessible;
    return RAFFIA_OK;
}

raffia_status raffia_device_query_pinned(const char *name, raffia_pinned_usage *usage)
{
    if (!usage)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "raffia_device_query_pinned: usage is NULL");
    struct driver_device device;
    int index;
    raffia_status status = driver_open(name, &device);
    if (status)
        return status;
    if (device.driver == &pinned_driver)
        index = device.index;
    else if ((status = pinned_open(device, &index)))
        return status;
    pinned_query(index, usage);
    return RAFFIA_OK;
}
