/* Which GPU is behind which pinned device, and how much is pinned how. */
#include "core/error.h"
#include "core/process.h"
#include "driver/pinned/verbs.h"

#include <assert.h>
#include <stdatomic.h>

/* Entries are added, under the lock of the process, and never change. */
static struct driver_device gpus[PINNED_DEVICES_MAX];
static atomic_int gpu_count;

static atomic_size_t pinned_bytes[PINNED_DEVICES_MAX][PINNED_WAY_COUNT];

/* The index of the entry, which is made if there is room; -1 if there is none. */
static int find_or_add(struct driver_device gpu)
{
    int count = atomic_load_explicit(&gpu_count, memory_order_relaxed);
    for (int i = 0; i < count; i++)
        if (gpus[i].driver == gpu.driver && gpus[i].index == gpu.index)
            return i;
    if (count == PINNED_DEVICES_MAX)
        return -1;
    gpus[count] = gpu;
    atomic_store_explicit(&gpu_count, count + 1, memory_order_release);
    return count;
}

raffia_status pinned_open(struct driver_device gpu, int *index_p)
{
    char name[RAFFIA_DEVICE_NAME_MAX];
    if (!(gpu.driver->capabilities & DRIVER_CAN_REGISTER))
        return core_error(RAFFIA_ERROR_UNSUPPORTED,
                          "host memory cannot be pinned for '%s': its driver registers none",
                          driver_device_name(gpu, name));
    core_process_lock();
    int index = find_or_add(gpu);
    core_process_unlock();
    if (index < 0)
        return core_error(RAFFIA_ERROR_LIMIT, "memory is pinned for %d devices already",
                          PINNED_DEVICES_MAX);
    *index_p = index;
    return RAFFIA_OK;
}

struct driver_device pinned_gpu(int index)
{
    assert(index >= 0 && index < atomic_load_explicit(&gpu_count, memory_order_acquire));
    return gpus[index];
}

raffia_status pinned_devices(int *count_p)
{
    *count_p = atomic_load_explicit(&gpu_count, memory_order_acquire);
    return RAFFIA_OK;
}

raffia_status pinned_context_state(int index)
{
    const struct driver_device gpu = pinned_gpu(index);
    return gpu.driver->context_state(gpu.index);
}

const char *pinned_way_name(enum pinned_way way)
{
    static const char *const names[PINNED_WAY_COUNT] = {
        "registered", "registered in smaller pieces", "allocated by the driver", "pageable"};
    return (unsigned)way < PINNED_WAY_COUNT ? names[way] : "unknown";
}

void pinned_count(int index, enum pinned_way way, size_t bytes)
{
    atomic_fetch_add_explicit(&pinned_bytes[index][way], bytes, memory_order_relaxed);
}

void pinned_uncount(int index, enum pinned_way way, size_t bytes)
{
    atomic_fetch_sub_explicit(&pinned_bytes[index][way], bytes, memory_order_relaxed);
}

void pinned_query(int index, raffia_pinned_usage *usage)
{
    const atomic_size_t *bytes = pinned_bytes[index];
    *usage = (raffia_pinned_usage){
        .registered_bytes = atomic_load(&bytes[PINNED_REGISTERED]),
        .smaller_pieces_bytes = atomic_load(&bytes[PINNED_IN_SMALLER_PIECES]),
        .driver_allocated_bytes = atomic_load(&bytes[PINNED_BY_DRIVER]),
        .pageable_bytes = atomic_load(&bytes[PINNED_PAGEABLE]),
    };
}
