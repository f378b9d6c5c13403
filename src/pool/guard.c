/* The pattern behind a block: written when it is handed out, looked at when it comes back. */
#include "pool/guard.h"

#include "core/checked.h"
#include "core/log.h"
#include "core/memory.h"

#include <string.h>

static const unsigned char guard_pattern = 0xFD;

/* Room for what is read back from a device at a time. */
#define GUARD_BUFFER_BYTES ((size_t)64 << 10)

struct slack {
    unsigned char *at;
    size_t bytes;
    bool wall; /* whole granules that can be protected */
};

static struct slack slack_of(const struct raffia_pool *pool, const struct space_block *block)
{
    const size_t used = block->requested - pool->guard_bytes;
    return (struct slack){
        .at = (unsigned char *)pool->base + block->offset + used,
        .bytes = block->bytes - used,
        .wall = pool->guard->protects && core_is_aligned(used, pool->granule),
    };
}

raffia_status pool_guard_create(struct raffia_pool *pool, const raffia_device_info *info)
{
    const struct driver *driver = pool->device.driver;
    struct pool_guard *guard = core_calloc(1, sizeof *guard);
    if (!guard)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    guard->direct = info->cpu_accessible;
    guard->protects = guard->direct && !info->asynchronous &&
                      driver->capabilities & DRIVER_CAN_PROTECT && pool->granule >= pool->page_size;
    raffia_status status = RAFFIA_OK;
    if (!guard->direct) {
        guard->buffer = core_malloc(GUARD_BUFFER_BYTES);
        status = guard->buffer ? RAFFIA_OK : RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    }
    if (!status && info->asynchronous)
        status = driver->stream_create(pool->device.index, &guard->stream);
    if (status) {
        core_free(guard->buffer);
        core_free(guard);
        return status;
    }
    pthread_mutex_init(&guard->lock, NULL);
    pool->guard = guard;
    pool_guard_watch_exit();
    return RAFFIA_OK;
}

void pool_guard_destroy(struct raffia_pool *pool)
{
    struct pool_guard *guard = pool->guard;
    if (!guard)
        return;
    const struct driver_device device = pool->device;
    raffia_status status = guard->stream ? RAFFIA_ERROR_DRIVER : RAFFIA_OK;
    for (int i = 0; status && i < POOL_DRIVER_ATTEMPTS; i++)
        status = device.driver->stream_destroy(device.index, guard->stream);
    if (status)
        core_log_error("pool '%s': the stream of its guards could not be destroyed: %s", pool->name,
                       raffia_last_error());
    pthread_mutex_destroy(&guard->lock);
    core_free(guard->buffer);
    core_free(guard->marks);
    core_free(guard->census);
    core_free(guard);
    pool->guard = NULL;
}

/* Work that was submitted must not outlive the call: it would hit whoever has the memory next. */
static raffia_status wait_for_device(const struct raffia_pool *pool)
{
    const struct driver_device device = pool->device;
    raffia_status status = RAFFIA_ERROR_DRIVER;
    for (int i = 0; status && i < POOL_DRIVER_ATTEMPTS; i++)
        status = device.driver->stream_wait(device.index, pool->guard->stream);
    return status;
}

/* Where there are too many mappings for another one the pattern has to do. */
static void protect(const struct raffia_pool *pool, const struct slack *slack)
{
    struct core_error_record before;
    core_error_save(&before);
    if (pool->device.driver->set_access(pool->device.index, slack->at, slack->bytes,
                                        pool->device.index, false))
        core_log_debug("pool '%s': the guard at %p is not protected: %s", pool->name,
                       (void *)slack->at, raffia_last_error());
    core_error_restore(&before);
}

raffia_status pool_guard_put(struct raffia_pool *pool, const struct space_block *block)
{
    const struct slack slack = slack_of(pool, block);
    if (pool->guard->direct) {
        memset(slack.at, guard_pattern, slack.bytes);
        if (slack.wall)
            protect(pool, &slack);
        return RAFFIA_OK;
    }
    return pool_guard_fill(pool, pool->guard->stream, block);
}

raffia_status pool_guard_fill(struct raffia_pool *pool, driver_stream stream,
                              const struct space_block *block)
{
    const struct driver_device device = pool->device;
    const struct slack slack = slack_of(pool, block);
    raffia_status status =
        device.driver->fill(device.index, stream, slack.at, guard_pattern, slack.bytes);
    if (!status && stream == pool->guard->stream)
        status = wait_for_device(pool);
    return status;
}

raffia_status pool_guard_lift(struct raffia_pool *pool, const struct space_block *block)
{
    const struct driver_device device = pool->device;
    const struct slack slack = slack_of(pool, block);
    raffia_status status = slack.wall ? RAFFIA_ERROR_DRIVER : RAFFIA_OK;
    for (int i = 0; status && i < POOL_DRIVER_ATTEMPTS; i++)
        status = device.driver->set_access(device.index, slack.at, slack.bytes, device.index, true);
    return status;
}

/* Index of the first byte that is not the pattern, or `bytes`. */
static size_t first_damaged(const unsigned char *at, size_t bytes)
{
    size_t i = 0;
    while (i < bytes && at[i] == guard_pattern)
        i++;
    return i;
}

/* Brings a piece of the slack into the buffer. */
static raffia_status read_back(struct raffia_pool *pool, const unsigned char *at, size_t bytes)
{
    const struct driver_device device = pool->device;
    raffia_status status = RAFFIA_ERROR_DRIVER;
    for (int i = 0; status && i < POOL_DRIVER_ATTEMPTS; i++) {
        status =
            device.driver->copy(device.index, pool->guard->stream, pool->guard->buffer, at, bytes);
        if (!status)
            status = wait_for_device(pool);
    }
    return status;
}

/* How much of the slack is intact, from its start. */
static raffia_status measure_intact(struct raffia_pool *pool, const struct slack *slack,
                                    size_t *intact_p)
{
    *intact_p = 0;
    if (pool->guard->direct) {
        *intact_p = first_damaged(slack->at, slack->bytes);
        return RAFFIA_OK;
    }
    while (*intact_p < slack->bytes) {
        const size_t bytes = core_min(slack->bytes - *intact_p, GUARD_BUFFER_BYTES);
        raffia_status status = read_back(pool, slack->at + *intact_p, bytes);
        if (status)
            return status;
        const size_t good = first_damaged(pool->guard->buffer, bytes);
        *intact_p += good;
        if (good < bytes)
            break;
    }
    return RAFFIA_OK;
}

enum pool_guard_verdict pool_guard_inspect(struct raffia_pool *pool,
                                           const struct space_block *block,
                                           struct pool_damage *damage)
{
    const struct slack slack = slack_of(pool, block);
    size_t intact;
    if (measure_intact(pool, &slack, &intact))
        return POOL_GUARD_UNREAD;
    if (intact == slack.bytes)
        return POOL_GUARD_INTACT;
    pool_describe_block(pool, block, &damage->block);
    damage->distance = intact;
    return POOL_GUARD_DAMAGED;
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
