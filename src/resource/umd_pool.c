/* The pool of a device of raffia/umd.h: how it is built, looked at and destroyed. */
#include "core/error.h"
#include "core/settings.h"
#include "pool/pool.h"
#include "resource/umd_state.h"

#include <assert.h>
#include <stdio.h>

/* After the n-th failure in a row 2^n - 1 requests do without the pool; n counts up to this. */
#define REFUSALS_MAX 10u

static raffia_status create_pool(struct driver_device device, uint64_t pool_size,
                                 raffia_pool **pool_p)
{
    char device_name[RAFFIA_DEVICE_NAME_MAX], name[RAFFIA_DEVICE_NAME_MAX + 4];
    snprintf(name, sizeof name, "umd %s", driver_device_name(device, device_name));
    const raffia_pool_options options = {
        .struct_size = sizeof options,
        .device = device_name,
        .name = name,
        .initial_bytes = pool_size,
        .maximum_bytes = pool_size,
        .granule = RAFFIA_NONE,
    };
    return raffia_pool_create(&options, pool_p);
}

/* Lock held. */
static void install(struct umd_device *device, raffia_pool *pool, const raffia_pool_stats *stats,
                    bool on_purpose)
{
    device->terms.pool = pool;
    device->terms.on_purpose = on_purpose;
    device->terms.unit = stats->granule;
    device->terms.got = (raffia_page_offer){stats->pages.got_kind, stats->pages.got_size};
    device->refusals = device->skips = 0;
    umd_update_limits(device);
}

/* Lock held. Spares requests that can do without it the time it takes to fail again. */
static bool must_skip(struct umd_device *device, bool on_purpose)
{
    if (on_purpose || device->terms.mode == RAFFIA_PAGES_ON || device->skips == 0 ||
        device->refusals_version != core_settings_version())
        return false;
    device->skips--;
    return true;
}

/* Lock held. */
static void count_refusal(struct umd_device *device)
{
    const unsigned long version = core_settings_version();
    if (device->refusals_version != version)
        device->refusals = 0;
    device->refusals_version = version;
    device->refusals += device->refusals < REFUSALS_MAX ? 1 : 0;
    device->skips = (1u << device->refusals) - 1;
}

/* Lock held. RAFFIA_OK: the pool is there, or may be built. */
static raffia_status judge(struct umd_device *device, bool on_purpose)
{
    if (device->terms.pool)
        return on_purpose ? core_error(RAFFIA_ERROR_BUSY,
                                       "the device has a huge-page pool already: destroy it first")
                          : RAFFIA_OK;
    if (must_skip(device, on_purpose))
        return core_error(RAFFIA_ERROR_OUT_OF_MEMORY,
                          "the huge-page pool could not be built a moment ago: it is tried again "
                          "%u requests from now",
                          device->skips + 1);
    return RAFFIA_OK;
}

/* Whether the pool is being built by this very thread, which was called by the log meanwhile: it
 * cannot wait for itself. */
static bool is_builder(struct umd_device *device)
{
    core_lock_take(&device->lock);
    const bool is = device->building && pthread_equal(device->builder, pthread_self());
    core_lock_leave(&device->lock);
    return is;
}

/* Build lock held. */
static raffia_status build(struct umd_device *device, uint64_t pool_size, bool on_purpose,
                           struct umd_terms *terms)
{
    core_lock_take(&device->lock);
    raffia_status status = judge(device, on_purpose);
    device->building = !status && !device->terms.pool;
    device->builder = pthread_self();
    const bool goes_on = device->building;
    *terms = device->terms;
    core_lock_leave(&device->lock);
    if (!goes_on)
        return status;

    struct core_error_record before;
    core_error_save(&before);
    raffia_pool *pool = NULL;
    raffia_pool_stats stats;
    status = create_pool(terms->device, pool_size, &pool);
    if (!status) {
        status = raffia_pool_query(pool, &stats);
        assert(!status);             /* it is this process's own */
        core_error_restore(&before); /* of the rungs that were refused on the way */
    }
    core_lock_take(&device->lock);
    if (!status) {
        install(device, pool, &stats, on_purpose);
    } else if (!on_purpose) {
        count_refusal(device);
    }
    device->building = false;
    *terms = device->terms;
    core_lock_leave(&device->lock);
    return status;
}

raffia_status umd_build(struct umd_device *device, uint64_t pool_size, bool on_purpose,
                        struct umd_terms *terms)
{
    if (is_builder(device))
        return core_error(RAFFIA_ERROR_BUSY, "the pool is being built by this very thread");
    pthread_mutex_lock(&device->build_lock);
    raffia_status status = build(device, pool_size, on_purpose, terms);
    pthread_mutex_unlock(&device->build_lock);
    return status;
}

raffia_status umd_look(struct umd_device *device, int device_id, raffia_pool **pool_p,
                       uint64_t *fallbacks_p)
{
    core_lock_take(&device->lock);
    const bool bound = umd_is_bound(device);
    raffia_pool *pool = raffia_pool_retain(device->terms.pool);
    const uint64_t fallbacks = device->fallbacks;
    core_lock_leave(&device->lock);
    struct driver_device unused;
    raffia_status status = bound ? RAFFIA_OK : driver_open_index(device_id, &unused);
    if (status)
        return status;
    *pool_p = pool;
    *fallbacks_p = fallbacks;
    return RAFFIA_OK;
}

raffia_status umd_destroy(struct umd_device *device, int device_id)
{
    raffia_pool *pool = NULL;
    uint64_t unused;
    raffia_status status = umd_look(device, device_id, &pool, &unused);
    if (status)
        return status;
    raffia_pool_release(pool);

    core_lock_take(&device->lock);
    pool = device->terms.pool;
    const unsigned calls = device->calls;
    const size_t live = pool && !calls ? device->blocks.count + pool_live_blocks(pool) : 0;
    const bool goes = pool && !calls && !live;
    if (goes) {
        device->terms.pool = NULL;
        device->terms_version = 0;
        device->fallbacks = 0;
        umd_update_limits(device);
    }
    core_lock_leave(&device->lock);
    if (goes) {
        raffia_pool_release(pool);
        return RAFFIA_OK;
    }
    if (calls)
        return core_error(RAFFIA_ERROR_BUSY,
                          "the huge-page pool of device %d cannot be destroyed: another thread is "
                          "about to use it",
                          device_id);
    if (!pool)
        return core_error(RAFFIA_ERROR_NOT_FOUND, "device %d has no huge-page pool", device_id);
    return core_error(RAFFIA_ERROR_BUSY,
                      "the huge-page pool of device %d cannot be destroyed: %zu blocks that were "
                      "handed out for it are live; free them first",
                      device_id, live);
}
