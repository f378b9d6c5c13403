/*
 * Questions to a space that change nothing.
 */
#include "core/error.h"
#include "space/index.h"

#define HANDLE_PLACE_BITS 32

space_handle space_handle_of(const struct space *space, space_place place)
{
    return (space_handle)space_at(space, place)->generation << HANDLE_PLACE_BITS | place;
}

space_place space_place_of(const struct space *space, space_handle handle)
{
    space_place place = (space_place)handle;
    if (place == 0 || place >= space->record_capacity)
        return 0;
    const struct space_record *record = space_at(space, place);
    bool live = record->state != SPACE_FREE && record->generation == handle >> HANDLE_PLACE_BITS;
    return live ? place : 0;
}

void space_describe(const struct space *space, space_place place, struct space_block *block)
{
    const struct space_record *record = space_at(space, place);
    bool free = record->state == SPACE_FREE;
    *block = (struct space_block){
        .handle = free ? 0 : space_handle_of(space, place),
        .offset = record->offset,
        .bytes = record->bytes,
        .requested = free ? record->bytes : record->requested,
        .state = record->state,
    };
}

raffia_status space_find(struct space *space, size_t offset, struct space_block *block)
{
    /* An offset between granules would hash like the granule, but no record has it. */
    space_place place = space_lookup_find(space, offset);
    if (!place)
        return RAFFIA_ERROR_BAD_ADDRESS;
    space_describe(space, place, block);
    return RAFFIA_OK;
}

raffia_status space_containing(struct space *space, size_t offset, struct space_block *block)
{
    space_place place = space_records_below(space, offset);
    if (!place || offset >= space_end(space_at(space, place)))
        return core_error(RAFFIA_ERROR_NOT_FOUND,
                          "offset %zu of the space lies in no part that was added", offset);
    space_describe(space, place, block);
    return RAFFIA_OK;
}

void space_query(struct space *space, struct space_stats *stats)
{
    *stats = space->stats;
    stats->state_bytes[SPACE_FREE] = stats->free_bytes;
    stats->largest_free = space_bins_largest(space);
}

bool space_is_free(struct space *space, size_t offset, size_t bytes)
{
    if (bytes == 0)
        return true;
    /* Free neighbours are merged, so free space is all of one stretch or not all free. */
    space_place place = space_records_below(space, offset);
    if (!place)
        return false;
    const struct space_record *record = space_at(space, place);
    size_t into = offset - record->offset;
    return record->state == SPACE_FREE && into < record->bytes && bytes <= record->bytes - into;
}

void space_walk(struct space *space, space_visitor visitor, void *context)
{
    struct space_block block;
    for (space_place place = space->first; place; place = space_at(space, place)->next) {
        space_describe(space, place, &block);
        if (!visitor(context, &block))
            return;
    }
}
