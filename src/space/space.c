/*
 * A space as a whole, and the parts that are added to it and removed. Each operation first finds
 * out whether it can be done, then reserves the records it may need, and only then begins.
 */
#include "core/checked.h"
#include "core/error.h"
#include "core/memory.h"
#include "space/recent.h"
#include "space/slab.h"

/* A block's slack, less than a granule, has 32 bits. */
#define GRANULE_MAX ((size_t)1 << 32)

static raffia_status check_options(const struct space_options *options)
{
    const size_t granule = options->granule;
    if (!core_is_power_of_two(granule) || granule > GRANULE_MAX)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "the granule of a space is %zu bytes; it must be a power of two of at "
                          "most 4 GiB",
                          granule);
    if (options->range_bytes == 0 || !core_is_aligned(options->range_bytes, granule))
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "a space of %zu bytes is not one or more granules of %zu bytes",
                          options->range_bytes, granule);
    if (options->range_bytes / granule > SPACE_UNITS_MAX)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "a space of %zu bytes has more than %u granules of %zu bytes: make the "
                          "granule larger",
                          options->range_bytes, SPACE_UNITS_MAX, granule);
    return RAFFIA_OK;
}

raffia_status space_create(const struct space_options *options, struct space **space_p)
{
    raffia_status status = check_options(options);
    if (status)
        return status;
    struct space *space = core_calloc(1, sizeof *space);
    if (!space)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    space->range_bytes = options->range_bytes;
    space->granule = options->granule;
    space->granule_shift = (unsigned)__builtin_ctzll(options->granule);
    space->range_units = (uint32_t)(options->range_bytes >> space->granule_shift);
    space->zone_factor = ((uint64_t)SPACE_ZONES << 32) / space->range_units;
    space->cells[SPACE_GUARD_CELL / 64] = (uint64_t)1 << SPACE_GUARD_CELL % 64;
    space->absent_records = 1;
    status = space_records_start(space);
    if (status) {
        space_destroy(space);
        return status;
    }
    space_slabs_allow(space, options);
    *space_p = space;
    return RAFFIA_OK;
}

void space_destroy(struct space *space)
{
    if (!space)
        return;
    space_slabs_destroy(space);
    core_free(space->words_block);
    core_free(space->spares);
    core_free(space->slots);
    core_free(space);
}

/* A part of the range in units. */
struct part {
    uint32_t offset, units;
};

/* Whether a part is one or more whole granules of the range. */
static raffia_status check_part(const struct space *space, size_t offset, size_t bytes,
                                struct part *part)
{
    size_t end;
    if (bytes == 0 || !core_is_aligned(offset | bytes, space->granule) ||
        !core_add(offset, bytes, &end) || end > space->range_bytes)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "%zu bytes at offset %zu are not one or more whole granules of %zu bytes "
                          "within a space of %zu bytes",
                          bytes, offset, space->granule, space->range_bytes);
    part->offset = (uint32_t)(offset >> space->granule_shift);
    part->units = (uint32_t)(bytes >> space->granule_shift);
    return RAFFIA_OK;
}

/* The record that contains all of the part, if it is in that state; else 0. */
static space_link find_whole(struct space *space, const struct part *part, enum space_state state)
{
    const space_link link = space_lookup_below(space, part->offset);
    const struct space_record *record = space_at(space, link);
    return space_state_of(record) == state && space_end(record) - part->offset >= part->units ? link
                                                                                              : 0;
}

/* Cuts the part out of the record that contains it. Records were reserved for what is left of that
 * on either side. Returns the part's own, and how many the record became. */
static space_link isolate(struct space *space, space_link link, const struct part *part,
                          uint32_t *pieces_p)
{
    *pieces_p = 1;
    if (space_end(space_at(space, link)) > part->offset + part->units) {
        space_records_split(space, link, part->offset + part->units);
        ++*pieces_p;
    }
    if (space_at(space, link)->offset < part->offset) {
        link = space_records_split(space, link, part->offset);
        ++*pieces_p;
    }
    return link;
}

raffia_status space_add(struct space *space, size_t offset, size_t bytes)
{
    struct part part;
    raffia_status status = check_part(space, offset, bytes, &part);
    if (status)
        return status;
    space_link link = find_whole(space, &part, SPACE_ABSENT);
    if (!link)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "%zu bytes at offset %zu of the space were added before, in part or all",
                          bytes, offset);
    status = space_records_reserve(space, SPACE_RESERVE_MAX);
    if (status)
        return status;
    uint32_t pieces;
    link = isolate(space, link, &part, &pieces);
    space_put_state(space_at(space, link), SPACE_FREE);
    space_release(space, link);
    space->absent_records += pieces - 2; /* all pieces but the part, instead of one */
    space->present_units += part.units;
    space->free_units += part.units;
    return RAFFIA_OK;
}

/* Makes one of an absent record and those it touches. The wall is none. */
static void merge_absent(struct space *space, space_link link)
{
    const struct space_record *record = space_at(space, link);
    const space_link next = record->next, previous = record->previous;
    space->absent_records++;
    if (next != space->wall && space_state_of(space_at(space, next)) == SPACE_ABSENT) {
        space_records_join(space, next);
        space->absent_records--;
    }
    if (previous != space->wall && space_state_of(space_at(space, previous)) == SPACE_ABSENT) {
        space_records_join(space, link);
        space->absent_records--;
    }
}

raffia_status space_remove(struct space *space, size_t offset, size_t bytes)
{
    struct part part;
    raffia_status status = check_part(space, offset, bytes, &part);
    if (status)
        return status;
    space_drain(space);
    space_settle(space);
    const space_link stretch = find_whole(space, &part, SPACE_FREE);
    if (!stretch)
        return core_error(RAFFIA_ERROR_BUSY,
                          "%zu bytes at offset %zu of the space are not all of them free", bytes,
                          offset);
    status = space_records_reserve(space, SPACE_RESERVE_MAX);
    if (status)
        return status;
    uint32_t pieces;
    space_cell_remove(space, stretch);
    const space_link link = isolate(space, stretch, &part, &pieces);
    const space_link next = space_at(space, link)->next;
    if (stretch != link)
        space_cell_insert(space, stretch);
    if (pieces == 2 + (stretch != link))
        space_cell_insert(space, next);
    space_put_state(space_at(space, link), SPACE_ABSENT);
    merge_absent(space, link);
    space->present_units -= part.units;
    space->free_units -= part.units;
    return RAFFIA_OK;
}
