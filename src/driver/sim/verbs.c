#include "driver/sim/verbs.h"

#include "core/error.h"
#include "core/fault.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

static const struct {
    const char *name;
    const char *fault;
    enum sim_pace pace;
    bool armed;
} verbs[SIM_VERB_COUNT] = {
#define SIM_VERB_ROW(name, pace, armed) {#name, "sim." #name, SIM_PACE_##pace, armed},
    SIM_VERB_LIST(SIM_VERB_ROW)
#undef SIM_VERB_ROW
};

static atomic_long calls[SIM_VERB_COUNT];

/* Failures asked for by sim_fail_next(); RAFFIA_OK: none. Guarded by the lock. */
static struct {
    raffia_status status;
    raffia_fallback_reason reason;
} asked_failures[SIM_VERB_COUNT];

static int find_verb(const char *name)
{
    for (int i = 0; i < SIM_VERB_COUNT; i++)
        if (!strcmp(verbs[i].name, name))
            return i;
    return -1;
}

long sim_calls(const char *name)
{
    int verb = find_verb(name);
    return verb < 0 ? -1 : atomic_load(&calls[verb]);
}

void sim_fail_next(const char *name, raffia_status status, raffia_fallback_reason reason)
{
    int verb = find_verb(name);
    assert(verb >= 0);
    if (verb < 0 || sim_is_forked())
        return;
    sim_acquire();
    asked_failures[verb].status = status;
    asked_failures[verb].reason = reason;
    sim_leave();
}

void sim_verbs_reset(void)
{
    memset(asked_failures, 0, sizeof asked_failures);
    for (int i = 0; i < SIM_VERB_COUNT; i++)
        atomic_store(&calls[i], 0);
}

raffia_status sim_poisoned_error(const struct sim_device *device, enum sim_verb verb)
{
    return core_error_native(RAFFIA_ERROR_DRIVER, "SIM_POISONED",
                             "sim:%d: %s failed because the device's context is lost",
                             device->index, verbs[verb].name);
}

/* The failure that a test asked for, or RAFFIA_OK. */
static raffia_status injected_failure(enum sim_verb verb, raffia_fallback_reason *reason)
{
    raffia_status status = asked_failures[verb].status;
    if (status) {
        *reason = asked_failures[verb].reason;
        asked_failures[verb].status = RAFFIA_OK;
    } else if (verbs[verb].armed && core_fault(verbs[verb].fault)) {
        bool takes = verbs[verb].pace == SIM_PACE_ALLOC || verbs[verb].pace == SIM_PACE_MAP;
        *reason = takes ? RAFFIA_REASON_MEMORY : RAFFIA_REASON_NONE;
        status = takes ? RAFFIA_ERROR_OUT_OF_MEMORY : RAFFIA_ERROR_DRIVER;
    }
    if (!status)
        return RAFFIA_OK;
    return core_error_native(status, "SIM_INJECTED", "sim: %s was made to fail by a test",
                             verbs[verb].name);
}

static raffia_status refuse_forked(enum sim_verb verb)
{
    return core_error(RAFFIA_ERROR_FORKED,
                      "sim: %s was called in a forked child; the devices belong to its parent",
                      verbs[verb].name);
}

static void sleep_without_lock(unsigned microseconds)
{
    if (!microseconds)
        return;
    sim_leave();
    sim_pause(microseconds);
    sim_acquire();
}

static unsigned delay_of(const struct sim_device *device, enum sim_pace pace)
{
    switch (pace) {
    case SIM_PACE_ALLOC:
        return device->config.alloc_us;
    case SIM_PACE_MAP:
        return device->config.map_us;
    case SIM_PACE_UNMAP:
        return device->config.unmap_us;
    case SIM_PACE_QUICK:
        break;
    }
    return 0;
}

raffia_status sim_enter(enum sim_verb verb, int index, raffia_fallback_reason *reason,
                        struct sim_device **device_p)
{
    if (sim_is_forked())
        return refuse_forked(verb);
    atomic_fetch_add(&calls[verb], 1);
    sim_acquire();
    if (index < 0 || index >= sim_device_count) {
        int count = sim_device_count;
        sim_leave();
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "sim: %s on device %d, but there are only %d", verbs[verb].name, index,
                          count);
    }
    struct sim_device *device = &sim_devices[index];
    sleep_without_lock(delay_of(device, verbs[verb].pace));
    raffia_fallback_reason why = RAFFIA_REASON_NONE;
    raffia_status status =
        device->poisoned ? sim_poisoned_error(device, verb) : injected_failure(verb, &why);
    if (status) {
        sim_leave();
        if (reason)
            *reason = why;
        return status;
    }
    *device_p = device;
    return RAFFIA_OK;
}

raffia_status sim_enter_ordered(enum sim_verb verb, int index, struct sim_device **device_p)
{
    raffia_status status = sim_enter(verb, index, NULL, device_p);
    if (status || !(*device_p)->config.synchronous)
        return status;
    sim_leave();
    return driver_unsupported(sim_driver.name, verbs[verb].name);
}

raffia_status sim_enter_process(enum sim_verb verb)
{
    if (sim_is_forked())
        return refuse_forked(verb);
    atomic_fetch_add(&calls[verb], 1);
    sim_acquire();
    raffia_fallback_reason why;
    raffia_status status = injected_failure(verb, &why);
    sim_leave();
    return status;
}
