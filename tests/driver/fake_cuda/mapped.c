/* The fake's virtual memory: ranges are bare mappings, physical memory is memfds. */
#include "fake.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct handle {
    int fd;
    size_t bytes;
    int device;
    unsigned mappings;
    CUmemAllocationHandleType exports;
    bool imported, released;
};

struct mapping {
    struct fake_span span; /* first, so that it is found as a span */
    struct handle *handle;
    int access[FAKE_CUDA_DEVICES_MAX];
};

static struct fake_set ranges, handles, mappings;

static bool whole(size_t bytes)
{
    return bytes && bytes % fake_config.granularity == 0;
}

static CUresult reserve(CUdeviceptr *base, size_t bytes, size_t alignment)
{
    if (!whole(bytes) || (alignment & (alignment - 1)))
        return CUDA_ERROR_INVALID_VALUE;
    if (alignment < fake_config.granularity)
        alignment = fake_config.granularity;
    CUresult result = fake_map_bare(bytes, alignment, base, PROT_NONE);
    if (!result)
        fake_set_add(&ranges, fake_span_new(*base, bytes, -1));
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
    struct fake_span *range = fake_span_at(&ranges, base);
    if (!range || range->at != base || range->bytes != bytes)
        return fake_misuse(CUDA_ERROR_INVALID_VALUE, "freed a range that was not reserved");
    if (fake_spans_overlap(&mappings, base, bytes))
        return fake_misuse(CUDA_ERROR_INVALID_VALUE, "freed a range that holds mappings");
    munmap(fake_pointer(base), bytes);
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

static CUresult create(CUmemGenericAllocationHandle *handle, size_t bytes,
                       const CUmemAllocationProp *prop)
{
    const int device = prop->location.id;
    if (!whole(bytes) || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
        prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE || device < 0 ||
        device >= fake_config.devices)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = fake_take(device, bytes);
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
    struct handle *handle = fake_pointer(native);
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
        fake_give(handle->device, handle->bytes);
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
    const struct fake_span *range = fake_span_at(&ranges, at);
    if (!range || bytes > range->at + range->bytes - at || at % fake_config.granularity)
        return fake_misuse(CUDA_ERROR_INVALID_VALUE, "mapped outside of a range");
    if (fake_spans_overlap(&mappings, at, bytes))
        return fake_misuse(CUDA_ERROR_INVALID_VALUE, "mapped over another mapping");
    if (mmap(fake_pointer(at), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, handle->fd, 0) ==
        MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct mapping *mapping = calloc(1, sizeof *mapping);
    mapping->span = (struct fake_span){at, bytes, handle->device};
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
    struct mapping *mapping = (struct mapping *)fake_span_at(&mappings, at);
    if (!mapping || mapping->span.at != at || mapping->span.bytes != bytes)
        return fake_misuse(CUDA_ERROR_INVALID_VALUE, "unmapped what is no whole mapping");
    mmap(fake_pointer(at), bytes, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
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
        struct mapping *mapping = (struct mapping *)fake_span_at(&mappings, next);
        if (!mapping || mapping->span.at != next || mapping->span.at + mapping->span.bytes > end)
            return fake_misuse(CUDA_ERROR_INVALID_VALUE, "set access of what is not mapped");
        mapping->access[access->location.id] = access->flags;
        mprotect(fake_pointer(next), mapping->span.bytes, PROT_READ | PROT_WRITE);
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

static CUresult check_mapped(CUdeviceptr at, size_t bytes, bool write)
{
    const CUdeviceptr end = at + bytes;
    const int device = fake_current_device(), needed = write ? 3 : 1;
    while (at < end) {
        const struct mapping *mapping = (const struct mapping *)fake_span_at(&mappings, at);
        if (!mapping || (mapping->access[device] & needed) != needed)
            return fake_misuse(CUDA_ERROR_INVALID_VALUE, "used memory that is not mapped for it");
        at = mapping->span.at + mapping->span.bytes;
    }
    return CUDA_SUCCESS;
}

bool fake_mapped_at(CUdeviceptr at, struct fake_span *mapping, struct fake_span *range)
{
    const struct fake_span *found = fake_span_at(&mappings, at);
    if (!found)
        return false;
    *mapping = *found;
    *range = *fake_span_at(&ranges, at);
    return true;
}

CUresult fake_check_memory(CUdeviceptr at, size_t bytes, bool write)
{
    return fake_span_at(&ranges, at) ? check_mapped(at, bytes, write) : fake_check_block(at, bytes);
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

void fake_mapped_clear(void)
{
    fake_set_clear(&mappings, end_mapping);
    fake_set_clear(&handles, end_handle);
    fake_set_clear(&ranges, fake_span_end);
}

void fake_mapped_query(struct fake_cuda_usage *usage)
{
    usage->ranges = ranges.count;
    usage->handles = handles.count;
    usage->mappings = mappings.count;
}
