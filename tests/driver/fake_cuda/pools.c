/* The fake's pools. Work is done when it is submitted, so that a free has come at once. */
#include "fake.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct CUmemPoolHandle_st {
    int device;
    cuuint64_t threshold;
    size_t bytes; /* of the device's memory, live and kept */
};

/* Memory of a pool, whole pages of it. The span is the first member, for sets of spans. */
struct pooled {
    struct fake_span span;
    CUmemoryPool pool;
    bool live;
};

static struct fake_set pools, memory;

static struct pooled *pooled_at(CUdeviceptr at)
{
    return (struct pooled *)fake_span_at(&memory, at);
}

struct fake_span *fake_pooled_at(CUdeviceptr at)
{
    struct pooled *pooled = pooled_at(at);
    return pooled && pooled->live ? &pooled->span : NULL;
}

CUresult fake_check_pooled(CUdeviceptr at, size_t bytes)
{
    const struct pooled *pooled = pooled_at(at);
    if (pooled && !pooled->live)
        return fake_misuse(CUDA_ERROR_INVALID_VALUE, "used memory that was freed to its pool");
    if (pooled && bytes > pooled->span.at + pooled->span.bytes - at)
        return fake_misuse(CUDA_ERROR_INVALID_VALUE, "used memory beyond a pool's block");
    return CUDA_SUCCESS;
}

static void release(struct pooled *pooled)
{
    fake_give(pooled->span.device, pooled->span.bytes);
    pooled->pool->bytes -= pooled->span.bytes;
    fake_set_remove(&memory, pooled);
    fake_span_end(pooled);
}

static void shrink(CUmemoryPool pool, cuuint64_t keep)
{
    for (size_t i = memory.count; i-- > 0 && pool->bytes > keep;) {
        struct pooled *pooled = memory.items[i];
        if (pooled->pool == pool && !pooled->live)
            release(pooled);
    }
}

void fake_pools_settle(void)
{
    for (size_t i = 0; i < pools.count; i++) {
        CUmemoryPool pool = pools.items[i];
        shrink(pool, pool->threshold);
    }
}

void fake_pools_clear(void)
{
    fake_set_clear(&memory, fake_span_end);
    fake_set_clear(&pools, free);
}

void fake_pools_query(struct fake_cuda_usage *usage)
{
    usage->pools = pools.count;
    for (size_t i = 0; i < memory.count; i++)
        usage->pool_blocks += ((struct pooled *)memory.items[i])->live;
}

#ifndef FAKE_CUDA_OLD

static CUresult check_pool(CUmemoryPool pool, const char *call)
{
    if (fake_current_device() < 0)
        return fake_misuse(CUDA_ERROR_INVALID_CONTEXT, "%s without a context", call);
    return fake_set_has(&pools, pool)
               ? CUDA_SUCCESS
               : fake_misuse(CUDA_ERROR_INVALID_VALUE, "%s of no pool", call);
}

static CUresult create(CUmemoryPool *pool, const CUmemPoolProps *props)
{
    static const unsigned char zeros[sizeof props->reserved];
    if (fake_config.no_pools)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED || props->handleTypes ||
        props->location.type != CU_MEM_LOCATION_TYPE_DEVICE || props->location.id < 0 ||
        props->location.id >= fake_config.devices || props->win32SecurityAttributes ||
        props->maxSize || props->usage || memcmp(props->reserved, zeros, sizeof zeros) != 0)
        return fake_misuse(CUDA_ERROR_INVALID_VALUE, "a pool of strange properties");
    CUmemoryPool new = calloc(1, sizeof *new);
    new->device = props->location.id;
    fake_set_add(&pools, new);
    *pool = new;
    return CUDA_SUCCESS;
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props)
{
    FAKE_CALL(cuMemPoolCreate, create(pool, props));
}

/* The real one keeps a pool for its live blocks; we do not count on it. */
static CUresult destroy(CUmemoryPool pool)
{
    CUresult result = check_pool(pool, "cuMemPoolDestroy");
    if (result)
        return result;
    shrink(pool, 0);
    if (pool->bytes)
        return fake_misuse(CUDA_ERROR_INVALID_VALUE, "destroyed a pool with live blocks");
    fake_set_remove(&pools, pool);
    free(pool);
    return CUDA_SUCCESS;
}

CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
    FAKE_CALL(cuMemPoolDestroy, destroy(pool));
}

static CUresult set(CUmemoryPool pool, CUmemPool_attribute attribute, const void *value)
{
    CUresult result = check_pool(pool, "cuMemPoolSetAttribute");
    if (result || attribute != CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
        return result ? result : CUDA_ERROR_INVALID_VALUE;
    memcpy(&pool->threshold, value, sizeof pool->threshold);
    return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
    FAKE_CALL(cuMemPoolSetAttribute, set(pool, attribute, value));
}

static CUresult trim(CUmemoryPool pool, size_t keep_bytes)
{
    CUresult result = check_pool(pool, "cuMemPoolTrimTo");
    if (!result)
        shrink(pool, keep_bytes);
    return result;
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep_bytes)
{
    FAKE_CALL(cuMemPoolTrimTo, trim(pool, keep_bytes));
}

static struct pooled *find_kept(CUmemoryPool pool, size_t bytes)
{
    struct pooled *best = NULL;
    for (size_t i = 0; i < memory.count; i++) {
        struct pooled *pooled = memory.items[i];
        if (pooled->pool == pool && !pooled->live && pooled->span.bytes >= bytes &&
            (!best || pooled->span.bytes < best->span.bytes))
            best = pooled;
    }
    return best;
}

static CUresult enlarge(CUmemoryPool pool, size_t bytes, struct pooled **pooled_p)
{
    CUdeviceptr at;
    CUresult result = fake_take(pool->device, bytes);
    if (result) {
        shrink(pool, 0);
        result = fake_take(pool->device, bytes);
    }
    if (result)
        return result;
    result = fake_map_bare(bytes, 4096, &at, PROT_READ | PROT_WRITE);
    if (result) {
        fake_give(pool->device, bytes);
        return result;
    }
    struct pooled *new = malloc(sizeof *new);
    *new = (struct pooled){{at, bytes, pool->device}, pool, false};
    pool->bytes += bytes;
    fake_set_add(&memory, new);
    *pooled_p = new;
    return CUDA_SUCCESS;
}

static CUresult allocate(CUdeviceptr *address, size_t bytes, CUmemoryPool pool, CUstream stream)
{
    const size_t pages = (bytes + 4095) & ~(size_t)4095;
    CUresult result = check_pool(pool, "cuMemAllocFromPoolAsync");
    if (!result)
        result = fake_check_uncaptured(stream, "cuMemAllocFromPoolAsync");
    if (result)
        return result;
    if (pages < bytes)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!bytes)
        return CUDA_ERROR_INVALID_VALUE;
    struct pooled *pooled = find_kept(pool, pages);
    if (!pooled && (result = enlarge(pool, pages, &pooled)))
        return result;
    pooled->live = true;
    *address = pooled->span.at;
    return CUDA_SUCCESS;
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t bytes, CUmemoryPool pool,
                                 CUstream stream)
{
    FAKE_CALL(cuMemAllocFromPoolAsync, allocate(address, bytes, pool, stream));
}

static CUresult deallocate(CUdeviceptr address, CUstream stream)
{
    struct pooled *pooled = pooled_at(address);
    CUresult result = fake_check_uncaptured(stream, "cuMemFreeAsync");
    if (result)
        return result;
    if (!pooled || pooled->span.at != address)
        return fake_misuse(CUDA_ERROR_INVALID_VALUE, "freed what is no block of a pool");
    if (!pooled->live)
        return fake_misuse(CUDA_ERROR_INVALID_VALUE, "freed a pool's block twice");
    pooled->live = false;
    return CUDA_SUCCESS;
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream)
{
    FAKE_CALL(cuMemFreeAsync, deallocate(address, stream));
}

#endif
