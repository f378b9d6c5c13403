#include "resource/blocks.h"

#include "core/error.h"
#include "core/memory.h"

#include <assert.h>

#define CAPACITY_MIN 16

/* Most of the places that may be taken: 3 / 4. Beyond, searches get long. */
#define LOAD_NUMERATOR   3
#define LOAD_DENOMINATOR 4

/* Fibonacci hashing: the low bits of an address say little, so the product's high ones are used. */
static size_t home_of(const struct resource_blocks *blocks, const void *address)
{
    const uint64_t mixed = (uint64_t)(uintptr_t)address * 0x9E3779B97F4A7C15u;
    return (size_t)(mixed >> 32) & (blocks->capacity - 1);
}

static size_t after(const struct resource_blocks *blocks, size_t place)
{
    return (place + 1) & (blocks->capacity - 1);
}

/* Where the address is, or the empty place where it would be put. There always is an empty one. */
static size_t place_of(const struct resource_blocks *blocks, const void *address)
{
    size_t place = home_of(blocks, address);
    while (blocks->places[place].address && blocks->places[place].address != address)
        place = after(blocks, place);
    return place;
}

static raffia_status enlarge(struct resource_blocks *blocks)
{
    struct resource_blocks larger = {
        .capacity = blocks->capacity ? 2 * blocks->capacity : CAPACITY_MIN,
        .count = blocks->count,
        .lent = blocks->lent,
        .stays_ready = blocks->stays_ready,
    };
    larger.places = core_calloc(larger.capacity, sizeof *larger.places);
    if (!larger.places)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < blocks->capacity; i++)
        if (blocks->places[i].address)
            larger.places[place_of(&larger, blocks->places[i].address)] = blocks->places[i];
    core_free(blocks->places);
    *blocks = larger;
    return RAFFIA_OK;
}

/* Pre: there is room. */
static void put(struct resource_blocks *blocks, const struct resource_block *block)
{
    const size_t place = place_of(blocks, block->address);
    assert(!blocks->places[place].address);
    blocks->places[place] = *block;
    blocks->count++;
}

raffia_status resource_blocks_add(struct resource_blocks *blocks,
                                  const struct resource_block *block)
{
    assert(block->address);
    const size_t known = blocks->count + blocks->lent;
    if (known == RESOURCE_BLOCKS_MAX)
        return core_error(RAFFIA_ERROR_LIMIT,
                          "%zu blocks are live, and more cannot be recorded: free some, or ask for "
                          "fewer and larger ones",
                          known);
    if (known >= blocks->capacity / LOAD_DENOMINATOR * LOAD_NUMERATOR) {
        raffia_status status = enlarge(blocks);
        if (status)
            return status;
    }
    put(blocks, block);
    return RAFFIA_OK;
}

/* Moves back what was put behind the gap because the place was taken. */
static void close_gap(struct resource_blocks *blocks, size_t gap)
{
    const size_t mask = blocks->capacity - 1;
    for (size_t place = after(blocks, gap); blocks->places[place].address;
         place = after(blocks, place)) {
        const size_t home = home_of(blocks, blocks->places[place].address);
        if (((place - home) & mask) < ((place - gap) & mask))
            continue; /* it would come to lie in front of its home */
        blocks->places[gap] = blocks->places[place];
        gap = place;
    }
    blocks->places[gap] = (struct resource_block){0};
}

void resource_blocks_end(struct resource_blocks *blocks)
{
    assert(!blocks->count && !blocks->lent);
    core_free(blocks->places);
    *blocks = (struct resource_blocks){0};
}

static void free_if_empty(struct resource_blocks *blocks)
{
    if (!blocks->count && !blocks->lent && !blocks->stays_ready)
        resource_blocks_end(blocks);
}

bool resource_blocks_find(const struct resource_blocks *blocks, const void *address,
                          struct resource_block *block)
{
    if (!blocks->count || !address)
        return false;
    *block = blocks->places[place_of(blocks, address)];
    return block->address != NULL;
}

bool resource_blocks_take(struct resource_blocks *blocks, const void *address,
                          struct resource_block *block)
{
    if (!resource_blocks_find(blocks, address, block))
        return false;
    const size_t place = place_of(blocks, address);
    blocks->count--;
    close_gap(blocks, place);
    free_if_empty(blocks);
    return true;
}

bool resource_blocks_lend(struct resource_blocks *blocks, const void *address,
                          struct resource_block *block)
{
    blocks->lent++;
    const bool found = resource_blocks_take(blocks, address, block);
    if (!found)
        blocks->lent--;
    return found;
}

void resource_blocks_put_back(struct resource_blocks *blocks, const struct resource_block *block)
{
    assert(blocks->lent);
    blocks->lent--;
    put(blocks, block);
}

void resource_blocks_settle(struct resource_blocks *blocks)
{
    assert(blocks->lent);
    blocks->lent--;
    free_if_empty(blocks);
}
