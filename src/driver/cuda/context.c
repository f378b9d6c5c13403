#include "driver/cuda/context.h"

#include "driver/cuda/failure.h"

#include <assert.h>
#include <pthread.h>

static struct cuda_device devices[CUDA_DEVICES_MAX];
atomic_ulong cuda_opened_in[CUDA_DEVICES_MAX];
static pthread_mutex_t device_lock = PTHREAD_MUTEX_INITIALIZER; /* one opens, others wait */

raffia_status cuda_check(int index, const char *verb)
{
    if (cuda_is_forked())
        return core_error(RAFFIA_ERROR_FORKED,
                          "cuda: %s was called in a forked child; the GPUs belong to its parent, "
                          "and CUDA cannot be used here (start the process anew, by exec)",
                          verb);
    if (cuda_library_open() != CUDA_READY)
        return raffia_last_status();
    if (index < 0 || index >= cuda_library.device_count)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "cuda: %s on device %d, but there %s only %d", verb, index,
                          cuda_library.device_count == 1 ? "is" : "are", cuda_library.device_count);
    return RAFFIA_OK;
}

raffia_status cuda_device_handle(int index, CUdevice *handle_p)
{
    CUresult result = CUDA_CALL(cuDeviceGet, handle_p, index);
    return result ? cuda_failed(index, result, "cannot find the device") : RAFFIA_OK;
}

static CUresult has(CUdevice handle, CUdevice_attribute attribute, bool *answer_p)
{
    int value = 0;
    CUresult result = CUDA_CALL(cuDeviceGetAttribute, &value, attribute, handle);
    *answer_p = value != 0;
    return result;
}

static CUresult read_facts(struct cuda_device *device)
{
    const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, device->handle}};
    CUresult result = has(device->handle, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
                          &device->has_virtual_memory);
    if (!result)
        result =
            has(device->handle, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED,
                &device->exports_fd);
    /* Drivers from before the attribute say INVALID_VALUE. */
    if (!result && has(device->handle, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED,
                       &device->exports_fabric))
        device->exports_fabric = false;
    if (result || !device->has_virtual_memory)
        return result;
    result = CUDA_CALL(cuMemGetAllocationGranularity, &device->granularity, &prop,
                       CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    if (!result)
        result = CUDA_CALL(cuMemGetAllocationGranularity, &device->recommended, &prop,
                           CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
    return result;
}

static raffia_status open_device(int index)
{
    struct cuda_device device = {.index = index};
    raffia_status status = cuda_device_handle(index, &device.handle);
    if (status)
        return status;
    CUresult result = read_facts(&device);
    if (result)
        return cuda_failed(index, result, "cannot ask for the device's properties");
    result = CUDA_CALL(cuDevicePrimaryCtxRetain, &device.context, device.handle);
    if (result)
        return cuda_failed(index, result, "cannot open the device's primary context");
    devices[index] = device;
    atomic_store_explicit(&cuda_opened_in[index], core_fork_generation(), memory_order_release);
    return RAFFIA_OK;
}

static raffia_status need_device(int index)
{
    if (atomic_load_explicit(&cuda_opened_in[index], memory_order_acquire))
        return RAFFIA_OK;
    pthread_mutex_lock(&device_lock);
    raffia_status status = RAFFIA_OK;
    if (!atomic_load_explicit(&cuda_opened_in[index], memory_order_relaxed))
        status = open_device(index);
    pthread_mutex_unlock(&device_lock);
    return status;
}

/* Pushing rather than setting: popping restores whatever stack of contexts the thread had. */
static CUresult make_current(struct cuda_scope *scope, bool may_fail)
{
    CUcontext current = NULL;
    CUresult result = cuda_library.cuCtxGetCurrent(&current);
    if (result || current == scope->device->context)
        return result;
    if (may_fail && core_fault("cuda.cuCtxPushCurrent"))
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = cuda_library.cuCtxPushCurrent_v2(scope->device->context);
    scope->pushed = result == CUDA_SUCCESS;
    return result;
}

static raffia_status enter(struct cuda_scope *scope, int index, const char *verb, bool may_fail)
{
    raffia_status status = cuda_check(index, verb);
    if (!status)
        status = need_device(index);
    if (status)
        return status;
    *scope = (struct cuda_scope){.device = &devices[index]};
    CUresult result = make_current(scope, may_fail);
    return result ? cuda_failed(index, result, "%s: cannot make the context current", verb)
                  : RAFFIA_OK;
}

raffia_status cuda_enter(struct cuda_scope *scope, int index, const char *verb)
{
    return enter(scope, index, verb, true);
}

raffia_status cuda_enter_giving_back(struct cuda_scope *scope, int index, const char *verb)
{
    raffia_status status = enter(scope, index, verb, false);
    if (status)
        return status;
    scope->mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    scope->relaxed = cuda_library.cuThreadExchangeStreamCaptureMode(&scope->mode) == CUDA_SUCCESS;
    return RAFFIA_OK;
}

raffia_status cuda_enter_beside_capture(struct cuda_scope *scope, int index, const char *verb)
{
    raffia_status status = cuda_enter(scope, index, verb);
    if (status)
        return status;
    scope->mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    CUresult result = CUDA_CALL(cuThreadExchangeStreamCaptureMode, &scope->mode);
    scope->relaxed = result == CUDA_SUCCESS;
    if (!result)
        return RAFFIA_OK;
    cuda_leave(scope);
    return cuda_failed(index, result, "%s: cannot step out of a capture", verb);
}

void cuda_leave(const struct cuda_scope *scope)
{
    CUstreamCaptureMode mode = scope->mode;
    if (scope->relaxed)
        (void)cuda_library.cuThreadExchangeStreamCaptureMode(&mode);
    if (!scope->pushed)
        return;
    /* It may report what went wrong on the device earlier; it pops nevertheless. */
    CUcontext popped = NULL;
    (void)cuda_library.cuCtxPopCurrent_v2(&popped);
}
