#include "resource/arena.h"

#include "core/error.h"

#include <assert.h>

/* ---- locals; lock held ---------------------------------------------------------------------- */

struct arena_local *arena_find_local(struct arena_resource *self, uint64_t stream_id)
{
    for (unsigned i = 0; i < self->local_count; i++)
        if (self->locals[i].stream_id == stream_id)
            return &self->locals[i];
    return NULL;
}

/* Whether what was submitted before the local's last free is done, without waiting for it. What
 * somebody else waits for is not, until he says so. */
static bool is_done(const struct arena_resource *self, struct arena_local *local)
{
    struct core_error_record before;
    bool done = false;
    if (!local->mark.pending)
        return true;
    core_error_save(&before);
    if (local->mark.event &&
        self->order.device.driver->event_done(self->order.device.index, local->mark.event, &done))
        core_error_restore(&before);
    local->mark.pending = !done;
    return done;
}

static bool is_unused(const struct arena_local *local)
{
    struct space_stats stats;
    space_query(local->space, &stats);
    return stats.free_bytes == stats.present_bytes;
}

/* Whether work to come on the stream may use what the local has. The mark stays: others that take
 * superblocks of it must still come behind. */
static bool can_follow(const struct arena_resource *self, struct arena_local *local,
                       raffia_stream stream)
{
    struct core_error_record before;
    if (is_done(self, local))
        return true;
    core_error_save(&before);
    if (local->mark.event && !resource_order_follow(&self->order, stream, &local->mark))
        return true;
    core_error_restore(&before);
    return false;
}

/* The local of another stream that has no block, with the superblocks it has; NULL if all of them
 * have some. Programs make and drop streams, which nobody need tell the arena. */
static struct arena_local *take_over(struct arena_resource *self, raffia_stream stream)
{
    struct arena_local *idle = NULL;
    for (unsigned i = 0; i < self->local_count; i++) {
        struct arena_local *local = &self->locals[i];
        if (!is_unused(local))
            continue;
        if (is_done(self, local))
            return local;
        if (!idle && local->mark.event)
            idle = local;
    }
    return idle && can_follow(self, idle, stream) ? idle : NULL;
}

/* NULL with a failure, or if there are too many: then the whole serves. */
static raffia_status need_local(struct arena_resource *self, const struct arena_stream *stream,
                                struct arena_local **local_p)
{
    *local_p = arena_find_local(self, stream->id);
    if (*local_p)
        return RAFFIA_OK;
    struct arena_local *local = &self->locals[self->local_count];
    if (self->local_count == ARENA_LOCALS_MAX) {
        local = take_over(self, stream->handle);
        if (!local)
            return RAFFIA_OK;
    } else {
        const struct space_options options = {.range_bytes = self->bytes, .granule = ARENA_UNIT};
        raffia_status status = space_create(&options, &local->space);
        if (status)
            return status;
        self->local_count++;
    }
    local->stream_id = stream->id;
    *local_p = local;
    return RAFFIA_OK;
}

/* Gives a local one superblock more. OUT_OF_MEMORY. */
static raffia_status add_superblock(struct arena_resource *self, struct arena_local *local)
{
    const struct space_request request = {.bytes = ARENA_SUPERBLOCK, .alignment = ARENA_SUPERBLOCK};
    struct space_block block;
    raffia_status status = space_allocate(self->whole, &request, &block);
    if (status)
        return status;
    status = space_add(local->space, block.offset, ARENA_SUPERBLOCK);
    if (status) {
        (void)space_free(self->whole, block.handle);
        return status;
    }
    self->owners[block.offset / ARENA_SUPERBLOCK] = (uint16_t)(local - self->locals + 1);
    return RAFFIA_OK;
}

/* Takes back superblocks of which nothing is in use, and that no stream may still use. */
static void gather_free(struct arena_resource *self)
{
    for (size_t i = 0; i < self->bytes / ARENA_SUPERBLOCK; i++) {
        struct arena_local *local = self->owners[i] ? &self->locals[self->owners[i] - 1] : NULL;
        size_t unused;
        if (!local || !is_done(self, local) ||
            !space_is_free(local->space, i * ARENA_SUPERBLOCK, ARENA_SUPERBLOCK) ||
            space_remove(local->space, i * ARENA_SUPERBLOCK, ARENA_SUPERBLOCK))
            continue;
        self->owners[i] = 0;
        raffia_status status = space_free_held(self->whole, i * ARENA_SUPERBLOCK, 0, &unused);
        assert(!status);
        (void)status;
    }
}

struct space *arena_space_of(struct arena_resource *self, size_t offset)
{
    const unsigned owner = offset / ARENA_SUPERBLOCK < self->bytes / ARENA_SUPERBLOCK
                               ? self->owners[offset / ARENA_SUPERBLOCK]
                               : 0;
    return owner ? self->locals[owner - 1].space : self->whole;
}

/* ---- allocation ----------------------------------------------------------------------------- */

raffia_status arena_place(struct arena_resource *self, const struct arena_stream *stream,
                          const struct space_request *request, size_t *offset_p)
{
    struct space_block block;
    struct arena_local *local = NULL;
    raffia_status status = RAFFIA_OK;
    pthread_mutex_lock(&self->lock);
    if (request->bytes <= ARENA_SUPERBLOCK && request->alignment <= ARENA_SUPERBLOCK)
        status = need_local(self, stream, &local);
    if (!status)
        status = space_allocate(local ? local->space : self->whole, request, &block);
    if (local && status == RAFFIA_ERROR_OUT_OF_MEMORY) {
        status = add_superblock(self, local);
        if (!status)
            status = space_allocate(local->space, request, &block);
        else if (status == RAFFIA_ERROR_OUT_OF_MEMORY)
            /* What is left of the whole may be less than a superblock. */
            status = space_allocate(self->whole, request, &block);
    }
    pthread_mutex_unlock(&self->lock);
    if (!status)
        *offset_p = block.offset;
    return status;
}

/* Waits for the mark of one local, without the lock. Marks made meanwhile stay. */
static raffia_status settle(struct arena_resource *self, unsigned i)
{
    struct resource_mark mark = {0};
    pthread_mutex_lock(&self->lock);
    if (i < self->local_count && self->locals[i].mark.pending) {
        /* What is not done counts as pending all the while. */
        mark = self->locals[i].mark;
        self->locals[i].mark.event = NULL;
    }
    pthread_mutex_unlock(&self->lock);
    if (!mark.event)
        return RAFFIA_OK;
    raffia_status status = resource_order_wait(&self->order, &mark);
    pthread_mutex_lock(&self->lock);
    if (!self->locals[i].mark.event) {
        self->locals[i].mark = mark;
        mark = (struct resource_mark){0};
    }
    pthread_mutex_unlock(&self->lock);
    resource_order_end(&self->order, &mark);
    return status;
}

void arena_gather_done(struct arena_resource *self)
{
    pthread_mutex_lock(&self->lock);
    gather_free(self);
    pthread_mutex_unlock(&self->lock);
}

raffia_status arena_gather(struct arena_resource *self)
{
    raffia_status status = RAFFIA_OK;
    pthread_mutex_lock(&self->gathering);
    for (unsigned i = 0; self->order.asynchronous && i < ARENA_LOCALS_MAX && !status; i++)
        status = settle(self, i);
    pthread_mutex_lock(&self->lock);
    gather_free(self);
    pthread_mutex_unlock(&self->lock);
    pthread_mutex_unlock(&self->gathering);
    return status;
}
