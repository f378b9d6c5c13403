#include "core/checked.h"
#include "core/error.h"
#include "core/log.h"
#include "core/settings.h"
#include "policy/ladder.h"
#include "resource/umd_state.h"

#include <assert.h>
#include <string.h>

/* An alignment of 0 means no more than this before there is a pool. */
#define UNIT_MAX ((size_t)2 << 20)

struct umd_device umd_devices[UMD_DEVICES_MAX];
atomic_ulong umd_devices_generation;

static void start_afresh(unsigned long generation)
{
    core_process_lock();
    if (atomic_load_explicit(&umd_devices_generation, memory_order_relaxed) != generation) {
        memset(umd_devices, 0, sizeof umd_devices);
        for (int i = 0; i < UMD_DEVICES_MAX; i++)
            pthread_mutex_init(&umd_devices[i].build_lock, NULL);
        atomic_store_explicit(&umd_devices_generation, generation, memory_order_release);
    }
    core_process_unlock();
}

raffia_status umd_find(int device_id, struct umd_device **device_p)
{
    const unsigned long generation = core_fork_generation();
    if (atomic_load_explicit(&umd_devices_generation, memory_order_acquire) != generation)
        start_afresh(generation);
    *device_p = umd_device_at(device_id);
    if (*device_p)
        return RAFFIA_OK;
    struct driver_device unused;
    raffia_status status = driver_open_index(device_id, &unused);
    return status ? status
                  : core_error(RAFFIA_ERROR_LIMIT,
                               "device %d is beyond the %d that huge-page pools are kept for",
                               device_id, UMD_DEVICES_MAX);
}

raffia_pages_mode umd_mode_for(const struct umd_terms *terms)
{
    if (terms->pool && terms->on_purpose && terms->mode != RAFFIA_PAGES_ON)
        return RAFFIA_PAGES_TRY;
    return terms->mode;
}

void umd_update_limits(struct umd_device *device)
{
    const struct umd_terms *terms = &device->terms;
    const raffia_pages_mode mode = umd_mode_for(terms);
    const bool refuses = mode == RAFFIA_PAGES_ON && !policy_is_huge(terms->got.kind);
    device->limits =
        policy_limits_for(terms->pool && !refuses ? mode : RAFFIA_PAGES_OFF, &terms->parameters);
}

/* ---- calls and terms ------------------------------------------------------------------------ */

static raffia_status bind(struct umd_device *device, int device_id)
{
    struct driver_device found;
    raffia_status status = driver_open_index(device_id, &found);
    if (status)
        return status;
    core_lock_take(&device->lock);
    if (!umd_is_bound(device)) {
        device->terms = (struct umd_terms){.device = found};
        device->terms_version = 0;
        device->fallbacks = 0;
    }
    device->calls++;
    core_lock_leave(&device->lock);
    return RAFFIA_OK;
}

/* With a call under way, so that the device stays the same. */
static raffia_status read_terms(struct umd_device *device, struct umd_terms *terms)
{
    const unsigned long version = core_settings_version();
    struct policy_parameters parameters;
    struct policy_ladder ladder;
    raffia_device_info info;
    core_lock_take(&device->lock);
    const struct driver_device bound = device->terms.device;
    core_lock_leave(&device->lock);
    raffia_status status = bound.driver->device_info(bound.index, &info);
    if (status)
        return status;
    policy_parameters_for(&info, &parameters);
    const raffia_pages_mode mode = raffia_pages_mode_in_force();
    status = policy_ladder_make(RAFFIA_PAGES_TRY, parameters.page_size, &info, &ladder);
    if (status)
        return status;
    core_lock_take(&device->lock);
    struct umd_terms *kept = &device->terms;
    kept->parameters = parameters;
    kept->mode = mode;
    kept->regular = info.pages[info.page_count - 1];
    if (!kept->pool) {
        kept->unit = core_min(parameters.page_size, UNIT_MAX);
        kept->got = ladder.rungs[0];
    }
    device->terms_version = version;
    umd_update_limits(device);
    *terms = *kept;
    core_lock_leave(&device->lock);
    return RAFFIA_OK;
}

raffia_status umd_begin(struct umd_device *device, int device_id, struct umd_terms *terms)
{
    core_lock_take(&device->lock);
    const bool bound = umd_is_bound(device);
    const bool fresh = bound && device->terms_version == core_settings_version();
    if (bound)
        device->calls++;
    if (fresh)
        *terms = device->terms;
    core_lock_leave(&device->lock);
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
    core_lock_take(&device->lock);
    assert(device->calls > 0);
    device->calls--;
    core_lock_leave(&device->lock);
}

/* ---- blocks --------------------------------------------------------------------------------- */

raffia_status umd_record(struct umd_device *device, const struct resource_block *block,
                         bool is_fallback)
{
    core_lock_take(&device->lock);
    raffia_status status = resource_blocks_add(&device->blocks, block);
    if (!status && is_fallback)
        device->fallbacks++;
    core_lock_leave(&device->lock);
    return status;
}

void umd_find_owner(struct umd_device *device, const void *address, struct umd_owner *owner)
{
    core_lock_take(&device->lock);
    owner->device = device->terms.device;
    owner->recorded = resource_blocks_take(&device->blocks, address, &owner->block);
    owner->pool = owner->recorded ? NULL : raffia_pool_retain(device->terms.pool);
    core_lock_leave(&device->lock);
}

/* The device may have been bound anew in the meantime: then the block is nobody's. */
void umd_put_back(struct umd_device *device, const struct umd_owner *owner)
{
    struct core_error_record cause;
    core_error_save(&cause);
    core_lock_take(&device->lock);
    const bool same = device->terms.device.driver == owner->device.driver &&
                      device->terms.device.index == owner->device.index;
    raffia_status status =
        same ? resource_blocks_add(&device->blocks, &owner->block) : RAFFIA_ERROR_NOT_FOUND;
    core_lock_leave(&device->lock);
    core_error_restore(&cause);
    if (status)
        core_log_error("a block of %zu bytes at %p could not be freed, and is lost: %s",
                       owner->block.bytes, owner->block.address, cause.text);
}
