/*
 * Pools of CUDA's own: memory in the order of streams. A handle is CUDA's.
 *
 * A captured allocation would be a node of the graph and its memory the graph's, so a stream that
 * is being captured is asked about and refused, before CUDA records anything.
 */
#include "core/error.h"
#include "driver/cuda/context.h"
#include "driver/cuda/failure.h"
#include "driver/cuda/verbs.h"

static CUmemoryPool native(driver_pool pool)
{
    return (CUmemoryPool)(void *)pool;
}

static bool library_has_pools(void)
{
    return cuda_library.cuMemPoolCreate && cuda_library.cuMemPoolDestroy &&
           cuda_library.cuMemPoolSetAttribute && cuda_library.cuMemPoolTrimTo &&
           cuda_library.cuMemAllocFromPoolAsync && cuda_library.cuMemFreeAsync;
}

static raffia_status need_pools(const struct cuda_device *device)
{
    int answer = 0;
    if (!library_has_pools())
        return core_error(RAFFIA_ERROR_UNSUPPORTED,
                          "cuda:%d: the NVIDIA driver is too old for pools of its own "
                          "(cuMemPoolCreate and its like are missing)",
                          device->index);
    CUresult result = CUDA_CALL(cuDeviceGetAttribute, &answer,
                                CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, device->handle);
    if (result)
        return cuda_failed(device->index, result, "cannot ask whether the device has pools");
    if (!answer)
        return core_error(RAFFIA_ERROR_UNSUPPORTED,
                          "cuda:%d: the device has no pools of its own for stream-ordered memory",
                          device->index);
    return RAFFIA_OK;
}

static CUresult make(const struct cuda_device *device, size_t threshold, CUmemoryPool *pool_p)
{
    const CUmemPoolProps props = {
        .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
        .handleTypes = CU_MEM_HANDLE_TYPE_NONE,
        .location = {CU_MEM_LOCATION_TYPE_DEVICE, device->handle},
    };
    cuuint64_t value = threshold == SIZE_MAX ? UINT64_MAX : threshold;
    CUmemoryPool pool = NULL;
    CUresult result = CUDA_CALL(cuMemPoolCreate, &pool, &props);
    if (result)
        return result;
    result = CUDA_CALL(cuMemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value);
    if (result)
        (void)CUDA_GIVE_BACK(cuMemPoolDestroy, pool);
    else
        *pool_p = pool;
    return result;
}

raffia_status cuda_pool_create(int index, const struct driver_pool_spec *spec, driver_pool *pool_p)
{
    struct cuda_scope scope;
    raffia_status status = cuda_enter_beside_capture(&scope, index, "pool_create");
    if (status)
        return status;
    CUmemoryPool pool = NULL;
    CUresult result = CUDA_SUCCESS;
    status = need_pools(scope.device);
    if (!status)
        result = make(scope.device, spec->release_threshold, &pool);
    cuda_leave(&scope);
    if (result)
        return cuda_failed(index, result, "cannot create a pool");
    if (!status)
        *pool_p = (driver_pool)(void *)pool;
    return status;
}

/* Frees that are under way keep what they free; CUDA lets it go when they are done. */
raffia_status cuda_pool_destroy(int index, driver_pool pool)
{
    struct cuda_scope scope;
    raffia_status status = cuda_enter_giving_back(&scope, index, "pool_destroy");
    if (status)
        return status;
    CUresult result = CUDA_GIVE_BACK(cuMemPoolDestroy, native(pool));
    cuda_leave(&scope);
    return result ? cuda_failed(index, result, "cannot destroy the pool %p", (void *)pool)
                  : RAFFIA_OK;
}

/* Not a fault point, as it belongs to a free as well. Of the legacy default stream CUDA says with
 * an error of its own that some other stream's capture forbids its use. */
static CUresult check_capture(driver_stream stream)
{
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    CUresult result = cuda_library.cuStreamIsCapturing(stream, &capture);
    if (!result && capture != CU_STREAM_CAPTURE_STATUS_NONE)
        result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    return result;
}

raffia_status cuda_pool_alloc(int index, driver_pool pool, driver_stream stream, size_t bytes,
                              void **address_p)
{
    struct cuda_scope scope;
    if (!bytes)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "cuda:%d: 0 bytes of a pool were asked for", index);
    raffia_status status = cuda_enter_beside_capture(&scope, index, "pool_alloc");
    if (status)
        return status;
    CUdeviceptr address = 0;
    CUresult result = check_capture(stream);
    if (!result)
        result = CUDA_CALL(cuMemAllocFromPoolAsync, &address, bytes, native(pool), stream);
    cuda_leave(&scope);
    if (result)
        return cuda_failed(index, result, "cannot allocate %zu bytes of a pool on the stream %p",
                           bytes, stream);
    *address_p = (void *)(uintptr_t)address;
    return RAFFIA_OK;
}

raffia_status cuda_pool_free(int index, driver_pool pool, driver_stream stream, void *address)
{
    struct cuda_scope scope;
    (void)pool;
    raffia_status status = cuda_enter_giving_back(&scope, index, "pool_free");
    if (status)
        return status;
    CUresult result = check_capture(stream);
    if (!result)
        result = CUDA_GIVE_BACK(cuMemFreeAsync, (uintptr_t)address, stream);
    cuda_leave(&scope);
    return result ? cuda_failed(index, result, "cannot free a pool's block at %p on the stream %p",
                                address, stream)
                  : RAFFIA_OK;
}

raffia_status cuda_pool_trim(int index, driver_pool pool, size_t keep_bytes)
{
    struct cuda_scope scope;
    raffia_status status = cuda_enter_giving_back(&scope, index, "pool_trim");
    if (status)
        return status;
    CUresult result = CUDA_GIVE_BACK(cuMemPoolTrimTo, native(pool), keep_bytes);
    cuda_leave(&scope);
    return result ? cuda_failed(index, result, "cannot trim the pool %p to %zu bytes", (void *)pool,
                                keep_bytes)
                  : RAFFIA_OK;
}
