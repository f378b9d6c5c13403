/*
 * What every verb of the simulated device does first: is the process allowed, does the device
 * exist, was a failure asked for, how slow is it, how often was it called.
 */
#ifndef DRIVER_SIM_VERBS_H
#define DRIVER_SIM_VERBS_H

#include "driver/sim/state.h"

/* Which delay of sim_config applies. */
enum sim_pace {
    SIM_PACE_QUICK,
    SIM_PACE_ALLOC,
    SIM_PACE_MAP,
    SIM_PACE_UNMAP,
};

/* The one list of verbs: X(name, pace, armed). Armed verbs are fault points; sim.h says why not
 * all are. */
#define SIM_VERB_LIST(X)                                                                           \
    X(device_info, QUICK, true)                                                                    \
    X(range_reserve, ALLOC, true)                                                                  \
    X(range_release, UNMAP, false)                                                                 \
    X(chunk_create, ALLOC, true)                                                                   \
    X(chunk_destroy, UNMAP, false)                                                                 \
    X(chunk_map, MAP, true)                                                                        \
    X(chunk_unmap, UNMAP, false)                                                                   \
    X(set_access, MAP, true)                                                                       \
    X(chunk_export, QUICK, true)                                                                   \
    X(chunk_import, ALLOC, true)                                                                   \
    X(page_size_of, QUICK, true)                                                                   \
    X(mem_alloc, ALLOC, true)                                                                      \
    X(mem_free, UNMAP, false)                                                                      \
    X(host_register, ALLOC, true)                                                                  \
    X(host_unregister, UNMAP, false)                                                               \
    X(host_alloc, ALLOC, true)                                                                     \
    X(host_free, UNMAP, false)                                                                     \
    X(stream_create, QUICK, true)                                                                  \
    X(stream_destroy, QUICK, false)                                                                \
    X(stream_id, QUICK, true)                                                                      \
    X(stream_is_capturing, QUICK, true)                                                            \
    X(stream_retire, QUICK, false)                                                                 \
    X(stream_wait, QUICK, true)                                                                    \
    X(device_wait, QUICK, true)                                                                    \
    X(event_create, QUICK, true)                                                                   \
    X(event_destroy, QUICK, false)                                                                 \
    X(event_record, QUICK, true)                                                                   \
    X(event_done, QUICK, true)                                                                     \
    X(event_wait, QUICK, true)                                                                     \
    X(stream_wait_event, QUICK, true)                                                              \
    X(pool_create, ALLOC, true)                                                                    \
    X(pool_destroy, UNMAP, false)                                                                  \
    X(pool_alloc, ALLOC, true)                                                                     \
    X(pool_free, QUICK, false)                                                                     \
    X(pool_trim, UNMAP, false)                                                                     \
    X(copy, QUICK, true)                                                                           \
    X(copy_batch, QUICK, true)                                                                     \
    X(fill, QUICK, true)                                                                           \
    X(find_memory, QUICK, true)                                                                    \
    X(module_load, ALLOC, true)                                                                    \
    X(module_unload, UNMAP, false)                                                                 \
    X(module_function, QUICK, true)                                                                \
    X(launch, QUICK, true)                                                                         \
    X(devices, QUICK, true)                                                                        \
    X(context_state, QUICK, false)

enum sim_verb {
#define SIM_VERB_ENUM(name, pace, armed) SIM_VERB_##name,
    SIM_VERB_LIST(SIM_VERB_ENUM)
#undef SIM_VERB_ENUM
        SIM_VERB_COUNT,
};

/*
 * Begins a verb. On success the lock is held, and sim_leave() ends it. Failures: FORKED,
 * INVALID_ARGUMENT for the device, DRIVER once it is poisoned, or the failure a test asked for,
 * whose reason is then stored; `reason` may be NULL where the verb has none.
 */
raffia_status sim_enter(enum sim_verb verb, int index, raffia_fallback_reason *reason,
                        struct sim_device **device_p);

/* The same for a verb of streams: UNSUPPORTED on a synchronous device. */
raffia_status sim_enter_ordered(enum sim_verb verb, int index, struct sim_device **device_p);

/* The same for a verb without a device. The lock is not held afterwards. */
raffia_status sim_enter_process(enum sim_verb verb);

/* The failure of a verb on a poisoned device; verbs that wait find it out when they wake. */
raffia_status sim_poisoned_error(const struct sim_device *device, enum sim_verb verb);

/* Forgets counts and failures asked for. */
void sim_verbs_reset(void);

#endif
