/* The sentences for what a pool refuses. */
#include "core/text.h"
#include "pool/pool_internal.h"
#include "pool/registry.h"

/* What the out-of-memory sentence tells, gathered at one moment. */
struct shortage {
    struct space_stats space;
    size_t idle_bytes;
    size_t mapped_bytes;
    size_t maximum_bytes;
};

static struct shortage gather_shortage(struct raffia_pool *pool)
{
    struct shortage shortage;
    core_lock_take(&pool->lock);
    pool->failures++;
    space_query(pool->space, &shortage.space);
    shortage.idle_bytes = pool_idle_bytes(pool, NULL);
    shortage.mapped_bytes = pool->mapped_bytes;
    shortage.maximum_bytes = pool->maximum_bytes;
    core_lock_leave(&pool->lock);
    return shortage;
}

/* The setting or the state of affairs to change. */
static const char *advice(const struct raffia_pool *pool, size_t bytes,
                          const struct shortage *shortage, bool device_refused)
{
    if (device_refused)
        return "the device has no more to give: free memory there, or lower maximum_bytes of other "
               "pools (by default the settings pool_share and pool_maximum)";
    if (bytes <= shortage->space.free_bytes)
        return "enough is free, but in pieces (the memory is fragmented): free neighbouring blocks "
               "or ask for less at once";
    if (pool->flags & RAFFIA_POOL_FIXED)
        return "it is a fixed pool: raise its initial_bytes";
    return "raise its maximum_bytes, or free blocks";
}

raffia_status pool_refuse_request(struct raffia_pool *pool, size_t bytes, const char *device_says)
{
    char free_now[CORE_SIZE_TEXT_MAX], largest[CORE_SIZE_TEXT_MAX], idle[CORE_SIZE_TEXT_MAX],
        mapped[CORE_SIZE_TEXT_MAX], maximum[CORE_SIZE_TEXT_MAX], all_idle[CORE_SIZE_TEXT_MAX],
        device_free[CORE_SIZE_TEXT_MAX] = "an unknown amount";
    const struct shortage shortage = gather_shortage(pool);
    raffia_device_info info;
    if (!pool->device.driver->device_info(pool->device.index, &info))
        core_format_size(info.free_bytes, device_free);
    return core_error(
        RAFFIA_ERROR_OUT_OF_MEMORY,
        "pool '%s' cannot serve %zu bytes: %s are free (%s in one piece), %s of that "
        "in idle chunks; %s "
        "are mapped of a maximum of %s; the device has %s free, and all pools hold %s "
        "idle there; %s%s%s",
        pool->name, bytes, core_format_size(shortage.space.free_bytes, free_now),
        core_format_size(shortage.space.largest_free, largest),
        core_format_size(shortage.idle_bytes, idle),
        core_format_size(shortage.mapped_bytes, mapped),
        core_format_size(shortage.maximum_bytes, maximum), device_free,
        core_format_size(pool_registry_idle_bytes(pool->device), all_idle),
        advice(pool, bytes, &shortage, device_says != NULL), device_says ? " - it said: " : "",
        device_says ? device_says : "");
}

void pool_judge_address(struct raffia_pool *pool, const void *address,
                        struct pool_bad_address *verdict)
{
    const uintptr_t base = (uintptr_t)pool->base, at = (uintptr_t)address;
    struct space_block block;
    *verdict = (struct pool_bad_address){.address = address, .fault = POOL_ADDRESS_FOREIGN};
    if (at < base || at - base >= pool->range_bytes)
        return;
    if (space_containing(pool->space, at - base, &block)) {
        verdict->fault = POOL_ADDRESS_ABSENT;
        return;
    }
    pool_describe_block(pool, &block, &verdict->block);
    verdict->fault = block.state == SPACE_FREE      ? POOL_ADDRESS_FREE
                     : block.state == SPACE_PENDING ? POOL_ADDRESS_PENDING
                                                    : POOL_ADDRESS_INTERIOR;
}

raffia_status pool_refuse_address(const struct raffia_pool *pool, const char *verb,
                                  const struct pool_bad_address *verdict)
{
    const void *address = verdict->address;
    switch (verdict->fault) {
    case POOL_ADDRESS_FREE:
        return core_error(
            RAFFIA_ERROR_BAD_ADDRESS,
            "cannot %s %p: it lies in free space of pool '%s', so it was freed before "
            "or never handed out",
            verb, address, pool->name);
    case POOL_ADDRESS_PENDING:
        return core_error(RAFFIA_ERROR_BAD_ADDRESS,
                          "cannot %s %p: the block at %p of pool '%s' was freed before, and waits "
                          "for its stream",
                          verb, address, verdict->block.address, pool->name);
    case POOL_ADDRESS_INTERIOR:
        return core_error(RAFFIA_ERROR_BAD_ADDRESS,
                          "cannot %s %p: it lies inside the block of %zu bytes at %p of pool '%s'; "
                          "name the block by its start",
                          verb, address, verdict->block.bytes, verdict->block.address, pool->name);
    case POOL_ADDRESS_ABSENT:
        return core_error(RAFFIA_ERROR_BAD_ADDRESS,
                          "cannot %s %p: pool '%s' has no memory there, so it was freed before or "
                          "never handed out",
                          verb, address, pool->name);
    case POOL_ADDRESS_FOREIGN:
        break;
    }
    return core_error(RAFFIA_ERROR_BAD_ADDRESS, "cannot %s %p: it is no address of pool '%s'", verb,
                      address, pool->name);
}
