/* Physical memory, and where it is mapped. */
#include "core/checked.h"
#include "core/memory.h"
#include "driver/cuda/chunk.h"
#include "driver/cuda/failure.h"
#include "driver/cuda/verbs.h"

static raffia_fallback_reason reason_of(CUresult result)
{
    switch (result) {
    case CUDA_ERROR_OUT_OF_MEMORY:
        return RAFFIA_REASON_MEMORY;
    case CUDA_ERROR_NOT_SUPPORTED:
        return RAFFIA_REASON_UNSUPPORTED;
    case CUDA_ERROR_NOT_PERMITTED:
        return RAFFIA_REASON_PERMISSION;
    default:
        return RAFFIA_REASON_NONE;
    }
}

static bool offers(const struct cuda_device *device, const struct driver_chunk_spec *spec)
{
    return spec->kind == RAFFIA_PAGE_DEVICE && spec->page_size &&
           (spec->page_size == device->granularity || spec->page_size == device->recommended);
}

raffia_status cuda_check_spec(const struct cuda_device *device,
                              const struct driver_chunk_spec *spec, raffia_fallback_reason *reason)
{
    const int index = device->index;
    *reason = RAFFIA_REASON_UNSUPPORTED;
    raffia_status status = cuda_need_virtual_memory(device);
    if (status)
        return status;
    if (!offers(device, spec))
        return core_error(RAFFIA_ERROR_UNSUPPORTED, "cuda:%d has no %s pages of %zu bytes", index,
                          raffia_page_kind_name(spec->kind), spec->page_size);
    if (!cuda_exports(device, spec->handle))
        return core_error(
            RAFFIA_ERROR_UNSUPPORTED, "cuda:%d cannot export memory as %s", index,
            spec->handle == DRIVER_HANDLE_FD
                ? "a file descriptor"
                : "a fabric handle (a fabric manager and an IMEX channel are needed)");
    *reason = RAFFIA_REASON_NONE;
    if (!spec->bytes || !core_is_aligned(spec->bytes, spec->page_size))
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "cuda:%d: a chunk of %zu bytes is not in whole pages of %zu", index,
                          spec->bytes, spec->page_size);
    return RAFFIA_OK;
}

/* A device may have fabric handles as far as its hardware goes, and no fabric to use them in: only
 * the attempt tells. */
static raffia_status refuse(const struct cuda_device *device, CUresult result,
                            const struct driver_chunk_spec *spec)
{
    return cuda_failed(device->index, result, "cannot take %zu bytes of device memory%s",
                       spec->bytes,
                       spec->handle == DRIVER_HANDLE_FABRIC
                           ? " with a fabric handle (they need a fabric manager and an IMEX "
                             "channel, /dev/nvidia-caps-imex-channels)"
                           : "");
}

static raffia_status create(const struct cuda_device *device, const struct driver_chunk_spec *spec,
                            driver_chunk *chunk_p, raffia_fallback_reason *reason)
{
    raffia_status status = cuda_check_spec(device, spec, reason);
    if (status)
        return status;
    struct driver_chunk *chunk = core_calloc(1, sizeof *chunk);
    if (!chunk)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .requestedHandleTypes = cuda_handle_type(spec->handle),
                                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, device->handle}};
    chunk->bytes = spec->bytes;
    chunk->exports = spec->handle;
    CUresult result = CUDA_CALL(cuMemCreate, &chunk->handle, spec->bytes, &prop, 0);
    if (result) {
        core_free(chunk);
        *reason = reason_of(result);
        return refuse(device, result, spec);
    }
    *chunk_p = chunk;
    return RAFFIA_OK;
}

raffia_status cuda_chunk_create(int index, const struct driver_chunk_spec *spec,
                                driver_chunk *chunk_p, raffia_fallback_reason *reason)
{
    struct cuda_scope scope;
    *reason = RAFFIA_REASON_NONE;
    raffia_status status = cuda_enter_beside_capture(&scope, index, "chunk_create");
    if (status)
        return status;
    status = create(scope.device, spec, chunk_p, reason);
    cuda_leave(&scope);
    return status;
}

/* CUDA would keep the memory until the last mapping goes; nobody could unmap it then. */
raffia_status cuda_chunk_destroy(int index, driver_chunk chunk)
{
    struct cuda_scope scope;
    raffia_status status = cuda_enter_giving_back(&scope, index, "chunk_destroy");
    if (status)
        return status;
    CUresult result = CUDA_SUCCESS;
    if (chunk->place_count)
        status = core_error(RAFFIA_ERROR_BUSY,
                            "cuda:%d: a chunk of %zu bytes is still mapped at %u places", index,
                            chunk->bytes, chunk->place_count);
    else
        result = CUDA_GIVE_BACK(cuMemRelease, chunk->handle);
    cuda_leave(&scope);
    if (result)
        return cuda_failed(index, result, "cannot give a chunk of %zu bytes back", chunk->bytes);
    if (!status)
        core_free(chunk);
    return status;
}

/* Mapping gives no access, not even to the device that has the memory. */
static CUresult map(const struct cuda_device *device, const struct driver_chunk *chunk,
                    CUdeviceptr at)
{
    const CUmemAccessDesc access = {.location = {CU_MEM_LOCATION_TYPE_DEVICE, device->handle},
                                    .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUresult result = CUDA_CALL(cuMemMap, at, chunk->bytes, 0, chunk->handle, 0);
    if (result)
        return result;
    result = CUDA_CALL(cuMemSetAccess, at, chunk->bytes, &access, 1);
    if (result)
        (void)CUDA_GIVE_BACK(cuMemUnmap, at, chunk->bytes);
    return result;
}

raffia_status cuda_chunk_map(int index, driver_chunk chunk, void *at,
                             raffia_fallback_reason *reason)
{
    struct cuda_scope scope;
    *reason = RAFFIA_REASON_NONE;
    if (chunk->place_count == CUDA_PLACES_MAX) {
        *reason = RAFFIA_REASON_LIMIT;
        return core_error(RAFFIA_ERROR_LIMIT, "cuda:%d: a chunk can be mapped at %d places at most",
                          index, CUDA_PLACES_MAX);
    }
    raffia_status status = cuda_enter_beside_capture(&scope, index, "chunk_map");
    if (status)
        return status;
    CUresult result = map(scope.device, chunk, (uintptr_t)at);
    cuda_leave(&scope);
    if (result) {
        *reason = reason_of(result);
        return cuda_failed(index, result, "cannot map a chunk of %zu bytes at %p", chunk->bytes,
                           at);
    }
    chunk->places[chunk->place_count++] = at;
    return RAFFIA_OK;
}

static unsigned find_place(const struct driver_chunk *chunk, const void *at)
{
    unsigned i = 0;
    while (i < chunk->place_count && chunk->places[i] != at)
        i++;
    return i;
}

raffia_status cuda_chunk_unmap(int index, driver_chunk chunk, void *at)
{
    struct cuda_scope scope;
    raffia_status status = cuda_enter_giving_back(&scope, index, "chunk_unmap");
    if (status)
        return status;
    const unsigned place = find_place(chunk, at);
    CUresult result = CUDA_SUCCESS;
    if (place == chunk->place_count)
        status = core_error(RAFFIA_ERROR_BAD_ADDRESS,
                            "cuda:%d: the chunk of %zu bytes is not mapped at %p", index,
                            chunk->bytes, at);
    else
        result = CUDA_GIVE_BACK(cuMemUnmap, (uintptr_t)at, chunk->bytes);
    cuda_leave(&scope);
    if (result)
        return cuda_failed(index, result, "cannot unmap a chunk of %zu bytes at %p", chunk->bytes,
                           at);
    if (!status)
        chunk->places[place] = chunk->places[--chunk->place_count];
    return status;
}

/* No call of CUDA tells the size of a page. */
raffia_status cuda_page_size_of(int index, const void *at, size_t bytes, raffia_page_kind kind,
                                size_t expected, struct driver_page_evidence *evidence)
{
    (void)at, (void)bytes, (void)kind, (void)expected;
    raffia_status status = cuda_check(index, "page_size_of");
    if (!status)
        *evidence = (struct driver_page_evidence){.source = "none"};
    return status;
}
