/*
 * Changes of a block that stays: its size and its state.
 */
#include "core/checked.h"
#include "core/error.h"
#include "space/recent.h"
#include "space/slab.h"

/* A block of its own, or one in a slab. */
struct target {
    space_link link; /* 0: in a slab */
    struct space_slab *slab;
    uint32_t slot;
};

static raffia_status find_block(const struct space *space, space_handle handle, const char *verb,
                                struct target *target)
{
    target->link = space_link_of(space, handle);
    target->slab = target->link ? NULL : space_slab_of_handle(space, handle, &target->slot);
    if (target->link || target->slab)
        return RAFFIA_OK;
    return core_error(RAFFIA_ERROR_BAD_ADDRESS,
                      "cannot %s the block %#llx: there is none, or it was freed before", verb,
                      (unsigned long long)handle);
}

/* Adds the block to, or takes it out of, what is counted of its state. */
static void account(struct space *space, const struct space_record *block, bool in)
{
    const uint64_t units = block->units, slack = block->slack;
    space_count_state(space, space_state_of(block), in ? units : 0 - units, in ? slack : 0 - slack);
}

void space_change_state(struct space *space, space_link link, enum space_state state)
{
    struct space_record *block = space_at(space, link);
    account(space, block, false);
    space_put_state(block, state);
    account(space, block, true);
}

static __attribute__((noinline)) raffia_status
set_any_state(struct space *space, space_handle handle, enum space_state state)
{
    struct target target;
    raffia_status status = find_block(space, handle, "change", &target);
    if (status)
        return status;
    if (state == SPACE_FREE || (unsigned)state >= SPACE_STATES)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "a block cannot be put into state %u",
                          (unsigned)state);
    if (target.slab)
        space_slot_change(space, target.slab, target.slot,
                          space_slot_slack(target.slab, target.slot), state);
    else
        space_change_state(space, target.link, state);
    return RAFFIA_OK;
}

/* From HELD to PENDING and back is what a pair of calls on one stream does: it has a short way. */
raffia_status space_set_state(struct space *space, space_handle handle, enum space_state state)
{
    struct space_record *block = space_block_in(space, handle, SPACE_HELD);
    if (!block || state != SPACE_PENDING)
        return set_any_state(space, handle, state);
    space_put_state(block, SPACE_PENDING);
    space->slack_bytes -= block->slack;
    space->pending_units += block->units;
    return RAFFIA_OK;
}

/* Whether a block of so many units may be handed out for so many bytes. */
static inline bool may_serve(const struct space *space, const struct space_record *block,
                             size_t requested)
{
    const size_t bytes = (size_t)block->units << space->granule_shift;
    return requested - 1 < bytes && bytes - requested <= UINT32_MAX;
}

static __attribute__((noinline)) raffia_status reuse_any(struct space *space, space_handle handle,
                                                         size_t requested)
{
    struct target target;
    raffia_status status = find_block(space, handle, "hand out", &target);
    if (status)
        return status;
    struct space_record *block = space_at(space, target.link);
    const size_t units = target.slab ? target.slab->slot_units : block->units;
    const size_t bytes = units << space->granule_shift;
    if (requested == 0 || requested > bytes || bytes - requested > UINT32_MAX)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "a block of %zu bytes cannot be handed out for %zu", bytes, requested);
    if (target.slab) {
        space_slot_change(space, target.slab, target.slot, (uint32_t)(bytes - requested),
                          SPACE_HELD);
        return RAFFIA_OK;
    }
    account(space, block, false);
    block->slack = space_slack_of(space, block->units, requested);
    space_put_state(block, SPACE_HELD);
    account(space, block, true);
    return RAFFIA_OK;
}

raffia_status space_reuse(struct space *space, space_handle handle, size_t requested)
{
    struct space_record *block = space_block_in(space, handle, SPACE_PENDING);
    if (!block || !may_serve(space, block, requested))
        return reuse_any(space, handle, requested);
    block->slack = space_slack_of(space, block->units, requested);
    space_put_state(block, SPACE_HELD);
    space->slack_bytes += block->slack;
    space->pending_units -= block->units;
    return RAFFIA_OK;
}

/* Takes units off the front of the free stretch behind a block, for the block. */
static void grow(struct space *space, struct space_record *block, uint32_t units)
{
    const space_link behind = block->next;
    struct space_record *stretch = space_at(space, behind);
    space_cell_remove(space, behind);
    if (stretch->units == units) {
        space_records_join(space, behind);
    } else {
        stretch->offset += units;
        stretch->units -= units;
        block->units += units;
        space_cell_insert(space, behind);
    }
    space->free_units -= units;
}

/* Gives the tail from `end` on back. One record was reserved. */
static void shrink(struct space *space, space_link link, uint32_t end)
{
    const space_link tail = space_records_split(space, link, end);
    space->free_units += space_at(space, tail)->units;
    space_put_state(space_at(space, tail), SPACE_FREE);
    space_release(space, tail);
}

static bool has_room_behind(const struct space *space, const struct space_record *block,
                            uint32_t units)
{
    const struct space_record *behind = space_at(space, block->next);
    return space_state_of(behind) == SPACE_FREE && behind->units >= units;
}

/* Whether there will be, once slabs without blocks are given back. */
static bool has_room_in_slabs(const struct space *space, const struct space_record *block,
                              uint32_t units)
{
    const struct space_record *behind = space_at(space, block->next);
    uint64_t room = 0;
    while (room < units && (space_state_of(behind) == SPACE_FREE ||
                            (space_state_of(behind) == SPACE_SLAB &&
                             space_slab_at(space, behind->offset)->used == 0))) {
        room += behind->units;
        behind = space_at(space, behind->next);
    }
    return room >= units;
}

/* Gives slabs back if that is what it takes. */
static bool find_room_behind(struct space *space, space_link link, uint32_t units)
{
    if (has_room_behind(space, space_at(space, link), units))
        return true;
    if (!has_room_in_slabs(space, space_at(space, link), units))
        return false;
    space_drain(space);
    return true;
}

static raffia_status refuse_growth(size_t bytes, size_t requested)
{
    return core_error(RAFFIA_ERROR_OUT_OF_MEMORY,
                      "a block of %zu bytes cannot grow to %zu: there is too little free space "
                      "behind it",
                      bytes, requested);
}

/* A slot stays as large as it is. */
static raffia_status resize_slot(struct space *space, const struct target *target, size_t requested)
{
    struct space_slab *slab = target->slab;
    const size_t bytes = (size_t)slab->slot_units << space->granule_shift;
    if (requested > bytes)
        return refuse_growth(bytes, requested);
    space_slot_change(space, slab, target->slot, (uint32_t)(bytes - requested),
                      space_slot_state(slab, target->slot));
    return RAFFIA_OK;
}

raffia_status space_resize(struct space *space, space_handle handle, size_t requested)
{
    struct target target;
    raffia_status status = find_block(space, handle, "resize", &target);
    if (status)
        return status;
    if (requested == 0)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "a block cannot be resized to 0 bytes");
    if (target.slab)
        return resize_slot(space, &target, requested);
    space_settle(space);
    const space_link link = target.link;
    const uint32_t old = space_at(space, link)->units;
    const bool possible = requested <= space->range_bytes;
    const uint32_t units = possible ? space_units(space, requested) : 0;
    if (!possible || (units > old && !find_room_behind(space, link, units - old)))
        return refuse_growth((size_t)old << space->granule_shift, requested);
    if (units < old) {
        status = space_records_reserve(space, 1);
        if (status)
            return status;
    }
    struct space_record *block = space_at(space, link);
    account(space, block, false);
    if (units > old)
        grow(space, block, units - old);
    else if (units < old)
        shrink(space, link, block->offset + units);
    block->slack = (uint32_t)(((size_t)units << space->granule_shift) - requested);
    account(space, block, true);
    return RAFFIA_OK;
}
