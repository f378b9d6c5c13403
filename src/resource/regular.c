#include "resource/regular.h"

#include "core/checked.h"
#include "core/error.h"
#include "core/text.h"
#include "pool/registry.h"

#include <assert.h>

/* What every driver's allocator gives unasked (driver.h). */
#define REGULAR_ALIGNMENT ((size_t)256)

/* The driver has said that there is no memory. `info` is NULL if it says no more than that. */
static raffia_status refuse(struct driver_device device, const char *what, size_t bytes,
                            const raffia_device_info *info)
{
    char name[RAFFIA_DEVICE_NAME_MAX], asked[CORE_SIZE_TEXT_MAX], idle[CORE_SIZE_TEXT_MAX],
        free_now[CORE_SIZE_TEXT_MAX] = "an unknown amount";
    if (info)
        core_format_size(info->free_bytes, free_now);
    core_format_size(pool_registry_idle_bytes(device), idle);
    return core_error_prefix(
        "device '%s' has no %s of %s: %s are free, and its pools hold %s idle, which "
        "the settings pool_share and pool_maximum lower",
        driver_device_name(device, name), core_format_size(bytes, asked), what, free_now, idle);
}

/* What the device says of itself, or NULL. Keeps the last error. */
static const raffia_device_info *ask(struct driver_device device, raffia_device_info *info)
{
    struct core_error_record cause;
    core_error_save(&cause);
    raffia_status status = device.driver->device_info(device.index, info);
    core_error_restore(&cause);
    return status ? NULL : info;
}

/* Asks how much is free once, and again only when that has changed. */
raffia_status resource_take_memory(struct driver_device device, const char *what, size_t bytes,
                                   resource_taker take, void *context, void **start_p)
{
    raffia_device_info space;
    raffia_status status = take(context, bytes, start_p);
    if (status != RAFFIA_ERROR_OUT_OF_MEMORY)
        return status;
    const raffia_device_info *info = ask(device, &space);
    const struct pool_need need = {
        .device = device, .kind = RAFFIA_PAGE_REGULAR, .bytes = bytes, .info = info};
    if (pool_registry_trim(&need) > 0) {
        status = take(context, bytes, start_p);
        if (status != RAFFIA_ERROR_OUT_OF_MEMORY)
            return status;
        info = ask(device, &space);
    }
    return refuse(device, what, bytes, info);
}

static size_t slack_for(size_t alignment)
{
    return alignment > REGULAR_ALIGNMENT ? alignment - REGULAR_ALIGNMENT : 0;
}

raffia_status resource_add_slack(size_t bytes, size_t alignment, size_t *total_p)
{
    if (core_add(bytes, slack_for(alignment), total_p))
        return RAFFIA_OK;
    return core_error(RAFFIA_ERROR_OVERFLOW,
                      "a block of %zu bytes aligned to %zu exceeds the address space", bytes,
                      alignment);
}

struct resource_block resource_align_block(void *start, size_t total, size_t bytes,
                                           size_t alignment)
{
    const size_t skipped = core_align_up_unchecked((uintptr_t)start, alignment) - (uintptr_t)start;
    assert(skipped <= slack_for(alignment));
    return (struct resource_block){(char *)start + skipped, start, total, bytes};
}

static raffia_status take_regular(void *context, size_t bytes, void **start_p)
{
    const struct driver_device *device = context;
    return device->driver->mem_alloc(device->index, bytes, start_p);
}

raffia_status resource_regular_alloc(struct driver_device device, size_t bytes, size_t alignment,
                                     struct resource_block *block)
{
    size_t total;
    void *start;
    raffia_status status = resource_add_slack(bytes, alignment, &total);
    if (!status)
        status =
            resource_take_memory(device, "regular memory", total, take_regular, &device, &start);
    if (!status)
        *block = resource_align_block(start, total, bytes, alignment);
    return status;
}

raffia_status resource_regular_free(struct driver_device device, const struct resource_block *block)
{
    return device.driver->mem_free(device.index, block->start, block->bytes);
}
