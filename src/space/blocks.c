/*
 * The ways that must be short: taking a block, and giving it back.
 */
#include "core/checked.h"
#include "core/error.h"
#include "space/recent.h"
#include "space/slab.h"

#include <assert.h>

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
        const uint32_t offset = record->offset + units;
        space_cell_put(space, space_records_cut(space, link, units, rest), offset, rest);
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
    assert(!space->loose); /* space_allocate() has settled */
    const space_link link = find_stretch(space, units, thorough);
    if (!link)
        return RAFFIA_ERROR_OUT_OF_MEMORY;
    raffia_status status = space_records_reserve(space, 1);
    if (status)
        return status;
    cut(space, link, units);
    hold(space, link, space_slack_of(space, units, bytes));
    /* Not for a thorough request: the same one would have to be as thorough. */
    space->recent = thorough ? 0 : link;
    *link_p = link;
    return RAFFIA_OK;
}

raffia_status space_cut_place(struct space *space, struct space_place *place, uint32_t units)
{
    raffia_status status = space_records_reserve(space, SPACE_RESERVE_MAX);
    if (status)
        return status;
    if (place->offset > space_at(space, place->link)->offset) {
        const space_link front = place->link;
        space_cell_remove(space, front);
        place->link = space_records_split(space, front, place->offset);
        space_cell_insert(space, front);
        space_cell_insert(space, place->link);
    }
    cut(space, place->link, units);
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
    space_settle(space);
    if (!space_find_place(space, &search, &place))
        return RAFFIA_ERROR_OUT_OF_MEMORY;
    raffia_status status = space_cut_place(space, &place, search.units);
    if (status)
        return status;
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

static inline void hand_out_slot(struct space *space, struct space_slab *slab, size_t bytes,
                                 struct space_block *block)
{
    const uint32_t slot = space_slot_take(space, slab, bytes);
    block->handle = space_slot_handle(slab, slot);
    block->offset = (size_t)space_slot_unit(slab, slot) << space->granule_shift;
    block->bytes = (size_t)slab->slot_units << space->granule_shift;
    block->requested = bytes;
    block->state = SPACE_HELD;
}

static inline bool take_slot(struct space *space, size_t bytes, struct space_block *block)
{
    const uint32_t class = space_slab_class_of(space_units(space, bytes));
    struct space_slab *slab = space->slabs.classes[class].open;
    if (__builtin_expect(!slab, 0) && !(slab = space_slab_for(space, class)))
        return false;
    hand_out_slot(space, slab, bytes, block);
    return true;
}

/* Before a request is refused: a slot that is larger than it should be, or lies elsewhere. */
static raffia_status __attribute__((cold))
take_any_slot(struct space *space, size_t bytes, struct space_block *block)
{
    struct space_slab *slab =
        space_slab_above(space, space_slab_class_of(space_units(space, bytes)));
    if (!slab)
        return RAFFIA_ERROR_OUT_OF_MEMORY;
    hand_out_slot(space, slab, bytes, block);
    return RAFFIA_OK;
}

static inline void describe_taken(const struct space *space, space_link link, size_t requested,
                                  struct space_block *block)
{
    const struct space_record *record = space_at(space, link);
    block->handle = space_handle_of(space, link);
    block->offset = (size_t)record->offset << space->granule_shift;
    block->bytes = (size_t)record->units << space->granule_shift;
    block->requested = requested;
    block->state = SPACE_HELD;
}

/* Out of line: a request that is served again needs no such frame. */
static __attribute__((noinline)) raffia_status
allocate_any(struct space *space, const struct space_request *request, struct space_block *block)
{
    if (request->bytes == 0 || (request->alignment & (request->alignment - 1)) ||
        (unsigned)request->placement > SPACE_PLACE_HIGH)
        return refuse_request(request);
    const bool unaligned = request->alignment <= space->granule;
    const bool anywhere = unaligned && request->placement == SPACE_PLACE_ANY;
    const bool small = unaligned && request->bytes <= space->slabs.most_bytes;
    if (small && anywhere && take_slot(space, request->bytes, block))
        return RAFFIA_OK;
    if (request->thorough)
        space_drain(space);
    space_link link = 0;
    raffia_status status = anywhere ? take(space, request->bytes, request->thorough, &link)
                                    : take_placed(space, request, &link);
    if (status == RAFFIA_ERROR_OUT_OF_MEMORY && small && request->thorough)
        return take_any_slot(space, request->bytes, block);
    if (status)
        return status;
    describe_taken(space, link, request->bytes, block);
    return RAFFIA_OK;
}

raffia_status space_allocate(struct space *space, const struct space_request *request,
                             struct space_block *block)
{
    size_t slack;
    if (!space->loose)
        return allocate_any(space, request, block);
    /* What may go into a slab is asked of those first. */
    if (!space_is_again(space, request->bytes, &slack) || request->alignment > space->granule ||
        (request->alignment & (request->alignment - 1)) || request->placement != SPACE_PLACE_ANY ||
        request->thorough || request->bytes <= space->slabs.most_bytes) {
        space_settle(space);
        return allocate_any(space, request, block);
    }
    const space_link link = space_cut_again(space);
    hold(space, link, (uint32_t)slack);
    describe_taken(space, link, request->bytes, block);
    return RAFFIA_OK;
}

/* space_free_held() of what starts at a unit of the slab. */
static inline raffia_status give_slot(struct space *space, struct space_slab *slab, uint32_t unit,
                                      size_t requested, size_t *bytes_p)
{
    const uint32_t slot = space_slot_of(slab, unit);
    const size_t bytes = (size_t)slab->slot_units << space->granule_shift;
    if (slot >= slab->slots || space_slot_unit(slab, slot) != unit ||
        space_slot_state(slab, slot) != SPACE_HELD ||
        (requested && bytes - space_slot_slack(slab, slot) != requested))
        return RAFFIA_ERROR_BAD_ADDRESS;
    *bytes_p = bytes;
    space_slot_give(space, slab, slot);
    return RAFFIA_OK;
}

/*
 * No branch here depends on what is free: whether a neighbour is, no predictor can tell. Where one
 * is not, what would be done to it is done to the dummy, and a mask makes it count for nothing.
 */
static inline __attribute__((always_inline)) void release(struct space *space, space_link link)
{
    space_settle(space);
    struct space_record *record = space_at(space, link);
    const space_link before = record->previous, behind = record->next;
    struct space_record *low = space_at(space, before), *high = space_at(space, behind);
    const uint32_t low_mask = space_mask(low->ring.next != 0);
    const uint32_t high_mask = space_mask(high->ring.next != 0);
    space_cell_unlink(space, low);
    space_cell_unlink(space, high);

    /* The lowest of the three records stays; it has the start of the whole. */
    const space_link kept = space_choose(low_mask, before, link);
    const space_link next = space_choose(high_mask, high->next, behind);
    const uint32_t offset = space_choose(low_mask, low->offset, record->offset);
    const uint32_t units = record->units + (low->units & low_mask) + (high->units & high_mask);
    space_at(space, next)->previous = kept;
    high->units &= ~high_mask;
    record->units = 0; /* unless it stays */
    space_at(space, kept)->next = next;
    space_at(space, kept)->units = units;

    space_link *spares = space->spares;
    uint32_t spare_count = space->spare_count;
    spares[spare_count] = link;
    spare_count -= low_mask;
    spares[spare_count] = behind;
    spare_count -= high_mask;
    space->spare_count = spare_count;
    space_cell_put(space, kept, offset, units);
}

void space_release(struct space *space, space_link link)
{
    release(space, link);
}

/* What is counted and looked up of a block at a unit ends. */
static inline __attribute__((always_inline)) void forget(struct space *space, space_link link,
                                                         uint32_t unit)
{
    struct space_record *record = space_at(space, link);
    space->free_units += record->units;
    space->slack_bytes -= record->slack;
    space->blocks--;
    record->tag = (record->tag & ~SPACE_STATE_MASK) + (1u << SPACE_STATE_BITS);
    space_lookup_remove(space, link, unit);
}

static inline __attribute__((always_inline)) void give(struct space *space, space_link link)
{
    forget(space, link, space_at(space, link)->offset);
    release(space, link);
}

/* A handle of a block that is cached, or of none. */
static raffia_status __attribute__((cold)) free_other(struct space *space, space_handle handle)
{
    const space_link link = space_link_of(space, handle);
    uint32_t slot;
    struct space_slab *slab = space_slab_of_handle(space, handle, &slot);
    if (slab) {
        space_slot_change(space, slab, slot, space_slot_slack(slab, slot), SPACE_HELD);
        space_slot_give(space, slab, slot);
        return RAFFIA_OK;
    }
    if (!link)
        return core_error(RAFFIA_ERROR_BAD_ADDRESS,
                          "cannot free the block %#llx: there is none, or it was freed before",
                          (unsigned long long)handle);
    space_change_state(space, link, SPACE_HELD);
    give(space, link);
    return RAFFIA_OK;
}

/* Out of line: freeing the recent block needs no such frame. */
static __attribute__((noinline)) raffia_status free_any(struct space *space, space_handle handle)
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

raffia_status space_free(struct space *space, space_handle handle)
{
    const space_link link = (space_link)handle;
    if (link != space->recent || !space_block_in(space, handle, SPACE_HELD))
        return free_any(space, handle);
    if (!space_try_loosen(space))
        return free_any(space, handle);
    forget(space, link, space_at(space, link)->offset);
    space_make_whole(space);
    return RAFFIA_OK;
}

raffia_status space_free_held(struct space *space, size_t offset, size_t requested, size_t *bytes_p)
{
    if (offset >= space->range_bytes || (offset & (space->granule - 1)))
        return RAFFIA_ERROR_BAD_ADDRESS;
    const uint32_t unit = (uint32_t)(offset >> space->granule_shift);
    struct space_slab *slab = space_slab_at(space, unit);
    if (slab)
        return give_slot(space, slab, unit, requested, bytes_p);
    const space_link link = space_lookup_find(space, unit);
    const struct space_record *record = space_at(space, link);
    if (space_state_of(record) != SPACE_HELD) /* the dummy is not */
        return RAFFIA_ERROR_BAD_ADDRESS;
    const size_t bytes = (size_t)record->units << space->granule_shift;
    if (requested && bytes - record->slack != requested)
        return RAFFIA_ERROR_BAD_ADDRESS;
    *bytes_p = bytes;
    forget(space, link, unit);
    const bool loosened = link == space->recent && space_try_loosen(space);
    if (loosened)
        space_make_whole(space);
    else
        release(space, link);
    return RAFFIA_OK;
}
