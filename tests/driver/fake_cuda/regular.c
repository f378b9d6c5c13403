/* The fake's regular memory, and host memory: registered, and its own. */
#include "fake.h"

#include <stdlib.h>
#include <sys/mman.h>

static struct fake_set blocks, registrations, host_blocks;

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
    if (pages < bytes)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if ((result = fake_take(device, pages)))
        return result;
    if ((result = fake_map_bare(pages, 4096, address, PROT_READ | PROT_WRITE)))
        return result;
    fake_set_add(&blocks, fake_span_new(*address, pages, device));
    return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
    FAKE_CALL(cuMemAlloc_v2, allocate(address, bytes));
}

static CUresult deallocate(CUdeviceptr address)
{
    struct fake_span *block = fake_span_at(&blocks, address);
    CUresult result = fake_check_capture("cuMemFree");
    if (result)
        return result;
    if (!block || block->at != address)
        return fake_misuse(CUDA_ERROR_INVALID_VALUE, "freed what was not allocated");
    fake_give(block->device, block->bytes);
    munmap(fake_pointer(address), block->bytes);
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
    *available = fake_config.device_bytes - fake_used(device);
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
    if (fake_spans_overlap(&registrations, (uintptr_t)at, bytes))
        return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    fake_set_add(&registrations, fake_span_new((uintptr_t)at, bytes, -1));
    return CUDA_SUCCESS;
}

CUresult cuMemHostRegister_v2(void *at, size_t bytes, unsigned flags)
{
    FAKE_CALL(cuMemHostRegister_v2, pin(at, bytes, flags));
}

static CUresult unpin(const void *at)
{
    struct fake_span *span = fake_span_at(&registrations, (uintptr_t)at);
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
    if (flags != CUDA_API_MEMHOSTALLOC_PORTABLE)
        return CUDA_ERROR_INVALID_VALUE;
    if (!bytes) { /* as the real one */
        *at = NULL;
        return CUDA_SUCCESS;
    }
    if (fake_current_device() < 0)
        return fake_misuse(CUDA_ERROR_INVALID_CONTEXT, "allocated host memory without a context");
    const size_t pages = (bytes + 4095) & ~(size_t)4095;
    CUdeviceptr address;
    if (pages < bytes)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if ((result = fake_map_bare(pages, 4096, &address, PROT_READ | PROT_WRITE)))
        return result;
    fake_set_add(&host_blocks, fake_span_new(address, pages, -1));
    *at = fake_pointer(address);
    return CUDA_SUCCESS;
}

CUresult cuMemHostAlloc(void **at, size_t bytes, unsigned flags)
{
    FAKE_CALL(cuMemHostAlloc, host_allocate(at, bytes, flags));
}

static CUresult host_deallocate(const void *at)
{
    struct fake_span *block = fake_span_at(&host_blocks, (uintptr_t)at);
    if (!block || block->at != (uintptr_t)at)
        return fake_misuse(CUDA_ERROR_INVALID_VALUE, "freed host memory that was not allocated");
    fake_set_remove(&host_blocks, block);
    fake_span_end(block);
    return CUDA_SUCCESS;
}

CUresult cuMemFreeHost(void *at)
{
    FAKE_CALL(cuMemFreeHost, host_deallocate(at));
}

/* As the real one: what has no answer is 0, and that is no failure. */
static CUresult describe(unsigned count, const CUpointer_attribute *attributes, void **values,
                         CUdeviceptr at)
{
    const struct fake_span *pinned = fake_span_at(&registrations, at), *span = pinned;
    if (!span)
        span = pinned = fake_span_at(&host_blocks, at);
    if (!span)
        span = fake_span_at(&blocks, at);
    if (!span)
        span = fake_pooled_at(at);
    struct fake_span mapped, reserved;
    const struct fake_span *range = span;
    if (!span && fake_mapped_at(at, &mapped, &reserved)) {
        span = &mapped;
        range = &reserved;
    }
    if (pinned && fake_config.no_host_ranges)
        range = NULL;
    for (unsigned i = 0; i < count; i++)
        switch (attributes[i]) {
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
            *(unsigned *)values[i] =
                span ? (unsigned)(pinned ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE) : 0;
            break;
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
            *(int *)values[i] = span ? span->device : 0;
            break;
        case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
            *(CUdeviceptr *)values[i] = span ? at : 0;
            break;
        case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
            *(CUdeviceptr *)values[i] = range ? range->at : 0;
            break;
        case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
            *(size_t *)values[i] = range ? range->bytes : 0;
            break;
        default:
            return CUDA_ERROR_INVALID_VALUE;
        }
    return CUDA_SUCCESS;
}

CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute *attributes, void **values,
                                CUdeviceptr at)
{
    FAKE_CALL(cuPointerGetAttributes, describe(count, attributes, values, at));
}

static CUresult find_range(CUdeviceptr *start, size_t *bytes, CUdeviceptr at)
{
    struct fake_span mapped, reserved;
    const struct fake_span *span = fake_span_at(&blocks, at);
    if (!span)
        span = fake_pooled_at(at);
    if (!span && fake_mapped_at(at, &mapped, &reserved))
        span = &mapped;
    if (!span)
        return CUDA_ERROR_NOT_FOUND;
    *start = span->at;
    *bytes = span->bytes;
    return CUDA_SUCCESS;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *start, size_t *bytes, CUdeviceptr at)
{
    FAKE_CALL(cuMemGetAddressRange_v2, find_range(start, bytes, at));
}

CUresult fake_check_block(CUdeviceptr at, size_t bytes)
{
    const struct fake_span *block = fake_span_at(&blocks, at);
    if (block && bytes > block->at + block->bytes - at)
        return fake_misuse(CUDA_ERROR_INVALID_VALUE, "used memory beyond a block");
    return fake_check_pooled(at, bytes);
}

void fake_regular_clear(void)
{
    fake_set_clear(&blocks, fake_span_end);
    fake_set_clear(&registrations, free);
    fake_set_clear(&host_blocks, fake_span_end);
}

void fake_regular_query(struct fake_cuda_usage *usage)
{
    usage->blocks = blocks.count;
    usage->registrations = registrations.count;
    usage->host_blocks = host_blocks.count;
}
