/* Guards that streams write: a mark for each, until the block goes. */
#include "core/log.h"
#include "core/memory.h"
#include "pool/guard.h"

#define FIRST_MARKS ((size_t)16)

static raffia_status reserve_mark(struct pool_guard *guard)
{
    if (guard->mark_count < guard->mark_room)
        return RAFFIA_OK;
    const size_t room = guard->mark_room ? 2 * guard->mark_room : FIRST_MARKS;
    struct pool_guard_mark *marks = core_reallocate(guard->marks, room, sizeof *marks);
    if (!marks)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    guard->marks = marks;
    guard->mark_room = room;
    return RAFFIA_OK;
}

/* Linear: only what was allocated on a stream has a mark. */
static struct pool_guard_mark *find_mark(const struct pool_guard *guard,
                                         const struct space_block *block)
{
    for (size_t i = 0; i < guard->mark_count; i++)
        if (guard->marks[i].offset == block->offset)
            return &guard->marks[i];
    return NULL;
}

static void destroy_event(const struct raffia_pool *pool, driver_event event)
{
    struct core_error_record before;
    core_error_save(&before);
    if (pool->device.driver->event_destroy(pool->device.index, event))
        core_log_error("pool '%s': an event of its guards could not be destroyed: %s", pool->name,
                       raffia_last_error());
    core_error_restore(&before);
}

/* A pattern is on its way that no event tells of. A stream that can be neither marked nor waited
 * for is lost with its device, and runs nothing any more. */
static void await_unmarked(const struct raffia_pool *pool, driver_stream stream)
{
    const struct driver_device device = pool->device;
    struct core_error_record before;
    core_error_save(&before);
    raffia_status status = RAFFIA_ERROR_DRIVER;
    for (int i = 0; status && i < POOL_DRIVER_ATTEMPTS; i++)
        status = device.driver->stream_wait(device.index, stream);
    core_error_restore(&before);
}

raffia_status pool_guard_put_on(struct raffia_pool *pool, raffia_stream stream,
                                const struct space_block *block)
{
    const struct driver_device device = pool->device;
    struct pool_guard *guard = pool->guard;
    if (guard->direct || !pool->asynchronous)
        return pool_guard_put(pool, block);
    driver_event event = NULL;
    raffia_status status = reserve_mark(guard);
    if (!status)
        status = device.driver->event_create(device.index, &event);
    if (status)
        return status;
    status = pool_guard_fill(pool, stream, block);
    if (!status) {
        status = device.driver->event_record(device.index, event, stream);
        if (status)
            await_unmarked(pool, stream);
    }
    if (status) {
        destroy_event(pool, event);
        return status;
    }
    guard->marks[guard->mark_count++] = (struct pool_guard_mark){block->offset, event};
    return RAFFIA_OK;
}

raffia_status pool_guard_wait(struct raffia_pool *pool, const struct space_block *block)
{
    const struct driver_device device = pool->device;
    pool_lock(&pool->guard->lock);
    const struct pool_guard_mark *mark = find_mark(pool->guard, block);
    const driver_event event = mark ? mark->event : NULL;
    pool_unlock(&pool->guard->lock);
    raffia_status status = event ? RAFFIA_ERROR_DRIVER : RAFFIA_OK;
    for (int i = 0; status && i < POOL_DRIVER_ATTEMPTS; i++)
        status = device.driver->event_wait(device.index, event);
    return status;
}

bool pool_guard_is_there(struct raffia_pool *pool, const struct space_block *block)
{
    const struct driver_device device = pool->device;
    const struct pool_guard_mark *mark = find_mark(pool->guard, block);
    bool done = false;
    if (!mark)
        return true;
    return !device.driver->event_done(device.index, mark->event, &done) && done;
}

void pool_guard_forget(struct raffia_pool *pool, const struct space_block *block)
{
    struct pool_guard *guard = pool->guard;
    struct pool_guard_mark *mark = find_mark(guard, block);
    if (!mark)
        return;
    destroy_event(pool, mark->event);
    *mark = guard->marks[--guard->mark_count];
}
