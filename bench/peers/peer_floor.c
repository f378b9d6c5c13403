/* Nothing at all: what the harness itself takes. */
#include "bench/peers/peer.h"
#include "cli/replay_ways.h"

const char peer_name[] = "(floor)";
const bool peer_is_shared = true;

raffia_status peer_open(size_t range, struct replay_way *way)
{
    (void)range;
    *way = replay_way_floor();
    return RAFFIA_OK;
}

void peer_close(void) {}
