/*
 * The way that most calls of raffia/umd.h go: a pool stands, and serves the request at once. The
 * device's lock is held all the while, so that the pool cannot be destroyed: it need not be
 * retained, the call not counted, the terms not copied.
 */
#include "core/checked.h"
#include "core/log.h"
#include "core/settings.h"
#include "pool/pool.h"
#include "resource/umd_state.h"

bool umd_alloc_fast(int device_id, size_t bytes, size_t alignment, void **address_p)
{
    struct umd_device *device = umd_device_at(device_id);
    if (!device || !bytes || (alignment & (alignment - 1)) || core_log_level() >= RAFFIA_LOG_DEBUG)
        return false;
    core_lock_take(&device->lock);
    const size_t unit = device->terms.unit;
    const bool served =
        device->terms_version == core_settings_version() &&
        policy_exceeds(&device->limits, bytes, alignment ? alignment : unit) &&
        pool_take_mapped(device->terms.pool, bytes, core_max(alignment, unit), address_p);
    core_lock_leave(&device->lock);
    return served;
}

/* What lies in the pool's range is on no record: the addresses are the pool's. */
bool umd_free_fast(int device_id, const void *address)
{
    struct umd_device *device = umd_device_at(device_id);
    if (!device || core_log_level() >= RAFFIA_LOG_DEBUG)
        return false;
    core_lock_take(&device->lock);
    const bool freed = device->terms.pool && pool_give_mapped(device->terms.pool, address);
    core_lock_leave(&device->lock);
    return freed;
}
