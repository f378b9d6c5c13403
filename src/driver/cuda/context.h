/*
 * Devices, their primary contexts, and what every verb begins and ends with.
 */
#ifndef DRIVER_CUDA_CONTEXT_H
#define DRIVER_CUDA_CONTEXT_H

#include "core/error.h"
#include "core/process.h"
#include "driver/cuda/library.h"
#include "driver/driver.h"

#include <stdatomic.h>

struct cuda_device {
    int index;
    CUdevice handle;
    CUcontext context; /* primary, retained */
    /* Facts, constant once the context is there. */
    bool has_virtual_memory;
    bool exports_fd, exports_fabric;
    size_t granularity; /* unit of ranges and chunks; 0 without virtual memory */
    size_t recommended; /* at least the granularity */
};

/* Between the two calls the device's context is current in this thread. */
struct cuda_scope {
    const struct cuda_device *device;
    bool pushed; /* it was not current before */
    bool relaxed;
    CUstreamCaptureMode mode; /* of the thread before, where relaxed */
};

/*
 * Begins a verb on a device: checks that the process may use it, opens what was not open yet and
 * makes the context current. `verb` names it in failures. On failure there is nothing to leave.
 */
raffia_status cuda_enter(struct cuda_scope *scope, int index, const char *verb);

/* The same for verbs that give something back; no fault is put into it. */
raffia_status cuda_enter_giving_back(struct cuda_scope *scope, int index, const char *verb);

/*
 * The same for verbs that CUDA refuses in a thread of which some stream is being captured into a
 * graph, and whose refusal would spoil the capture: they do not belong to it, and are let through.
 */
raffia_status cuda_enter_beside_capture(struct cuda_scope *scope, int index, const char *verb);

/* Puts back what was current before. */
void cuda_leave(const struct cuda_scope *scope);

/* Checks only that the process may use the driver, and that there is such a device. */
raffia_status cuda_check(int index, const char *verb);

/* The generation of the process that opened the device; 0 if none has. */
extern atomic_ulong cuda_opened_in[CUDA_DEVICES_MAX];

/* Whether the process may use the driver, and has used this device before: all that a verb needs to
 * know which needs no context. */
static inline bool cuda_is_open(int index)
{
    return index >= 0 && index < CUDA_DEVICES_MAX &&
           atomic_load_explicit(&cuda_opened_in[index], memory_order_acquire) ==
               core_fork_generation();
}

/* The device's handle, without a context for it. */
raffia_status cuda_device_handle(int index, CUdevice *handle_p);

#endif
