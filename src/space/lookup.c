/*
 * Blocks by offset: a table with open addressing and linear probing. It grows before a block is
 * inserted and never shrinks; removing closes the gap, so there are no tombstones and no rehashing
 * when a block is freed.
 */
#include "core/error.h"
#include "core/memory.h"
#include "space/index.h"

#include <assert.h>

#define FIRST_SLOTS 64

/* At most 3 of 4 slots are taken. */
#define FULL(blocks, slots) ((blocks) >= (slots) / 4 * 3)

static uint32_t home_of(const struct space *space, uint32_t slot_count, size_t offset)
{
    /* Fibonacci hashing: neighbouring offsets spread over the upper half of the product. */
    uint64_t product = (uint64_t)(offset >> space->granule_shift) * 0x9e3779b97f4a7c15u;
    return (uint32_t)(product >> 32) & (slot_count - 1);
}

/* The slot that holds the block at `offset`, or the empty one where it belongs. */
static uint32_t slot_of(const struct space *space, const space_place *slots, uint32_t slot_count,
                        size_t offset)
{
    uint32_t slot = home_of(space, slot_count, offset);
    while (slots[slot] && space_at(space, slots[slot])->offset != offset)
        slot = (slot + 1) & (slot_count - 1);
    return slot;
}

raffia_status space_lookup_reserve(struct space *space)
{
    if (!FULL(space->stats.blocks, space->slot_count))
        return RAFFIA_OK;
    if (space->slot_count > UINT32_MAX / 2)
        return core_error(RAFFIA_ERROR_OUT_OF_HOST_MEMORY,
                          "cannot keep books of more than %zu blocks in one space",
                          space->stats.blocks);
    uint32_t slot_count = space->slot_count ? 2 * space->slot_count : FIRST_SLOTS;
    space_place *slots = core_calloc(slot_count, sizeof *slots);
    if (!slots)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    for (uint32_t i = 0; i < space->slot_count; i++) {
        space_place place = space->slots[i];
        if (place)
            slots[slot_of(space, slots, slot_count, space_at(space, place)->offset)] = place;
    }
    core_free(space->slots);
    space->slots = slots;
    space->slot_count = slot_count;
    return RAFFIA_OK;
}

void space_lookup_insert(struct space *space, space_place place)
{
    size_t offset = space_at(space, place)->offset;
    uint32_t slot = slot_of(space, space->slots, space->slot_count, offset);
    assert(!space->slots[slot]);
    space->slots[slot] = place;
    space->stats.blocks++;
}

void space_lookup_remove(struct space *space, space_place place)
{
    uint32_t mask = space->slot_count - 1;
    uint32_t gap = slot_of(space, space->slots, space->slot_count, space_at(space, place)->offset);
    assert(space->slots[gap] == place);
    /* Whatever a probe reached across the gap moves into it. */
    for (uint32_t slot = (gap + 1) & mask; space->slots[slot]; slot = (slot + 1) & mask) {
        size_t offset = space_at(space, space->slots[slot])->offset;
        uint32_t home = home_of(space, space->slot_count, offset);
        if (((slot - home) & mask) < ((slot - gap) & mask))
            continue;
        space->slots[gap] = space->slots[slot];
        gap = slot;
    }
    space->slots[gap] = 0;
    space->stats.blocks--;
}

space_place space_lookup_find(const struct space *space, size_t offset)
{
    if (space->slot_count == 0)
        return 0;
    return space->slots[slot_of(space, space->slots, space->slot_count, offset)];
}
