/*
 * Records and their order by address.
 */
#include "core/error.h"
#include "core/memory.h"
#include "space/index.h"

#include <assert.h>

/* Each extension adds at least this many, place 0 apart. */
#define FIRST_CAPACITY 64

static_assert(FIRST_CAPACITY > SPACE_RESERVE_MAX, "one extension is enough for any operation");

/* The generation outlives the block: that is what makes its handle stale. */
static void chain_spare(struct space *space, space_place place)
{
    struct space_record *record = space_at(space, place);
    record->bytes = 0;
    record->state = SPACE_FREE;
    record->next = space->spares;
    space->spares = place;
    space->spare_count++;
}

raffia_status space_records_extend(struct space *space)
{
    uint32_t old = space->record_capacity;
    if (old > UINT32_MAX / 2)
        return core_error(RAFFIA_ERROR_OUT_OF_HOST_MEMORY,
                          "cannot keep books of more than %u blocks in one space", old);
    uint32_t capacity = old ? 2 * old : FIRST_CAPACITY;
    struct space_record *records =
        core_reallocate(space->records, capacity, sizeof *space->records);
    if (!records)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    space->records = records;
    space->record_capacity = capacity;
    for (space_place place = capacity - 1; place > 0 && place >= old; place--) {
        records[place] = (struct space_record){0};
        chain_spare(space, place);
    }
    return RAFFIA_OK;
}

space_place space_records_insert(struct space *space, space_place previous, size_t offset,
                                 size_t bytes)
{
    assert(space->spare_count > 0 && bytes > 0);
    space_place place = space->spares;
    struct space_record *record = space_at(space, place);
    space->spares = record->next;
    space->spare_count--;

    space_place next = previous ? space_at(space, previous)->next : space->first;
    record->offset = offset;
    record->bytes = bytes;
    record->previous = previous;
    record->next = next;
    if (previous)
        space_at(space, previous)->next = place;
    else
        space->first = place;
    if (next)
        space_at(space, next)->previous = place;
    else
        space->last = place;
    return place;
}

void space_records_remove(struct space *space, space_place place)
{
    struct space_record *record = space_at(space, place);
    if (record->previous)
        space_at(space, record->previous)->next = record->next;
    else
        space->first = record->next;
    if (record->next)
        space_at(space, record->next)->previous = record->previous;
    else
        space->last = record->previous;
    chain_spare(space, place);
}

space_place space_records_below(const struct space *space, size_t offset)
{
    space_place place = space->last;
    while (place && space_at(space, place)->offset > offset)
        place = space_at(space, place)->previous;
    return place;
}
