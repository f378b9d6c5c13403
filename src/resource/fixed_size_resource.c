/* Blocks of one size, cut from chunks of upstream, handed out in the order they were freed. */
#include "resource/fixed_size_resource.h"

#include "core/checked.h"
#include "core/error.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/options.h"
#include "core/text.h"
#include "resource/adaptor.h"
#include "resource/order.h"

#include <raffia/resources.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define BLOCK_DEFAULT  ((size_t)1 << 20)
#define BLOCKS_DEFAULT ((size_t)128)
#define UNIT           ((size_t)RAFFIA_DEFAULT_ALIGNMENT)

struct block {
    struct block *next; /* in the list of free ones */
    char *address;
    bool live;
    struct resource_mark mark; /* of its last use */
};

struct chunk {
    char *base;
    struct block *blocks;
};

struct fixed_size_resource {
    struct resource_adaptor adaptor;
    struct resource_order order;
    size_t block_bytes, blocks_per_chunk;
    size_t alignment; /* that every block has */

    pthread_mutex_t growth; /* one grower at a time; held during calls to upstream */
    pthread_mutex_t lock;   /* of what follows; taken after the other */
    struct block *first, *last;
    struct chunk *chunks; /* in order of address */
    size_t chunk_count;
};

/* ---- the list of free blocks; lock held ----------------------------------------------------- */

static void append(struct fixed_size_resource *self, struct block *block)
{
    block->next = NULL;
    block->live = false;
    if (self->last)
        self->last->next = block;
    else
        self->first = block;
    self->last = block;
}

static void put_first(struct fixed_size_resource *self, struct block *block)
{
    block->next = self->first;
    block->live = false;
    self->first = block;
    if (!self->last)
        self->last = block;
}

static struct block *take_first(struct fixed_size_resource *self)
{
    struct block *block = self->first;
    if (block) {
        self->first = block->next;
        if (!self->first)
            self->last = NULL;
        block->live = true;
    }
    return block;
}

/* ---- chunks --------------------------------------------------------------------------------- */

static size_t chunk_bytes(const struct fixed_size_resource *self)
{
    return self->block_bytes * self->blocks_per_chunk;
}

/* Lock held. The first chunk that begins behind the address. */
static size_t chunk_behind(const struct fixed_size_resource *self, const char *address)
{
    size_t low = 0, high = self->chunk_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (self->chunks[middle].base > address)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Lock held. The block the address is in, or NULL. */
static struct block *block_at(const struct fixed_size_resource *self, const void *address)
{
    const char *at = address;
    const size_t behind = chunk_behind(self, at);
    if (behind == 0)
        return NULL;
    const struct chunk *chunk = &self->chunks[behind - 1];
    const size_t offset = (size_t)(at - chunk->base);
    return offset < chunk_bytes(self) ? &chunk->blocks[offset / self->block_bytes] : NULL;
}

/* Lock held. */
static raffia_status insert(struct fixed_size_resource *self, const struct chunk *chunk)
{
    struct chunk *chunks =
        core_reallocate(self->chunks, self->chunk_count + 1, sizeof *self->chunks);
    if (!chunks)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    self->chunks = chunks;
    const size_t at = chunk_behind(self, chunk->base);
    memmove(&chunks[at + 1], &chunks[at], (self->chunk_count - at) * sizeof *chunks);
    chunks[at] = *chunk;
    self->chunk_count++;
    for (size_t i = 0; i < self->blocks_per_chunk; i++) {
        chunk->blocks[i].address = chunk->base + i * self->block_bytes;
        append(self, &chunk->blocks[i]);
    }
    return RAFFIA_OK;
}

/* Growth lock held. */
static raffia_status grow(struct fixed_size_resource *self, raffia_stream stream)
{
    struct chunk chunk = {.blocks = core_calloc(self->blocks_per_chunk, sizeof *chunk.blocks)};
    if (!chunk.blocks)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    void *base = NULL;
    raffia_status status = resource_adaptor_allocate(&self->adaptor, stream, chunk_bytes(self),
                                                     self->alignment, &base);
    if (!status) {
        chunk.base = base;
        pthread_mutex_lock(&self->lock);
        status = insert(self, &chunk);
        pthread_mutex_unlock(&self->lock);
        if (status)
            (void)resource_adaptor_deallocate(&self->adaptor, stream, base, chunk_bytes(self),
                                              self->alignment);
    }
    if (status)
        core_free(chunk.blocks);
    return status;
}

/* ---- blocks --------------------------------------------------------------------------------- */

static struct block *take(struct fixed_size_resource *self)
{
    pthread_mutex_lock(&self->lock);
    struct block *block = take_first(self);
    pthread_mutex_unlock(&self->lock);
    return block;
}

static raffia_status take_or_grow(struct fixed_size_resource *self, raffia_stream stream,
                                  struct block **block_p)
{
    raffia_status status = RAFFIA_OK;
    *block_p = take(self);
    if (*block_p)
        return RAFFIA_OK;
    pthread_mutex_lock(&self->growth);
    /* Others may take what was added before this thread can. */
    while (!status && !(*block_p = take(self)))
        status = grow(self, stream);
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
    struct block *block;
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
    status = take_or_grow(self, stream, &block);
    if (status)
        return status;
    status = resource_order_join(&self->order, stream, &block->mark);
    if (status) {
        pthread_mutex_lock(&self->lock);
        put_first(self, block);
        pthread_mutex_unlock(&self->lock);
        return status;
    }
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
    struct block *block = block_at(self, address);
    const bool good =
        block && block->live && block->address == address && bytes <= self->block_bytes;
    if (good)
        block->live = false;
    pthread_mutex_unlock(&self->lock);
    if (!good)
        return refuse_address(address);
    raffia_status status = resource_order_mark(&self->order, stream, &block->mark);
    pthread_mutex_lock(&self->lock);
    if (status)
        block->live = true;
    else
        append(self, block);
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
    const struct block *block = block_at(self, address);
    const bool live = block && block->live;
    if (live)
        *found = resource_live_block(block->address, self->block_bytes, self->block_bytes);
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
            const struct block *block = &self->chunks[c].blocks[i];
            const raffia_block shown =
                resource_live_block(block->address, self->block_bytes, self->block_bytes);
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
    const bool contains = block_at(self, address) != NULL;
    pthread_mutex_unlock(&self->lock);
    return contains;
}

static void free_chunk(struct fixed_size_resource *self, const struct chunk *chunk)
{
    raffia_status status = RAFFIA_OK;
    for (size_t i = 0; i < self->blocks_per_chunk; i++) {
        if (!status)
            status = resource_order_wait_at_end(&self->order, &chunk->blocks[i].mark);
        resource_order_end(&self->order, &chunk->blocks[i].mark);
    }
    if (!status)
        resource_adaptor_give_back(&self->adaptor, chunk->base, chunk_bytes(self), self->alignment);
    else
        core_log_error("%zu bytes at %p are lost: %s", chunk_bytes(self), (void *)chunk->base,
                       raffia_last_error());
    core_free(chunk->blocks);
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
    status = o.lazy ? RAFFIA_OK : grow(self, NULL);
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
