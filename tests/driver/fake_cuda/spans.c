/* Stretches of addresses, and how much memory of each device is taken. */
#include "fake.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static size_t used[FAKE_CUDA_DEVICES_MAX];

struct fake_span *fake_span_at(const struct fake_set *set, CUdeviceptr at)
{
    for (size_t i = 0; i < set->count; i++) {
        struct fake_span *span = set->items[i];
        if (at >= span->at && at - span->at < span->bytes)
            return span;
    }
    return NULL;
}

bool fake_spans_overlap(const struct fake_set *set, CUdeviceptr at, size_t bytes)
{
    for (size_t i = 0; i < set->count; i++) {
        const struct fake_span *span = set->items[i];
        if (at < span->at + span->bytes && span->at < at + bytes)
            return true;
    }
    return false;
}

struct fake_span *fake_span_new(CUdeviceptr at, size_t bytes, int device)
{
    struct fake_span *span = malloc(sizeof *span);
    *span = (struct fake_span){at, bytes, device};
    return span;
}

void fake_span_end(void *item)
{
    struct fake_span *span = item;
    munmap(fake_pointer(span->at), span->bytes);
    free(span);
}

CUresult fake_map_bare(size_t bytes, size_t alignment, CUdeviceptr *at, int protection)
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

CUresult fake_take(int device, size_t bytes)
{
    if (bytes > fake_config.device_bytes - used[device])
        return CUDA_ERROR_OUT_OF_MEMORY;
    used[device] += bytes;
    return CUDA_SUCCESS;
}

void fake_give(int device, size_t bytes)
{
    used[device] -= bytes;
}

size_t fake_used(int device)
{
    return used[device];
}

void fake_memory_clear(void)
{
    fake_mapped_clear();
    fake_regular_clear();
    fake_pools_clear();
    memset(used, 0, sizeof used);
}

void fake_memory_query(struct fake_cuda_usage *usage)
{
    fake_mapped_query(usage);
    fake_regular_query(usage);
    fake_pools_query(usage);
    for (int i = 0; i < FAKE_CUDA_DEVICES_MAX; i++)
        usage->bytes += used[i];
}
