/* The fake's memory: ranges are bare mappings, physical memory is memfds. */
#include "fake.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct span {
    CUdeviceptr at;
    size_t bytes;
    int device;
};

struct handle {
    int fd;
    size_t bytes;
    int device;
    unsigned mappings;
    CUmemAllocationHandleType exports;
    bool imported, released;
};

struct mapping {
    struct span span; /* first, so that it is found as a span */
    struct handle *handle;
    int access[FAKE_CUDA_DEVICES_MAX];
};

static struct fake_set ranges, handles, mappings, blocks, registrations, host_blocks;
static size_t used[FAKE_CUDA_DEVICES_MAX];

static struct span *span_at(const struct fake_set *set, CUdeviceptr at)
{
    for (size_t i = 0; i < set->count; i++) {
        struct span *span = set->items[i];
        if (at >= span->at && at - span->at < span->bytes)
            return span;
    }
    return NULL;
}

static bool overlaps(const struct fake_set *set, CUdeviceptr at, size_t bytes)
{
    for (size_t i = 0; i < set->count; i++) {
        const struct span *span = set->items[i];
        if (at < span->at + span->bytes && span->at < at + bytes)
            return true;
    }
    return false;
}

static void *pointer(CUdeviceptr at)
{
    return (void *)(uintptr_t)at;
}

static bool whole(size_t bytes)
{
    return bytes && bytes % fake_config.granularity == 0;
}

/* Addresses of the machine, so that a wrong access is a fault as it is on a device. */
static CUresult map_bare(size_t bytes, size_t alignment, CUdeviceptr *at, int protection)
{
    size_t padded;
    if (__builtin_add_overflow(bytes, alignment, &padded))
        return CUDA_ERROR_OUT_OF_MEMORY;
    char *base = mmap(NULL, padded, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    char *start = (char *)(((uintptr_t)base + alignment - 1) & ~(alignment - 1));
    if (start > base)
        munmap(base, (size_t)(start - base));
    munmap(start + bytes, padded - bytes - (size_t)(start - base));
    *at = (uintptr_t)start;
    return CUDA_SUCCESS;
}

static struct span *new_span(CUdeviceptr at, size_t bytes, int device)
{
    struct span *span = malloc(sizeof *span);
    *span = (struct span){at, bytes, device};
    return span;
}

static CUresult reserve(CUdeviceptr *base, size_t bytes, size_t alignment)
{
    if (!whole(bytes) || (alignment & (alignment - 1)))
        return CUDA_ERROR_INVALID_VALUE;
    if (alignment < fake_config.granularity)
        alignment = fake_config.granularity;
    CUresult result = map_bare(bytes, alignment, base, PROT_NONE);
    if (!result)
        fake_set_add(&ranges, new_span(*base, bytes, -1));
    return result;
}

CUresult cuMemAddressReserve(CUdeviceptr *base, size_t bytes, size_t alignment, CUdeviceptr wish,
                             unsigned long long flags)
{
    (void)wish;
    FAKE_CALL(cuMemAddressReserve,
              flags ? CUDA_ERROR_INVALID_VALUE : reserve(base, bytes, alignment));
}

static CUresult release_range(CUdeviceptr base, size_t bytes)
{
    struct span *range = span_at(&ranges, base);
    if (!range || range->at != base || range->bytes != bytes)
        return fake_misuse(CUDA_ERROR_INVALID_VALUE, "freed a range that was not reserved");
    if (overlaps(&mappings, base, bytes))
        return fake_misuse(CUDA_ERROR_INVALID_VALUE, "freed a range that holds mappings");
    munmap(pointer(base), bytes);
    fake_set_remove(&ranges, range);
    free(range);
    return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr base, size_t bytes)
{
    FAKE_CALL(cuMemAddressFree, release_range(base, bytes));
}

static CUresult granularity(size_t *bytes, CUmemAllocationGranularity_flags which)
{
    *bytes = which == CU_MEM_ALLOC_GRANULARITY_RECOMMENDED ? fake_config.recommended
                                                           : fake_config.granularity;
    return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *prop,
                                       CUmemAllocationGranularity_flags which)
{
    (void)prop;
    FAKE_CALL(cuMemGetAllocationGranularity, granularity(bytes, which));
}

static CUresult take(int device, size_t bytes)
{
    if (bytes > fake_config.device_bytes - used[device])
        return CUDA_ERROR_OUT_OF_MEMORY;
    used[device] += bytes;
    return CUDA_SUCCESS;
}

static CUresult create(CUmemGenericAllocationHandle *handle, size_t bytes,
                       const CUmemAllocationProp *prop)
{
    const int device = prop->location.id;
    if (!whole(bytes) || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
        prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE || device < 0 ||
        device >= fake_config.devices)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = take(device, bytes);
    if (result)
        return result;
    int fd = memfd_create("fake-cuda", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)bytes))
        return CUDA_ERROR_OPERATING_SYSTEM;
    struct handle *new = malloc(sizeof *new);
    *new = (struct handle){
        .fd = fd, .bytes = bytes, .device = device, .exports = prop->requestedHandleTypes};
    fake_set_add(&handles, new);
    *handle = (uintptr_t) new;
    return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
                     const CUmemAllocationProp *prop, unsigned long long flags)
{
    FAKE_CALL(cuMemCreate, flags ? CUDA_ERROR_INVALID_VALUE : create(handle, bytes, prop));
}

static struct handle *find_handle(CUmemGenericAllocationHandle native, const char *call)
{
    struct handle *handle = pointer(native);
    if (fake_set_has(&handles, handle) && !handle->released)
        return handle;
    fake_misuse(CUDA_ERROR_INVALID_VALUE, "%s of a handle that does not exist", call);
    return NULL;
}

static void drop(struct handle *handle)
{
    if (!handle->released || handle->mappings)
        return;
    if (!handle->imported)
        used[handle->device] -= handle->bytes;
    close(handle->fd);
    fake_set_remove(&handles, handle);
    free(handle);
}

static CUresult release(CUmemGenericAllocationHandle native)
{
    struct handle *handle = find_handle(native, "release");
    if (!handle)
        return CUDA_ERROR_INVALID_VALUE;
    handle->released = true;
    drop(handle);
    return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    FAKE_CALL(cuMemRelease, release(handle));
}

static CUresult map(CUdeviceptr at, size_t bytes, size_t offset,
                    CUmemGenericAllocationHandle native)
{
    struct handle *handle = find_handle(native, "map");
    if (!handle)
        return CUDA_ERROR_INVALID_VALUE;
    if (offset || bytes != handle->bytes)
        return fake_misuse(CUDA_ERROR_INVALID_VALUE, "mapped part of a handle");
    const struct span *range = span_at(&ranges, at);
    if (!range || bytes > range->at + range->bytes - at || at % fake_config.granularity)
        return fake_misuse(CUDA_ERROR_INVALID_VALUE, "mapped outside of a range");
    if (overlaps(&mappings, at, bytes))
        return fake_misuse(CUDA_ERROR_INVALID_VALUE, "mapped over another mapping");
    if (mmap(pointer(at), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, handle->fd, 0) == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct mapping *mapping = calloc(1, sizeof *mapping);
    mapping->span = (struct span){at, bytes, handle->device};
    mapping->handle = handle;
    handle->mappings++;
    fake_set_add(&mappings, mapping);
    return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr at, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags)
{
    FAKE_CALL(cuMemMap, flags ? CUDA_ERROR_INVALID_VALUE : map(at, bytes, offset, handle));
}

static CUresult unmap(CUdeviceptr at, size_t bytes)
{
    struct mapping *mapping = (struct mapping *)span_at(&mappings, at);
    if (!mapping || mapping->span.at != at || mapping->span.bytes != bytes)
        return fake_misuse(CUDA_ERROR_INVALID_VALUE, "unmapped what is no whole mapping");
    mmap(pointer(at), bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
         0);
    fake_set_remove(&mappings, mapping);
    mapping->handle->mappings--;
    drop(mapping->handle);
    free(mapping);
    return CUDA_SUCCESS;
}

CUresult cuMemUnmap(CUdeviceptr at, size_t bytes)
{
    FAKE_CALL(cuMemUnmap, unmap(at, bytes));
}

/* The range must be mapped throughout, and cut no mapping. */
static CUresult set_access(CUdeviceptr at, size_t bytes, const CUmemAccessDesc *access)
{
    const CUdeviceptr end = at + bytes;
    if (access->location.id < 0 || access->location.id >= fake_config.devices)
        return CUDA_ERROR_INVALID_DEVICE;
    for (CUdeviceptr next = at; next < end;) {
        struct mapping *mapping = (struct mapping *)span_at(&mappings, next);
        if (!mapping || mapping->span.at != next || mapping->span.at + mapping->span.bytes > end)
            return fake_misuse(CUDA_ERROR_INVALID_VALUE, "set access of what is not mapped");
        mapping->access[access->location.id] = access->flags;
        mprotect(pointer(next), mapping->span.bytes, PROT_READ | PROT_WRITE);
        next += mapping->span.bytes;
    }
    return CUDA_SUCCESS;
}

CUresult cuMemSetAccess(CUdeviceptr at, size_t bytes, const CUmemAccessDesc *access, size_t count)
{
    FAKE_CALL(cuMemSetAccess,
              count != 1 ? CUDA_ERROR_INVALID_VALUE : set_access(at, bytes, access));
}

static CUresult export(void *shareable, CUmemGenericAllocationHandle native,
                       CUmemAllocationHandleType type)
{
    struct handle *handle = find_handle(native, "export");
    if (!handle || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || handle->exports != type)
        return CUDA_ERROR_INVALID_VALUE;
    int fd = fcntl(handle->fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
        return CUDA_ERROR_OPERATING_SYSTEM;
    *(int *)shareable = fd;
    return CUDA_SUCCESS;
}

CUresult cuMemExportToShareableHandle(void *shareable, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long flags)
{
    FAKE_CALL(cuMemExportToShareableHandle,
              flags ? CUDA_ERROR_INVALID_VALUE : export(shareable, handle, type));
}

static CUresult import(CUmemGenericAllocationHandle *handle, int from,
                       CUmemAllocationHandleType type)
{
    struct stat status;
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || fstat(from, &status) ||
        fcntl(from, F_GET_SEALS) < 0)
        return CUDA_ERROR_INVALID_VALUE;
    int fd = fcntl(from, F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
        return CUDA_ERROR_OPERATING_SYSTEM;
    struct handle *new = malloc(sizeof *new);
    *new = (struct handle){
        .fd = fd, .bytes = (size_t)status.st_size, .exports = type, .imported = true};
    fake_set_add(&handles, new);
    *handle = (uintptr_t) new;
    return CUDA_SUCCESS;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *shareable,
                                        CUmemAllocationHandleType type)
{
    FAKE_CALL(cuMemImportFromShareableHandle, import(handle, (int)(uintptr_t)shareable, type));
}

static CUresult allocate(CUdeviceptr *address, size_t bytes)
{
    const int device = fake_current_device();
    CUresult result = fake_check_capture("cuMemAlloc");
    if (result)
        return result;
    if (device < 0)
        return fake_misuse(CUDA_ERROR_INVALID_CONTEXT, "allocated without a context");
    if (!bytes)
        return CUDA_ERROR_INVALID_VALUE;
    const size_t pages = (bytes + 4095) & ~(size_t)4095;
    if ((result = take(device, pages)))
        return result;
    if ((result = map_bare(pages, 4096, address, PROT_READ | PROT_WRITE)))
        return result;
    fake_set_add(&blocks, new_span(*address, pages, device));
    return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
    FAKE_CALL(cuMemAlloc_v2, allocate(address, bytes));
}

static CUresult deallocate(CUdeviceptr address)
{
    struct span *block = span_at(&blocks, address);
    CUresult result = fake_check_capture("cuMemFree");
    if (result)
        return result;
    if (!block || block->at != address)
        return fake_misuse(CUDA_ERROR_INVALID_VALUE, "freed what was not allocated");
    used[block->device] -= block->bytes;
    munmap(pointer(address), block->bytes);
    fake_set_remove(&blocks, block);
    free(block);
    return CUDA_SUCCESS;
}

CUresult cuMemFree_v2(CUdeviceptr address)
{
    FAKE_CALL(cuMemFree_v2, deallocate(address));
}

static CUresult information(size_t *available, size_t *total)
{
    const int device = fake_current_device();
    if (device < 0)
        return fake_misuse(CUDA_ERROR_INVALID_CONTEXT, "asked for memory without a context");
    *total = fake_config.device_bytes;
    *available = fake_config.device_bytes - used[device];
    return CUDA_SUCCESS;
}

CUresult cuMemGetInfo_v2(size_t *available, size_t *total)
{
    FAKE_CALL(cuMemGetInfo_v2, information(available, total));
}

static CUresult pin(void *at, size_t bytes, unsigned flags)
{
    if (!at || !bytes || flags != CUDA_API_MEMHOSTREGISTER_PORTABLE)
        return CUDA_ERROR_INVALID_VALUE;
    if (overlaps(&registrations, (uintptr_t)at, bytes))
        return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    fake_set_add(&registrations, new_span((uintptr_t)at, bytes, -1));
    return CUDA_SUCCESS;
}

CUresult cuMemHostRegister_v2(void *at, size_t bytes, unsigned flags)
{
    FAKE_CALL(cuMemHostRegister_v2, pin(at, bytes, flags));
}

static CUresult unpin(const void *at)
{
    struct span *span = span_at(&registrations, (uintptr_t)at);
    if (!span || span->at != (uintptr_t)at)
        return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    fake_set_remove(&registrations, span);
    free(span);
    return CUDA_SUCCESS;
}

CUresult cuMemHostUnregister(void *at)
{
    FAKE_CALL(cuMemHostUnregister, unpin(at));
}

static CUresult host_allocate(void **at, size_t bytes, unsigned flags)
{
    CUresult result = fake_check_capture("cuMemHostAlloc");
    if (result)
        return result;
    if (!bytes || flags != CUDA_API_MEMHOSTALLOC_PORTABLE)
        return CUDA_ERROR_INVALID_VALUE;
    if (fake_current_device() < 0)
        return fake_misuse(CUDA_ERROR_INVALID_CONTEXT, "allocated host memory without a context");
    const size_t pages = (bytes + 4095) & ~(size_t)4095;
    CUdeviceptr address;
    if ((result = map_bare(pages, 4096, &address, PROT_READ | PROT_WRITE)))
        return result;
    fake_set_add(&host_blocks, new_span(address, pages, -1));
    *at = pointer(address);
    return CUDA_SUCCESS;
}

CUresult cuMemHostAlloc(void **at, size_t bytes, unsigned flags)
{
    FAKE_CALL(cuMemHostAlloc, host_allocate(at, bytes, flags));
}

static CUresult host_deallocate(const void *at)
{
    struct span *block = span_at(&host_blocks, (uintptr_t)at);
    if (!block || block->at != (uintptr_t)at)
        return fake_misuse(CUDA_ERROR_INVALID_VALUE, "freed host memory that was not allocated");
    munmap(pointer(block->at), block->bytes);
    fake_set_remove(&host_blocks, block);
    free(block);
    return CUDA_SUCCESS;
}

CUresult cuMemFreeHost(void *at)
{
    FAKE_CALL(cuMemFreeHost, host_deallocate(at));
}

static CUresult check_mapped(CUdeviceptr at, size_t bytes, bool write)
{
    const CUdeviceptr end = at + bytes;
    const int device = fake_current_device(), needed = write ? 3 : 1;
    while (at < end) {
        const struct mapping *mapping = (const struct mapping *)span_at(&mappings, at);
        if (!mapping || (mapping->access[device] & needed) != needed)
            return fake_misuse(CUDA_ERROR_INVALID_VALUE, "used memory that is not mapped for it");
        at = mapping->span.at + mapping->span.bytes;
    }
    return CUDA_SUCCESS;
}

CUresult fake_check_memory(CUdeviceptr at, size_t bytes, bool write)
{
    if (span_at(&ranges, at))
        return check_mapped(at, bytes, write);
    const struct span *block = span_at(&blocks, at);
    if (block && bytes > block->at + block->bytes - at)
        return fake_misuse(CUDA_ERROR_INVALID_VALUE, "used memory beyond a block");
    return CUDA_SUCCESS;
}

static void end_mapping(void *item)
{
    struct mapping *mapping = item;
    mapping->handle->mappings--;
    free(mapping);
}

static void end_handle(void *item)
{
    struct handle *handle = item;
    close(handle->fd);
    free(handle);
}

static void end_addresses(void *item)
{
    struct span *span = item;
    munmap(pointer(span->at), span->bytes);
    free(span);
}

void fake_memory_clear(void)
{
    fake_set_clear(&mappings, end_mapping);
    fake_set_clear(&handles, end_handle);
    fake_set_clear(&ranges, end_addresses);
    fake_set_clear(&blocks, end_addresses);
    fake_set_clear(&registrations, free);
    fake_set_clear(&host_blocks, end_addresses);
    for (int i = 0; i < FAKE_CUDA_DEVICES_MAX; i++)
        used[i] = 0;
}

void fake_memory_query(struct fake_cuda_usage *usage)
{
    usage->ranges = ranges.count;
    usage->handles = handles.count;
    usage->mappings = mappings.count;
    usage->blocks = blocks.count;
    usage->registrations = registrations.count;
    usage->host_blocks = host_blocks.count;
    for (int i = 0; i < FAKE_CUDA_DEVICES_MAX; i++)
        usage->bytes += used[i];
}
