/*
 * Questions to a space.
 */
#include "core/checked.h"
#include "core/error.h"
#include "space/index.h"

void space_describe(const struct space *space, space_link link, struct space_block *block)
{
    const struct space_record *record = space_at(space, link);
    const bool free = space_state_of(record) == SPACE_FREE;
    const size_t bytes = (size_t)record->units << space->granule_shift;
    *block = (struct space_block){
        .handle = free ? 0 : space_handle_of(space, link),
        .offset = (size_t)record->offset << space->granule_shift,
        .bytes = bytes,
        .requested = free ? bytes : bytes - record->slack,
        .state = space_state_of(record),
    };
}

size_t space_requested(const struct space *space, space_handle handle)
{
    const struct space_record *record = space_at(space, (space_link)handle);
    return ((size_t)record->units << space->granule_shift) - record->slack;
}

raffia_status space_find(struct space *space, size_t offset, struct space_block *block)
{
    if (offset >= space->range_bytes || !core_is_aligned(offset, space->granule))
        return RAFFIA_ERROR_BAD_ADDRESS;
    const space_link link = space_lookup_find(space, (uint32_t)(offset >> space->granule_shift));
    const enum space_state state = space_state_of(space_at(space, link));
    if (state == SPACE_FREE || state == SPACE_ABSENT) /* the dummy is free */
        return RAFFIA_ERROR_BAD_ADDRESS;
    space_describe(space, link, block);
    return RAFFIA_OK;
}

raffia_status space_containing(struct space *space, size_t offset, struct space_block *block)
{
    if (offset < space->range_bytes) {
        const space_link link =
            space_lookup_below(space, (uint32_t)(offset >> space->granule_shift));
        if (space_state_of(space_at(space, link)) != SPACE_ABSENT) {
            space_describe(space, link, block);
            return RAFFIA_OK;
        }
    }
    return core_error(RAFFIA_ERROR_NOT_FOUND,
                      "offset %zu of the space lies in no part that was added", offset);
}

bool space_is_free(struct space *space, size_t offset, size_t bytes)
{
    if (bytes == 0)
        return true;
    if (offset >= space->range_bytes)
        return false;
    /* Free neighbours are merged, so free space is all of one stretch or not all free. */
    const struct space_record *record =
        space_at(space, space_lookup_below(space, (uint32_t)(offset >> space->granule_shift)));
    const size_t into = offset - ((size_t)record->offset << space->granule_shift);
    const size_t all = (size_t)record->units << space->granule_shift;
    return space_state_of(record) == SPACE_FREE && bytes <= all - into;
}

void space_query(struct space *space, struct space_stats *stats)
{
    const unsigned shift = space->granule_shift;
    const uint64_t held =
        space->present_units - space->free_units - space->cached_units - space->pending_units;
    *stats = (struct space_stats){
        .present_bytes = (size_t)space->present_units << shift,
        .free_bytes = (size_t)space->free_units << shift,
        .largest_free = (size_t)space_find_largest(space) << shift,
        .free_blocks = space_count_free(space),
        .blocks = space->blocks,
        .state_bytes = {[SPACE_FREE] = (size_t)space->free_units << shift,
                        [SPACE_HELD] = (size_t)held << shift,
                        [SPACE_CACHED] = (size_t)space->cached_units << shift,
                        [SPACE_PENDING] = (size_t)space->pending_units << shift},
        .requested_bytes = ((size_t)held << shift) - (size_t)space->slack_bytes,
    };
}

void space_walk(struct space *space, space_visitor visitor, void *context)
{
    struct space_block block;
    for (space_link link = space_at(space, space->wall)->next; link != space->wall;
         link = space_at(space, link)->next) {
        if (space_state_of(space_at(space, link)) == SPACE_ABSENT)
            continue;
        space_describe(space, link, &block);
        if (!visitor(context, &block))
            return;
    }
}
