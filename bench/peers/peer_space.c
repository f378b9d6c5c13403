/* Raffia's index of free space alone, by handle. */
#include "bench/peers/peer.h"
#include "cli/replay_ways.h"

const char peer_name[] = "raffia space";
const bool peer_is_shared = false;

static struct space *space;

raffia_status peer_open(size_t range, struct replay_way *way)
{
    const struct space_options options = {.range_bytes = range, .granule = 256, .slabs = true};
    raffia_status status = space_create(&options, &space);
    if (status)
        return status;
    status = space_add(space, 0, range);
    if (status)
        space_destroy(space);
    else
        *way = replay_way_space(space);
    return status;
}

void peer_close(void)
{
    space_destroy(space);
}
