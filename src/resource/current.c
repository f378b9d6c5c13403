/* The current resource of each device. */
#include "resource/current.h"

#include "core/error.h"
#include "core/log.h"
#include "driver/pinned/pinned.h"
#include "resource/initial.h"
#include "resource/owner.h"

#include <pthread.h>
#include <string.h>

/* For a copy that cannot share. */
static struct current_block own_block;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct current_block *block;

/*
 * A child has one thread when this runs, before any other could touch the block. Its parent's
 * resources are forgotten, not released: nothing of them is the child's. Every copy of the library
 * does this, which is once too often and harms nothing.
 */
static void enter_child(void)
{
    atomic_store_explicit(&block->lock.state, CORE_LOCK_FREE, memory_order_relaxed);
    for (size_t i = 0; i < RAFFIA_CURRENT_DEVICES_MAX; i++) {
        atomic_store_explicit(&block->entries[i].set, NULL, memory_order_relaxed);
        atomic_store_explicit(&block->entries[i].initial, NULL, memory_order_relaxed);
    }
}

static void join(void)
{
    unsigned layout = 0;
    const bool first =
        atomic_compare_exchange_strong(&raffia_current_block.layout, &layout, CURRENT_LAYOUT);
    block = first || layout == CURRENT_LAYOUT ? &raffia_current_block : &own_block;
    if (block == &own_block)
        core_log_warn("another version of Raffia in this process keeps its current resources in "
                      "layout %u, where this one knows %u: the two do not share them",
                      layout, CURRENT_LAYOUT);
    if (pthread_atfork(NULL, NULL, enter_child))
        core_log_warn("forked children cannot use current resources: no room to note the fork");
}

/* ---- entries -------------------------------------------------------------------------------- */

/* Lock held. The device's entry, or a new one, or NULL if there are too many. */
static struct current_entry *find_entry(const char *device)
{
    for (size_t i = 0; i < RAFFIA_CURRENT_DEVICES_MAX; i++) {
        struct current_entry *entry = &block->entries[i];
        if (!entry->device[0])
            /* The first byte makes it an entry, so it is written last. */
            for (size_t at = strlen(device) + 1; at-- > 0;)
                ((volatile char *)entry->device)[at] = device[at];
        if (strcmp(entry->device, device) == 0)
            return entry;
    }
    return NULL;
}

struct current_entry *current_find(const char *key)
{
    pthread_once(&once, join);
    core_lock_take(&block->lock);
    struct current_entry *entry = find_entry(key);
    core_lock_leave(&block->lock);
    if (!entry)
        core_error(RAFFIA_ERROR_LIMIT, "'%s' is beyond the %u that can have a current resource",
                   key, RAFFIA_CURRENT_DEVICES_MAX);
    return entry;
}

raffia_resource *current_initial(struct current_entry *entry)
{
    return atomic_load_explicit(&entry->initial, memory_order_acquire);
}

raffia_resource *current_acquire(struct current_entry *entry)
{
    core_lock_take(&block->lock);
    raffia_resource *found = atomic_load_explicit(&entry->set, memory_order_relaxed);
    if (!found)
        found = atomic_load_explicit(&entry->initial, memory_order_relaxed);
    raffia_resource_retain(found);
    core_lock_leave(&block->lock);
    return found;
}

/* Of two threads that make one, one lets go. */
raffia_status current_need_initial(struct current_entry *entry, current_maker make, void *argument,
                                   bool *made_p)
{
    raffia_resource *made = NULL;
    bool needed = !current_initial(entry);
    if (needed) {
        raffia_status status = make(argument, &made);
        if (status)
            return status;
        core_lock_take(&block->lock);
        needed = !current_initial(entry);
        if (needed)
            atomic_store_explicit(&entry->initial, made, memory_order_release);
        core_lock_leave(&block->lock);
        if (!needed)
            raffia_resource_release(made);
    }
    if (made_p)
        *made_p = needed;
    return RAFFIA_OK;
}

void current_exchange(struct current_entry *entry, raffia_resource *resource,
                      raffia_resource **previous_p)
{
    raffia_resource_retain(resource);
    core_lock_take(&block->lock);
    raffia_resource *previous = atomic_load_explicit(&entry->set, memory_order_relaxed);
    atomic_store_explicit(&entry->set, resource, memory_order_relaxed);
    if (!previous)
        previous = raffia_resource_retain(current_initial(entry));
    core_lock_leave(&block->lock);
    if (previous_p)
        *previous_p = previous;
    else
        raffia_resource_release(previous);
}

/* ---- devices -------------------------------------------------------------------------------- */

static raffia_status make_initial(void *argument, raffia_resource **resource_p)
{
    return resource_initial_make(*(struct driver_device *)argument, resource_p);
}

/* The device's entry, which has an initial resource. */
static raffia_status open_device(const char *name, struct current_entry **entry_p)
{
    char key[RAFFIA_DEVICE_NAME_MAX];
    struct driver_device device;
    raffia_status status = driver_open(name, &device);
    if (status)
        return status;
    struct current_entry *entry = current_find(driver_device_name(device, key));
    if (!entry)
        return RAFFIA_ERROR_LIMIT;
    status = current_need_initial(entry, make_initial, &device, NULL);
    if (!status)
        *entry_p = entry;
    return status;
}

raffia_status raffia_current_resource_acquire(const char *name, raffia_resource **resource_p)
{
    struct current_entry *entry;
    if (!resource_p)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "raffia_current_resource_acquire: resource_p is NULL");
    raffia_status status = open_device(name, &entry);
    if (!status)
        *resource_p = current_acquire(entry);
    return status;
}

raffia_status raffia_current_resource_get(const char *name, raffia_resource_ref *ref_p)
{
    raffia_resource *found;
    if (!ref_p)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "raffia_current_resource_get: ref_p is NULL");
    raffia_status status = raffia_current_resource_acquire(name, &found);
    if (status)
        return status;
    *ref_p = raffia_resource_as_ref(found);
    raffia_resource_release(found); /* the registry holds it */
    return RAFFIA_OK;
}

/* `resource` NULL: back to the initial one. */
static raffia_status exchange(const char *name, raffia_resource *resource,
                              raffia_resource **previous_p)
{
    struct current_entry *entry;
    raffia_status status = open_device(name, &entry);
    if (!status)
        current_exchange(entry, resource, previous_p);
    return status;
}

static bool is_same(struct driver_device a, struct driver_device b)
{
    return a.driver == b.driver && a.index == b.index;
}

/* Memory that is pinned for the device will do; so will what does not say whose it is. */
static raffia_status check_device(const char *name, raffia_resource_ref ref)
{
    struct driver_device device, memory;
    struct core_error_record before;
    char of[RAFFIA_DEVICE_NAME_MAX], not_of[RAFFIA_DEVICE_NAME_MAX], line[RAFFIA_RESOURCE_TEXT_MAX];
    raffia_status status = driver_open(name, &device);
    if (status)
        return status;
    core_error_save(&before);
    if (resource_find_device(ref, &memory)) {
        core_error_restore(&before);
        return RAFFIA_OK;
    }
    if (is_same(memory, device) ||
        (memory.driver == &pinned_driver && is_same(pinned_gpu(memory.index), device)))
        return RAFFIA_OK;
    return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                      "%s cannot be the current resource of device '%s': its memory is of '%s'",
                      raffia_resource_describe(ref, line, sizeof line),
                      driver_device_name(device, not_of), driver_device_name(memory, of));
}

raffia_status raffia_current_resource_set(const char *name, raffia_resource *resource,
                                          raffia_resource **previous_p)
{
    char line[RAFFIA_RESOURCE_TEXT_MAX];
    if (!resource)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "raffia_current_resource_set: there is no resource; "
                          "raffia_current_resource_reset() brings the initial one back");
    const raffia_resource_ref ref = raffia_resource_as_ref(resource);
    raffia_status status = resource_check(ref, "raffia_current_resource_set");
    if (status)
        return status;
    if (!(raffia_resource_properties_of(ref) & RAFFIA_DEVICE_ACCESSIBLE))
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "%s cannot be a current device resource: its memory is not accessible to "
                          "the device",
                          raffia_resource_describe(ref, line, sizeof line));
    status = check_device(name, ref);
    return status ? status : exchange(name, resource, previous_p);
}

raffia_status raffia_current_resource_reset(const char *name, raffia_resource **previous_p)
{
    return exchange(name, NULL, previous_p);
}

raffia_status raffia_current_resource_set_ref(const char *name, raffia_resource_ref ref,
                                              raffia_resource **previous_p)
{
    raffia_resource *borrowed;
    raffia_status status = resource_check(ref, "raffia_current_resource_set_ref");
    if (!status)
        status = owner_borrow(ref, &borrowed);
    if (status)
        return status;
    status = raffia_current_resource_set(name, borrowed, previous_p);
    raffia_resource_release(borrowed);
    return status;
}

raffia_status raffia_current_resource_reset_ref(const char *name, raffia_resource **previous_p)
{
    return raffia_current_resource_reset(name, previous_p);
}

/* ---- scopes --------------------------------------------------------------------------------- */

raffia_status raffia_resource_scope_begin(const char *name, raffia_resource *resource,
                                          raffia_resource_scope *scope)
{
    struct driver_device device;
    raffia_resource *previous;
    if (!scope)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "raffia_resource_scope_begin: scope_p is NULL");
    scope->previous = NULL;
    /* By its own name: the default device may be another one when the scope ends. */
    raffia_status status = driver_open(name, &device);
    if (status)
        return status;
    driver_device_name(device, scope->device);
    status = raffia_current_resource_set(scope->device, resource, &previous);
    if (!status)
        scope->previous = previous;
    return status;
}

/* By the entry alone, which was found when the scope began: nothing that could fail is asked. */
void raffia_resource_scope_end(raffia_resource_scope *scope)
{
    if (!scope || !scope->previous)
        return;
    struct current_entry *entry = current_find(scope->device);
    if (entry && current_initial(entry))
        current_exchange(entry, scope->previous, NULL);
    raffia_resource_release(scope->previous);
    scope->previous = NULL;
}
