/*
 * A chunk: one allocation of CUDA's virtual memory management.
 *
 * The handle is the unit of everything: CUDA maps and unmaps whole handles only. What a handle
 * holds stays across unmapping, and it can be mapped at several addresses at once, so every chunk
 * is remappable.
 */
#ifndef DRIVER_CUDA_CHUNK_H
#define DRIVER_CUDA_CHUNK_H

#include "driver/cuda/context.h"

/* Addresses that one chunk may be mapped at: a remap needs two. */
#define CUDA_PLACES_MAX 8

struct driver_chunk {
    CUmemGenericAllocationHandle handle;
    size_t bytes;
    enum driver_handle_type exports;
    /* Where it is mapped now. CUDA calls it a success to unmap where nothing is mapped, and unmaps
     * what is somebody else's; so we look first. */
    void *places[CUDA_PLACES_MAX];
    unsigned place_count;
};

/* UNSUPPORTED, with a sentence, for a device without virtual memory management. */
raffia_status cuda_need_virtual_memory(const struct cuda_device *device);

/* Whether the device can make a chunk like this. */
raffia_status cuda_check_spec(const struct cuda_device *device,
                              const struct driver_chunk_spec *spec, raffia_fallback_reason *reason);

/* CUDA's word for a handle type. */
CUmemAllocationHandleType cuda_handle_type(enum driver_handle_type type);

/* Whether the device has handles of the type; NONE counts as one. */
bool cuda_exports(const struct cuda_device *device, enum driver_handle_type type);

#endif
