/*
 * The block that was taken last, and the stretch that its free leaves.
 *
 * A block that is taken and given back at once, again and again, is cut off the same stretch each
 * time, and most of the work is to put stretches into their cells and take them out. So the space
 * remembers the block that was taken last until anything else changes. If it is freed first of all,
 * the stretch that it was cut from is whole again. It is *loose* then: merged as always, but in no
 * cell. The same request again finds the cells as it left them, so it needs no search: it is given
 * that stretch, and what remains of it is loose.
 *
 * A block has the same place as it would have without. Those of a ring are taken first in, first
 * out, so the stretch is left loose only if no other is in its cell. And whoever looks at the cells
 * or changes them settles first: the loose stretch goes to the end of its ring, where it would be.
 *
 * There is at most one: the recent block's stretch, or what remains of it behind the block.
 */
#ifndef SPACE_RECENT_H
#define SPACE_RECENT_H

#include "space/index.h"

#include <assert.h>

/* The loose stretch, or 0. */
static inline space_link space_loose(const struct space *space)
{
    space_link link = space->recent;
    if (space->loose == SPACE_LOOSE_REST)
        link = space_at(space, link)->next;
    return space->loose && space_at(space, link)->ring.next == SPACE_LOOSE_RING ? link : 0;
}

static inline void space_make_loose(struct space_record *record)
{
    record->ring = (struct space_ring){SPACE_LOOSE_RING, SPACE_LOOSE_RING};
}

/* Puts the loose stretch into its cell, and forgets the recent block. */
static inline void space_settle(struct space *space)
{
    if (__builtin_expect(space->loose != SPACE_LOOSE_NONE, 0)) {
        const space_link link = space_loose(space);
        space->loose = SPACE_LOOSE_NONE;
        if (link)
            space_cell_insert(space, link);
    }
    space->recent = 0;
}

/* Whether a request of so many bytes, which may lie anywhere, is the one that was served last, and
 * its block was given back. *slack_p is what it leaves of its last granule. */
static inline bool space_is_again(const struct space *space, size_t bytes, size_t *slack_p)
{
    *slack_p = space->recent_bytes - bytes;
    return space->loose == SPACE_LOOSE_WHOLE && *slack_p < space->granule;
}

/* Cuts the recent block off its stretch once more. Its free left the spare record that it takes. */
static inline space_link space_cut_again(struct space *space)
{
    const space_link link = space->recent;
    struct space_record *record = space_at(space, link);
    const uint32_t units = (uint32_t)(space->recent_bytes >> space->granule_shift);
    const uint32_t rest = record->units - units;
    record->ring = (struct space_ring){0, 0};
    space->loose = SPACE_LOOSE_REST;
    if (rest) {
        const space_link behind = space_records_cut(space, link, units, rest);
        space_make_loose(space_at(space, behind));
    }
    return link;
}

/* The recent block is freed for the first time: makes loose what remains of its stretch. False, and
 * that is where it was, if something else is in the cell of the whole. */
bool space_loosen(struct space *space) __attribute__((noinline));

/* The recent block is being freed. False if its stretch may not be loose: then the space is
 * settled, and the free goes the usual way. */
static inline bool space_try_loosen(struct space *space)
{
    return space->loose == SPACE_LOOSE_REST || space_loosen(space);
}

/* Makes the stretch of the recent block whole, which was just freed. It was cut off the front, and
 * nothing has changed since: there is nothing free before it. */
static inline void space_make_whole(struct space *space)
{
    /* Not the link that the block was found by: the next request need not wait for that. */
    const space_link link = space->recent;
    struct space_record *record = space_at(space, link);
    const space_link behind = record->next;
    struct space_record *rest = space_at(space, behind);
    assert(space_at(space, record->previous)->ring.next == 0);
    if (rest->ring.next) {
        const space_link next = rest->next;
        record->units += rest->units;
        record->next = next;
        space_at(space, next)->previous = link;
        rest->units = 0;
        space->spares[space->spare_count++] = behind;
    }
    space_make_loose(record);
    space->loose = SPACE_LOOSE_WHOLE;
}

#endif
