/*
 * The inside of a space: what its files share. Nobody outside this folder and its tests looks here.
 *
 * Blocks and stretches of free space are records of one kind, in one array that grows. They name
 * each other by their place in it, so that the array may move. Each is in the list by address; a
 * free one is in the list of its bin besides, a block is in the table by offset. A record that
 * describes nothing waits in the list of spares.
 *
 * Whoever needs records reserves them before anything is changed: taking a reserved one cannot
 * fail.
 */
#ifndef SPACE_INDEX_H
#define SPACE_INDEX_H

#include "space/space.h"

/* Place of a record in the array. Place 0 is never used, so 0 means "none". */
typedef uint32_t space_place;

struct space_record {
    size_t offset;
    size_t bytes;               /* 0: spare */
    size_t requested;           /* of blocks */
    space_place previous, next; /* by address; spares are chained by `next` */
    union {
        struct {
            space_place bin_previous, bin_next; /* free space */
        };
        uint32_t slot; /* of blocks: where in the table */
    };
    uint32_t generation; /* rises when a block is freed: old handles turn stale */
    enum space_state state;
};

/* Sizes in granules are binned by their octave and, within it, by quarters; below 4 granules each
 * size has a bin of its own. */
enum {
    SPACE_BIN_CLASS_BITS = 2,
    SPACE_BIN_CLASSES = 1 << SPACE_BIN_CLASS_BITS,
    SPACE_BINS = SPACE_BIN_CLASSES * (64 - SPACE_BIN_CLASS_BITS + 1),
    SPACE_BIN_WORDS = (SPACE_BINS + 63) / 64,
};

/* Most records that one operation needs: a block cut out of the middle of a stretch leaves a
 * stretch on either side. */
#define SPACE_RESERVE_MAX 2

struct space {
    size_t range_bytes, granule;
    unsigned granule_shift;

    struct space_record *records;
    uint32_t record_capacity; /* place 0 included */
    uint32_t spare_count;
    space_place spares;
    space_place first, last; /* by address */

    space_place bins[SPACE_BINS];
    uint64_t bins_in_use[SPACE_BIN_WORDS]; /* a bit for each bin that is not empty */

    space_place *slots;  /* the table by offset; 0: empty */
    uint32_t slot_count; /* a power of two, or 0 before the first block */
    unsigned slot_shift; /* of a 64-bit hash, so that slot_count values are left */

    struct space_stats stats; /* all but largest_free, which a query looks up */
};

static inline struct space_record *space_at(const struct space *space, space_place place)
{
    return &space->records[place];
}

static inline size_t space_end(const struct space_record *record)
{
    return record->offset + record->bytes;
}

/* records.c: the array and the list by address. */

/* The slow part of space_records_reserve(). */
raffia_status space_records_extend(struct space *space);

/* Sees to it that `count` records can be taken, at most SPACE_RESERVE_MAX. OUT_OF_HOST_MEMORY.
 * Records may move. */
static inline raffia_status space_records_reserve(struct space *space, uint32_t count)
{
    return space->spare_count >= count ? RAFFIA_OK : space_records_extend(space);
}

/* Takes a reserved record and puts it behind `previous`, or in front of all if that is 0. */
space_place space_records_insert(struct space *space, space_place previous, size_t offset,
                                 size_t bytes);

/* Takes a record out of the list and keeps it as a spare. It is in no bin and not in the table. */
void space_records_remove(struct space *space, space_place place);

/* The last record that starts at or below `offset`; 0 if none does. Linear, from the end: what is
 * added is mostly added there. */
space_place space_records_below(const struct space *space, size_t offset);

/* bins.c: free space by size. */

/* The bin for a size. */
unsigned space_bin_of(const struct space *space, size_t bytes);

void space_bins_insert(struct space *space, space_place place);
void space_bins_remove(struct space *space, space_place place);

/* Changes the size of free space, which keeps its place in its bin if it can. */
void space_bins_resize(struct space *space, space_place place, size_t bytes);

/* Where an allocation goes: a stretch and the offset within it; false if nothing fits. `bytes` and
 * `alignment` are whole granules. Without an alignment beyond the granule, ANY looks through the
 * request's own bin only; otherwise linear in the free stretches that are large enough. */
bool space_bins_find(const struct space *space, size_t bytes, size_t alignment,
                     enum space_placement placement, space_place *place_p, size_t *offset_p);

size_t space_bins_largest(const struct space *space);

/* lookup.c: blocks by offset. */

/* The slow part of space_lookup_reserve(). */
raffia_status space_lookup_extend(struct space *space);

/* Sees to it that one more block can be inserted. OUT_OF_HOST_MEMORY. At most half of the table is
 * taken: probes stay short, and freeing moves little. */
static inline raffia_status space_lookup_reserve(struct space *space)
{
    return space->stats.blocks < space->slot_count / 2 ? RAFFIA_OK : space_lookup_extend(space);
}

void space_lookup_insert(struct space *space, space_place place);
void space_lookup_remove(struct space *space, space_place place);

/* The block that starts at `offset`, or 0. */
space_place space_lookup_find(const struct space *space, size_t offset);

/* query.c: handles, and records as the caller sees them. */

space_handle space_handle_of(const struct space *space, space_place place);

/* The block that a handle names, or 0 if it is stale or was never one. */
space_place space_place_of(const struct space *space, space_handle handle);

void space_describe(const struct space *space, space_place place, struct space_block *block);

#endif
