/* Registered host memory: only a list, since the device can reach all of it anyway. */
#include "core/checked.h"
#include "core/error.h"
#include "driver/sim/memory.h"
#include "driver/sim/verbs.h"

static raffia_status add(struct sim_device *device, void *at, size_t bytes)
{
    uintptr_t end;
    if (!at || !bytes || !core_add((uintptr_t)at, bytes, &end))
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "sim:%d: %zu bytes at %p are no host memory", device->index, bytes, at);
    size_t most = device->config.register_bytes_max;
    if (most && bytes > most)
        return core_error(RAFFIA_ERROR_OUT_OF_MEMORY,
                          "sim:%d registers at most %zu bytes at once, not %zu", device->index,
                          most, bytes);
    const struct sim_span *other = sim_spans_first(&device->registrations, at, bytes);
    if (other)
        return sim_misuse(device, "host_register of %zu bytes at %p, over %zu registered at %p",
                          bytes, at, other->bytes, (void *)other->start);
    raffia_status status = sim_spans_reserve(&device->registrations, 1);
    if (!status)
        sim_spans_insert(&device->registrations, at, bytes, NULL);
    return status;
}

raffia_status sim_host_register(int index, void *at, size_t bytes)
{
    struct sim_device *device;
    raffia_status status = sim_enter(SIM_VERB_host_register, index, NULL, &device);
    if (status)
        return status;
    status = add(device, at, bytes);
    sim_leave();
    return status;
}

static raffia_status take_away(struct sim_device *device, void *at, size_t bytes)
{
    const struct sim_span *registered = sim_spans_exactly(&device->registrations, at);
    if (!registered)
        return sim_misuse(device, "host_unregister at %p, where nothing was registered", at);
    if (registered->bytes != bytes)
        return sim_misuse(device, "host_unregister of %zu bytes at %p, where %zu were registered",
                          bytes, at, registered->bytes);
    raffia_status status = sim_check_quiet(device, at, bytes, "host_unregister");
    if (!status)
        sim_spans_remove(&device->registrations, at);
    return status;
}

raffia_status sim_host_unregister(int index, void *at, size_t bytes)
{
    struct sim_device *device;
    raffia_status status = sim_enter(SIM_VERB_host_unregister, index, NULL, &device);
    if (status)
        return status;
    status = take_away(device, at, bytes);
    sim_leave();
    return status;
}
