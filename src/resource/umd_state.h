/*
 * One device of raffia/umd.h from the inside, for the files that keep it: umd_device.c, umd_pool.c
 * and umd_fast.c.
 */
#ifndef RESOURCE_UMD_STATE_H
#define RESOURCE_UMD_STATE_H

#include "core/lock.h"
#include "core/process.h"
#include "policy/route.h"
#include "resource/umd_device.h"

#include <pthread.h>

#define UMD_DEVICES_MAX 64

struct umd_device {
    struct core_lock lock; /* guards all but build_lock */
    unsigned calls;        /* under way that may make a pool or a block */
    struct umd_terms terms;
    unsigned long terms_version; /* core_settings_version() they were read at; 0: never */
    struct policy_limits limits; /* what the terms come to for requests without hints that the pool
                                    can serve at once; nothing exceeds them before there is one */
    struct resource_blocks blocks;
    uint64_t fallbacks;
    unsigned refusals;              /* attempts to build that failed, in a row */
    unsigned skips;                 /* requests that are refused before the next attempt */
    unsigned long refusals_version; /* core_settings_version() that both hold for */
    bool building;
    pthread_t builder;          /* while building */
    pthread_mutex_t build_lock; /* held, before `lock`, by the thread that builds: others wait */
};

/* Of the process whose fork generation this is. A child finds its parent's, and forgets them: locks
 * may be held in them by threads that it does not have. */
extern struct umd_device umd_devices[UMD_DEVICES_MAX];
extern atomic_ulong umd_devices_generation;

/* NULL if the devices have to be started afresh, or the id is beyond them: umd_find() does that. */
static inline struct umd_device *umd_device_at(int device_id)
{
    if (atomic_load_explicit(&umd_devices_generation, memory_order_acquire) !=
            core_fork_generation() ||
        device_id < 0 || device_id >= UMD_DEVICES_MAX)
        return NULL;
    return &umd_devices[device_id];
}

/* Lock held. */
static inline bool umd_is_bound(const struct umd_device *device)
{
    return device->terms.pool || device->blocks.count || device->calls;
}

/* Lock held, after the terms changed. */
void umd_update_limits(struct umd_device *device);

#endif
