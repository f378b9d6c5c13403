/*
 * Blocks by their offset: the table's growth, and the search for what contains an offset.
 */
#include "core/memory.h"
#include "space/index.h"

/* Slots for each record: at most half of them can hold a block, most of the time a quarter do. */
#define SLOTS_PER_RECORD 2u

/* 2^32 over the golden ratio: offsets at equal distances spread evenly over the upper bits. */
#define FIBONACCI 0x9e3779b9u

/* The new table is empty, and chains are made anew. */
static void insert_all(struct space *space)
{
    for (space_link link = space_at(space, space->wall)->next; link != space->wall;
         link = space_at(space, link)->next) {
        const struct space_record *record = space_at(space, link);
        if (record->ring.next == 0 && space_state_of(record) < SPACE_STATES)
            space_lookup_insert(space, link, record->offset);
    }
}

raffia_status space_lookup_extend(struct space *space, uint32_t capacity)
{
    const bool direct = space->range_units <= SPACE_DIRECT_UNITS;
    uint32_t count = direct ? space->range_units : SLOTS_PER_RECORD;
    while (!direct && count < capacity && count <= UINT32_MAX / 4)
        count *= 2;
    count *= direct ? 1 : SLOTS_PER_RECORD;
    if (count <= space->slot_count)
        return RAFFIA_OK;
    space_link *slots = core_calloc(count, sizeof *slots);
    if (!slots)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    core_free(space->slots);
    space->slots = slots;
    space->slot_count = count;
    space->slot_factor = direct ? 1 : FIBONACCI;
    space->slot_shift = direct ? 0 : 32 - (unsigned)__builtin_ctz(count);
    if (space->wall)
        insert_all(space);
    return RAFFIA_OK;
}

/* Whether the record contains the unit. */
static bool contains(const struct space *space, space_link link, uint32_t unit)
{
    return unit - space_at(space, link)->offset < space_at(space, link)->units;
}

/* A block or a slab keeps its record as long as it is there, and a handle tells whether it still
 * is: so the finger points at one of those. */
static bool is_lasting(const struct space *space, space_link link)
{
    const enum space_state state = space_state_of(space_at(space, link));
    return state != SPACE_FREE && state != SPACE_ABSENT;
}

static void put_finger(struct space *space, space_link link)
{
    for (int i = 0; i < 2; i++, link = space_at(space, link)->previous)
        if (is_lasting(space, link)) {
            space->finger = space_handle_of(space, link);
            return;
        }
}

/* Where it was put, or the wall. */
static space_link find_finger(const struct space *space)
{
    const space_link link = (space_link)space->finger;
    return space_is_record(space, link) && is_lasting(space, link) &&
                   space_handle_of(space, link) == space->finger
               ? link
               : space->wall;
}

/*
 * In step from both ends of the range and from where the last search ended, which is near where
 * callers go on: they look at one part after the other, or at the part they added last.
 */
space_link space_lookup_below(struct space *space, uint32_t unit)
{
    space_link finger = find_finger(space);
    space_link up = space_at(space, space->wall)->next, down = space->wall;
    const bool upward = space_at(space, finger)->offset <= unit;
    while (!contains(space, up, unit) && !contains(space, down, unit) &&
           !contains(space, finger, unit)) {
        up = space_at(space, up)->next;
        down = space_at(space, down)->previous;
        finger = upward ? space_at(space, finger)->next : space_at(space, finger)->previous;
    }
    const space_link link = contains(space, up, unit)     ? up
                            : contains(space, down, unit) ? down
                                                          : finger;
    put_finger(space, link);
    return link;
}
