#include "resource/arena.h"

#include <assert.h>

/* ---- locals; lock held ---------------------------------------------------------------------- */

struct arena_local *arena_find_local(struct arena_resource *self, uint64_t stream_id)
{
    for (unsigned i = 0; i < self->local_count; i++)
        if (self->locals[i].stream_id == stream_id)
            return &self->locals[i];
    return NULL;
}

/* NULL with a failure, or if there are too many: then the whole serves. */
static raffia_status need_local(struct arena_resource *self, uint64_t stream_id,
                                struct arena_local **local_p)
{
    *local_p = arena_find_local(self, stream_id);
    if (*local_p || self->local_count == ARENA_LOCALS_MAX)
        return RAFFIA_OK;
    const struct space_options options = {.range_bytes = self->bytes, .granule = ARENA_UNIT};
    struct arena_local *local = &self->locals[self->local_count];
    raffia_status status = space_create(&options, &local->space);
    if (status)
        return status;
    local->stream_id = stream_id;
    self->local_count++;
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
        if (!local || local->mark.pending ||
            !space_is_free(local->space, i * ARENA_SUPERBLOCK, ARENA_SUPERBLOCK) ||
            space_remove(local->space, i * ARENA_SUPERBLOCK, ARENA_SUPERBLOCK))
            continue;
        self->owners[i] = 0;
        raffia_status status = space_free_held(self->whole, i * ARENA_SUPERBLOCK, &unused);
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

raffia_status arena_place(struct arena_resource *self, uint64_t stream_id,
                          const struct space_request *request, size_t *offset_p)
{
    struct space_block block;
    struct arena_local *local = NULL;
    raffia_status status = RAFFIA_OK;
    pthread_mutex_lock(&self->lock);
    if (request->bytes <= ARENA_SUPERBLOCK && request->alignment <= ARENA_SUPERBLOCK)
        status = need_local(self, stream_id, &local);
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
