#include "resource/umd_device.h"

#include "core/checked.h"
#include "core/error.h"
#include "core/log.h"
#include "core/process.h"
#include "core/settings.h"
#include "policy/ladder.h"
#include "pool/pool.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define DEVICES_MAX 64

/* An alignment of 0 means no more than this before there is a pool. */
#define UNIT_MAX ((size_t)2 << 20)

/* After the n-th failure in a row 2^n - 1 requests do without the pool; n counts up to this. */
#define REFUSALS_MAX 10u

struct umd_device {
    pthread_mutex_t lock;
    pthread_cond_t built; /* `building` became false */
    bool building;
    pthread_t builder; /* while building */
    unsigned calls;    /* under way that may make a pool or a block */
    struct umd_terms terms;
    unsigned long terms_version; /* core_settings_version() they were read at; 0: never */
    struct resource_blocks blocks;
    uint64_t fallbacks;
    unsigned refusals;              /* attempts to build that failed, in a row */
    unsigned skips;                 /* requests that are refused before the next attempt */
    unsigned long refusals_version; /* core_settings_version() that both hold for */
};

/* Of the process whose fork generation this is. A child finds its parent's, and forgets them: locks
 * may be held in them by threads that it does not have. */
static struct umd_device devices[DEVICES_MAX];
static atomic_ulong devices_generation;

static void start_afresh(unsigned long generation)
{
    core_process_lock();
    if (atomic_load_explicit(&devices_generation, memory_order_relaxed) != generation) {
        memset(devices, 0, sizeof devices);
        for (int i = 0; i < DEVICES_MAX; i++) {
            pthread_mutex_init(&devices[i].lock, NULL);
            pthread_cond_init(&devices[i].built, NULL);
        }
        atomic_store_explicit(&devices_generation, generation, memory_order_release);
    }
    core_process_unlock();
}

raffia_status umd_find(int device_id, struct umd_device **device_p)
{
    const unsigned long generation = core_fork_generation();
    if (atomic_load_explicit(&devices_generation, memory_order_acquire) != generation)
        start_afresh(generation);
    if (device_id >= 0 && device_id < DEVICES_MAX) {
        *device_p = &devices[device_id];
        return RAFFIA_OK;
    }
    struct driver_device unused;
    raffia_status status = driver_open_index(device_id, &unused);
    return status ? status
                  : core_error(RAFFIA_ERROR_LIMIT,
                               "device %d is beyond the %d that huge-page pools are kept for",
                               device_id, DEVICES_MAX);
}

/* ---- calls and terms ------------------------------------------------------------------------ */

/* Lock held. */
static bool is_bound(const struct umd_device *device)
{
    return device->terms.pool || device->blocks.count || device->calls;
}

static raffia_status bind(struct umd_device *device, int device_id)
{
    struct driver_device found;
    raffia_status status = driver_open_index(device_id, &found);
    if (status)
        return status;
    pthread_mutex_lock(&device->lock);
    if (!is_bound(device)) {
        device->terms = (struct umd_terms){.device = found};
        device->terms_version = 0;
        device->fallbacks = 0;
    }
    device->calls++;
    pthread_mutex_unlock(&device->lock);
    return RAFFIA_OK;
}

/* With a call under way, so that the device stays the same. */
static raffia_status read_terms(struct umd_device *device, struct umd_terms *terms)
{
    const unsigned long version = core_settings_version();
    struct policy_parameters parameters;
    struct policy_ladder ladder;
    raffia_device_info info;
    pthread_mutex_lock(&device->lock);
    const struct driver_device bound = device->terms.device;
    pthread_mutex_unlock(&device->lock);
    raffia_status status = bound.driver->device_info(bound.index, &info);
    if (status)
        return status;
    policy_parameters_for(&info, &parameters);
    const raffia_pages_mode mode = raffia_pages_mode_in_force();
    status = policy_ladder_make(RAFFIA_PAGES_TRY, parameters.page_size, &info, &ladder);
    if (status)
        return status;
    pthread_mutex_lock(&device->lock);
    struct umd_terms *kept = &device->terms;
    kept->parameters = parameters;
    kept->mode = mode;
    kept->regular = info.pages[info.page_count - 1];
    if (!kept->pool) {
        kept->unit = core_min(parameters.page_size, UNIT_MAX);
        kept->got = ladder.rungs[0];
    }
    device->terms_version = version;
    *terms = *kept;
    pthread_mutex_unlock(&device->lock);
    return RAFFIA_OK;
}

raffia_status umd_begin(struct umd_device *device, int device_id, struct umd_terms *terms)
{
    pthread_mutex_lock(&device->lock);
    const bool bound = is_bound(device);
    const bool fresh = bound && device->terms_version == core_settings_version();
    if (bound)
        device->calls++;
    if (fresh)
        *terms = device->terms;
    pthread_mutex_unlock(&device->lock);
    if (fresh)
        return RAFFIA_OK;
    raffia_status status = bound ? RAFFIA_OK : bind(device, device_id);
    if (status)
        return status;
    status = read_terms(device, terms);
    if (status)
        umd_end(device);
    return status;
}

void umd_end(struct umd_device *device)
{
    pthread_mutex_lock(&device->lock);
    assert(device->calls > 0);
    device->calls--;
    pthread_mutex_unlock(&device->lock);
}

/* ---- the pool ------------------------------------------------------------------------------- */

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

/* Lock held. RAFFIA_OK: the pool is there, or `building` is now this thread's to reset. A thread
 * that comes by here while it builds was called by the log: it cannot wait for itself. */
static raffia_status claim(struct umd_device *device, bool on_purpose)
{
    while (device->building && !pthread_equal(device->builder, pthread_self()))
        pthread_cond_wait(&device->built, &device->lock);
    if (device->building)
        return core_error(RAFFIA_ERROR_BUSY, "the pool is being built by this very thread");
    if (device->terms.pool)
        return on_purpose ? core_error(RAFFIA_ERROR_BUSY,
                                       "the device has a huge-page pool already: destroy it first")
                          : RAFFIA_OK;
    if (must_skip(device, on_purpose))
        return core_error(RAFFIA_ERROR_OUT_OF_MEMORY,
                          "the huge-page pool could not be built a moment ago: it is tried again "
                          "%u requests from now",
                          device->skips + 1);
    device->building = true;
    device->builder = pthread_self();
    return RAFFIA_OK;
}

raffia_status umd_build(struct umd_device *device, uint64_t pool_size, bool on_purpose,
                        struct umd_terms *terms)
{
    pthread_mutex_lock(&device->lock);
    raffia_status status = claim(device, on_purpose);
    const bool claimed = !status && !device->terms.pool;
    *terms = device->terms;
    pthread_mutex_unlock(&device->lock);
    if (!claimed)
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
    pthread_mutex_lock(&device->lock);
    if (!status) {
        install(device, pool, &stats, on_purpose);
    } else if (!on_purpose) {
        count_refusal(device);
    }
    device->building = false;
    pthread_cond_broadcast(&device->built);
    *terms = device->terms;
    pthread_mutex_unlock(&device->lock);
    return status;
}

raffia_status umd_look(struct umd_device *device, int device_id, raffia_pool **pool_p,
                       uint64_t *fallbacks_p)
{
    pthread_mutex_lock(&device->lock);
    const bool bound = is_bound(device);
    raffia_pool *pool = raffia_pool_retain(device->terms.pool);
    const uint64_t fallbacks = device->fallbacks;
    pthread_mutex_unlock(&device->lock);
    struct driver_device unused;
    raffia_status status = bound ? RAFFIA_OK : driver_open_index(device_id, &unused);
    if (status)
        return status;
    *pool_p = pool;
    *fallbacks_p = fallbacks;
    return RAFFIA_OK;
}

/* Lock held, and a pool is there. */
static size_t live_blocks(const struct umd_device *device)
{
    raffia_pool_stats stats;
    raffia_status status = raffia_pool_query(device->terms.pool, &stats);
    return device->blocks.count + (status ? 0 : stats.live_blocks);
}

raffia_status umd_destroy(struct umd_device *device, int device_id)
{
    raffia_pool *pool = NULL;
    uint64_t unused;
    raffia_status status = umd_look(device, device_id, &pool, &unused);
    if (status)
        return status;
    raffia_pool_release(pool);

    pthread_mutex_lock(&device->lock);
    pool = device->terms.pool;
    const unsigned calls = device->calls;
    const size_t live = pool && !calls ? live_blocks(device) : 0;
    const bool goes = pool && !calls && !live;
    if (goes) {
        device->terms.pool = NULL;
        device->terms_version = 0;
        device->fallbacks = 0;
    }
    pthread_mutex_unlock(&device->lock);
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

/* ---- blocks --------------------------------------------------------------------------------- */

raffia_status umd_record(struct umd_device *device, const struct resource_block *block,
                         bool is_fallback)
{
    pthread_mutex_lock(&device->lock);
    raffia_status status = resource_blocks_add(&device->blocks, block);
    if (!status && is_fallback)
        device->fallbacks++;
    pthread_mutex_unlock(&device->lock);
    return status;
}

void umd_find_owner(struct umd_device *device, const void *address, struct umd_owner *owner)
{
    pthread_mutex_lock(&device->lock);
    owner->device = device->terms.device;
    owner->recorded = resource_blocks_take(&device->blocks, address, &owner->block);
    owner->pool = owner->recorded ? NULL : raffia_pool_retain(device->terms.pool);
    pthread_mutex_unlock(&device->lock);
}

/* The device may have been bound anew in the meantime: then the block is nobody's. */
void umd_put_back(struct umd_device *device, const struct umd_owner *owner)
{
    struct core_error_record cause;
    core_error_save(&cause);
    pthread_mutex_lock(&device->lock);
    const bool same = device->terms.device.driver == owner->device.driver &&
                      device->terms.device.index == owner->device.index;
    raffia_status status =
        same ? resource_blocks_add(&device->blocks, &owner->block) : RAFFIA_ERROR_NOT_FOUND;
    pthread_mutex_unlock(&device->lock);
    core_error_restore(&cause);
    if (status)
        core_log_error("a block of %zu bytes at %p could not be freed, and is lost: %s",
                       owner->block.bytes, owner->block.address, cause.text);
}
