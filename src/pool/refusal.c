/* The sentences for what a pool refuses. */
#include "core/text.h"
#include "pool/arena.h"
#include "pool/registry.h"

#include <stdio.h>

/* What the out-of-memory sentence tells, gathered at one moment. */
struct shortage {
    struct space_stats space;
    size_t idle_bytes;
    size_t pending_bytes;
    size_t mapped_bytes;
    size_t maximum_bytes;
};

static struct shortage gather_shortage(struct raffia_pool *pool)
{
    struct shortage shortage;
    (void)pool_lock_whole(pool);
    pool->failures++;
    space_query(pool->space, &shortage.space);
    shortage.idle_bytes = pool_idle_bytes(pool, NULL);
    shortage.pending_bytes = pool->pending_bytes;
    shortage.mapped_bytes = pool->mapped_bytes;
    shortage.maximum_bytes = pool->maximum_bytes;
    core_lock_leave(&pool->lock);
    return shortage;
}

/* Bytes of free space that the request takes: whole granules, guard included. */
static size_t needed_bytes(const struct raffia_pool *pool, const struct space_request *request)
{
    size_t bytes;
    return core_align_up(request->bytes, pool->granule, &bytes) ? bytes : SIZE_MAX;
}

/* The setting or the state of affairs to change. */
static const char *advice(const struct raffia_pool *pool, const struct pool_refusal *refusal,
                          const struct shortage *shortage)
{
    const size_t needed = needed_bytes(pool, refusal->request);
    if (refusal->gave_up)
        return "others took the memory that was found for it, again and again: try again, or raise "
               "its maximum_bytes";
    if (refusal->device_says)
        return "the device has no more to give: free memory there, or lower maximum_bytes of other "
               "pools (by default the settings pool_share and pool_maximum)";
    if (shortage->pending_bytes && needed <= shortage->maximum_bytes)
        return "blocks that were freed on streams wait for work that cannot be waited for now, as "
               "while a stream is being captured";
    if (needed <= shortage->space.largest_free)
        return refusal->request->alignment > pool->granule
                   ? "enough is free in one piece, but not at that alignment: free blocks, or ask "
                     "for a smaller alignment"
                   : "enough has become free meanwhile: try again";
    if (refusal->remap == POOL_REMAP_NO_ADDRESSES)
        return "enough whole chunks are free, but it has no run of addresses to put them together: "
               "make it with more address_bytes, or free blocks";
    if (refusal->remap == POOL_REMAP_NO_MAPPINGS)
        return "enough whole chunks are free, but moving them takes more mappings than its "
               "remap_mappings allows";
    if (refusal->remap == POOL_REMAP_REFUSED && needed <= shortage->space.free_bytes)
        return "enough is free, but not in whole chunks, which could be moved: free blocks, ask "
               "for "
               "less at once, or make it with smaller chunk_bytes";
    if (needed <= shortage->space.free_bytes)
        return "enough is free, but in pieces (the memory is fragmented): free neighbouring blocks "
               "or ask for less at once";
    if (pool->flags & RAFFIA_POOL_FIXED)
        return "it is a fixed pool: raise its initial_bytes";
    return "raise its maximum_bytes, or free blocks";
}

/* What a request takes beyond the bytes asked for: " at multiples of 2 MiB", " and a guard (...)".
 */
#define EXTRA_TEXT_MAX 128

static const char *extra_text(const struct raffia_pool *pool, const struct space_request *request,
                              char text[static EXTRA_TEXT_MAX])
{
    char alignment[CORE_SIZE_TEXT_MAX], needed[CORE_SIZE_TEXT_MAX];
    int length = 0;
    text[0] = '\0';
    if (request->alignment > pool->granule)
        length = snprintf(text, EXTRA_TEXT_MAX, " at a multiple of %s",
                          core_format_size(request->alignment, alignment));
    if (pool->guard_bytes)
        snprintf(text + length, EXTRA_TEXT_MAX - (size_t)length, " and a guard (%s in all)",
                 core_format_size(needed_bytes(pool, request), needed));
    return text;
}

raffia_status pool_refuse_request(struct raffia_pool *pool, const struct pool_refusal *refusal)
{
    char free_now[CORE_SIZE_TEXT_MAX], largest[CORE_SIZE_TEXT_MAX], idle[CORE_SIZE_TEXT_MAX],
        mapped[CORE_SIZE_TEXT_MAX], maximum[CORE_SIZE_TEXT_MAX], all_idle[CORE_SIZE_TEXT_MAX],
        device_free[CORE_SIZE_TEXT_MAX] = "an unknown amount", extra[EXTRA_TEXT_MAX];
    const struct shortage shortage = gather_shortage(pool);
    const char *said = refusal->device_says;
    raffia_device_info info;
    if (!pool->device.driver->device_info(pool->device.index, &info))
        core_format_size(info.free_bytes, device_free);
    return core_error(
        RAFFIA_ERROR_OUT_OF_MEMORY,
        "pool '%s' cannot serve %zu bytes%s: %s are free (%s in one piece), %s of that "
        "in idle chunks; %s "
        "are mapped of a maximum of %s; the device has %s free, and all pools hold %s "
        "idle there; %s%s%s",
        pool->name, refusal->bytes, extra_text(pool, refusal->request, extra),
        core_format_size(shortage.space.free_bytes, free_now),
        core_format_size(shortage.space.largest_free, largest),
        core_format_size(shortage.idle_bytes, idle),
        core_format_size(shortage.mapped_bytes, mapped),
        core_format_size(shortage.maximum_bytes, maximum), device_free,
        core_format_size(pool_registry_idle_bytes(pool->device), all_idle),
        advice(pool, refusal, &shortage), said ? " - it said: " : "", said ? said : "");
}

raffia_status pool_refuse_grown(struct raffia_pool *pool, const struct space_request *request,
                                size_t bytes, const struct pool_growth_end *end)
{
    const struct pool_refusal refusal = {
        .bytes = bytes,
        .request = request,
        .device_says = end->device.status ? end->device.text : NULL,
        .gave_up = end->gave_up,
        .remap = end->remap,
    };
    return pool_refuse_request(pool, &refusal);
}

void pool_judge_address(struct raffia_pool *pool, struct space *space, const void *address,
                        struct pool_bad_address *verdict)
{
    const uintptr_t base = (uintptr_t)pool->base, at = (uintptr_t)address;
    struct space_block block;
    *verdict = (struct pool_bad_address){.address = address, .fault = POOL_ADDRESS_FOREIGN};
    if (at < base || at - base >= pool->range_bytes)
        return;
    if (space_containing(space, at - base, &block)) {
        verdict->fault = POOL_ADDRESS_ABSENT;
        return;
    }
    pool_describe_block(pool, &block, &verdict->block);
    verdict->fault = block.state == SPACE_FREE      ? POOL_ADDRESS_FREE
                     : block.state == SPACE_PENDING ? POOL_ADDRESS_PENDING
                                                    : POOL_ADDRESS_INTERIOR;
}

void pool_judge_block(struct raffia_pool *pool, struct space *space, const void *address,
                      size_t requested, struct pool_bad_address *verdict)
{
    struct space_block block;
    if (!pool_find_live_in(pool, space, address, &block) || pool_is_size(&block, requested)) {
        pool_judge_address(pool, space, address, verdict);
        return;
    }
    /* As in pool_requested(). */
    const size_t bytes = requested == RAFFIA_NONE ? requested : requested - pool->guard_bytes;
    *verdict =
        (struct pool_bad_address){.address = address, .fault = POOL_ADDRESS_SIZE, .bytes = bytes};
    pool_describe_block(pool, &block, &verdict->block);
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
    case POOL_ADDRESS_SIZE:
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "cannot %s %p as a block of %zu bytes%s: that of pool '%s' there has "
                          "%zu, and stays as it is",
                          verb, address, verdict->bytes,
                          verdict->bytes == pool->granule ? " (or of 0, which takes as much)" : "",
                          pool->name, verdict->block.requested_bytes);
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
