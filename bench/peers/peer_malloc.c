/* malloc() and free() of whichever library is linked: PEER_NAME says which. It takes its memory
 * from the system as it likes, knows no range, and what it hands out stays untouched. */
#include "bench/peers/peer.h"

#include <stdlib.h>

const char peer_name[] = PEER_NAME;
const bool peer_is_shared = true;

static raffia_status take(void *context, uint64_t bytes, uint64_t *name_p)
{
    (void)context;
    void *block = malloc(bytes);
    if (!block)
        return RAFFIA_ERROR_OUT_OF_MEMORY;
    *name_p = (uint64_t)(uintptr_t)block;
    return RAFFIA_OK;
}

static raffia_status give(void *context, uint64_t name, uint64_t bytes)
{
    (void)context;
    (void)bytes;
    free((void *)(uintptr_t)name);
    return RAFFIA_OK;
}

raffia_status peer_open(size_t range, struct replay_way *way)
{
    (void)range;
    *way = (struct replay_way){take, give, NULL};
    return RAFFIA_OK;
}

void peer_close(void) {}
