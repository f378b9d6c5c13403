/* The regular path, and host memory pinned for the device. */
#include "core/error.h"
#include "driver/cuda/context.h"
#include "driver/cuda/failure.h"
#include "driver/cuda/verbs.h"

raffia_status cuda_mem_alloc(int index, size_t bytes, void **address_p)
{
    struct cuda_scope scope;
    raffia_status status = cuda_enter_beside_capture(&scope, index, "mem_alloc");
    if (status)
        return status;
    CUdeviceptr address = 0;
    CUresult result = CUDA_CALL(cuMemAlloc_v2, &address, bytes);
    cuda_leave(&scope);
    if (result)
        return cuda_failed(index, result, "cannot allocate %zu bytes of device memory", bytes);
    *address_p = (void *)(uintptr_t)address;
    return RAFFIA_OK;
}

raffia_status cuda_mem_free(int index, void *address, size_t bytes)
{
    struct cuda_scope scope;
    raffia_status status = cuda_enter_giving_back(&scope, index, "mem_free");
    if (status)
        return status;
    CUresult result = CUDA_GIVE_BACK(cuMemFree_v2, (uintptr_t)address);
    cuda_leave(&scope);
    return result ? cuda_failed(index, result, "cannot free %zu bytes at %p", bytes, address)
                  : RAFFIA_OK;
}

/* Pinned for every context of the process. A refusal leaves nothing behind: the driver, unlike the
 * CUDA runtime, keeps no last error that the next call of somebody else would find. */
raffia_status cuda_host_register(int index, void *at, size_t bytes)
{
    struct cuda_scope scope;
    raffia_status status = cuda_enter_beside_capture(&scope, index, "host_register");
    if (status)
        return status;
    CUresult result = CUDA_CALL(cuMemHostRegister_v2, at, bytes, CUDA_API_MEMHOSTREGISTER_PORTABLE);
    cuda_leave(&scope);
    return result
               ? cuda_failed(index, result,
                             "cannot pin %zu bytes of host memory at %p (see ulimit -l)", bytes, at)
               : RAFFIA_OK;
}

raffia_status cuda_host_unregister(int index, void *at, size_t bytes)
{
    struct cuda_scope scope;
    raffia_status status = cuda_enter_giving_back(&scope, index, "host_unregister");
    if (status)
        return status;
    CUresult result = CUDA_GIVE_BACK(cuMemHostUnregister, at);
    cuda_leave(&scope);
    return result ? cuda_failed(index, result, "cannot unpin %zu bytes of host memory at %p", bytes,
                                at)
                  : RAFFIA_OK;
}

raffia_status cuda_host_alloc(int index, size_t bytes, void **at_p)
{
    struct cuda_scope scope;
    if (!bytes) /* CUDA would call it a success */
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "cuda:%d: 0 bytes of pinned host memory were asked for", index);
    raffia_status status = cuda_enter_beside_capture(&scope, index, "host_alloc");
    if (status)
        return status;
    void *at = NULL;
    CUresult result = CUDA_CALL(cuMemHostAlloc, &at, bytes, CUDA_API_MEMHOSTALLOC_PORTABLE);
    cuda_leave(&scope);
    if (result)
        return cuda_failed(index, result, "cannot allocate %zu bytes of pinned host memory", bytes);
    *at_p = at;
    return RAFFIA_OK;
}

raffia_status cuda_host_free(int index, void *at, size_t bytes)
{
    struct cuda_scope scope;
    raffia_status status = cuda_enter_giving_back(&scope, index, "host_free");
    if (status)
        return status;
    CUresult result = CUDA_GIVE_BACK(cuMemFreeHost, at);
    cuda_leave(&scope);
    return result ? cuda_failed(index, result, "cannot free %zu bytes of pinned host memory at %p",
                                bytes, at)
                  : RAFFIA_OK;
}

/* CUDA maps and pins no less than this. */
#define SMALLEST_PAGE ((CUdeviceptr)4096)

struct stretch {
    CUdeviceptr start;
    size_t bytes;
};

static bool contains(struct stretch stretch, CUdeviceptr at)
{
    return at - stretch.start < stretch.bytes;
}

/* As an attribute, the range of what is mapped into a reservation is all of the reservation, mapped
 * or not. Of host memory it is not certain that CUDA tells; then a page is safe. */
static struct stretch find_stretch(CUdeviceptr at, struct stretch range)
{
    struct stretch mapped = {0, 0};
    if (!CUDA_CALL(cuMemGetAddressRange_v2, &mapped.start, &mapped.bytes, at) &&
        contains(mapped, at))
        return mapped;
    if (contains(range, at))
        return range;
    return (struct stretch){at / SMALLEST_PAGE * SMALLEST_PAGE, SMALLEST_PAGE};
}

/* The call answers 0 to what it cannot: an address that CUDA does not know has no type. Memory of
 * other devices is left out even where a peer could reach it. */
static void judge(const struct cuda_device *device, CUdeviceptr at, struct driver_memory *memory)
{
    unsigned type = 0;
    int ordinal = -1;
    CUdeviceptr seen_at = 0;
    struct stretch range = {0, 0};
    CUpointer_attribute attributes[] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE,    CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
        CU_POINTER_ATTRIBUTE_RANGE_SIZE,
    };
    void *values[] = {&type, &seen_at, &ordinal, &range.start, &range.bytes};
    *memory = (struct driver_memory){0};
    if (CUDA_CALL(cuPointerGetAttributes, 5, attributes, values, at) || seen_at != at)
        return;
    if (type == CU_MEMORYTYPE_HOST)
        memory->kind = DRIVER_MEMORY_PINNED;
    else if (type == CU_MEMORYTYPE_DEVICE && ordinal == device->handle)
        memory->kind = DRIVER_MEMORY_DEVICE;
    else
        return;
    range = find_stretch(at, range);
    memory->start = (uintptr_t)range.start;
    memory->bytes = range.bytes;
}

raffia_status cuda_find_memory(int index, const void *at, struct driver_memory *memory)
{
    struct cuda_scope scope;
    raffia_status status = cuda_enter(&scope, index, "find_memory");
    if (status)
        return status;
    judge(scope.device, (uintptr_t)at, memory);
    cuda_leave(&scope);
    return RAFFIA_OK;
}
