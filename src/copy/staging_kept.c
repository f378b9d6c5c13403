/* The rings that are kept between loads: one for each device. */
#include "copy/staging_inside.h"
#include "core/process.h"

#define KEPT_MAX PINNED_DEVICES_MAX

/* Guarded by the lock of the process, under which nothing is built or destroyed. A forked child
 * finds its parent's rings here and passes over them. */
static struct staging *kept[KEPT_MAX];

static bool is_for(const struct staging *ring, struct driver_device device)
{
    return ring->device.driver == device.driver && ring->device.index == device.index;
}

static struct staging *take_kept(struct driver_device device)
{
    const unsigned long generation = core_fork_generation();
    struct staging *found = NULL;
    core_process_lock();
    for (int i = 0; i < KEPT_MAX && !found; i++)
        if (kept[i] && kept[i]->generation == generation && is_for(kept[i], device)) {
            found = kept[i];
            kept[i] = NULL;
        }
    core_process_unlock();
    return found;
}

static bool keep(struct staging *ring)
{
    int place = -1;
    core_process_lock();
    for (int i = 0; i < KEPT_MAX; i++) {
        bool inherited = kept[i] && kept[i]->generation != ring->generation;
        if (kept[i] && !inherited && is_for(kept[i], ring->device)) {
            place = -1;
            break;
        }
        if (place < 0 && (!kept[i] || inherited))
            place = i;
    }
    if (place >= 0)
        kept[place] = ring;
    core_process_unlock();
    return place >= 0;
}

static bool has_shape(const struct staging *ring, struct staging_shape shape)
{
    return ring->shape.slot_bytes == shape.slot_bytes && ring->shape.slot_count == shape.slot_count;
}

bool staging_is_kept(struct driver_device device, struct staging_shape shape)
{
    const unsigned long generation = core_fork_generation();
    bool found = false;
    core_process_lock();
    for (int i = 0; i < KEPT_MAX && !found; i++)
        found = kept[i] && kept[i]->generation == generation && is_for(kept[i], device) &&
                has_shape(kept[i], shape);
    core_process_unlock();
    return found;
}

raffia_status staging_open(struct driver_device device, struct staging_shape shape,
                           unsigned threads, struct staging **ring_p)
{
    struct staging *ring = take_kept(device);
    /* Whether the device still answers shows with the first copy: asking takes 0.2 ms. */
    if (ring && has_shape(ring, shape)) {
        ring->build_seconds = 0;
        *ring_p = ring;
        return RAFFIA_OK;
    }
    if (ring)
        staging_destroy(ring);
    return staging_build(device, shape, threads, ring_p);
}

void staging_close(struct staging *ring)
{
    if (!ring || ring->generation != core_fork_generation())
        return;
    if (ring->failed || !keep(ring))
        staging_destroy(ring);
}

void staging_release_kept(void)
{
    const unsigned long generation = core_fork_generation();
    for (int i = 0; i < KEPT_MAX; i++) {
        core_process_lock();
        struct staging *ring = kept[i];
        kept[i] = NULL;
        core_process_unlock();
        if (ring && ring->generation == generation)
            staging_destroy(ring);
    }
}
