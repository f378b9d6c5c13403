/* Ranges of addresses, and who may use what is mapped in them. */
#include "core/checked.h"
#include "driver/cuda/chunk.h"
#include "driver/cuda/context.h"
#include "driver/cuda/failure.h"
#include "driver/cuda/verbs.h"

raffia_status cuda_need_virtual_memory(const struct cuda_device *device)
{
    if (device->has_virtual_memory)
        return RAFFIA_OK;
    return core_error(RAFFIA_ERROR_UNSUPPORTED,
                      "cuda:%d has no virtual memory management; only regular memory can be had",
                      device->index);
}

/* CUDA hands out addresses in its granules, the contract in base pages. */
static raffia_status whole_granules(const struct cuda_device *device, size_t bytes, size_t *whole_p)
{
    raffia_status status = cuda_need_virtual_memory(device);
    if (status)
        return status;
    if (!bytes)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "cuda:%d: a range of 0 bytes",
                          device->index);
    if (!core_align_up(bytes, device->granularity, whole_p))
        return core_error(RAFFIA_ERROR_OVERFLOW, "cuda:%d: a range of %zu bytes does not fit",
                          device->index, bytes);
    return RAFFIA_OK;
}

static raffia_status reserve(const struct cuda_device *device, size_t bytes, size_t alignment,
                             void **base_p)
{
    size_t whole;
    raffia_status status = whole_granules(device, bytes, &whole);
    if (status)
        return status;
    if (!core_is_power_of_two(alignment))
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "cuda:%d: an alignment of %zu is no power of two", device->index,
                          alignment);
    CUdeviceptr base = 0;
    CUresult result = CUDA_CALL(cuMemAddressReserve, &base, whole,
                                core_max(alignment, device->granularity), 0, 0);
    if (result)
        return cuda_failed(device->index, result,
                           "cannot reserve %zu bytes of addresses aligned to %zu", bytes,
                           alignment);
    *base_p = (void *)(uintptr_t)base;
    return RAFFIA_OK;
}

raffia_status cuda_range_reserve(int index, size_t bytes, size_t alignment, void **base_p)
{
    struct cuda_scope scope;
    raffia_status status = cuda_enter_beside_capture(&scope, index, "range_reserve");
    if (status)
        return status;
    status = reserve(scope.device, bytes, alignment, base_p);
    cuda_leave(&scope);
    return status;
}

raffia_status cuda_range_release(int index, void *base, size_t bytes)
{
    struct cuda_scope scope;
    raffia_status status = cuda_enter_giving_back(&scope, index, "range_release");
    if (status)
        return status;
    size_t whole = 0;
    CUresult result = CUDA_SUCCESS;
    status = whole_granules(scope.device, bytes, &whole);
    if (!status)
        result = CUDA_GIVE_BACK(cuMemAddressFree, (uintptr_t)base, whole);
    cuda_leave(&scope);
    return result ? cuda_failed(index, result, "cannot release %zu bytes of addresses at %p", bytes,
                                base)
                  : status;
}

raffia_status cuda_set_access(int index, void *at, size_t bytes, int peer, bool writable)
{
    struct cuda_scope scope;
    raffia_status status = cuda_enter_beside_capture(&scope, index, "set_access");
    if (status)
        return status;
    CUdevice handle = 0;
    CUresult result = CUDA_SUCCESS;
    status = cuda_need_virtual_memory(scope.device);
    if (!status && peer == index)
        status = core_error(RAFFIA_ERROR_UNSUPPORTED,
                            "cuda:%d: a device keeps full access to what it maps itself", index);
    if (!status)
        status = cuda_check(peer, "set_access for a peer");
    if (!status)
        status = cuda_device_handle(peer, &handle);
    if (!status) {
        const CUmemAccessDesc access = {
            .location = {CU_MEM_LOCATION_TYPE_DEVICE, handle},
            .flags = writable ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_READ,
        };
        result = CUDA_CALL(cuMemSetAccess, (uintptr_t)at, bytes, &access, 1);
    }
    cuda_leave(&scope);
    return result ? cuda_failed(index, result, "cannot let cuda:%d use %zu bytes at %p", peer,
                                bytes, at)
                  : status;
}
