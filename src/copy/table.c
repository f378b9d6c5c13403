/* Where the kernel's table of pieces comes from, and goes back to. */
#include "copy/copy.h"
#include "copy/kernel.h"
#include "copy/places.h"
#include "core/checked.h"
#include "core/error.h"
#include "core/log.h"
#include "driver/pinned/pinned.h"
#include "resource/resource.h"

#include <raffia/pinned.h>

static bool is_same(struct driver_device a, struct driver_device b)
{
    return a.driver == b.driver && a.index == b.index;
}

/* Whether the host can write it, and its streams are those of the device: memory that went back in
 * the order of a stream of another would be used again too soon. */
static bool is_fit(const struct copy_device *on, raffia_resource_ref ref)
{
    const unsigned needed = RAFFIA_HOST_ACCESSIBLE | RAFFIA_DEVICE_ACCESSIBLE;
    struct driver_device whose;
    if (!ref.ops || (raffia_resource_properties_of(ref) & needed) != needed ||
        resource_find_device(ref, &whose))
        return false;
    return is_same(whose, on->device) ||
           (whose.driver == &pinned_driver && is_same(pinned_gpu(whose.index), on->device));
}

static bool choose(const struct copy_device *on, const raffia_memory_resources *resources,
                   struct copy_table *table)
{
    if (is_fit(on, resources->temporary)) {
        table->from = resources->temporary;
        return true;
    }
    if (!raffia_pinned_resource_acquire(&table->owner)) {
        table->from = raffia_resource_as_ref(table->owner);
        if (is_fit(on, table->from))
            return true;
        raffia_resource_release(table->owner);
        table->owner = NULL;
    }
    if (copy_kernel_tables(on->device, &table->owner))
        return false;
    table->from = raffia_resource_as_ref(table->owner);
    return is_fit(on, table->from);
}

/* What the resource says of itself is checked: the kernel would not survive a mistake. */
static bool allocate(const struct copy_device *on, driver_stream stream, size_t pieces,
                     struct copy_table *table)
{
    size_t bytes;
    void *at;
    if (!core_multiply(pieces, sizeof *table->pieces, &bytes) ||
        raffia_allocate(table->from, stream, bytes, 0, &at))
        return false;
    table->pieces = at;
    table->room = pieces;
    struct copy_places places = {.device = on->device};
    return copy_places_kind(&places, at, bytes) != DRIVER_MEMORY_UNKNOWN;
}

bool copy_table_take(const struct copy_device *on, driver_stream stream,
                     const raffia_memory_resources *resources, size_t pieces,
                     struct copy_table *table)
{
    struct core_error_record before;
    core_error_save(&before);
    *table = (struct copy_table){0};
    const bool taken = choose(on, resources, table) && allocate(on, stream, pieces, table);
    if (!taken) {
        char name[RAFFIA_DEVICE_NAME_MAX];
        core_log_debug("no table for the copy kernel on %s: no memory that is pinned for it",
                       driver_device_name(on->device, name));
        copy_table_give(stream, table);
        core_error_restore(&before);
    }
    return taken;
}

void copy_table_give(driver_stream stream, struct copy_table *table)
{
    struct core_error_record before;
    const size_t bytes = table->room * sizeof *table->pieces;
    if (!table->pieces && !table->owner)
        return;
    core_error_save(&before);
    /* Twice: a free in the order of a stream asks the driver, which may refuse for the moment. */
    if (table->pieces && raffia_deallocate(table->from, stream, table->pieces, bytes, 0) &&
        raffia_deallocate(table->from, stream, table->pieces, bytes, 0)) {
        core_log_error("%zu bytes of a copy's table at %p are lost: %s", bytes,
                       (void *)table->pieces, raffia_last_error());
        core_error_restore(&before);
    }
    raffia_resource_release(table->owner);
    *table = (struct copy_table){0};
}
