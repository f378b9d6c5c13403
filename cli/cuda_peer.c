#include "cli/cuda_peer.h"

#include "core/error.h"
#include "core/memory.h"
#include "driver/cuda/cuda_api.h"

#include <dlfcn.h>
#include <string.h>

/* CU_MEMPOOL_ATTR_RELEASE_THRESHOLD of cuda.h; the library itself has no use for it. */
#define MEMPOOL_ATTR_RELEASE_THRESHOLD 4

struct cuda_peer {
    void *library;
    int device;
    void *context;
    void *pool;
    uint64_t threshold; /* as it was found */
    int (*ctx_retain)(void **context, int device);
    int (*ctx_release)(int device);
    int (*ctx_push)(void *context);
    int (*ctx_pop)(void **context);
    int (*default_pool)(void **pool, int device);
    int (*pool_get)(void *pool, int attribute, void *value);
    int (*pool_set)(void *pool, int attribute, void *value);
    int (*pool_trim)(void *pool, size_t keep);
    int (*alloc_async)(uintptr_t *address, size_t bytes, void *stream);
    int (*free_async)(uintptr_t address, void *stream);
    int (*alloc)(uintptr_t *address, size_t bytes);
    int (*free)(uintptr_t address);
    int (*host_alloc)(void **address, size_t bytes, unsigned flags);
    int (*host_free)(void *address);
};

static raffia_status check(int result, const char *call)
{
    if (result == CUDA_SUCCESS)
        return RAFFIA_OK;
    return core_error(result == CUDA_ERROR_OUT_OF_MEMORY ? RAFFIA_ERROR_OUT_OF_MEMORY
                                                         : RAFFIA_ERROR_DRIVER,
                      "%s() failed: CUDA error %d", call, result);
}

static raffia_status find_symbols(struct cuda_peer *peer)
{
    const struct {
        const char *name;
        void *pointer;
    } symbols[] = {
        {"cuDevicePrimaryCtxRetain", &peer->ctx_retain},
        {"cuDevicePrimaryCtxRelease_v2", &peer->ctx_release},
        {"cuCtxPushCurrent_v2", &peer->ctx_push},
        {"cuCtxPopCurrent_v2", &peer->ctx_pop},
        {"cuDeviceGetDefaultMemPool", &peer->default_pool},
        {"cuMemPoolGetAttribute", &peer->pool_get},
        {"cuMemPoolSetAttribute", &peer->pool_set},
        {"cuMemPoolTrimTo", &peer->pool_trim},
        {"cuMemAllocAsync", &peer->alloc_async},
        {"cuMemFreeAsync", &peer->free_async},
        {"cuMemAlloc_v2", &peer->alloc},
        {"cuMemFree_v2", &peer->free},
        {"cuMemHostAlloc", &peer->host_alloc},
        {"cuMemFreeHost", &peer->host_free},
    };
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *symbol = dlsym(peer->library, symbols[i].name);
        if (!symbol)
            return core_error(RAFFIA_ERROR_UNSUPPORTED, "libcuda.so.1 has no %s()",
                              symbols[i].name);
        memcpy(symbols[i].pointer, &symbol, sizeof symbol);
    }
    return RAFFIA_OK;
}

static raffia_status enter(struct cuda_peer *peer)
{
    raffia_status status =
        check(peer->ctx_retain(&peer->context, peer->device), "cuDevicePrimaryCtxRetain");
    if (status)
        return status;
    status = check(peer->ctx_push(peer->context), "cuCtxPushCurrent");
    if (status) {
        peer->ctx_release(peer->device);
        peer->context = NULL;
    }
    return status;
}

static raffia_status keep_what_is_freed(struct cuda_peer *peer)
{
    uint64_t everything = UINT64_MAX;
    raffia_status status =
        check(peer->default_pool(&peer->pool, peer->device), "cuDeviceGetDefaultMemPool");
    if (!status)
        status = check(peer->pool_get(peer->pool, MEMPOOL_ATTR_RELEASE_THRESHOLD, &peer->threshold),
                       "cuMemPoolGetAttribute");
    if (!status)
        status = check(peer->pool_set(peer->pool, MEMPOOL_ATTR_RELEASE_THRESHOLD, &everything),
                       "cuMemPoolSetAttribute");
    if (status)
        peer->pool = NULL;
    return status;
}

raffia_status cuda_peer_open(struct driver_device device, struct cuda_peer **peer_p)
{
    if (strcmp(device.driver->name, "cuda") != 0)
        return core_error(RAFFIA_ERROR_UNSUPPORTED,
                          "the %s driver has no allocators of its own to compare with",
                          device.driver->name);
    struct cuda_peer *peer = core_calloc(1, sizeof *peer);
    if (!peer)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    peer->device = device.index;
    peer->library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    raffia_status status =
        peer->library ? find_symbols(peer)
                      : core_error(RAFFIA_ERROR_UNSUPPORTED, "libcuda.so.1: %s", dlerror());
    if (!status)
        status = enter(peer);
    if (!status)
        status = keep_what_is_freed(peer);
    if (status)
        cuda_peer_close(peer);
    else
        *peer_p = peer;
    return status;
}

void cuda_peer_close(struct cuda_peer *peer)
{
    if (!peer)
        return;
    if (peer->pool) {
        peer->pool_set(peer->pool, MEMPOOL_ATTR_RELEASE_THRESHOLD, &peer->threshold);
        peer->pool_trim(peer->pool, 0);
    }
    if (peer->context) {
        void *popped;
        peer->ctx_pop(&popped);
        peer->ctx_release(peer->device);
    }
    if (peer->library)
        dlclose(peer->library);
    core_free(peer);
}

/* Addresses of the device are numbers to the driver and pointers to us. */
static void *pointer_to(uintptr_t address)
{
    void *pointer;
    memcpy(&pointer, &address, sizeof pointer);
    return pointer;
}

raffia_status cuda_peer_alloc_async(struct cuda_peer *peer, driver_stream stream, size_t bytes,
                                    void **address_p)
{
    uintptr_t address;
    raffia_status status = check(peer->alloc_async(&address, bytes, stream), "cuMemAllocAsync");
    if (!status)
        *address_p = pointer_to(address);
    return status;
}

raffia_status cuda_peer_free_async(struct cuda_peer *peer, driver_stream stream, void *address)
{
    return check(peer->free_async((uintptr_t)address, stream), "cuMemFreeAsync");
}

raffia_status cuda_peer_alloc(struct cuda_peer *peer, size_t bytes, void **address_p)
{
    uintptr_t address;
    raffia_status status = check(peer->alloc(&address, bytes), "cuMemAlloc");
    if (!status)
        *address_p = pointer_to(address);
    return status;
}

raffia_status cuda_peer_free(struct cuda_peer *peer, void *address)
{
    return check(peer->free((uintptr_t)address), "cuMemFree");
}

raffia_status cuda_peer_host_alloc(struct cuda_peer *peer, size_t bytes, void **address_p)
{
    return check(peer->host_alloc(address_p, bytes, CUDA_API_MEMHOSTALLOC_PORTABLE),
                 "cuMemHostAlloc");
}

raffia_status cuda_peer_host_free(struct cuda_peer *peer, void *address)
{
    return check(peer->host_free(address), "cuMemFreeHost");
}
