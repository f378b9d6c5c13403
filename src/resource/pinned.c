/* The process's pinned resource, and the thresholds beside it. */
#include "core/checked.h"
#include "core/error.h"
#include "core/log.h"
#include "core/options.h"
#include "core/settings.h"
#include "core/text.h"
#include "resource/current.h"
#include "resource/pinned_default.h"

#include <raffia/pinned.h>
#include <raffia/resources.h>

#include <string.h>

/* Its key in the registry; no device is called so. */
#define KEY "(pinned)"

/* ---- sizes ---------------------------------------------------------------------------------- */

#define INITIAL_SHARE  200u
#define INITIAL_MAX    ((size_t)64 << 20)
#define MAXIMUM_FACTOR 16u
/* What a pool with the smallest granule can keep book of, whatever its pages are rounded to. */
#define MAXIMUM_MAX (((size_t)1 << 40) - ((size_t)1 << 30))
#define UNIT        ((size_t)RAFFIA_DEFAULT_ALIGNMENT)

/* "none" is no pool. */
static size_t no_pool_if_none(size_t bytes)
{
    return bytes == RAFFIA_NONE ? 0 : bytes;
}

static raffia_status initial_size(size_t asked, size_t *bytes_p)
{
    struct driver_device device;
    raffia_device_info info = {0};
    if (core_setting_given(CORE_SETTING_PINNED_POOL_SIZE)) {
        *bytes_p = no_pool_if_none(core_setting_size(CORE_SETTING_PINNED_POOL_SIZE));
        return RAFFIA_OK;
    }
    (void)core_setting_size(CORE_SETTING_PINNED_POOL_SIZE); /* warns of a bad one */
    if (asked) {
        *bytes_p = no_pool_if_none(asked);
        return RAFFIA_OK;
    }
    raffia_status status = driver_open(NULL, &device);
    if (!status)
        status = device.driver->device_info(device.index, &info);
    if (!status)
        *bytes_p = core_min(info.total_bytes / INITIAL_SHARE, INITIAL_MAX);
    return status;
}

static size_t maximum_size(size_t initial)
{
    const bool given = core_setting_given(CORE_SETTING_PINNED_POOL_MAX);
    const size_t limit = no_pool_if_none(core_setting_size(CORE_SETTING_PINNED_POOL_MAX));
    const bool usable = given && (limit == 0 || limit >= initial);
    if (usable)
        return limit;
    const size_t most = core_max(initial, MAXIMUM_MAX);
    const size_t usual = initial > most / MAXIMUM_FACTOR ? most : initial * MAXIMUM_FACTOR;
    if (given)
        core_log_warn("pinned_pool_max_size is ignored: %zu bytes are less than the first size of "
                      "the pool, %zu; using %zu",
                      limit, initial, usual);
    return usual;
}

raffia_status pinned_sizes_find(size_t asked, struct pinned_sizes *sizes)
{
    raffia_status status = initial_size(asked, &sizes->initial);
    if (status)
        return status;
    sizes->maximum = maximum_size(sizes->initial);
    if ((!core_align_up(sizes->initial, UNIT, &sizes->initial) ||
         !core_align_up(sizes->maximum, UNIT, &sizes->maximum)))
        status = core_error(RAFFIA_ERROR_OVERFLOW,
                            "a pinned pool of %zu to %zu bytes exceeds the address space",
                            sizes->initial, sizes->maximum);
    return status;
}

/* ---- the resource --------------------------------------------------------------------------- */

static raffia_status make_default(void *argument, raffia_resource **resource_p)
{
    struct pinned_sizes sizes;
    raffia_status status = pinned_sizes_find(*(const size_t *)argument, &sizes);
    return status ? status : pinned_default_make(&sizes, resource_p);
}

static raffia_status open_entry(size_t pool_size, struct current_entry **entry_p, bool *made_p)
{
    struct current_entry *entry = current_find(KEY);
    if (!entry)
        return RAFFIA_ERROR_LIMIT;
    raffia_status status = current_need_initial(entry, make_default, &pool_size, made_p);
    if (!status)
        *entry_p = entry;
    return status;
}

raffia_status raffia_pinned_config_default(const raffia_pinned_options *options, bool *configured_p)
{
    raffia_pinned_options o;
    struct current_entry *entry;
    bool made;
    raffia_status status = core_options_copy(&o, sizeof o, options, "raffia_pinned_options");
    if (!status)
        status = open_entry(o.pool_size, &entry, &made);
    if (!status && configured_p)
        *configured_p = made;
    return status;
}

raffia_status raffia_pinned_query(raffia_pinned_info *info)
{
    struct current_entry *entry;
    if (!info)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "raffia_pinned_query: info is NULL");
    raffia_status status = open_entry(0, &entry, NULL);
    return status ? status
                  : pinned_default_query(raffia_resource_as_ref(current_initial(entry)), info);
}

raffia_status raffia_pinned_resource_acquire(raffia_resource **resource_p)
{
    struct current_entry *entry;
    if (!resource_p)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "raffia_pinned_resource_acquire: resource_p is NULL");
    raffia_status status = open_entry(0, &entry, NULL);
    if (!status)
        *resource_p = current_acquire(entry);
    return status;
}

raffia_status raffia_pinned_resource_get(raffia_resource_ref *ref_p)
{
    raffia_resource *found;
    if (!ref_p)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "raffia_pinned_resource_get: ref_p is NULL");
    raffia_status status = raffia_pinned_resource_acquire(&found);
    if (status)
        return status;
    *ref_p = raffia_resource_as_ref(found);
    raffia_resource_release(found); /* the registry holds it */
    return RAFFIA_OK;
}

raffia_status raffia_pinned_resource_set(raffia_resource *resource, raffia_resource **previous_p)
{
    const unsigned needed = RAFFIA_HOST_ACCESSIBLE | RAFFIA_DEVICE_ACCESSIBLE;
    const raffia_resource_ref ref = raffia_resource_as_ref(resource);
    char line[RAFFIA_RESOURCE_TEXT_MAX];
    struct current_entry *entry;
    raffia_status status = resource_check(ref, "raffia_pinned_resource_set");
    if (status)
        return status;
    if ((raffia_resource_properties_of(ref) & needed) != needed)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "%s cannot be the pinned resource: its memory is not accessible to both "
                          "host and device",
                          raffia_resource_describe(ref, line, sizeof line));
    status = open_entry(0, &entry, NULL);
    if (!status)
        current_exchange(entry, resource, previous_p);
    return status;
}

/* ---- thresholds ----------------------------------------------------------------------------- */

struct threshold {
    enum core_setting setting;
    atomic_bool is_set; /* by its function, which beats the setting */
    atomic_size_t set;
    atomic_size_t read;   /* the setting's value */
    atomic_ulong version; /* of the settings that it was read at; 0: not yet */
};

static struct threshold kernel_copy = {.setting = CORE_SETTING_KERNEL_COPY};
static struct threshold host_as_pinned = {.setting = CORE_SETTING_HOST_AS_PINNED};

_Static_assert(RAFFIA_KERNEL_COPY_AUTO == CORE_SIZE_AUTO, "one word, one value");

static size_t threshold_get(struct threshold *threshold)
{
    const unsigned long version = core_settings_version();
    if (atomic_load_explicit(&threshold->is_set, memory_order_acquire))
        return atomic_load_explicit(&threshold->set, memory_order_relaxed);
    if (atomic_load_explicit(&threshold->version, memory_order_acquire) == version)
        return atomic_load_explicit(&threshold->read, memory_order_relaxed);
    const size_t value = core_setting_size(threshold->setting);
    atomic_store_explicit(&threshold->read, value, memory_order_relaxed);
    atomic_store_explicit(&threshold->version, version, memory_order_release);
    return value;
}

static void threshold_set(struct threshold *threshold, size_t value)
{
    atomic_store_explicit(&threshold->set, value, memory_order_relaxed);
    atomic_store_explicit(&threshold->is_set, true, memory_order_release);
}

size_t raffia_kernel_copy_threshold(void)
{
    return threshold_get(&kernel_copy);
}

void raffia_kernel_copy_threshold_set(size_t bytes)
{
    threshold_set(&kernel_copy, bytes);
}

size_t raffia_host_as_pinned_threshold(void)
{
    return threshold_get(&host_as_pinned);
}

void raffia_host_as_pinned_threshold_set(size_t bytes)
{
    threshold_set(&host_as_pinned, bytes);
}

raffia_status raffia_host_resource_for(size_t bytes, raffia_resource **resource_p)
{
    if (!resource_p)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "raffia_host_resource_for: resource_p is NULL");
    return bytes <= raffia_host_as_pinned_threshold()
               ? raffia_pinned_resource_acquire(resource_p)
               : raffia_host_resource_create(NULL, resource_p);
}
