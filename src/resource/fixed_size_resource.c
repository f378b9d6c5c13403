/* Blocks of one size, cut from chunks of upstream, handed out in the order they were freed. */
#include "resource/fixed_size_resource.h"

#include "core/checked.h"
#include "core/error.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/options.h"
#include "core/text.h"
#include "resource/fixed_blocks.h"

#include <raffia/resources.h>

#include <stdio.h>

#define BLOCK_DEFAULT  ((size_t)1 << 20)
#define BLOCKS_DEFAULT ((size_t)128)
#define UNIT           ((size_t)RAFFIA_DEFAULT_ALIGNMENT)

/* ---- blocks --------------------------------------------------------------------------------- */

static struct fixed_block *take(struct fixed_size_resource *self, size_t bytes)
{
    pthread_mutex_lock(&self->lock);
    struct fixed_block *block = fixed_blocks_take(self);
    if (block)
        block->bytes = bytes;
    pthread_mutex_unlock(&self->lock);
    return block;
}

static raffia_status take_or_grow(struct fixed_size_resource *self, raffia_stream stream,
                                  size_t bytes, struct fixed_block **block_p)
{
    raffia_status status = RAFFIA_OK;
    *block_p = take(self, bytes);
    if (*block_p)
        return RAFFIA_OK;
    pthread_mutex_lock(&self->growth);
    /* Others may take what was added before this thread can. */
    while (!status && !(*block_p = take(self, bytes)))
        status = fixed_blocks_grow(self, stream);
    pthread_mutex_unlock(&self->growth);
    return status;
}

static raffia_status check_request(const struct fixed_size_resource *self, size_t bytes,
                                   size_t alignment)
{
    if (bytes > self->block_bytes)
        return core_error(RAFFIA_ERROR_OUT_OF_MEMORY,
                          "%zu bytes were asked of a fixed-size resource with blocks of %zu", bytes,
                          self->block_bytes);
    if (alignment > self->alignment)
        return core_error(
            RAFFIA_ERROR_INVALID_ARGUMENT,
            "a fixed-size resource with blocks of %zu bytes aligns to %zu, not to %zu",
            self->block_bytes, self->alignment, alignment);
    return RAFFIA_OK;
}

static raffia_status fixed_size_allocate(void *context, raffia_stream stream, size_t bytes,
                                         size_t alignment, void **address_p)
{
    struct fixed_size_resource *self = context;
    struct fixed_block *block;
    if (resource_is_inherited(&self->adaptor.base))
        return resource_refuse_inherited(&self->adaptor.base);
    raffia_status status = check_request(self, bytes, alignment);
    if (!status)
        status = resource_order_check(&self->order, stream);
    if (status)
        return status;
    if (!bytes) {
        *address_p = NULL;
        return RAFFIA_OK;
    }
    status = take_or_grow(self, stream, bytes, &block);
    if (status)
        return status;
    status = block->born ? resource_order_follow(&self->order, stream, block->born)
                         : resource_order_join(&self->order, stream, &block->mark);
    if (status) {
        pthread_mutex_lock(&self->lock);
        fixed_blocks_put_first(self, block);
        pthread_mutex_unlock(&self->lock);
        return status;
    }
    block->born = NULL;
    resource_hold(&self->adaptor.base);
    *address_p = block->address;
    return RAFFIA_OK;
}

static raffia_status refuse_address(const void *address)
{
    return core_error(RAFFIA_ERROR_BAD_ADDRESS,
                      "%p is no live block of this fixed-size resource: it was freed before, lies "
                      "inside a block, or was allocated by another resource",
                      address);
}

/* The block is neither free nor live while the mark is made, so that a second free is refused. */
static raffia_status fixed_size_deallocate(void *context, raffia_stream stream, void *address,
                                           size_t bytes, size_t alignment)
{
    struct fixed_size_resource *self = context;
    (void)alignment;
    if (!address || resource_is_inherited(&self->adaptor.base))
        return RAFFIA_OK;
    pthread_mutex_lock(&self->lock);
    struct fixed_block *block = fixed_blocks_at(self, address);
    const bool found = block && block->live && block->address == address;
    const size_t has = found ? block->bytes : 0;
    if (found && has == bytes)
        block->live = false;
    pthread_mutex_unlock(&self->lock);
    if (!found)
        return refuse_address(address);
    if (has != bytes)
        return resource_refuse_size(address, bytes, RAFFIA_DEFAULT_ALIGNMENT, has);
    raffia_status status = resource_order_mark(&self->order, stream, &block->mark);
    pthread_mutex_lock(&self->lock);
    if (status)
        block->live = true;
    else
        fixed_blocks_append(self, block);
    pthread_mutex_unlock(&self->lock);
    if (!status)
        resource_drop(&self->adaptor.base);
    return status;
}

static raffia_status fixed_size_find(void *context, const void *address, raffia_block *found)
{
    struct fixed_size_resource *self = context;
    if (resource_is_inherited(&self->adaptor.base))
        return resource_refuse_inherited(&self->adaptor.base);
    pthread_mutex_lock(&self->lock);
    const struct fixed_block *block = fixed_blocks_at(self, address);
    const bool live = block && block->live;
    if (live)
        *found = resource_live_block(block->address, self->block_bytes, block->bytes);
    pthread_mutex_unlock(&self->lock);
    return live ? RAFFIA_OK : refuse_address(address);
}

static raffia_status fixed_size_usable_size(void *context, const void *address, size_t *bytes_p)
{
    raffia_block block = {0};
    raffia_status status = fixed_size_find(context, address, &block);
    if (!status && block.address != address)
        status = refuse_address(address);
    if (!status)
        *bytes_p = block.bytes;
    return status;
}

static raffia_status fixed_size_walk(void *context, raffia_block_visitor visitor, void *argument)
{
    struct fixed_size_resource *self = context;
    bool wanted = true;
    if (resource_is_inherited(&self->adaptor.base))
        return resource_refuse_inherited(&self->adaptor.base);
    pthread_mutex_lock(&self->lock);
    for (size_t c = 0; c < self->chunk_count && wanted; c++)
        for (size_t i = 0; i < self->blocks_per_chunk && wanted; i++) {
            const struct fixed_block *block = &self->chunks[c].blocks[i];
            const raffia_block shown =
                resource_live_block(block->address, self->block_bytes, block->bytes);
            wanted = !block->live || visitor(argument, &shown);
        }
    pthread_mutex_unlock(&self->lock);
    return RAFFIA_OK;
}

static void fixed_size_describe(void *context, char *buffer, size_t capacity)
{
    struct fixed_size_resource *self = context;
    char size[CORE_SIZE_TEXT_MAX];
    snprintf(buffer, capacity, "fixed-size resource, blocks of %s, %zu at once",
             core_format_size(self->block_bytes, size), self->blocks_per_chunk);
}

static const raffia_resource_ops fixed_size_ops = {
    .struct_size = sizeof fixed_size_ops,
    .allocate = fixed_size_allocate,
    .deallocate = fixed_size_deallocate,
    .properties = resource_adaptor_properties,
    .is_equal = resource_is_same,
    .retain = resource_context_retain,
    .release = resource_context_release,
    .usable_size = fixed_size_usable_size,
    .find = fixed_size_find,
    .walk = fixed_size_walk,
    .upstream = resource_adaptor_upstream,
    .describe = fixed_size_describe,
};

bool resource_fixed_size_contains(raffia_resource_ref ref, const void *address)
{
    if (ref.ops != &fixed_size_ops)
        return false;
    struct fixed_size_resource *self = ref.context;
    pthread_mutex_lock(&self->lock);
    const bool contains = fixed_blocks_at(self, address) != NULL;
    pthread_mutex_unlock(&self->lock);
    return contains;
}

static void free_chunk(struct fixed_size_resource *self, const struct fixed_chunk *chunk)
{
    raffia_status status = resource_order_wait_at_end(&self->order, chunk->born);
    for (size_t i = 0; i < self->blocks_per_chunk; i++) {
        if (!status)
            status = resource_order_wait_at_end(&self->order, &chunk->blocks[i].mark);
        resource_order_end(&self->order, &chunk->blocks[i].mark);
    }
    if (!status)
        resource_adaptor_give_back(&self->adaptor, chunk->base, fixed_blocks_chunk_bytes(self),
                                   self->alignment);
    else
        core_log_error("%zu bytes at %p are lost: %s", fixed_blocks_chunk_bytes(self),
                       (void *)chunk->base, raffia_last_error());
    fixed_blocks_end_chunk(self, chunk);
}

static void fixed_size_destroy(struct raffia_resource *resource)
{
    struct fixed_size_resource *self = (struct fixed_size_resource *)resource;
    if (resource_is_inherited(resource))
        return;
    for (size_t i = 0; i < self->chunk_count; i++)
        free_chunk(self, &self->chunks[i]);
    core_free(self->chunks);
    pthread_mutex_destroy(&self->growth);
    pthread_mutex_destroy(&self->lock);
    resource_adaptor_end(&self->adaptor);
}

/* A power of two that divides the size of a block is one that every block can have. */
static size_t alignment_of(size_t block_bytes)
{
    return core_min(block_bytes & -block_bytes, (size_t)2 << 20);
}

raffia_status raffia_fixed_size_resource_create(raffia_resource_ref upstream,
                                                const raffia_fixed_size_resource_options *options,
                                                raffia_resource **resource_p)
{
    raffia_fixed_size_resource_options o;
    struct fixed_size_resource *self;
    size_t block_bytes, total;
    raffia_status status =
        core_options_copy(&o, sizeof o, options, "raffia_fixed_size_resource_options");
    if (!status && o.block_bytes == RAFFIA_NONE)
        status = core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                            "block_bytes is %zu, which stands for none, and a resource of blocks "
                            "of one size cannot do without; 0 chooses it",
                            RAFFIA_NONE);
    if (status)
        return status;
    const size_t count = o.blocks_per_chunk ? o.blocks_per_chunk : BLOCKS_DEFAULT;
    if (!core_align_up(o.block_bytes ? o.block_bytes : BLOCK_DEFAULT, UNIT, &block_bytes) ||
        !core_multiply(block_bytes, count, &total))
        return core_error(RAFFIA_ERROR_OVERFLOW, "%zu blocks of %zu bytes exceed the address space",
                          count, o.block_bytes);
    status = resource_adaptor_make(sizeof *self, upstream, &fixed_size_ops, fixed_size_destroy,
                                   "raffia_fixed_size_resource_create", resource_p, &self);
    if (status)
        return status;
    resource_order_init(&self->order, self->adaptor.upstream);
    self->block_bytes = block_bytes;
    self->blocks_per_chunk = count;
    self->alignment = alignment_of(block_bytes);
    pthread_mutex_init(&self->growth, NULL);
    pthread_mutex_init(&self->lock, NULL);
    if (!o.lazy) {
        status = fixed_blocks_grow(self, NULL);
        if (!status) /* so that no stream need follow, which one being captured could not */
            status = resource_order_wait(&self->order, self->chunks[0].born);
    }
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
