/* A pool of the Unified Memory Framework over its provider of system memory, both with their
 * default parameters: the disjoint pool, or with PEER_SCALABLE the scalable one (of TBB). */
#include "bench/peers/peer.h"
#include "core/error.h"

#include <umf.h>
#include <umf/pools/pool_disjoint.h>
#include <umf/pools/pool_scalable.h>
#include <umf/providers/provider_os_memory.h>

#ifdef PEER_SCALABLE
const char peer_name[] = "umf scalable";
#else
const char peer_name[] = "umf disjoint";
#endif
const bool peer_is_shared = true;

static umf_memory_pool_handle_t pool;

static raffia_status take(void *context, uint64_t bytes, uint64_t *name_p)
{
    void *block = umfPoolMalloc(context, bytes);
    if (!block)
        return RAFFIA_ERROR_OUT_OF_MEMORY;
    *name_p = (uint64_t)(uintptr_t)block;
    return RAFFIA_OK;
}

static raffia_status give(void *context, uint64_t name, uint64_t bytes)
{
    (void)bytes;
    return umfPoolFree(context, (void *)(uintptr_t)name) == UMF_RESULT_SUCCESS
               ? RAFFIA_OK
               : RAFFIA_ERROR_BAD_ADDRESS;
}

static umf_result_t make_provider(umf_memory_provider_handle_t *provider_p)
{
    umf_os_memory_provider_params_handle_t parameters;
    umf_result_t result = umfOsMemoryProviderParamsCreate(&parameters);
    if (result != UMF_RESULT_SUCCESS)
        return result;
    result = umfMemoryProviderCreate(umfOsMemoryProviderOps(), parameters, provider_p);
    umfOsMemoryProviderParamsDestroy(parameters);
    return result;
}

static umf_result_t make_pool(umf_memory_provider_handle_t provider)
{
#ifdef PEER_SCALABLE
    return umfPoolCreate(umfScalablePoolOps(), provider, NULL, UMF_POOL_CREATE_FLAG_OWN_PROVIDER,
                         &pool);
#else
    umf_disjoint_pool_params_handle_t parameters;
    umf_result_t result = umfDisjointPoolParamsCreate(&parameters);
    if (result != UMF_RESULT_SUCCESS)
        return result;
    result = umfPoolCreate(umfDisjointPoolOps(), provider, parameters,
                           UMF_POOL_CREATE_FLAG_OWN_PROVIDER, &pool);
    umfDisjointPoolParamsDestroy(parameters);
    return result;
#endif
}

raffia_status peer_open(size_t range, struct replay_way *way)
{
    (void)range;
    umf_memory_provider_handle_t provider;
    umf_result_t result = make_provider(&provider);
    if (result != UMF_RESULT_SUCCESS)
        return core_error(RAFFIA_ERROR_DRIVER, "the provider cannot be made (%d)", (int)result);
    result = make_pool(provider);
    if (result != UMF_RESULT_SUCCESS) {
        umfMemoryProviderDestroy(provider);
        return core_error(RAFFIA_ERROR_DRIVER, "the pool cannot be made (%d)", (int)result);
    }
    *way = (struct replay_way){take, give, pool};
    return RAFFIA_OK;
}

void peer_close(void)
{
    umfPoolDestroy(pool);
}
