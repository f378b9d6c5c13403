#include "resource/record.h"

#include "core/error.h"
#include "core/memory.h"
#include "resource/resource.h"

#include <assert.h>
#include <pthread.h>

struct resource_record {
    pthread_mutex_t lock; /* of what follows; under it nothing but bookkeeping is done */
    struct resource_blocks blocks;
};

raffia_status resource_record_create(struct resource_record **record_p)
{
    struct resource_record *made = core_calloc(1, sizeof *made);
    if (!made)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    made->blocks.stays_ready = true; /* a block that comes and goes costs no memory each time */
    pthread_mutex_init(&made->lock, NULL);
    *record_p = made;
    return RAFFIA_OK;
}

void resource_record_destroy(struct resource_record *record)
{
    if (!record)
        return;
    resource_blocks_end(&record->blocks); /* each block holds its resource, and so the record */
    pthread_mutex_destroy(&record->lock);
    core_free(record);
}

raffia_status resource_record_add(struct resource_record *record,
                                  const struct resource_block *block)
{
    pthread_mutex_lock(&record->lock);
    raffia_status status = resource_blocks_add(&record->blocks, block);
    pthread_mutex_unlock(&record->lock);
    return status;
}

/* What the caller may use of the block. */
static size_t usable(const struct resource_block *block)
{
    return block->bytes - (size_t)((char *)block->address - (char *)block->start);
}

static raffia_status refuse_address(const void *address)
{
    return core_error(RAFFIA_ERROR_BAD_ADDRESS,
                      "%p is no live block of this resource or an equal one: it was freed before, "
                      "lies inside a block, or was allocated by another resource",
                      address);
}

/* Sizes alone tell no alignment: 1160 bytes with the room to align them to 4096 are 5000. */
static raffia_status refuse_size(const struct resource_block *block, size_t bytes, size_t alignment)
{
    if (block->requested != bytes)
        return resource_refuse_size(block->address, bytes, RAFFIA_DEFAULT_ALIGNMENT,
                                    block->requested);
    return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                      "cannot free %p as a block of %zu bytes aligned to %zu: the one there has "
                      "%zu that were aligned otherwise, and stays as it is",
                      block->address, bytes, alignment, block->requested);
}

/* What becomes of a block that is found. */
enum look { LOOK_PEEK, LOOK_TAKE, LOOK_LEND };

static raffia_status look_up(struct resource_record *record, const void *address, size_t bytes,
                             size_t alignment, enum look how, struct resource_block *block)
{
    const size_t slack =
        alignment > RAFFIA_DEFAULT_ALIGNMENT ? alignment - RAFFIA_DEFAULT_ALIGNMENT : 0;
    pthread_mutex_lock(&record->lock);
    const bool found = resource_blocks_lend(&record->blocks, address, block);
    const bool fits = found && block->requested == bytes && block->bytes == bytes + slack;
    if (found && (how == LOOK_PEEK || !fits))
        resource_blocks_put_back(&record->blocks, block);
    else if (found && how == LOOK_TAKE)
        resource_blocks_settle(&record->blocks);
    pthread_mutex_unlock(&record->lock);
    if (!found)
        return refuse_address(address);
    if (!fits)
        return refuse_size(block, bytes, alignment);
    return RAFFIA_OK;
}

raffia_status resource_record_take(struct resource_record *record, const void *address,
                                   size_t bytes, size_t alignment, bool peek,
                                   struct resource_block *block)
{
    return look_up(record, address, bytes, alignment, peek ? LOOK_PEEK : LOOK_TAKE, block);
}

raffia_status resource_record_lend(struct resource_record *record, const void *address,
                                   size_t bytes, size_t alignment, struct resource_block *block)
{
    return look_up(record, address, bytes, alignment, LOOK_LEND, block);
}

void resource_record_settle(struct resource_record *record, const struct resource_block *block,
                            bool freed)
{
    pthread_mutex_lock(&record->lock);
    if (freed)
        resource_blocks_settle(&record->blocks);
    else
        resource_blocks_put_back(&record->blocks, block);
    pthread_mutex_unlock(&record->lock);
}

static raffia_block describe(const struct resource_block *block)
{
    return resource_live_block(block->address, usable(block), block->requested);
}

static raffia_status find(struct resource_record *record, const void *address, raffia_block *block)
{
    const char *at = address;
    bool found = false;
    pthread_mutex_lock(&record->lock);
    for (size_t i = 0; i < record->blocks.capacity && !found; i++) {
        const struct resource_block *place = &record->blocks.places[i];
        const char *start = place->address;
        found = start && at >= start && (size_t)(at - start) < usable(place);
        if (found)
            *block = describe(place);
    }
    pthread_mutex_unlock(&record->lock);
    return found ? RAFFIA_OK : refuse_address(address);
}

static void walk(struct resource_record *record, raffia_block_visitor visitor, void *argument)
{
    bool wanted = true;
    pthread_mutex_lock(&record->lock);
    for (size_t i = 0; i < record->blocks.capacity && wanted; i++)
        if (record->blocks.places[i].address) {
            const raffia_block block = describe(&record->blocks.places[i]);
            wanted = visitor(argument, &block);
        }
    pthread_mutex_unlock(&record->lock);
}

/* A child must not take its parent's locks. */
raffia_status resource_on_record_find(void *context, const void *address, raffia_block *block)
{
    const struct resource_on_record *self = context;
    return resource_is_inherited(&self->base) ? resource_refuse_inherited(&self->base)
                                              : find(self->record, address, block);
}

raffia_status resource_on_record_usable_size(void *context, const void *address, size_t *bytes_p)
{
    return resource_usable_size_by(resource_on_record_find, context, address, bytes_p);
}

raffia_status resource_on_record_walk(void *context, raffia_block_visitor visitor, void *argument)
{
    const struct resource_on_record *self = context;
    if (resource_is_inherited(&self->base))
        return resource_refuse_inherited(&self->base);
    walk(self->record, visitor, argument);
    return RAFFIA_OK;
}
