#include "cli/replay_ways.h"

#define TOUCH_BYTES 4096u

static raffia_status floor_take(void *context, uint64_t bytes, uint64_t *name_p)
{
    (void)context;
    *name_p = bytes | 1;
    return RAFFIA_OK;
}

static raffia_status floor_give(void *context, uint64_t name, uint64_t bytes)
{
    (void)context;
    (void)name;
    (void)bytes;
    return RAFFIA_OK;
}

struct replay_way replay_way_floor(void)
{
    return (struct replay_way){floor_take, floor_give, NULL};
}

static raffia_status pool_take_block(void *context, uint64_t bytes, uint64_t *name_p)
{
    void *address;
    raffia_status status = raffia_pool_alloc(context, bytes, 0, &address);
    if (!status)
        *name_p = (uint64_t)(uintptr_t)address;
    return status;
}

static raffia_status pool_give_block(void *context, uint64_t name, uint64_t bytes)
{
    (void)bytes;
    return raffia_pool_free(context, (void *)(uintptr_t)name);
}

struct replay_way replay_way_pool(raffia_pool *pool)
{
    return (struct replay_way){pool_take_block, pool_give_block, pool};
}

static raffia_status take_and_touch(void *context, uint64_t bytes, uint64_t *name_p)
{
    raffia_status status = pool_take_block(context, bytes, name_p);
    if (status)
        return status;
    volatile char *block = (volatile char *)(uintptr_t)*name_p;
    for (uint64_t at = 0; at < bytes; at += TOUCH_BYTES)
        block[at] = 1;
    return RAFFIA_OK;
}

struct replay_way replay_way_pool_touching(raffia_pool *pool)
{
    return (struct replay_way){take_and_touch, pool_give_block, pool};
}

static raffia_status space_take_block(void *context, uint64_t bytes, uint64_t *name_p)
{
    struct space_block block;
    const struct space_request request = {.bytes = bytes ? bytes : 1};
    raffia_status status = space_allocate(context, &request, &block);
    if (!status)
        *name_p = block.handle;
    return status;
}

static raffia_status space_give_block(void *context, uint64_t name, uint64_t bytes)
{
    (void)bytes;
    return space_free(context, name);
}

struct replay_way replay_way_space(struct space *space)
{
    return (struct replay_way){space_take_block, space_give_block, space};
}
