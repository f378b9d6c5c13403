/* Devices by name, and which one is the default. */
#include "core/error.h"
#include "core/settings.h"
#include "core/text.h"
#include "driver/driver.h"
#include "driver/host/host.h"
#include "driver/sim/sim.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

static const struct driver *const drivers[] = {&host_driver, &sim_driver};

static const char *default_name(void)
{
    switch ((enum core_driver_choice)core_setting_choice(CORE_SETTING_DRIVER)) {
    case CORE_DRIVER_CUDA:
        return "cuda:0";
    case CORE_DRIVER_SIM:
        return "sim:0";
    case CORE_DRIVER_AUTO: /* takes a GPU where a driver for one is part of the build */
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

static raffia_status refuse_name(const char *name, size_t length)
{
    if (length == 4 && strncmp(name, "cuda", 4) == 0)
        return core_error(RAFFIA_ERROR_UNSUPPORTED,
                          "device '%.40s': this version has no CUDA driver; use 'host'", name);
    return core_error(RAFFIA_ERROR_NOT_FOUND,
                      "there is no device '%.40s'; devices are called 'host' or 'sim:0'", name);
}

raffia_status driver_open_index(int index, struct driver_device *device_p)
{
    const char *name = default_name();
    const size_t length = strcspn(name, ":");
    const struct driver *driver = find_driver(name, length);
    if (!driver)
        return refuse_name(name, length);
    int count;
    raffia_status status = driver->devices(&count);
    if (status)
        return status;
    if (index < 0 || index >= count)
        return core_error(RAFFIA_ERROR_NOT_FOUND,
                          "there is no device %d: the %s driver, which is this process's, has %d",
                          index, driver->name, count);
    *device_p = (struct driver_device){driver, index};
    return RAFFIA_OK;
}

raffia_status driver_open(const char *name, struct driver_device *device_p)
{
    if (!name || !*name)
        name = default_name();
    size_t length = strcspn(name, ":");
    const struct driver *driver = find_driver(name, length);
    if (!driver)
        return refuse_name(name, length);
    uint64_t index = 0;
    if (name[length] == ':' && core_parse_count(name + length + 1, INT_MAX, &index) != RAFFIA_OK)
        return core_error_prefix("device '%.40s'", name);
    int count;
    raffia_status status = driver->devices(&count);
    if (status)
        return status;
    if (index >= (uint64_t)count)
        return core_error(RAFFIA_ERROR_NOT_FOUND,
                          "there is no device '%.40s': the %s driver has %d device%s", name,
                          driver->name, count, count == 1 ? "" : "s");
    *device_p = (struct driver_device){driver, (int)index};
    return RAFFIA_OK;
}

const char *driver_device_name(struct driver_device device,
                               char buffer[static RAFFIA_DEVICE_NAME_MAX])
{
    /* There is one host, so it needs no number. */
    if (device.driver == &host_driver)
        snprintf(buffer, RAFFIA_DEVICE_NAME_MAX, "%s", device.driver->name);
    else
        snprintf(buffer, RAFFIA_DEVICE_NAME_MAX, "%s:%d", device.driver->name, device.index);
    return buffer;
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
