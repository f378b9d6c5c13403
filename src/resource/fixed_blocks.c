#include "resource/fixed_blocks.h"

#include "core/error.h"
#include "core/memory.h"

#include <string.h>

/* ---- the list of free blocks; lock held ----------------------------------------------------- */

void fixed_blocks_append(struct fixed_size_resource *self, struct fixed_block *block)
{
    block->next = NULL;
    block->live = false;
    if (self->last)
        self->last->next = block;
    else
        self->first = block;
    self->last = block;
}

void fixed_blocks_put_first(struct fixed_size_resource *self, struct fixed_block *block)
{
    block->next = self->first;
    block->live = false;
    self->first = block;
    if (!self->last)
        self->last = block;
}

struct fixed_block *fixed_blocks_take(struct fixed_size_resource *self)
{
    struct fixed_block *block = self->first;
    if (block) {
        self->first = block->next;
        if (!self->first)
            self->last = NULL;
        block->live = true;
    }
    return block;
}

/* ---- chunks --------------------------------------------------------------------------------- */

size_t fixed_blocks_chunk_bytes(const struct fixed_size_resource *self)
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

struct fixed_block *fixed_blocks_at(const struct fixed_size_resource *self, const void *address)
{
    const char *at = address;
    const size_t behind = chunk_behind(self, at);
    if (behind == 0)
        return NULL;
    const struct fixed_chunk *chunk = &self->chunks[behind - 1];
    const size_t offset = (size_t)(at - chunk->base);
    return offset < fixed_blocks_chunk_bytes(self) ? &chunk->blocks[offset / self->block_bytes]
                                                   : NULL;
}

/* Lock held. */
static raffia_status insert(struct fixed_size_resource *self, const struct fixed_chunk *chunk)
{
    struct fixed_chunk *chunks =
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
        chunk->blocks[i].born = chunk->born;
        fixed_blocks_append(self, &chunk->blocks[i]);
    }
    return RAFFIA_OK;
}

void fixed_blocks_end_chunk(const struct fixed_size_resource *self, const struct fixed_chunk *chunk)
{
    if (chunk->born)
        resource_order_end(&self->order, chunk->born);
    core_free(chunk->born);
    core_free(chunk->blocks);
}

static raffia_status make_chunk(const struct fixed_size_resource *self, struct fixed_chunk *chunk)
{
    *chunk = (struct fixed_chunk){0};
    chunk->blocks = core_calloc(self->blocks_per_chunk, sizeof *chunk->blocks);
    chunk->born = core_calloc(1, sizeof *chunk->born);
    if (chunk->blocks && chunk->born)
        return RAFFIA_OK;
    fixed_blocks_end_chunk(self, chunk);
    return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
}

/* The memory is there, for the stream. */
static raffia_status add_chunk(struct fixed_size_resource *self, raffia_stream stream,
                               struct fixed_chunk *chunk)
{
    raffia_status status = resource_order_mark_birth(&self->order, stream, chunk->born);
    if (status)
        return status;
    pthread_mutex_lock(&self->lock);
    status = insert(self, chunk);
    pthread_mutex_unlock(&self->lock);
    return status;
}

/* Growth lock held. */
raffia_status fixed_blocks_grow(struct fixed_size_resource *self, raffia_stream stream)
{
    struct fixed_chunk chunk;
    raffia_status status = make_chunk(self, &chunk);
    if (status)
        return status;
    void *base = NULL;
    status = resource_adaptor_allocate(&self->adaptor, stream, fixed_blocks_chunk_bytes(self),
                                       self->alignment, &base);
    if (!status) {
        chunk.base = base;
        status = add_chunk(self, stream, &chunk);
        if (status) {
            struct core_error_record cause;
            core_error_save(&cause);
            (void)resource_adaptor_deallocate(&self->adaptor, stream, base,
                                              fixed_blocks_chunk_bytes(self), self->alignment);
            core_error_restore(&cause);
        }
    }
    if (status)
        fixed_blocks_end_chunk(self, &chunk);
    return status;
}
