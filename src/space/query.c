/*
 * Questions to a space.
 */
#include "core/checked.h"
#include "core/error.h"
#include "space/recent.h"
#include "space/slab.h"

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
    if (handle & SLOT_HANDLE) {
        const struct space_slab *slab = space_slab_at(space, record->offset);
        return ((size_t)slab->slot_units << space->granule_shift) -
               space_slot_slack(slab, space_handle_slot(handle));
    }
    return ((size_t)record->units << space->granule_shift) - record->slack;
}

raffia_status space_find(struct space *space, size_t offset, struct space_block *block)
{
    if (offset >= space->range_bytes || !core_is_aligned(offset, space->granule))
        return RAFFIA_ERROR_BAD_ADDRESS;
    const uint32_t unit = (uint32_t)(offset >> space->granule_shift);
    const struct space_slab *slab = space_slab_at(space, unit);
    if (slab) {
        space_slab_describe(space, slab, unit, block);
        return block->state != SPACE_FREE && block->offset == offset ? RAFFIA_OK
                                                                     : RAFFIA_ERROR_BAD_ADDRESS;
    }
    const space_link link = space_lookup_find(space, unit);
    const enum space_state state = space_state_of(space_at(space, link));
    if (state == SPACE_FREE || state == SPACE_ABSENT) /* the dummy is free */
        return RAFFIA_ERROR_BAD_ADDRESS;
    space_describe(space, link, block);
    return RAFFIA_OK;
}

raffia_status space_containing(struct space *space, size_t offset, struct space_block *block)
{
    if (offset < space->range_bytes) {
        const uint32_t unit = (uint32_t)(offset >> space->granule_shift);
        const struct space_slab *slab = space_slab_at(space, unit);
        if (slab) {
            space_slab_describe(space, slab, unit, block);
            return RAFFIA_OK;
        }
        const space_link link = space_lookup_below(space, unit);
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
    space_drain(space);
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
    space_drain(space);
    space_settle(space);
    const uint64_t held =
        space->present_units - space->free_units - space->cached_units - space->pending_units;
    *stats = (struct space_stats){
        .present_bytes = (size_t)space->present_units << shift,
        .free_bytes = (size_t)space->free_units << shift,
        .largest_free = (size_t)space_find_largest(space) << shift,
        .free_blocks = space_count_free(space),
        .blocks = space->blocks + space->slabs.blocks,
        .state_bytes = {[SPACE_FREE] = (size_t)space->free_units << shift,
                        [SPACE_HELD] = (size_t)held << shift,
                        [SPACE_CACHED] = (size_t)space->cached_units << shift,
                        [SPACE_PENDING] = (size_t)space->pending_units << shift},
        .requested_bytes = ((size_t)held << shift) - (size_t)space->slack_bytes,
    };
}

static bool walk_slab(const struct space *space, const struct space_slab *slab,
                      space_visitor visitor, void *context)
{
    const uint32_t end = slab->offset + SPACE_SLAB_UNITS;
    struct space_block block;
    for (uint32_t unit = slab->offset; unit < end;
         unit = (uint32_t)((block.offset + block.bytes) >> space->granule_shift)) {
        space_slab_describe(space, slab, unit, &block);
        if (!visitor(context, &block))
            return false;
    }
    return true;
}

static bool visit_slab(const struct space *space, space_link link, space_visitor visitor,
                       void *context)
{
    struct space_block block;
    space_describe(space, link, &block);
    block.handle = 0;
    block.state = SPACE_CACHED;
    return visitor(context, &block);
}

static void walk(struct space *space, bool into_slabs, space_visitor visitor, void *context)
{
    struct space_block block;
    bool goes_on = true;
    for (space_link link = space_at(space, space->wall)->next; goes_on && link != space->wall;
         link = space_at(space, link)->next) {
        const struct space_record *record = space_at(space, link);
        const enum space_state state = space_state_of(record);
        if (state == SPACE_ABSENT)
            continue;
        if (state != SPACE_SLAB) {
            space_describe(space, link, &block);
            goes_on = visitor(context, &block);
        } else if (into_slabs) {
            goes_on = walk_slab(space, space_slab_at(space, record->offset), visitor, context);
        } else {
            goes_on = visit_slab(space, link, visitor, context);
        }
    }
}

void space_walk(struct space *space, space_visitor visitor, void *context)
{
    walk(space, true, visitor, context);
}

void space_walk_places(struct space *space, space_visitor visitor, void *context)
{
    space_drain(space);
    walk(space, false, visitor, context);
}
