/*
 * Records: where they come from, and how parts of the range are split and merged.
 */
#include "core/error.h"
#include "core/memory.h"
#include "space/slab.h"

#include <assert.h>
#include <string.h>

/* Records there is room for at first, and at most: links are 32 bits. */
#define FIRST_CAPACITY 64u
#define LAST_CAPACITY  ((UINT32_MAX - SPACE_FIRST_LINK) / SPACE_RECORD_WORDS)

/* Records that become spare at once: room that was never used is not touched before. */
#define BATCH 64u

/* Two records fill a line, and none lies in two. */
#define LINE_BYTES ((size_t)64)
#define LINE_WORDS (LINE_BYTES / sizeof(uint64_t))

static_assert(sizeof(struct space_record) == SPACE_RECORD_WORDS * sizeof(uint64_t), "");
static_assert(SPACE_ZONES > SPACE_LOOSE_RING,
              "the dummy fits in front of the heads, and the ring of none");

static size_t words_for(uint32_t records)
{
    return SPACE_FIRST_LINK + (size_t)records * SPACE_RECORD_WORDS;
}

/* The first line of a block of memory. */
static uint64_t *first_line(void *block)
{
    const size_t past = (uintptr_t)block % LINE_BYTES;
    return (uint64_t *)block + (past ? (LINE_BYTES - past) / sizeof(uint64_t) : 0);
}

/* Makes both arrays larger. On failure one of them may be. */
static raffia_status reserve(struct space *space, uint32_t capacity)
{
    /* The push without a branch writes before it is known whether it counts. */
    space_link *spares =
        core_reallocate(space->spares, (size_t)capacity + 2, sizeof *space->spares);
    if (!spares)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    space->spares = spares;
    const size_t shift = space->words ? (size_t)(space->words - (uint64_t *)space->words_block) : 0;
    uint64_t *block =
        core_reallocate(space->words_block, words_for(capacity) + LINE_WORDS, sizeof *space->words);
    if (!block)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    uint64_t *words = first_line(block);
    if (space->words && words != block + shift)
        memmove(words, block + shift, words_for(space->record_count) * sizeof *words);
    space->words_block = block;
    space->words = words;
    space->record_capacity = capacity;
    return RAFFIA_OK;
}

/* Makes spares of the next records. The lowest comes off the stack first. */
static void use_more(struct space *space)
{
    const uint32_t old = space->record_count;
    const uint32_t left = space->record_capacity - old;
    space->record_count += left < BATCH ? left : BATCH;
    for (uint32_t place = space->record_count; place-- > old;) {
        const space_link link = (space_link)words_for(place);
        *space_at(space, link) = (struct space_record){0};
        space->spares[space->spare_count++] = link;
    }
}

raffia_status space_records_extend(struct space *space)
{
    const uint32_t old = space->record_capacity;
    if (space->record_count == old) {
        if (old > LAST_CAPACITY / 2)
            return core_error(RAFFIA_ERROR_OUT_OF_HOST_MEMORY,
                              "cannot keep books of more than %u blocks and gaps in one space",
                              old);
        /* The table first: if the records then fail, it is only larger than it need be. */
        raffia_status status = space_lookup_extend(space, 2 * old);
        if (!status)
            status = reserve(space, 2 * old);
        if (status)
            return status;
        if (space->record_capacity >= SPACE_SLAB_RECORDS)
            space_slabs_start(space);
    }
    use_more(space);
    return RAFFIA_OK;
}

raffia_status space_records_start(struct space *space)
{
    raffia_status status = reserve(space, FIRST_CAPACITY);
    if (!status)
        status = space_lookup_extend(space, FIRST_CAPACITY);
    if (status)
        return status;
    use_more(space);
    for (space_link head = 0; head < SPACE_CELLS; head++)
        *space_ring_at(space, head) = (struct space_ring){head, head};
    *space_at(space, 0) = (struct space_record){.offset = UINT32_MAX};
    const space_link all = space->spares[--space->spare_count];
    const space_link wall = space->spares[--space->spare_count];
    *space_at(space, all) = (struct space_record){
        .units = space->range_units, .previous = wall, .next = wall, .tag = SPACE_ABSENT};
    *space_at(space, wall) = (struct space_record){
        .offset = space->range_units, .previous = all, .next = all, .tag = SPACE_ABSENT};
    space->wall = wall;
    return RAFFIA_OK;
}

space_link space_records_split(struct space *space, space_link link, uint32_t unit)
{
    assert(space->spare_count > 0);
    struct space_record *record = space_at(space, link);
    assert(unit > record->offset && unit < space_end(record));
    const space_link behind = space->spares[--space->spare_count];
    struct space_record *other = space_at(space, behind);
    other->ring = (struct space_ring){0, 0};
    other->offset = unit;
    other->units = space_end(record) - unit;
    other->previous = link;
    other->next = record->next;
    other->slack = 0;
    other->tag = (other->tag & ~SPACE_STATE_MASK) | (uint32_t)space_state_of(record);
    space_at(space, record->next)->previous = behind;
    record->next = behind;
    record->units = unit - record->offset;
    return behind;
}

void space_records_join(struct space *space, space_link link)
{
    const struct space_record *record = space_at(space, link);
    const space_link previous = record->previous, next = record->next;
    space_at(space, previous)->units += record->units;
    space_at(space, previous)->next = next;
    space_at(space, next)->previous = previous;
    space_at(space, link)->units = 0;
    space_put_state(space_at(space, link), SPACE_FREE);
    space->spares[space->spare_count++] = link;
}
