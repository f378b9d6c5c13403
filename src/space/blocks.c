/*
 * The ways that must be short: taking a block, and giving it back.
 */
#include "core/checked.h"
#include "core/error.h"
#include "space/index.h"

/* The stretch for a request without alignment: the first of the own class in its lowest zone if it
 * is large enough, else the first of the next class that has any, in its lowest zone. */
static inline space_link find_stretch(const struct space *space, uint32_t units, bool thorough)
{
    uint32_t cell = space_class_of(units) << SPACE_ZONE_BITS;
    const uint32_t own = (uint8_t)(space->cells[cell / 64] >> cell % 64);
    if (own) {
        const space_link link = space_ring_at(space, cell + (uint32_t)__builtin_ctz(own))->next;
        if (space_at(space, link)->units >= units)
            return link;
    }
    cell += SPACE_ZONES;
    uint32_t word = cell / 64;
    uint64_t bits = space->cells[word] & ~(uint64_t)0 << cell % 64;
    while (!bits)
        bits = space->cells[++word];
    cell = word * 64 + (uint32_t)__builtin_ctzll(bits);
    if (__builtin_expect(cell >= SPACE_GUARD_CELL, 0))
        return space_find_in_class(space, units, thorough);
    return space_ring_at(space, cell)->next;
}

/* Turns the first units of a free stretch into a block. One record was reserved. The block keeps
 * the record of the stretch. */
static inline __attribute__((always_inline)) void cut(struct space *space, space_link link,
                                                      uint32_t units)
{
    struct space_record *record = space_at(space, link);
    const uint32_t rest = record->units - units;
    space_cell_remove(space, link);
    if (rest) {
        const space_link behind = space->spares[--space->spare_count], next = record->next;
        struct space_record *other = space_at(space, behind);
        const uint32_t offset = record->offset + units;
        other->offset = offset;
        other->units = rest;
        other->previous = link;
        other->next = next;
        space_at(space, next)->previous = behind;
        record->next = behind;
        record->units = units;
        space_cell_put(space, behind, offset, rest);
    }
}

/* The free record becomes a block that is held. */
static inline void hold(struct space *space, space_link link, uint32_t slack)
{
    struct space_record *record = space_at(space, link);
    record->slack = slack;
    record->tag |= SPACE_HELD;
    space_lookup_insert(space, link, record->offset);
    space->free_units -= record->units;
    space->slack_bytes += slack;
    space->blocks++;
}

static inline __attribute__((always_inline)) raffia_status take(struct space *space, size_t bytes,
                                                                bool thorough, space_link *link_p)
{
    if (bytes > space->range_bytes)
        return RAFFIA_ERROR_OUT_OF_MEMORY;
    const uint32_t units = space_units(space, bytes);
    const space_link link = find_stretch(space, units, thorough);
    if (!link)
        return RAFFIA_ERROR_OUT_OF_MEMORY;
    raffia_status status = space_records_reserve(space, 1);
    if (status)
        return status;
    cut(space, link, units);
    hold(space, link, space_slack_of(space, units, bytes));
    *link_p = link;
    return RAFFIA_OK;
}

/* Any request: aligned beyond the granule, or placed. */
static __attribute__((noinline)) raffia_status
take_placed(struct space *space, const struct space_request *request, space_link *link_p)
{
    if (request->bytes > space->range_bytes)
        return RAFFIA_ERROR_OUT_OF_MEMORY;
    struct space_search search = {.units = space_units(space, request->bytes),
                                  .alignment = request->alignment >> space->granule_shift,
                                  .placement = request->placement,
                                  .thorough = request->thorough};
    struct space_place place;
    if (search.alignment == 0)
        search.alignment = 1;
    if (!space_find_place(space, &search, &place))
        return RAFFIA_ERROR_OUT_OF_MEMORY;
    raffia_status status = space_records_reserve(space, SPACE_RESERVE_MAX);
    if (status)
        return status;
    if (place.offset > space_at(space, place.link)->offset) {
        const space_link front = place.link;
        space_cell_remove(space, front);
        place.link = space_records_split(space, front, place.offset);
        space_cell_insert(space, front);
        space_cell_insert(space, place.link);
    }
    cut(space, place.link, search.units);
    hold(space, place.link, space_slack_of(space, search.units, request->bytes));
    *link_p = place.link;
    return RAFFIA_OK;
}

static raffia_status __attribute__((cold)) refuse_request(const struct space_request *request)
{
    if (request->bytes == 0)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "a block of 0 bytes was asked for");
    if (request->alignment && !core_is_power_of_two(request->alignment))
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "an alignment of %zu bytes was asked for; it must be a power of two",
                          request->alignment);
    return core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "there is no placement %u",
                      (unsigned)request->placement);
}

raffia_status space_allocate(struct space *space, const struct space_request *request,
                             struct space_block *block)
{
    if (request->bytes == 0 || (request->alignment & (request->alignment - 1)) ||
        (unsigned)request->placement > SPACE_PLACE_HIGH)
        return refuse_request(request);
    space_link link = 0;
    raffia_status status =
        request->alignment <= space->granule && request->placement == SPACE_PLACE_ANY
            ? take(space, request->bytes, request->thorough, &link)
            : take_placed(space, request, &link);
    if (status)
        return status;
    const struct space_record *record = space_at(space, link);
    block->handle = space_handle_of(space, link);
    block->offset = (size_t)record->offset << space->granule_shift;
    block->bytes = (size_t)record->units << space->granule_shift;
    block->requested = request->bytes;
    block->state = SPACE_HELD;
    return RAFFIA_OK;
}

static inline __attribute__((always_inline)) void give(struct space *space, space_link link)
{
    struct space_record *record = space_at(space, link);
    space->free_units += record->units;
    space->slack_bytes -= record->slack;
    space->blocks--;
    record->tag = (record->tag & ~SPACE_STATE_MASK) + (1u << SPACE_STATE_BITS);
    space_lookup_remove(space, link, record->offset);
    space_release(space, link);
}

/* A handle of a block that is cached, or of none. */
static raffia_status __attribute__((cold)) free_other(struct space *space, space_handle handle)
{
    const space_link link = space_link_of(space, handle);
    if (!link)
        return core_error(RAFFIA_ERROR_BAD_ADDRESS,
                          "cannot free the block %#llx: there is none, or it was freed before",
                          (unsigned long long)handle);
    space_change_state(space, link, SPACE_HELD);
    give(space, link);
    return RAFFIA_OK;
}

raffia_status space_free(struct space *space, space_handle handle)
{
    struct space_record *pending;
    if (!space_block_in(space, handle, SPACE_HELD)) {
        pending = space_block_in(space, handle, SPACE_PENDING);
        if (!pending)
            return free_other(space, handle);
        space->pending_units -= pending->units;
        space->slack_bytes += pending->slack; /* that of what is held is counted */
    }
    give(space, (space_link)handle);
    return RAFFIA_OK;
}

raffia_status space_free_held(struct space *space, size_t offset, size_t *bytes_p)
{
    if (offset >= space->range_bytes || (offset & (space->granule - 1)))
        return RAFFIA_ERROR_BAD_ADDRESS;
    const space_link link = space_lookup_find(space, (uint32_t)(offset >> space->granule_shift));
    const struct space_record *record = space_at(space, link);
    if (space_state_of(record) != SPACE_HELD) /* the dummy is not */
        return RAFFIA_ERROR_BAD_ADDRESS;
    *bytes_p = (size_t)record->units << space->granule_shift;
    give(space, link);
    return RAFFIA_OK;
}
