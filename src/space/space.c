/*
 * Everything that changes a space. Each operation first finds out whether it can be done, then
 * reserves the host memory it may need, and only then begins.
 */
#include "core/checked.h"
#include "core/error.h"
#include "core/memory.h"
#include "space/index.h"

raffia_status space_create(const struct space_options *options, struct space **space_p)
{
    if (!core_is_power_of_two(options->granule))
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "the granule of a space is %zu bytes; it must be a power of two",
                          options->granule);
    if (options->range_bytes == 0 || !core_is_aligned(options->range_bytes, options->granule))
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "a space of %zu bytes is not one or more granules of %zu bytes",
                          options->range_bytes, options->granule);
    struct space *space = core_calloc(1, sizeof *space);
    if (!space)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    space->range_bytes = options->range_bytes;
    space->granule = options->granule;
    space->granule_shift = (unsigned)__builtin_ctzll(options->granule);
    *space_p = space;
    return RAFFIA_OK;
}

void space_destroy(struct space *space)
{
    if (!space)
        return;
    core_free(space->records);
    core_free(space->slots);
    core_free(space);
}

/* Whether a part is one or more whole granules of the range. */
static raffia_status check_part(const struct space *space, size_t offset, size_t bytes)
{
    size_t end;
    if (bytes == 0 || !core_is_aligned(offset | bytes, space->granule) ||
        !core_add(offset, bytes, &end) || end > space->range_bytes)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "%zu bytes at offset %zu are not one or more whole granules of %zu bytes "
                          "within a space of %zu bytes",
                          bytes, offset, space->granule, space->range_bytes);
    return RAFFIA_OK;
}

/* Whether one record ends where the other starts, and the one named last is free. */
static bool joins(const struct space *space, space_place low, space_place high, space_place free)
{
    return low && high && space_end(space_at(space, low)) == space_at(space, high)->offset &&
           space_at(space, free)->state == SPACE_FREE;
}

/*
 * Gives a record that is in no bin to the free space. A free neighbour that touches it swallows it:
 * that one is in a bin already, and mostly stays in it.
 */
static void release(struct space *space, space_place place)
{
    const struct space_record *record = space_at(space, place);
    const space_place previous = record->previous, next = record->next;
    const bool joins_next = joins(space, place, next, next);
    size_t bytes = record->bytes;
    if (joins(space, previous, place, previous)) {
        if (joins_next) {
            bytes += space_at(space, next)->bytes;
            space_bins_remove(space, next);
            space_records_remove(space, next);
        }
        space_records_remove(space, place);
        space_bins_resize(space, previous, space_at(space, previous)->bytes + bytes);
    } else if (joins_next) {
        space_at(space, next)->offset = record->offset;
        space_records_remove(space, place);
        space_bins_resize(space, next, space_at(space, next)->bytes + bytes);
    } else {
        space_bins_insert(space, place);
    }
}

/*
 * Cuts [offset, offset + bytes) out of a free stretch and returns its record, which is in no bin.
 * SPACE_RESERVE_MAX records were reserved. What is left of the stretch keeps its record.
 */
static space_place carve(struct space *space, space_place stretch, size_t offset, size_t bytes)
{
    struct space_record *record = space_at(space, stretch);
    const size_t front = offset - record->offset, back = record->bytes - front - bytes;
    if (front) {
        const space_place place = space_records_insert(space, stretch, offset, bytes);
        space_bins_resize(space, stretch, front);
        if (back)
            space_bins_insert(space, space_records_insert(space, place, offset + bytes, back));
        return place;
    }
    if (back) {
        record->offset += bytes;
        space_bins_resize(space, stretch, back);
        return space_records_insert(space, record->previous, offset, bytes);
    }
    space_bins_remove(space, stretch);
    return stretch;
}

raffia_status space_add(struct space *space, size_t offset, size_t bytes)
{
    raffia_status status = check_part(space, offset, bytes);
    if (status)
        return status;
    space_place previous = space_records_below(space, offset);
    space_place next = previous ? space_at(space, previous)->next : space->first;
    if ((previous && space_end(space_at(space, previous)) > offset) ||
        (next && space_at(space, next)->offset < offset + bytes))
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "%zu bytes at offset %zu of the space were added before, in part or all",
                          bytes, offset);
    status = space_records_reserve(space, 1);
    if (status)
        return status;
    release(space, space_records_insert(space, previous, offset, bytes));
    space->stats.present_bytes += bytes;
    return RAFFIA_OK;
}

raffia_status space_remove(struct space *space, size_t offset, size_t bytes)
{
    raffia_status status = check_part(space, offset, bytes);
    if (status)
        return status;
    if (!space_is_free(space, offset, bytes))
        return core_error(RAFFIA_ERROR_BUSY,
                          "%zu bytes at offset %zu of the space are not all of them free", bytes,
                          offset);
    status = space_records_reserve(space, SPACE_RESERVE_MAX);
    if (status)
        return status;
    space_place stretch = space_records_below(space, offset);
    space_records_remove(space, carve(space, stretch, offset, bytes));
    space->stats.present_bytes -= bytes;
    return RAFFIA_OK;
}

/* Blocks are accounted by state; free space is accounted by the bins. */
static void account(struct space *space, const struct space_record *block)
{
    space->stats.state_bytes[block->state] += block->bytes;
    if (block->state == SPACE_HELD)
        space->stats.requested_bytes += block->requested;
}

static void unaccount(struct space *space, const struct space_record *block)
{
    space->stats.state_bytes[block->state] -= block->bytes;
    if (block->state == SPACE_HELD)
        space->stats.requested_bytes -= block->requested;
}

static raffia_status check_request(const struct space_request *request)
{
    if (request->bytes == 0)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "a block of 0 bytes was asked for");
    if (request->alignment && !core_is_power_of_two(request->alignment))
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "an alignment of %zu bytes was asked for; it must be a power of two",
                          request->alignment);
    if ((unsigned)request->placement > SPACE_PLACE_HIGH)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "there is no placement %u",
                          (unsigned)request->placement);
    return RAFFIA_OK;
}

raffia_status space_allocate(struct space *space, const struct space_request *request,
                             struct space_block *block)
{
    raffia_status status = check_request(request);
    if (status)
        return status;
    size_t bytes, offset;
    space_place stretch;
    if (!core_align_up(request->bytes, space->granule, &bytes) ||
        !space_bins_find(space, bytes, core_max(request->alignment, space->granule),
                         request->placement, &stretch, &offset))
        return RAFFIA_ERROR_OUT_OF_MEMORY;
    status = space_records_reserve(space, SPACE_RESERVE_MAX);
    if (!status)
        status = space_lookup_reserve(space);
    if (status)
        return status;

    space_place place = carve(space, stretch, offset, bytes);
    struct space_record *record = space_at(space, place);
    record->requested = request->bytes;
    record->state = SPACE_HELD;
    space_lookup_insert(space, place);
    account(space, record);
    space_describe(space, place, block);
    return RAFFIA_OK;
}

static raffia_status find_block(const struct space *space, space_handle handle, const char *verb,
                                space_place *place_p)
{
    *place_p = space_place_of(space, handle);
    if (*place_p)
        return RAFFIA_OK;
    return core_error(RAFFIA_ERROR_BAD_ADDRESS,
                      "cannot %s the block %#llx: there is none, or it was freed before", verb,
                      (unsigned long long)handle);
}

static void free_block(struct space *space, space_place place)
{
    struct space_record *record = space_at(space, place);
    unaccount(space, record);
    space_lookup_remove(space, place);
    record->generation++;
    release(space, place);
}

raffia_status space_free(struct space *space, space_handle handle)
{
    space_place place;
    raffia_status status = find_block(space, handle, "free", &place);
    if (!status)
        free_block(space, place);
    return status;
}

raffia_status space_free_held(struct space *space, size_t offset, size_t *bytes_p)
{
    const space_place place = space_lookup_find(space, offset);
    if (!place || space_at(space, place)->state != SPACE_HELD)
        return RAFFIA_ERROR_BAD_ADDRESS;
    *bytes_p = space_at(space, place)->bytes;
    free_block(space, place);
    return RAFFIA_OK;
}

/* Takes the first `bytes` of the free stretch behind a block for it. */
static void grow(struct space *space, space_place place, space_place behind, size_t bytes)
{
    struct space_record *stretch = space_at(space, behind);
    if (stretch->bytes == bytes) {
        space_bins_remove(space, behind);
        space_records_remove(space, behind);
    } else {
        stretch->offset += bytes;
        space_bins_resize(space, behind, stretch->bytes - bytes);
    }
    space_at(space, place)->bytes += bytes;
}

raffia_status space_resize(struct space *space, space_handle handle, size_t requested)
{
    space_place place;
    raffia_status status = find_block(space, handle, "resize", &place);
    if (status)
        return status;
    if (requested == 0)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "a block cannot be resized to 0 bytes");
    struct space_record *record = space_at(space, place);
    size_t bytes, old = record->bytes;
    bool fits = core_align_up(requested, space->granule, &bytes);
    if (fits && bytes > old) {
        space_place behind = record->next;
        fits = joins(space, place, behind, behind) && space_at(space, behind)->bytes >= bytes - old;
    }
    if (!fits)
        return core_error(RAFFIA_ERROR_OUT_OF_MEMORY,
                          "a block of %zu bytes cannot grow to %zu: there is too little free space "
                          "behind it",
                          old, requested);
    if (bytes < old) {
        status = space_records_reserve(space, 1);
        if (status)
            return status;
        record = space_at(space, place);
    }

    unaccount(space, record);
    record->requested = requested;
    if (bytes > old)
        grow(space, place, record->next, bytes - old);
    record->bytes = bytes;
    account(space, record);
    if (bytes < old)
        release(space, space_records_insert(space, place, record->offset + bytes, old - bytes));
    return RAFFIA_OK;
}

raffia_status space_set_state(struct space *space, space_handle handle, enum space_state state)
{
    space_place place;
    raffia_status status = find_block(space, handle, "change", &place);
    if (status)
        return status;
    if (state == SPACE_FREE || (unsigned)state >= SPACE_STATES)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "a block cannot be put into state %u",
                          (unsigned)state);
    struct space_record *record = space_at(space, place);
    unaccount(space, record);
    record->state = state;
    account(space, record);
    return RAFFIA_OK;
}

raffia_status space_reuse(struct space *space, space_handle handle, size_t requested)
{
    space_place place;
    raffia_status status = find_block(space, handle, "hand out", &place);
    if (status)
        return status;
    struct space_record *record = space_at(space, place);
    if (requested == 0 || requested > record->bytes)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "a block of %zu bytes cannot be handed out for %zu", record->bytes,
                          requested);
    unaccount(space, record);
    record->requested = requested;
    record->state = SPACE_HELD;
    account(space, record);
    return RAFFIA_OK;
}
