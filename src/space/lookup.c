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

/* Fibonacci hashing: neighbouring offsets spread over the upper bits of the product. */
static uint32_t home_of(const struct space *space, size_t offset)
{
    uint64_t product = (uint64_t)(offset >> space->granule_shift) * 0x9e3779b97f4a7c15u;
    return (uint32_t)(product >> space->slot_shift);
}

static uint32_t after(const struct space *space, uint32_t slot)
{
    return (slot + 1) & (space->slot_count - 1);
}

/* The block is not in the table, which has room. */
static void put(struct space *space, space_place place)
{
    struct space_record *record = space_at(space, place);
    uint32_t slot = home_of(space, record->offset);
    while (space->slots[slot])
        slot = after(space, slot);
    space->slots[slot] = place;
    record->slot = slot;
}

raffia_status space_lookup_extend(struct space *space)
{
    if (space->slot_count > UINT32_MAX / 2)
        return core_error(RAFFIA_ERROR_OUT_OF_HOST_MEMORY,
                          "cannot keep books of more than %zu blocks in one space",
                          space->stats.blocks);
    const uint32_t old_count = space->slot_count;
    space_place *old_slots = space->slots;
    const uint32_t slot_count = old_count ? 2 * old_count : FIRST_SLOTS;
    space_place *slots = core_calloc(slot_count, sizeof *slots);
    if (!slots)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    space->slots = slots;
    space->slot_count = slot_count;
    space->slot_shift = 64 - (unsigned)__builtin_ctz(slot_count);
    for (uint32_t i = 0; i < old_count; i++)
        if (old_slots[i])
            put(space, old_slots[i]);
    core_free(old_slots);
    return RAFFIA_OK;
}

void space_lookup_insert(struct space *space, space_place place)
{
    assert(!space_lookup_find(space, space_at(space, place)->offset));
    put(space, place);
    space->stats.blocks++;
}

void space_lookup_remove(struct space *space, space_place place)
{
    const uint32_t mask = space->slot_count - 1;
    uint32_t gap = space_at(space, place)->slot;
    assert(space->slots[gap] == place);
    /* Whatever a probe reached across the gap moves into it. */
    for (uint32_t slot = after(space, gap); space->slots[slot]; slot = after(space, slot)) {
        struct space_record *record = space_at(space, space->slots[slot]);
        const uint32_t home = home_of(space, record->offset);
        if (((slot - home) & mask) < ((slot - gap) & mask))
            continue;
        space->slots[gap] = space->slots[slot];
        record->slot = gap;
        gap = slot;
    }
    space->slots[gap] = 0;
    space->stats.blocks--;
}

space_place space_lookup_find(const struct space *space, size_t offset)
{
    if (space->slot_count == 0)
        return 0;
    uint32_t slot = home_of(space, offset);
    while (space->slots[slot] && space_at(space, space->slots[slot])->offset != offset)
        slot = after(space, slot);
    return space->slots[slot];
}
