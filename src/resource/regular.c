#include "resource/regular.h"

#include "core/checked.h"
#include "core/error.h"
#include "core/text.h"
#include "pool/registry.h"

#include <assert.h>

/* What every driver's allocator gives unasked (driver.h). */
#define REGULAR_ALIGNMENT ((size_t)256)

/* The driver has said that there is no memory. `info` is NULL if it says no more than that. */
static raffia_status refuse(struct driver_device device, size_t bytes,
                            const raffia_device_info *info)
{
    char name[RAFFIA_DEVICE_NAME_MAX], asked[CORE_SIZE_TEXT_MAX], idle[CORE_SIZE_TEXT_MAX],
        free_now[CORE_SIZE_TEXT_MAX] = "an unknown amount";
    if (info)
        core_format_size(info->free_bytes, free_now);
    core_format_size(pool_registry_idle_bytes(device), idle);
    return core_error_prefix(
        "device '%s' has no %s of regular memory: %s are free, and its pools hold %s idle, which "
        "the settings pool_share and pool_maximum lower",
        driver_device_name(device, name), core_format_size(bytes, asked), free_now, idle);
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

/* The driver has just refused. Asks how much is free once, and again only when that has changed. */
static raffia_status alloc_with_others_idle(struct driver_device device, size_t bytes,
                                            void **start_p)
{
    raffia_device_info space;
    const raffia_device_info *info = ask(device, &space);
    const struct pool_need need = {
        .device = device, .kind = RAFFIA_PAGE_REGULAR, .bytes = bytes, .info = info};
    if (pool_registry_trim(&need) > 0) {
        raffia_status status = device.driver->mem_alloc(device.index, bytes, start_p);
        if (status != RAFFIA_ERROR_OUT_OF_MEMORY)
            return status;
        info = ask(device, &space);
    }
    return refuse(device, bytes, info);
}

raffia_status resource_regular_alloc(struct driver_device device, size_t bytes, size_t alignment,
                                     struct resource_block *block)
{
    const size_t slack = alignment > REGULAR_ALIGNMENT ? alignment - REGULAR_ALIGNMENT : 0;
    size_t total;
    void *start;
    if (!core_add(bytes, slack, &total))
        return core_error(RAFFIA_ERROR_OVERFLOW,
                          "a block of %zu bytes aligned to %zu exceeds the address space", bytes,
                          alignment);
    raffia_status status = device.driver->mem_alloc(device.index, total, &start);
    if (status == RAFFIA_ERROR_OUT_OF_MEMORY)
        status = alloc_with_others_idle(device, total, &start);
    if (status)
        return status;
    const size_t skipped = core_align_up_unchecked((uintptr_t)start, alignment) - (uintptr_t)start;
    assert(skipped <= slack);
    *block = (struct resource_block){(char *)start + skipped, start, total};
    return RAFFIA_OK;
}

raffia_status resource_regular_free(struct driver_device device, const struct resource_block *block)
{
    return device.driver->mem_free(device.index, block->start, block->bytes);
}
