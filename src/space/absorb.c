/*
 * One space taking over what another one has in it.
 */
#include "space/recent.h"
#include "space/slab.h"

#include <assert.h>

raffia_status space_prepare_absorb(struct space *space, const struct space *other)
{
    /* Each block may leave a piece of free space on either side of it. */
    const uint64_t needed = 2 * ((uint64_t)other->blocks + other->slabs.count);
    raffia_status status = space_slabs_prepare(space, other);
    while (!status && space->spare_count < needed)
        status = space_records_extend(space);
    return status;
}

/* Cuts [offset, offset + units) out of the free stretch, which has all of it. */
static space_link cut_out(struct space *space, space_link stretch, const struct space_record *as)
{
    space_link link = stretch;
    space_cell_remove(space, stretch);
    if (space_at(space, stretch)->offset < as->offset) {
        link = space_records_split(space, stretch, as->offset);
        space_cell_insert(space, stretch);
    }
    if (space_end(space_at(space, link)) > space_end(as))
        space_cell_insert(space, space_records_split(space, link, space_end(as)));
    assert(space_at(space, link)->offset == as->offset &&
           space_at(space, link)->units == as->units);
    return link;
}

/* Makes a block of a part of the free stretch. */
static space_link place(struct space *space, space_link stretch, const struct space_record *as)
{
    const space_link link = cut_out(space, stretch, as);
    struct space_record *block = space_at(space, link);
    block->slack = as->slack;
    space_put_state(block, SPACE_HELD);
    space_lookup_insert(space, link, block->offset);
    space->free_units -= block->units;
    space->slack_bytes += block->slack;
    space->blocks++;
    space_change_state(space, link, space_state_of(as));
    return link;
}

/* Makes the record absent, whatever it was. Those of one state may lie next to each other
 * meanwhile. */
static void make_absent(struct space *space, space_link link)
{
    struct space_record *record = space_at(space, link);
    const enum space_state state = space_state_of(record);
    if (state == SPACE_FREE) {
        space_cell_remove(space, link);
    } else if (state < SPACE_STATES) {
        record->tag += 1u << SPACE_STATE_BITS; /* its handle turns stale */
        space_lookup_remove(space, link, record->offset);
    }
    space_put_state(record, SPACE_ABSENT);
}

static void forget_all(struct space *space)
{
    const space_link first = space_at(space, space->wall)->next;
    for (space_link link = first; link != space->wall; link = space_at(space, link)->next)
        make_absent(space, link);
    while (space_at(space, first)->next != space->wall)
        space_records_join(space, space_at(space, first)->next);
    space->free_units = space->present_units = 0;
    space->cached_units = space->pending_units = 0;
    space->slack_bytes = 0;
    space->blocks = space->slabs.blocks = 0;
    space->slabs.used_units = 0;
    space->absent_records = 1;
    space->finger = 0;
}

void space_absorb(struct space *space, struct space *other)
{
    assert(space->range_units == other->range_units && space->granule == other->granule);
    assert(space->spare_count >= 2 * ((uint64_t)other->blocks + other->slabs.count));
    space_link at = 0;
    space_settle(space);
    space_settle(other);
    for (space_link link = space_at(other, other->wall)->next; link != other->wall;
         link = space_at(other, link)->next) {
        const struct space_record *record = space_at(other, link);
        const enum space_state state = space_state_of(record);
        if (state == SPACE_FREE || state == SPACE_ABSENT)
            continue;
        if (!at)
            at = space_lookup_below(space, record->offset);
        while (space_end(space_at(space, at)) <= record->offset)
            at = space_at(space, at)->next;
        if (state == SPACE_SLAB) {
            struct space_slab *slab = space_slab_at(other, record->offset);
            at = cut_out(space, at, record);
            space_slab_adopt(space, other, slab, at);
        } else {
            at = place(space, at, record);
        }
    }
    forget_all(other);
}
