/*
 * Changes of a block that stays: its size and its state.
 */
#include "core/checked.h"
#include "core/error.h"
#include "space/index.h"

static raffia_status find_block(const struct space *space, space_handle handle, const char *verb,
                                space_link *link_p)
{
    *link_p = space_link_of(space, handle);
    if (*link_p)
        return RAFFIA_OK;
    return core_error(RAFFIA_ERROR_BAD_ADDRESS,
                      "cannot %s the block %#llx: there is none, or it was freed before", verb,
                      (unsigned long long)handle);
}

/* Adds the block to, or takes it out of, what is counted of its state. What is held is what
 * remains, but for its slack. */
static void account(struct space *space, const struct space_record *block, bool in)
{
    const uint64_t units = in ? block->units : (uint64_t)0 - block->units;
    switch (space_state_of(block)) {
    case SPACE_HELD:
        space->slack_bytes += in ? block->slack : (uint64_t)0 - block->slack;
        break;
    case SPACE_CACHED:
        space->cached_units += units;
        break;
    case SPACE_PENDING:
        space->pending_units += units;
        break;
    default:
        break;
    }
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
    space_link link;
    raffia_status status = find_block(space, handle, "change", &link);
    if (status)
        return status;
    if (state == SPACE_FREE || (unsigned)state >= SPACE_STATES)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "a block cannot be put into state %u",
                          (unsigned)state);
    space_change_state(space, link, state);
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
    space_link link;
    raffia_status status = find_block(space, handle, "hand out", &link);
    if (status)
        return status;
    struct space_record *block = space_at(space, link);
    if (!may_serve(space, block, requested))
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "a block of %zu bytes cannot be handed out for %zu",
                          (size_t)block->units << space->granule_shift, requested);
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

raffia_status space_resize(struct space *space, space_handle handle, size_t requested)
{
    space_link link;
    raffia_status status = find_block(space, handle, "resize", &link);
    if (status)
        return status;
    if (requested == 0)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "a block cannot be resized to 0 bytes");
    const uint32_t old = space_at(space, link)->units;
    const size_t old_bytes = (size_t)old << space->granule_shift;
    const bool possible = requested <= space->range_bytes;
    const uint32_t units = possible ? space_units(space, requested) : 0;
    if (!possible || (units > old && !has_room_behind(space, space_at(space, link), units - old)))
        return core_error(RAFFIA_ERROR_OUT_OF_MEMORY,
                          "a block of %zu bytes cannot grow to %zu: there is too little free space "
                          "behind it",
                          old_bytes, requested);
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
