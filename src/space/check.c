/*
 * space_check(): every invariant, looked at from the outside of the code that keeps them. No loop
 * here trusts a link: each is bounded by the number of records.
 */
#include "core/checked.h"
#include "core/error.h"
#include "space/index.h"

#define DAMAGED(...) core_error(RAFFIA_ERROR_CORRUPT, "the space is damaged: " __VA_ARGS__)

/* What the list by address says there is. */
struct census {
    struct space_stats stats;
    uint32_t records;
};

static raffia_status check_extent(const struct space *space, const struct space_record *record)
{
    size_t end;
    if (record->bytes == 0 || !core_is_aligned(record->offset | record->bytes, space->granule))
        return DAMAGED("a record of %zu bytes at offset %zu is not whole granules", record->bytes,
                       record->offset);
    if (!core_add(record->offset, record->bytes, &end) || end > space->range_bytes)
        return DAMAGED("%zu bytes at offset %zu lie outside of it", record->bytes, record->offset);
    if ((unsigned)record->state >= SPACE_STATES)
        return DAMAGED("the record at offset %zu is in state %u", record->offset,
                       (unsigned)record->state);
    return RAFFIA_OK;
}

static raffia_status check_neighbours(const struct space *space, space_place place)
{
    const struct space_record *record = space_at(space, place);
    if (!record->previous)
        return RAFFIA_OK;
    const struct space_record *previous = space_at(space, record->previous);
    size_t end = space_end(previous);
    if (end > record->offset)
        return DAMAGED("the record at offset %zu reaches into that at %zu", previous->offset,
                       record->offset);
    if (end == record->offset && previous->state == SPACE_FREE && record->state == SPACE_FREE)
        return DAMAGED("free space at offset %zu is not merged with that behind it",
                       previous->offset);
    return RAFFIA_OK;
}

static raffia_status check_block(const struct space *space, space_place place)
{
    const struct space_record *record = space_at(space, place);
    size_t rounded;
    if (record->requested == 0 || !core_align_up(record->requested, space->granule, &rounded) ||
        rounded > record->bytes)
        return DAMAGED("the block at offset %zu has %zu bytes, but %zu were asked for",
                       record->offset, record->bytes, record->requested);
    if (space_lookup_find(space, record->offset) != place)
        return DAMAGED("the block at offset %zu is not found by its offset", record->offset);
    if (record->slot >= space->slot_count || space->slots[record->slot] != place)
        return DAMAGED("the block at offset %zu has a wrong place in the table", record->offset);
    if (space_place_of(space, space_handle_of(space, place)) != place)
        return DAMAGED("the block at offset %zu is not found by its handle", record->offset);
    return RAFFIA_OK;
}

static void count(struct census *census, const struct space_record *record)
{
    struct space_stats *stats = &census->stats;
    census->records++;
    stats->present_bytes += record->bytes;
    stats->state_bytes[record->state] += record->bytes;
    if (record->state == SPACE_FREE) {
        stats->free_bytes += record->bytes;
        stats->free_blocks++;
        stats->largest_free = core_max(stats->largest_free, record->bytes);
        return;
    }
    stats->blocks++;
    if (record->state == SPACE_HELD)
        stats->requested_bytes += record->requested;
}

static raffia_status check_list(const struct space *space, struct census *census)
{
    space_place previous = 0;
    for (space_place place = space->first; place; place = space_at(space, place)->next) {
        if (place >= space->record_capacity || census->records >= space->record_capacity)
            return DAMAGED("its list by address does not end");
        const struct space_record *record = space_at(space, place);
        if (record->previous != previous)
            return DAMAGED("the record at offset %zu does not name the one before it",
                           record->offset);
        raffia_status status = check_extent(space, record);
        if (!status)
            status = check_neighbours(space, place);
        if (!status && record->state != SPACE_FREE)
            status = check_block(space, place);
        if (status)
            return status;
        count(census, record);
        previous = place;
    }
    if (space->last != previous)
        return DAMAGED("its last record is not the end of its list by address");
    return RAFFIA_OK;
}

static raffia_status check_spares(const struct space *space, uint32_t records)
{
    uint32_t spares = 0;
    for (space_place place = space->spares; place; place = space_at(space, place)->next) {
        if (place >= space->record_capacity || spares >= space->record_capacity)
            return DAMAGED("its list of spare records does not end");
        if (space_at(space, place)->bytes != 0 || space_at(space, place)->state != SPACE_FREE)
            return DAMAGED("spare record %u is in use", place);
        spares++;
    }
    uint32_t all = space->record_capacity ? space->record_capacity - 1 : 0;
    if (spares != space->spare_count || spares + records != all)
        return DAMAGED("%u records in use and %u spare ones are not the %u there are", records,
                       spares, all);
    return RAFFIA_OK;
}

static raffia_status check_bin(const struct space *space, unsigned bin, size_t *count_p)
{
    space_place previous = 0;
    for (space_place place = space->bins[bin]; place; place = space_at(space, place)->bin_next) {
        if (place >= space->record_capacity || *count_p >= space->stats.free_blocks)
            return DAMAGED("bin %u holds more than the free space there is", bin);
        const struct space_record *record = space_at(space, place);
        if (record->bytes == 0 || record->state != SPACE_FREE || record->bin_previous != previous ||
            space_bin_of(space, record->bytes) != bin)
            return DAMAGED("the record at offset %zu, %zu bytes, has no place in bin %u",
                           record->offset, record->bytes, bin);
        previous = place;
        ++*count_p;
    }
    bool marked = space->bins_in_use[bin / 64] >> bin % 64 & 1;
    if (marked != (space->bins[bin] != 0))
        return DAMAGED("bin %u is marked %s", bin, marked ? "in use and is empty" : "empty");
    return RAFFIA_OK;
}

static raffia_status check_bins(const struct space *space)
{
    size_t found = 0;
    for (unsigned bin = 0; bin < SPACE_BINS; bin++) {
        raffia_status status = check_bin(space, bin, &found);
        if (status)
            return status;
    }
    if (found != space->stats.free_blocks)
        return DAMAGED("its bins hold %zu of %zu free stretches", found, space->stats.free_blocks);
    return RAFFIA_OK;
}

/* Comes before anything is looked up: a search ends only at an empty slot. Each block is found by
 * its offset later; so it is enough that there is nothing else. */
static raffia_status check_table(const struct space *space)
{
    size_t taken = 0;
    for (uint32_t slot = 0; slot < space->slot_count; slot++) {
        if (space->slots[slot] >= space->record_capacity)
            return DAMAGED("slot %u of its table names no record", slot);
        taken += space->slots[slot] != 0;
    }
    if (taken != space->stats.blocks || (taken && taken >= space->slot_count))
        return DAMAGED("its table holds %zu entries for %zu blocks", taken, space->stats.blocks);
    return RAFFIA_OK;
}

static raffia_status check_stats(const struct space *space, const struct space_stats *counted)
{
    const struct space_stats *kept = &space->stats;
    bool same = kept->present_bytes == counted->present_bytes &&
                kept->free_bytes == counted->free_bytes &&
                kept->free_blocks == counted->free_blocks && kept->blocks == counted->blocks &&
                kept->requested_bytes == counted->requested_bytes;
    for (unsigned state = SPACE_FREE + 1; state < SPACE_STATES; state++)
        same &= kept->state_bytes[state] == counted->state_bytes[state];
    if (!same)
        return DAMAGED("its counters (%zu bytes free of %zu, %zu blocks) differ from what it holds "
                       "(%zu of %zu, %zu)",
                       kept->free_bytes, kept->present_bytes, kept->blocks, counted->free_bytes,
                       counted->present_bytes, counted->blocks);
    return RAFFIA_OK;
}

raffia_status space_check(struct space *space)
{
    struct census census = {0};
    raffia_status status = check_table(space);
    if (!status)
        status = check_list(space, &census);
    if (!status)
        status = check_spares(space, census.records);
    if (!status)
        status = check_stats(space, &census.stats);
    if (!status)
        status = check_bins(space);
    if (!status && space_bins_largest(space) != census.stats.largest_free)
        return DAMAGED("its largest free stretch is not the %zu bytes found by looking at all",
                       census.stats.largest_free);
    return status;
}
