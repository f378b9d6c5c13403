/* One block of upstream, cut up without growing; each stream has an arena of its own. */
#include "core/checked.h"
#include "core/error.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/options.h"
#include "core/text.h"
#include "resource/arena.h"

#include <raffia/resources.h>

#include <stdio.h>

/* What every allocator gives in one piece on any machine this runs on: the default is not more. */
#define DEFAULT_MAX ((size_t)64 << 30)

static raffia_status refuse(struct arena_resource *self, size_t bytes)
{
    char asked[CORE_SIZE_TEXT_MAX], all[CORE_SIZE_TEXT_MAX], left[CORE_SIZE_TEXT_MAX],
        largest[CORE_SIZE_TEXT_MAX];
    struct space_stats stats;
    pthread_mutex_lock(&self->lock);
    space_query(self->whole, &stats);
    pthread_mutex_unlock(&self->lock);
    return core_error(
        RAFFIA_ERROR_OUT_OF_MEMORY,
        "an arena of %s has no %s: %s are in no stream's arena, the largest piece %s; "
        "an arena does not grow",
        core_format_size(self->bytes, all), core_format_size(bytes, asked),
        core_format_size(stats.free_bytes, left), core_format_size(stats.largest_free, largest));
}

static raffia_status arena_allocate(void *context, raffia_stream stream, size_t bytes,
                                    size_t alignment, void **address_p)
{
    struct arena_resource *self = context;
    struct arena_stream on = {.handle = stream};
    size_t offset = 0;
    if (resource_is_inherited(&self->adaptor.base))
        return resource_refuse_inherited(&self->adaptor.base);
    raffia_status status = resource_order_id(&self->order, stream, &on.id);
    if (status)
        return status;
    if (!bytes) {
        *address_p = NULL;
        return RAFFIA_OK;
    }
    if (alignment > self->alignment)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "an arena whose memory is aligned to %zu cannot align to %zu",
                          self->alignment, alignment);
    const struct space_request request = {.bytes = bytes, .alignment = alignment};
    status = arena_place(self, &on, &request, &offset);
    if (status == RAFFIA_ERROR_OUT_OF_MEMORY) {
        arena_gather_done(self);
        status = arena_place(self, &on, &request, &offset);
    }
    if (status == RAFFIA_ERROR_OUT_OF_MEMORY) {
        status = arena_gather(self);
        if (!status)
            status = arena_place(self, &on, &request, &offset);
    }
    if (status == RAFFIA_ERROR_OUT_OF_MEMORY)
        return refuse(self, bytes);
    if (status)
        return status;
    resource_hold(&self->adaptor.base);
    *address_p = self->base + offset;
    return RAFFIA_OK;
}

/* ---- freeing -------------------------------------------------------------------------------- */

static raffia_status refuse_address(const void *address)
{
    return core_error(RAFFIA_ERROR_BAD_ADDRESS,
                      "%p is no live block of this arena: it was freed before, lies inside a "
                      "block, or was allocated by another resource",
                      address);
}

/* Lock held. The live block that starts at the offset; superblocks are none. */
static bool find_block(struct arena_resource *self, size_t offset, struct space **space_p,
                       struct space_block *block)
{
    if (offset >= self->bytes)
        return false;
    *space_p = arena_space_of(self, offset);
    return !space_find(*space_p, offset, block) && block->state == SPACE_HELD;
}

/* The block is pending while its order is seen to, so that a second free is refused. */
static raffia_status arena_deallocate(void *context, raffia_stream stream, void *address,
                                      size_t bytes, size_t alignment)
{
    struct arena_resource *self = context;
    struct space *space = NULL;
    struct space_block block;
    uint64_t id;
    (void)alignment;
    if (!address || resource_is_inherited(&self->adaptor.base))
        return RAFFIA_OK;
    raffia_status status = resource_order_id(&self->order, stream, &id);
    if (status)
        return status;
    const size_t offset = (uintptr_t)address - (uintptr_t)self->base;
    pthread_mutex_lock(&self->lock);
    const bool found = find_block(self, offset, &space, &block);
    const bool good = found && block.requested == bytes;
    struct arena_local *local = arena_find_local(self, id);
    const bool own = good && local && local->space == space;
    const bool by_event = self->order.asynchronous &&
                          (self->order.device.driver->capabilities & DRIVER_REUSE_BY_EVENT) != 0;
    if (own && !by_event)
        status = resource_order_mark(&self->order, stream, &local->mark);
    if (good && !status)
        status = space_set_state(space, block.handle, SPACE_PENDING);
    pthread_mutex_unlock(&self->lock);
    if (!found)
        return refuse_address(address);
    if (!good)
        return resource_refuse_size(address, bytes, RAFFIA_DEFAULT_ALIGNMENT, block.requested);
    if (status)
        return status;
    if (!own || by_event)
        status = resource_order_drain(&self->order, stream);
    pthread_mutex_lock(&self->lock);
    if (status)
        (void)space_set_state(space, block.handle, SPACE_HELD);
    else
        status = space_free(space, block.handle);
    pthread_mutex_unlock(&self->lock);
    if (!status)
        resource_drop(&self->adaptor.base);
    return status;
}

/* ---- questions ------------------------------------------------------------------------------ */

static raffia_status arena_find(void *context, const void *address, raffia_block *found)
{
    struct arena_resource *self = context;
    struct space_block block = {0};
    const size_t offset = (uintptr_t)address - (uintptr_t)self->base;
    if (resource_is_inherited(&self->adaptor.base))
        return resource_refuse_inherited(&self->adaptor.base);
    pthread_mutex_lock(&self->lock);
    const bool live = offset < self->bytes &&
                      !space_containing(arena_space_of(self, offset), offset, &block) &&
                      block.state == SPACE_HELD;
    pthread_mutex_unlock(&self->lock);
    if (!live)
        return refuse_address(address);
    *found = resource_live_block(self->base + block.offset, block.bytes, block.requested);
    return RAFFIA_OK;
}

static raffia_status arena_usable_size(void *context, const void *address, size_t *bytes_p)
{
    raffia_block block = {0};
    raffia_status status = arena_find(context, address, &block);
    if (!status && block.address != address)
        status = refuse_address(address);
    if (!status)
        *bytes_p = block.bytes;
    return status;
}

struct walk {
    struct arena_resource *self;
    struct space *space;
    raffia_block_visitor visitor;
    void *argument;
    bool wanted;
};

static bool visit(void *context, const struct space_block *block)
{
    struct walk *walk = context;
    const bool is_superblock = walk->space == walk->self->whole &&
                               arena_space_of(walk->self, block->offset) != walk->space;
    if (block->state != SPACE_HELD || is_superblock)
        return true;
    const raffia_block shown =
        resource_live_block(walk->self->base + block->offset, block->bytes, block->requested);
    walk->wanted = walk->visitor(walk->argument, &shown);
    return walk->wanted;
}

static raffia_status arena_walk(void *context, raffia_block_visitor visitor, void *argument)
{
    struct arena_resource *self = context;
    struct walk walk = {self, self->whole, visitor, argument, true};
    if (resource_is_inherited(&self->adaptor.base))
        return resource_refuse_inherited(&self->adaptor.base);
    pthread_mutex_lock(&self->lock);
    space_walk(walk.space, visit, &walk);
    for (unsigned i = 0; i < self->local_count && walk.wanted; i++) {
        walk.space = self->locals[i].space;
        space_walk(walk.space, visit, &walk);
    }
    pthread_mutex_unlock(&self->lock);
    return RAFFIA_OK;
}

static void arena_describe(void *context, char *buffer, size_t capacity)
{
    const struct arena_resource *self = context;
    char size[CORE_SIZE_TEXT_MAX];
    snprintf(buffer, capacity, "arena of %s", core_format_size(self->bytes, size));
}

static const raffia_resource_ops arena_ops = {
    .struct_size = sizeof arena_ops,
    .allocate = arena_allocate,
    .deallocate = arena_deallocate,
    .properties = resource_adaptor_properties,
    .is_equal = resource_is_same,
    .retain = resource_context_retain,
    .release = resource_context_release,
    .usable_size = arena_usable_size,
    .find = arena_find,
    .walk = arena_walk,
    .upstream = resource_adaptor_upstream,
    .describe = arena_describe,
};

/* ---- life ----------------------------------------------------------------------------------- */

static void end_memory(struct arena_resource *self)
{
    raffia_status status = RAFFIA_OK;
    for (unsigned i = 0; i < self->local_count; i++) {
        if (!status)
            status = resource_order_wait_at_end(&self->order, &self->locals[i].mark);
        resource_order_end(&self->order, &self->locals[i].mark);
        space_destroy(self->locals[i].space);
    }
    if (self->base && !status)
        resource_adaptor_give_back(&self->adaptor, self->base, self->bytes, self->alignment);
    else if (status)
        core_log_error("%zu bytes at %p are lost: %s", self->bytes, (void *)self->base,
                       raffia_last_error());
}

static void arena_destroy(struct raffia_resource *resource)
{
    struct arena_resource *self = (struct arena_resource *)resource;
    if (resource_is_inherited(resource))
        return;
    end_memory(self);
    space_destroy(self->whole);
    core_free(self->owners);
    pthread_mutex_destroy(&self->gathering);
    pthread_mutex_destroy(&self->lock);
    resource_adaptor_end(&self->adaptor);
}

/* An upstream that cannot align to superblocks gives what it has. */
static raffia_status take_memory(struct arena_resource *self)
{
    void *base = NULL;
    self->alignment = ARENA_SUPERBLOCK;
    raffia_status status =
        resource_adaptor_allocate(&self->adaptor, NULL, self->bytes, self->alignment, &base);
    if (status == RAFFIA_ERROR_INVALID_ARGUMENT || status == RAFFIA_ERROR_UNSUPPORTED) {
        self->alignment = ARENA_UNIT;
        status =
            resource_adaptor_allocate(&self->adaptor, NULL, self->bytes, self->alignment, &base);
    }
    if (status)
        return status;
    self->base = base;
    /* All streams get parts of it, so that none may find somebody else's work on it. */
    return resource_order_drain(&self->order, NULL);
}

static raffia_status set_up(struct arena_resource *self)
{
    const struct space_options options = {.range_bytes = self->bytes, .granule = ARENA_UNIT};
    self->owners = core_calloc(self->bytes / ARENA_SUPERBLOCK, sizeof *self->owners);
    if (!self->owners)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    raffia_status status = space_create(&options, &self->whole);
    if (!status)
        status = space_add(self->whole, 0, self->bytes);
    return status ? status : take_memory(self);
}

static raffia_status default_bytes(const struct resource_order *order, size_t *bytes_p)
{
    raffia_device_info info;
    if (!order->device.driver)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "an arena over a resource that does not say its device needs a size");
    raffia_status status = order->device.driver->device_info(order->device.index, &info);
    if (!status)
        *bytes_p = core_min(info.free_bytes / 2, DEFAULT_MAX);
    return status;
}

raffia_status raffia_arena_resource_create(raffia_resource_ref upstream,
                                           const raffia_arena_resource_options *options,
                                           raffia_resource **resource_p)
{
    raffia_arena_resource_options o;
    struct arena_resource *self;
    raffia_status status =
        core_options_copy(&o, sizeof o, options, "raffia_arena_resource_options");
    if (!status && o.arena_bytes == RAFFIA_NONE)
        status = core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                            "arena_bytes is %zu, which stands for none, and an arena cannot do "
                            "without; 0 chooses it",
                            RAFFIA_NONE);
    if (!status)
        status = resource_adaptor_make(sizeof *self, upstream, &arena_ops, arena_destroy,
                                       "raffia_arena_resource_create", resource_p, &self);
    if (status)
        return status;
    resource_order_init(&self->order, self->adaptor.upstream);
    pthread_mutex_init(&self->gathering, NULL);
    pthread_mutex_init(&self->lock, NULL);
    if (!o.arena_bytes)
        status = default_bytes(&self->order, &o.arena_bytes);
    self->bytes = core_align_down(o.arena_bytes, ARENA_UNIT);
    if (!status && self->bytes < ARENA_SUPERBLOCK)
        status =
            core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                       "an arena of %zu bytes is too small: the least is 1 MiB", o.arena_bytes);
    if (!status)
        status = set_up(self);
    if (status) {
        struct core_error_record cause;
        core_error_save(&cause);
        raffia_resource_release(&self->adaptor.base);
        core_error_restore(&cause);
        return status;
    }
    *resource_p = &self->adaptor.base;
    return RAFFIA_OK;
}
