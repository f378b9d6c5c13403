/* Building a ring, emptying it and taking it down. */
#include "copy/staging_inside.h"
#include "core/checked.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/process.h"

#include <assert.h>

#define HUGE_PAGE_BYTES ((size_t)2 << 20)

/* Calls that give something back, or wait, are made so often before the device is given up. */
#define TRIES_MAX 3

static size_t add_offers(const raffia_device_info *host, raffia_page_kind kind, size_t largest,
                         raffia_page_offer *rungs, size_t count)
{
    for (size_t i = 0; i < host->page_count; i++)
        if (host->pages[i].kind == kind && host->pages[i].size <= largest)
            rungs[count++] = host->pages[i];
    return count;
}

/* Huge pages always, unless the ring is smaller than one: it is bounded. Transparent ones before
 * those that somebody set aside, which are likely to be meant for models. */
static raffia_status take_memory(struct staging *ring, unsigned threads)
{
    raffia_device_info host;
    raffia_page_offer rungs[RAFFIA_PAGE_SIZES_MAX];
    raffia_status status = raffia_device_query("host", &host);
    if (status)
        return status;
    size_t bytes;
    if (!core_multiply(ring->shape.slot_bytes, ring->shape.slot_count, &bytes))
        return core_error(RAFFIA_ERROR_OVERFLOW, "%u slots of %zu bytes are too much",
                          ring->shape.slot_count, ring->shape.slot_bytes);
    const size_t largest = core_min(bytes, HUGE_PAGE_BYTES);
    size_t count = add_offers(&host, RAFFIA_PAGE_TRANSPARENT, largest, rungs, 0);
    count = add_offers(&host, RAFFIA_PAGE_HUGETLB, largest, rungs, count);
    count = add_offers(&host, RAFFIA_PAGE_REGULAR, largest, rungs, count);
    status = pinned_take(ring->pinned_index, rungs, count, bytes, threads, &ring->memory);
    if (status)
        return status;
    const struct pinned_registration *registration = &ring->memory.registration;
    ring->copier = registration->registered > registration->piece_bytes
                       ? (struct driver_device){&pinned_driver, ring->pinned_index}
                       : ring->device;
    return RAFFIA_OK;
}

static raffia_status make_slots(struct staging *ring)
{
    const struct driver *driver = ring->device.driver;
    for (unsigned i = 0; i < ring->shape.slot_count; i++) {
        struct staging_slot *slot = core_calloc(1, sizeof *slot);
        if (!slot)
            return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
        ring->slots[i] = slot;
        slot->memory = (unsigned char *)ring->memory.at + i * ring->shape.slot_bytes;
        raffia_status status =
            ring->ordered ? driver->event_create(ring->device.index, &slot->event) : RAFFIA_OK;
        if (status)
            return status;
    }
    return RAFFIA_OK;
}

static raffia_status make_parts(struct staging *ring, unsigned threads)
{
    raffia_device_info info;
    raffia_status status = ring->device.driver->device_info(ring->device.index, &info);
    if (!status)
        status = pinned_open(ring->device, &ring->pinned_index);
    if (!status)
        status = take_memory(ring, threads);
    if (status)
        return status;
    ring->ordered = info.asynchronous;
    if (ring->ordered)
        status = ring->device.driver->stream_create(ring->device.index, &ring->stream);
    if (!status)
        status = make_slots(ring);
    return status;
}

static raffia_status make_locks(struct staging *ring)
{
    if (pthread_mutex_init(&ring->lock, NULL))
        return core_error(RAFFIA_ERROR_OUT_OF_HOST_MEMORY, "the system gives no more mutexes");
    if (pthread_cond_init(&ring->changed, NULL)) {
        pthread_mutex_destroy(&ring->lock);
        return core_error(RAFFIA_ERROR_OUT_OF_HOST_MEMORY, "the system gives no more conditions");
    }
    return RAFFIA_OK;
}

static void free_all_slots(struct staging *ring)
{
    ring->free = NULL;
    for (unsigned i = ring->shape.slot_count; i-- > 0;) {
        ring->slots[i]->next = ring->free;
        ring->free = ring->slots[i];
    }
    ring->copying = ring->copying_last = ring->filling = NULL;
}

raffia_status staging_build(struct driver_device device, struct staging_shape shape,
                            unsigned threads, struct staging **ring_p)
{
    assert(shape.slot_count >= 1 && shape.slot_count <= STAGING_SLOTS_MAX);
    double started = core_clock_seconds();
    struct staging *ring = core_calloc(1, sizeof *ring);
    if (!ring)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    ring->device = device;
    ring->shape = shape;
    ring->generation = core_fork_generation();
    raffia_status status = make_locks(ring);
    if (status) {
        core_free(ring);
        return status;
    }
    status = make_parts(ring, threads);
    if (status) {
        struct core_error_record cause;
        core_error_save(&cause);
        staging_destroy(ring);
        core_error_restore(&cause);
        return core_error_prefix("no staging memory of %u slots of %zu bytes", shape.slot_count,
                                 shape.slot_bytes);
    }
    free_all_slots(ring);
    ring->build_seconds = core_clock_seconds() - started;
    *ring_p = ring;
    return RAFFIA_OK;
}

static void give_memory(struct staging *ring)
{
    raffia_status status = RAFFIA_OK;
    for (int i = 0; ring->memory.at && i < TRIES_MAX; i++)
        status = pinned_give(ring->pinned_index, &ring->memory);
    if (status)
        core_log_error("staging memory cannot be given back: %s", raffia_last_error());
}

void staging_destroy(struct staging *ring)
{
    const struct driver *driver = ring->device.driver;
    raffia_status status = RAFFIA_OK;
    for (unsigned i = 0; i < STAGING_SLOTS_MAX; i++) {
        struct staging_slot *slot = ring->slots[i];
        if (slot && slot->event)
            status = driver->event_destroy(ring->device.index, slot->event);
        core_free(slot);
    }
    if (ring->stream) {
        (void)driver->stream_retire(ring->device.index, ring->stream);
        if (driver->stream_destroy(ring->device.index, ring->stream))
            status = RAFFIA_ERROR_DRIVER;
    }
    if (status)
        core_log_warn("events or the stream of a ring are left behind: %s", raffia_last_error());
    give_memory(ring);
    pthread_cond_destroy(&ring->changed);
    pthread_mutex_destroy(&ring->lock);
    core_free(ring);
}

/* A failure may be an older copy's, or of the wait itself: the copies may be under way still. */
static raffia_status wait_for_copies(struct staging *ring)
{
    const struct driver_device device = ring->device;
    raffia_status status = device.driver->stream_wait(device.index, ring->stream);
    if (!status)
        return RAFFIA_OK;
    struct core_error_record cause;
    core_error_save(&cause);
    raffia_status again = status;
    for (int i = 1; again && i < TRIES_MAX; i++)
        again = device.driver->stream_wait(device.index, ring->stream);
    /* With its context the device lost the copies too. */
    if (again && device.driver->context_state(device.index) != RAFFIA_ERROR_DRIVER)
        core_log_error("copies to a device cannot be waited for: %s", raffia_last_error());
    return core_error_restore(&cause);
}

raffia_status staging_drain(struct staging *ring)
{
    double started = core_clock_seconds();
    raffia_status status = ring->ordered ? wait_for_copies(ring) : RAFFIA_OK;
    pthread_mutex_lock(&ring->lock);
    ring->wait_seconds += core_clock_seconds() - started;
    if (status)
        ring->failed = ring->stopped = true;
    for (const struct staging_slot *slot = status ? NULL : ring->copying; slot; slot = slot->next)
        if (ring->work.done)
            ring->work.done(ring->work.context, slot->stretch);
    free_all_slots(ring);
    pthread_mutex_unlock(&ring->lock);
    return status;
}
