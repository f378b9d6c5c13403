/* Chunks that other processes map too. */
#include "core/memory.h"
#include "driver/cuda/chunk.h"
#include "driver/cuda/failure.h"
#include "driver/cuda/verbs.h"

#include <string.h>

_Static_assert(sizeof(CUmemFabricHandle) == DRIVER_HANDLE_WORDS * sizeof(uint64_t),
               "a fabric handle fills the handle of the contract");

CUmemAllocationHandleType cuda_handle_type(enum driver_handle_type type)
{
    switch (type) {
    case DRIVER_HANDLE_FD:
        return CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    case DRIVER_HANDLE_FABRIC:
        return CU_MEM_HANDLE_TYPE_FABRIC;
    case DRIVER_HANDLE_NONE:
        break;
    }
    return CU_MEM_HANDLE_TYPE_NONE;
}

bool cuda_exports(const struct cuda_device *device, enum driver_handle_type type)
{
    switch (type) {
    case DRIVER_HANDLE_NONE:
        return true;
    case DRIVER_HANDLE_FD:
        return device->exports_fd;
    case DRIVER_HANDLE_FABRIC:
        return device->exports_fabric;
    }
    return false;
}

raffia_status cuda_chunk_export(int index, driver_chunk chunk, enum driver_handle_type type,
                                uint64_t handle[DRIVER_HANDLE_WORDS])
{
    if (type == DRIVER_HANDLE_NONE || type != chunk->exports)
        return core_error(RAFFIA_ERROR_UNSUPPORTED,
                          "cuda:%d: a chunk can only be exported as the type of handle it was "
                          "created for",
                          index);
    struct cuda_scope scope;
    raffia_status status = cuda_enter_beside_capture(&scope, index, "chunk_export");
    if (status)
        return status;
    CUmemFabricHandle fabric = {{0}};
    int fd = -1;
    void *shareable = type == DRIVER_HANDLE_FD ? (void *)&fd : (void *)&fabric;
    CUresult result = CUDA_CALL(cuMemExportToShareableHandle, shareable, chunk->handle,
                                cuda_handle_type(type), 0);
    cuda_leave(&scope);
    if (result)
        return cuda_failed(index, result, "cannot export a chunk of %zu bytes", chunk->bytes);
    memset(handle, 0, DRIVER_HANDLE_WORDS * sizeof *handle);
    if (type == DRIVER_HANDLE_FD)
        handle[0] = (uint64_t)fd;
    else
        memcpy(handle, &fabric, sizeof fabric);
    return RAFFIA_OK;
}

/* CUDA tells neither the size of what it imports nor its pages: a wrong size shows when the chunk
 * is mapped, since CUDA maps whole handles only. */
static raffia_status import(const struct cuda_device *device, enum driver_handle_type type,
                            const uint64_t words[DRIVER_HANDLE_WORDS],
                            const struct driver_chunk_spec *spec, driver_chunk *chunk_p)
{
    raffia_fallback_reason unused;
    raffia_status status = cuda_check_spec(device, spec, &unused);
    if (status)
        return status;
    if (type == DRIVER_HANDLE_NONE || !cuda_exports(device, type))
        return core_error(RAFFIA_ERROR_UNSUPPORTED, "cuda:%d imports no handles of this type",
                          device->index);
    if (type == DRIVER_HANDLE_FD && words[0] > INT32_MAX)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "cuda:%d: that is no file descriptor",
                          device->index);
    struct driver_chunk *chunk = core_calloc(1, sizeof *chunk);
    if (!chunk)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    CUmemFabricHandle fabric;
    memcpy(&fabric, words, sizeof fabric);
    void *shareable = type == DRIVER_HANDLE_FD ? (void *)(uintptr_t)words[0] : (void *)&fabric;
    chunk->bytes = spec->bytes;
    chunk->exports = type;
    CUresult result = CUDA_CALL(cuMemImportFromShareableHandle, &chunk->handle, shareable,
                                cuda_handle_type(type));
    if (result) {
        core_free(chunk);
        return cuda_failed(device->index, result,
                           "cannot import a chunk of %zu bytes (is the handle one that a "
                           "process with CUDA exported?)",
                           spec->bytes);
    }
    *chunk_p = chunk;
    return RAFFIA_OK;
}

raffia_status cuda_chunk_import(int index, enum driver_handle_type type,
                                const uint64_t handle[DRIVER_HANDLE_WORDS],
                                const struct driver_chunk_spec *spec, driver_chunk *chunk_p)
{
    struct cuda_scope scope;
    raffia_status status = cuda_enter_beside_capture(&scope, index, "chunk_import");
    if (status)
        return status;
    status = import(scope.device, type, handle, spec, chunk_p);
    cuda_leave(&scope);
    return status;
}
