/* The pattern behind a block: written when it is handed out, looked at when it comes back. */
#include "pool/pool_internal.h"

#include <string.h>

static const unsigned char guard_pattern = 0xFD;

static unsigned char *guard_of(const struct raffia_pool *pool, const struct space_block *block,
                               size_t *bytes_p)
{
    const size_t used = block->requested - pool->guard_bytes;
    *bytes_p = block->bytes - used;
    return (unsigned char *)pool->base + block->offset + used;
}

void pool_guard_write(struct raffia_pool *pool, const struct space_block *block)
{
    if (!pool->guard_bytes)
        return;
    size_t bytes;
    unsigned char *guard = guard_of(pool, block, &bytes);
    memset(guard, guard_pattern, bytes);
}

bool pool_guard_intact(const struct raffia_pool *pool, const struct space_block *block,
                       struct pool_damage *damage)
{
    if (!pool->guard_bytes)
        return true;
    size_t bytes;
    const unsigned char *guard = guard_of(pool, block, &bytes);
    for (size_t i = 0; i < bytes; i++) {
        if (guard[i] != guard_pattern) {
            pool_describe_block(pool, block, &damage->block);
            damage->distance = i;
            return false;
        }
    }
    return true;
}

raffia_status pool_report_damage(struct raffia_pool *pool, const struct pool_damage *damage)
{
    pool_freeze(pool);
    return core_error(
        RAFFIA_ERROR_CORRUPT,
        "pool '%s': the block of %zu bytes at %p was written to beyond its end, first "
        "%zu bytes behind it; the pool is frozen",
        pool->name, damage->block.requested_bytes, damage->block.address, damage->distance);
}
