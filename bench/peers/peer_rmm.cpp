/* RMM's pool over its resource of device memory (cudaMalloc): one piece for the whole range, on the
 * default stream. It wants an NVIDIA GPU with as much memory free. */
#include <raffia/base.h>
#include <raffia/status.h>

#include <exception>
#include <new>
#include <optional>
#include <rmm/cuda_stream_view.hpp>
#include <rmm/mr/cuda_memory_resource.hpp>
#include <rmm/mr/pool_memory_resource.hpp>

extern "C" {
#include "bench/peers/peer.h"
#include "core/error.h"

extern const char peer_name[];
extern const bool peer_is_shared;
const char peer_name[] = "rmm pool";
const bool peer_is_shared = true;
}

static std::optional<rmm::mr::pool_memory_resource> pool;

static raffia_status take(void *context, uint64_t bytes, uint64_t *name_p)
{
    auto *resource = static_cast<rmm::mr::pool_memory_resource *>(context);
    try {
        void *block = resource->allocate(rmm::cuda_stream_view{}, bytes, 256);
        *name_p = reinterpret_cast<uint64_t>(block);
        return RAFFIA_OK;
    } catch (const std::bad_alloc &) {
        return RAFFIA_ERROR_OUT_OF_MEMORY;
    } catch (const std::exception &problem) {
        return core_error(RAFFIA_ERROR_DRIVER, "%s", problem.what());
    }
}

static raffia_status give(void *context, uint64_t name, uint64_t bytes)
{
    auto *resource = static_cast<rmm::mr::pool_memory_resource *>(context);
    resource->deallocate(rmm::cuda_stream_view{}, reinterpret_cast<void *>(name), bytes, 256);
    return RAFFIA_OK;
}

raffia_status peer_open(size_t range, struct replay_way *way)
{
    try {
        pool.emplace(rmm::mr::cuda_memory_resource{}, range, range);
    } catch (const std::exception &problem) {
        return core_error(RAFFIA_ERROR_DRIVER, "the pool cannot be made: %s", problem.what());
    }
    *way = replay_way{take, give, &*pool};
    return RAFFIA_OK;
}

void peer_close(void)
{
    pool.reset();
}
