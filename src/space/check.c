/*
 * space_check(): every invariant, looked at from the outside of the code that keeps them. No loop
 * here trusts a link: each is bounded by the number of records.
 */
#include "core/checked.h"
#include "core/error.h"
#include "space/recent.h"
#include "space/slab.h"

#define DAMAGED(...) core_error(RAFFIA_ERROR_CORRUPT, "the space is damaged: " __VA_ARGS__)

/* What the list by offset says there is. */
struct census {
    uint32_t records, absent, free, largest, slabs;
    size_t blocks;
    uint64_t units[SPACE_STATES + 2], slack;
};

static bool is_block(const struct space_record *record)
{
    const enum space_state state = space_state_of(record);
    return state != SPACE_FREE && state < SPACE_STATES && record->units;
}

/* Comes before anything is looked up: a search ends only at the end of a chain. */
static raffia_status check_chain(const struct space *space, uint32_t slot, size_t *blocks_p)
{
    space_link link = space->slots[slot];
    for (; link; link = space_ring_at(space, link)->previous) {
        if (!space_is_record(space, link))
            return DAMAGED("slot %u of its table names no record", slot);
        if (*blocks_p >= space->blocks)
            return DAMAGED("its table holds more entries than the %zu blocks", space->blocks);
        const struct space_record *record = space_at(space, link);
        if (!is_block(record) || space_table_slot(space, record->offset) != &space->slots[slot])
            return DAMAGED("what starts at unit %u has no place in slot %u of its table",
                           record->offset, slot);
        ++*blocks_p;
    }
    return RAFFIA_OK;
}

static raffia_status check_table(const struct space *space)
{
    size_t blocks = 0;
    raffia_status status = RAFFIA_OK;
    for (uint32_t slot = 0; !status && slot < space->slot_count; slot++)
        status = check_chain(space, slot, &blocks);
    if (!status && blocks != space->blocks)
        return DAMAGED("its table holds %zu entries for %zu blocks", blocks, space->blocks);
    return status;
}

static raffia_status check_neighbours(const struct space *space, space_link link)
{
    const struct space_record *record = space_at(space, link);
    const struct space_record *before = space_at(space, record->previous);
    if (record->previous == space->wall)
        return record->offset == 0 ? RAFFIA_OK
                                   : DAMAGED("its first record starts at unit %u", record->offset);
    if (space_end(before) != record->offset)
        return DAMAGED("the record at unit %u does not end where that at %u starts", before->offset,
                       record->offset);
    if (link == space->wall || space_state_of(before) != space_state_of(record))
        return RAFFIA_OK;
    if (space_state_of(record) == SPACE_FREE)
        return DAMAGED("free space at unit %u is not merged with that behind it", before->offset);
    if (space_state_of(record) == SPACE_ABSENT)
        return DAMAGED("the absent part at unit %u is not merged with that behind it",
                       before->offset);
    return RAFFIA_OK;
}

static raffia_status check_block(const struct space *space, space_link link)
{
    const struct space_record *record = space_at(space, link);
    if (record->slack >= (uint64_t)record->units << space->granule_shift)
        return DAMAGED("of the block at unit %u %u bytes were not asked for", record->offset,
                       record->slack);
    if (space_lookup_find(space, record->offset) != link)
        return DAMAGED("the block at unit %u is not found by its offset", record->offset);
    if (space_link_of(space, space_handle_of(space, link)) != link)
        return DAMAGED("the block at unit %u is not found by its handle", record->offset);
    return RAFFIA_OK;
}

static raffia_status check_record(const struct space *space, space_link link)
{
    const struct space_record *record = space_at(space, link);
    const enum space_state state = space_state_of(record);
    if (record->units == 0)
        return DAMAGED("the record at unit %u is of nothing", record->offset);
    if ((uint64_t)record->offset + record->units > space->range_units)
        return DAMAGED("%u units at unit %u lie outside of it", record->units, record->offset);
    if (state > SPACE_SLAB)
        return DAMAGED("the record at unit %u is in state %u", record->offset, (unsigned)state);
    const bool loose = record->ring.next == SPACE_LOOSE_RING;
    if ((record->ring.next != 0) != (state == SPACE_FREE) ||
        loose != (link == space_loose(space)) ||
        (loose && record->ring.previous != SPACE_LOOSE_RING) ||
        (state == SPACE_ABSENT && record->ring.previous))
        return DAMAGED("the record at unit %u, in state %u, has a wrong place in a ring",
                       record->offset, (unsigned)state);
    raffia_status status = check_neighbours(space, link);
    if (!status && state == SPACE_SLAB && !space_slab_at(space, record->offset))
        return DAMAGED("there is no slab at unit %u", record->offset);
    return !status && is_block(record) ? check_block(space, link) : status;
}

/* What a slab has no block in is free space. */
static void count_slots(struct census *census, const struct space_slab *slab)
{
    census->slabs++;
    for (uint32_t i = 0; i < slab->slots; i++) {
        const enum space_state state = space_slot_state(slab, i);
        census->units[SPACE_FREE] -= state == SPACE_FREE ? 0 : slab->slot_units;
        census->units[state] += state == SPACE_FREE ? 0 : slab->slot_units;
        census->slack += state == SPACE_HELD ? space_slot_slack(slab, i) : 0;
    }
    census->units[SPACE_FREE] += SPACE_SLAB_UNITS;
}

static void count(struct census *census, const struct space_record *record)
{
    const enum space_state state = space_state_of(record);
    census->records++;
    census->units[state] += record->units;
    if (state == SPACE_HELD)
        census->slack += record->slack;
    if (state == SPACE_FREE)
        census->largest = record->units > census->largest ? record->units : census->largest;
    census->free += state == SPACE_FREE;
    census->absent += state == SPACE_ABSENT;
    census->blocks += is_block(record);
}

static raffia_status check_list(const struct space *space, struct census *census)
{
    space_link previous = space->wall;
    if (!space_is_record(space, previous) ||
        space_at(space, previous)->offset != space->range_units ||
        space_state_of(space_at(space, previous)) != SPACE_ABSENT)
        return DAMAGED("its wall is not at its end");
    for (space_link link = space_at(space, space->wall)->next;;
         link = space_at(space, link)->next) {
        if (!space_is_record(space, link) || census->records >= space->record_count)
            return DAMAGED("its list by offset does not end");
        const struct space_record *record = space_at(space, link);
        if (record->previous != previous)
            return DAMAGED("the record at unit %u does not name the one before it", record->offset);
        raffia_status status =
            link == space->wall ? check_neighbours(space, link) : check_record(space, link);
        if (status || link == space->wall)
            return status;
        count(census, record);
        if (space_state_of(record) == SPACE_SLAB)
            count_slots(census, space_slab_at(space, record->offset));
        previous = link;
    }
}

/* Comes before the list: which stretch is loose is only known if the recent block is one. */
static raffia_status check_recent(const struct space *space)
{
    const struct space_record *record = space_at(space, space->recent), *behind;
    if (!space->recent && space->loose == SPACE_LOOSE_NONE)
        return RAFFIA_OK;
    if (!space_is_record(space, space->recent) || !space_is_record(space, record->next) ||
        (unsigned)space->loose > SPACE_LOOSE_REST)
        return DAMAGED("its recent block is none");
    behind = space_at(space, record->next);
    if (space->loose == SPACE_LOOSE_WHOLE) {
        const size_t units = space->recent_bytes >> space->granule_shift;
        if (space_loose(space) != space->recent || units == 0 || units > record->units ||
            units << space->granule_shift != space->recent_bytes)
            return DAMAGED("the stretch at unit %u is not that of its recent block, of %zu bytes",
                           record->offset, space->recent_bytes);
        if (space_cell_holds(space, space_cell_of(space, record->offset, record->units)))
            return DAMAGED("the loose stretch at unit %u is not alone in its cell", record->offset);
    } else if (!is_block(record)) {
        return DAMAGED("at unit %u is no recent block", record->offset);
    } else if (space->loose == SPACE_LOOSE_REST &&
               (space_loose(space) != 0) != (space_state_of(behind) == SPACE_FREE)) {
        return DAMAGED("what is free behind its recent block, at unit %u, is not loose",
                       record->offset);
    }
    return RAFFIA_OK;
}

/* Spare records have no units, so those of the stack are exactly those without, if there are as
 * many and no two are the same: sums of links and of their squares tell. */
static raffia_status check_spares(const struct space *space, uint32_t records)
{
    uint64_t sum = 0, squares = 0;
    const uint32_t all = space->record_count - 1;
    if (space->spare_count > all || space->spare_count + records != all)
        return DAMAGED("%u records in use and %u spare ones are not the %u there are", records,
                       space->spare_count, all);
    for (uint32_t i = 0; i < space->spare_count; i++) {
        const uint64_t link = space->spares[i];
        if (!space_is_record(space, (space_link)link) || link == space->wall ||
            space_at(space, (space_link)link)->units ||
            space_state_of(space_at(space, (space_link)link)) != SPACE_FREE)
            return DAMAGED("spare record %u is none, or is in use", (space_link)link);
        sum += link;
        squares += link * link;
    }
    for (uint32_t place = 0; place < space->record_count; place++) {
        const uint64_t link = SPACE_FIRST_LINK + (uint64_t)place * SPACE_RECORD_WORDS;
        if (space_at(space, (space_link)link)->units || link == space->wall)
            continue;
        sum -= link;
        squares -= link * link;
    }
    if (sum || squares)
        return DAMAGED("its spare records are not those that are not in use");
    return RAFFIA_OK;
}

static raffia_status check_ring(const struct space *space, uint32_t cell, uint32_t *count_p)
{
    const struct space_ring *head = space_ring_at(space, cell);
    space_link previous = cell;
    for (space_link link = head->next; link != cell; link = space_at(space, link)->ring.next) {
        if (!space_is_record(space, link) || *count_p >= space_count_free(space))
            return DAMAGED("cell %u holds more than the free space there is", cell);
        const struct space_record *record = space_at(space, link);
        if (record->units == 0 || space_state_of(record) != SPACE_FREE ||
            record->ring.previous != previous ||
            space_cell_of(space, record->offset, record->units) != cell)
            return DAMAGED("the record at unit %u, of %u units, has no place in cell %u",
                           record->offset, record->units, cell);
        previous = link;
        ++*count_p;
    }
    if (head->previous != previous)
        return DAMAGED("the last of cell %u has no place there", cell);
    const bool marked = space_cell_holds(space, cell);
    if (marked != (head->next != cell))
        return DAMAGED("cell %u is marked %s", cell, marked ? "in use and is empty" : "empty");
    return RAFFIA_OK;
}

static raffia_status check_cells(const struct space *space, const struct census *census)
{
    uint32_t found = space_loose(space) != 0;
    const uint64_t guard = (uint64_t)1 << SPACE_GUARD_CELL % 64;
    if ((uint8_t)space->cells[0] || (space->cells[SPACE_GUARD_CELL / 64] & ~(guard - 1)) != guard)
        return DAMAGED("cells are marked that are none, or their guard is not");
    if (space_at(space, 0)->offset != UINT32_MAX || space_at(space, 0)->tag)
        return DAMAGED("its dummy is not one");
    for (uint32_t cell = SPACE_ZONES; cell < SPACE_CELLS; cell++) {
        raffia_status status = check_ring(space, cell, &found);
        if (status)
            return status;
    }
    if (found != census->free)
        return DAMAGED("its cells hold %u of %u free stretches", found, census->free);
    return RAFFIA_OK;
}

static raffia_status check_counters(const struct space *space, const struct census *census)
{
    const uint64_t present = space->range_units - census->units[SPACE_ABSENT];
    if (space->present_units == present && space->free_units == census->units[SPACE_FREE] &&
        space->cached_units == census->units[SPACE_CACHED] &&
        space->pending_units == census->units[SPACE_PENDING] &&
        space->slack_bytes == census->slack && space->blocks == census->blocks &&
        space->absent_records == census->absent && space->slabs.count == census->slabs)
        return RAFFIA_OK;
    return DAMAGED(
        "its counters (%zu units free of %zu, %zu blocks) differ from what it holds (%zu "
        "of %zu, %zu)",
        (size_t)space->free_units, (size_t)space->present_units, space->blocks,
        (size_t)census->units[SPACE_FREE], (size_t)present, census->blocks);
}

/* Nothing is settled here: that would change what is looked at. */
static uint32_t find_largest(const struct space *space)
{
    const space_link loose = space_loose(space);
    const uint32_t units = loose ? space_at(space, loose)->units : 0;
    return (uint32_t)core_max(space_find_largest(space), units);
}

raffia_status space_check(struct space *space)
{
    struct census census = {0};
    raffia_status status = space_slabs_check(space);
    if (!status)
        status = check_table(space);
    if (!status)
        status = check_recent(space);
    if (!status)
        status = check_list(space, &census);
    if (!status)
        status = check_spares(space, census.records);
    if (!status)
        status = check_counters(space, &census);
    if (!status)
        status = check_cells(space, &census);
    if (!status && find_largest(space) != census.largest)
        return DAMAGED("its largest free stretch is not the %u units found by looking at all",
                       census.largest);
    return status;
}
