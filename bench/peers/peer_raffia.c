/* Raffia's pool, by the public calls, on memory of the simulated device that nobody touches. */
#include "bench/peers/peer.h"
#include "cli/bench_sim.h"
#include "cli/replay_ways.h"

const char peer_name[] = "raffia";
const bool peer_is_shared = true;

static raffia_pool *pool;

raffia_status peer_open(size_t range, struct replay_way *way)
{
    const raffia_pool_options options = {
        .struct_size = sizeof options,
        .device = BENCH_SIM_DEVICE,
        .name = "peer",
        .pages = RAFFIA_PAGES_ON,
        .initial_bytes = range,
        .maximum_bytes = range,
        .chunk_bytes = range,
        .flags = RAFFIA_POOL_FIXED,
        .threads = 1,
    };
    raffia_status status = bench_sim_prepare(2 * range, 0);
    if (!status)
        status = raffia_pool_create(&options, &pool);
    if (!status)
        *way = replay_way_pool(pool);
    return status;
}

void peer_close(void)
{
    raffia_pool_release(pool);
}
