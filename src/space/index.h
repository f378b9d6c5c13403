/*
 * The inside of a space: what its files share. Nobody outside this folder and its tests looks here.
 * docs/allocator.md says why it is built like this, and what each piece costs.
 *
 * Everything is counted in granules ("units"), in 32 bits. A record describes a part of the range:
 * a block, a stretch of free space, an absent part, or a slab with small blocks in it (slab.h).
 * Together, in order of offset, the records cover the range without a gap, so the neighbours of a
 * record touch it.
 *
 * A free record is in the ring of its *cell*: 4 size classes an octave times 8 zones (eighths of
 * the range). A bit for each cell says whether its ring is empty. One may be in none (recent.h):
 * whoever looks into cells or changes them calls space_settle() first.
 *
 * A block is found by its offset in a table: a hash of few blocks a slot, chained through the
 * records; or, where the range has few granules, a slot for each.
 *
 * Records and the heads of rings lie in one array and are named by *links*: their distance from its
 * start in 8-byte words, so that the array may move. Record 0 is a dummy. It stands for the ring
 * neighbours of whatever is in no ring, so that taking something out of its ring needs no question
 * whether it is in one.
 */
#ifndef SPACE_INDEX_H
#define SPACE_INDEX_H

#include "space/space.h"

typedef uint32_t space_link;

enum {
    SPACE_CLASS_BITS = 2,
    SPACE_ZONE_BITS = 3,
    SPACE_ZONES = 1 << SPACE_ZONE_BITS,
    /* Those of each shift of the size, and those of sizes that need none. */
    SPACE_CLASSES = (31 - SPACE_CLASS_BITS + 2) << SPACE_CLASS_BITS,
    SPACE_CELLS = SPACE_CLASSES << SPACE_ZONE_BITS,
    /* Behind the last class, in the same word or the next. Its bit is always set: searches end. */
    SPACE_GUARD_CELL = SPACE_CELLS,
    SPACE_CELL_WORDS = SPACE_GUARD_CELL / 64 + 1,
    /* Links. No size has class 0, so the dummy lies where the heads of its rings would be. The bit
     * of cell 0 is cleared where there is none to clear, and never set. */
    SPACE_RECORD_WORDS = 4,
    /* Behind the dummy: both neighbours of a free record that is in no cell. */
    SPACE_LOOSE_RING = SPACE_RECORD_WORDS,
    SPACE_FIRST_LINK = (SPACE_CELLS + 8) & ~7, /* of records, behind the heads; a whole line */
};

#define SPACE_UNITS_MAX (UINT32_MAX - 1)

/* Up to this many granules the table by offset has a slot for each. */
#define SPACE_DIRECT_UNITS ((size_t)1 << 16)

/* Stretches of one cell or class that a bounded search looks at. */
#define SPACE_LOOKS 32

/* Most records that one operation needs: something cut out of the middle leaves a piece on either
 * side. */
#define SPACE_RESERVE_MAX 2

struct space_ring {
    space_link next, previous;
};

/* What a record describes, besides enum space_state. */
#define SPACE_ABSENT     ((enum space_state)SPACE_STATES)
#define SPACE_SLAB       ((enum space_state)(SPACE_STATES + 1)) /* slab.h */
#define SPACE_STATE_BITS 3u
#define SPACE_STATE_MASK ((1u << SPACE_STATE_BITS) - 1)

/* Which free stretch is in no cell (recent.h). */
enum space_looseness {
    SPACE_LOOSE_NONE = 0,
    SPACE_LOOSE_WHOLE, /* the recent one, whose block was freed */
    SPACE_LOOSE_REST,  /* what is free behind the recent block, if anything is */
};

struct space_record {
    /* Of free space, its neighbours in the ring of its cell. Otherwise `next` is 0, and `previous`
     * is, of a block, the next in its chain of the table. Unlinking such a block from the ring that
     * it is not in makes `next` of that one 0, which it is. */
    struct space_ring ring;
    uint32_t offset, units; /* 0 units: spare, or the wall */
    /* By offset; a ring too, closed by the wall at the end of the range. */
    space_link previous, next;
    uint32_t slack; /* of a block: bytes that were not asked for */
    uint32_t tag;   /* state in the low bits; above them the generation, which rises when
                       a block is freed: old handles turn stale */
};

/* ---- slabs (slab.h) ------------------------------------------------------------------------- */

/* Classes of slots, up to 64 units; there is none of class 0. */
#define SPACE_SLOT_UNITS_MAX 64u /* the largest slot, which is that of the last class */
#define SPACE_SLAB_CLASSES   21u

struct space_slab;

struct space_slab_class {
    struct space_slab *open; /* a ring of those with a free slot */
    uint32_t slabs;
    uint32_t patience; /* requests to do without before one is made */
};

struct space_slabs {
    struct space_slab **table;       /* by offset */
    uint32_t end_unit;               /* there are none at or behind this unit */
    uint32_t count, empty;           /* all, and those without blocks */
    uint32_t births;                 /* slabs ever made */
    bool allowed;                    /* granule and range are such that there may be some */
    uint64_t slot_units, used_units; /* in all slots, and in those that are taken */
    size_t most_bytes;               /* larger blocks are not for them; 0: there are none yet */
    size_t blocks;                   /* in all of them */
    struct space_slab_class classes[SPACE_SLAB_CLASSES];
};

/* ---- the space ------------------------------------------------------------------------------ */

struct space {
    uint64_t *words;    /* heads of rings and records, by link */
    space_link *slots;  /* of the table by offset: the first of a chain of blocks, or 0 */
    space_link *spares; /* a stack; there is room for two more than there can be */
    uint32_t spare_count;
    space_link wall; /* the record at the end of the range: nothing, and never free */
    uint32_t slot_factor;
    unsigned slot_shift, granule_shift;
    uint64_t zone_factor; /* zones in a unit, times 2^32 */

    /* Counters that cannot be told from others. In units, except slack. Those that change together
     * do not lie together, or the compiler makes one wide store of two and the loads that follow
     * wait for it. */
    uint64_t free_units, present_units;
    uint64_t slack_bytes; /* of held blocks */
    uint64_t cached_units;
    size_t blocks; /* those in slabs are not counted */
    uint64_t pending_units;

    space_link recent; /* the block that was taken last, or its stretch (recent.h); or 0 */
    enum space_looseness loose;
    size_t recent_bytes; /* of the block, while a stretch is loose */

    uint64_t cells[SPACE_CELL_WORDS]; /* a bit for each cell: its ring is not empty */

    size_t range_bytes, granule;
    uint32_t range_units, slot_count;
    uint32_t record_count; /* in use or spare; behind them there is room for more */
    uint32_t record_capacity;
    uint32_t absent_records; /* the wall is not counted */
    void *words_block;       /* what `words` was allocated as */
    struct space_slabs slabs;

    space_handle finger; /* a block near the last one that was looked for by what it contains */
};

/* Bytes that are at most the range, as units. */
static inline uint32_t space_units(const struct space *space, size_t bytes)
{
    /* The largest range and granule leave room for the sum. */
    return (uint32_t)((bytes + space->granule - 1) >> space->granule_shift);
}

/* What a block of so many units has beyond the bytes that were asked for. */
static inline uint32_t space_slack_of(const struct space *space, uint32_t units, size_t bytes)
{
    return (uint32_t)(((size_t)units << space->granule_shift) - bytes);
}

static inline size_t space_count_free(const struct space *space)
{
    /* The wall is neither. */
    return space->record_count - space->spare_count - 1 - space->absent_records - space->blocks -
           space->slabs.count;
}

/* ---- records and rings ---------------------------------------------------------------------- */

static inline bool space_is_record(const struct space *space, space_link link)
{
    return link - SPACE_FIRST_LINK < (uint64_t)space->record_count * SPACE_RECORD_WORDS &&
           link % SPACE_RECORD_WORDS == 0;
}

static inline struct space_record *space_at(const struct space *space, space_link link)
{
    return (struct space_record *)(void *)(space->words + link);
}

static inline struct space_ring *space_ring_at(const struct space *space, space_link link)
{
    return (struct space_ring *)(void *)(space->words + link);
}

static inline enum space_state space_state_of(const struct space_record *record)
{
    return (enum space_state)(record->tag & SPACE_STATE_MASK);
}

static inline void space_put_state(struct space_record *record, enum space_state state)
{
    record->tag = (record->tag & ~SPACE_STATE_MASK) | (uint32_t)state;
}

/* Offsets and sizes of records fit into 32 bits, and so does this. */
static inline uint32_t space_end(const struct space_record *record)
{
    return record->offset + record->units;
}

/* All ones if `condition`, else 0; the compiler is kept from turning it back into a branch. */
static inline uint32_t space_mask(bool condition)
{
    uint32_t mask = -(uint32_t)condition;
    __asm__("" : "+r"(mask));
    return mask;
}

static inline uint32_t space_choose(uint32_t mask, uint32_t yes, uint32_t no)
{
    return no ^ ((yes ^ no) & mask);
}

/* ---- cells ---------------------------------------------------------------------------------- */

/* Sizes up to 7 units have a class each. */
static inline uint32_t space_class_of(uint32_t units)
{
    const unsigned top = 31 ^ (unsigned)__builtin_clz(units | 1 << SPACE_CLASS_BITS);
    const unsigned shift = top - SPACE_CLASS_BITS;
    return (shift << SPACE_CLASS_BITS) + (units >> shift);
}

static inline uint32_t space_zone_of(const struct space *space, uint32_t offset)
{
    return (uint32_t)(offset * space->zone_factor >> 32);
}

static inline uint32_t space_cell_of(const struct space *space, uint32_t offset, uint32_t units)
{
    return (space_class_of(units) << SPACE_ZONE_BITS) + space_zone_of(space, offset);
}

/* Whether anything is in its ring. */
static inline bool space_cell_holds(const struct space *space, uint32_t cell)
{
    return space->cells[cell / 64] >> cell % 64 & 1;
}

/* The head of a cell's ring has the number of the cell as its link. What is inserted last is taken
 * last: that packs better than the other way round, and costs the same. Offset and size are those
 * of the record, handed over so that nobody waits for them to come back from memory. */
static inline void space_cell_put(struct space *space, space_link link, uint32_t offset,
                                  uint32_t units)
{
    const uint32_t cell = space_cell_of(space, offset, units);
    struct space_ring *head = space_ring_at(space, cell), *ring = space_ring_at(space, link);
    const space_link last = head->previous;
    head->previous = link;
    ring->next = cell;
    ring->previous = last;
    space_ring_at(space, last)->next = link;
    space->cells[cell / 64] |= (uint64_t)1 << cell % 64;
}

static inline void space_cell_insert(struct space *space, space_link link)
{
    space_cell_put(space, link, space_at(space, link)->offset, space_at(space, link)->units);
}

/* All bits of a word but one, as a rotation, which is what a processor does fastest. */
static inline uint64_t space_all_but(uint32_t bit)
{
    const uint64_t first = ~(uint64_t)1;
    return first << bit % 64 | first >> (64 - bit % 64) % 64;
}

/* Takes a record out of its ring, or nothing out of none: then it is the dummy's that is changed.
 * The record's own ring stays as it was. */
static inline void space_cell_unlink(struct space *space, const struct space_record *record)
{
    const space_link previous = record->ring.previous, next = record->ring.next;
    space_ring_at(space, previous)->next = next;
    space_ring_at(space, next)->previous = previous;
    /* Only a head can be both, or the dummy. */
    const uint32_t emptied = previous & space_mask(previous == next);
    space->cells[emptied / 64] &= space_all_but(emptied);
}

static inline void space_cell_remove(struct space *space, space_link link)
{
    struct space_record *record = space_at(space, link);
    space_cell_unlink(space, record);
    record->ring = (struct space_ring){0, 0};
}

/* ---- lookup.c: blocks by offset ------------------------------------------------------------- */

/* Fibonacci hashing, or the identity where there is a slot for each unit. */
static inline space_link *space_table_slot(const struct space *space, uint32_t unit)
{
    return &space->slots[unit * space->slot_factor >> space->slot_shift];
}

/* The block is in no ring, so it has the place for the link of a chain. */
static inline void space_lookup_insert(struct space *space, space_link link, uint32_t unit)
{
    space_link *slot = space_table_slot(space, unit);
    space_ring_at(space, link)->previous = *slot;
    *slot = link;
}

static inline void space_lookup_remove(struct space *space, space_link link, uint32_t unit)
{
    space_link *at = space_table_slot(space, unit);
    while (__builtin_expect(*at != link, 0))
        at = &space_ring_at(space, *at)->previous;
    *at = space_ring_at(space, link)->previous;
    space_ring_at(space, link)->previous = 0;
}

/* The block that starts at a unit, or 0. */
static inline space_link space_lookup_find(const struct space *space, uint32_t unit)
{
    space_link link = *space_table_slot(space, unit);
    while (link && __builtin_expect(space_at(space, link)->offset != unit, 0))
        link = space_ring_at(space, link)->previous;
    return link;
}

/* Makes room for as many blocks as there are records. OUT_OF_HOST_MEMORY, and nothing changes. */
raffia_status space_lookup_extend(struct space *space, uint32_t capacity) __attribute__((cold));

/* The record that contains a unit of the range. */
space_link space_lookup_below(struct space *space, uint32_t unit);

/* ---- records.c ------------------------------------------------------------------------------ */

/* Makes the first records: the dummy, the wall, and one for the whole range, absent. */
raffia_status space_records_start(struct space *space);

/* The slow part of space_records_reserve(). */
raffia_status space_records_extend(struct space *space) __attribute__((cold));

/* Sees to it that `count` records can be taken, at most SPACE_RESERVE_MAX. OUT_OF_HOST_MEMORY.
 * Records may move. */
static inline raffia_status space_records_reserve(struct space *space, uint32_t count)
{
    return __builtin_expect(space->spare_count >= count, 1) ? RAFFIA_OK
                                                            : space_records_extend(space);
}

/* Takes a reserved record for the part [unit, end) of another record, which is in no ring and
 * shortened. The new one is in no ring either, and in the state of the other. */
space_link space_records_split(struct space *space, space_link link, uint32_t unit);

/* Gives all of a record to the one before it. It is in no ring, and becomes a spare. */
void space_records_join(struct space *space, space_link link);

/* Takes a reserved record for all but the first units of a stretch, which is in no cell. Neither is
 * the new one, and its ring is not written. */
static inline space_link space_records_cut(struct space *space, space_link link, uint32_t units,
                                           uint32_t rest)
{
    struct space_record *record = space_at(space, link);
    const space_link behind = space->spares[--space->spare_count], next = record->next;
    struct space_record *other = space_at(space, behind);
    other->offset = record->offset + units;
    other->units = rest;
    other->previous = link;
    other->next = next;
    space_at(space, next)->previous = behind;
    record->next = behind;
    record->units = units;
    return behind;
}

/* ---- find.c --------------------------------------------------------------------------------- */

/* A place for a request: units from `offset` on within the free record. */
struct space_place {
    space_link link;
    uint32_t offset;
};

/* What is asked for. The alignment is 1 unit or a larger power of two, and may exceed the range. */
struct space_search {
    uint32_t units;
    uint64_t alignment;
    enum space_placement placement;
    bool thorough;
};

/* False if there is none; or, unless it is to be thorough, if none was met. */
bool space_find_place(const struct space *space, const struct space_search *search,
                      struct space_place *place);

/* The stretch for a request of the granule's alignment when no larger class has one: the first of
 * the own class that is large enough, among SPACE_LOOKS of them or all. 0 if there is none. */
space_link space_find_in_class(const struct space *space, uint32_t units, bool thorough);

uint32_t space_find_largest(const struct space *space);

/* ---- blocks.c ------------------------------------------------------------------------------- */

/* Cuts a place out of the free stretch that has it; the record, its link then, is in no ring and
 * free still. OUT_OF_HOST_MEMORY. */
raffia_status space_cut_place(struct space *space, struct space_place *place, uint32_t units);

/* Gives a part of the range to the free space: merges it with the free neighbours. The record is in
 * no ring; its state is that of free space already. */
void space_release(struct space *space, space_link link);

/* ---- change.c ------------------------------------------------------------------------------- */

/* Changes the state of a block, and what is counted of it. */
void space_change_state(struct space *space, space_link link, enum space_state state);

/* Adds a block to what is counted of its state; or, with both negated, takes it out. What is held
 * is what remains, but for its slack. */
static inline void space_count_state(struct space *space, enum space_state state, uint64_t units,
                                     uint64_t slack)
{
    switch (state) {
    case SPACE_HELD:
        space->slack_bytes += slack;
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

/* ---- query.c -------------------------------------------------------------------------------- */

static inline space_handle space_handle_of(const struct space *space, space_link link)
{
    return (space_handle)(space_at(space, link)->tag >> SPACE_STATE_BITS) << 32 | link;
}

/* The block that a handle names, or 0 if it is stale or was never one. */
static inline space_link space_link_of(const struct space *space, space_handle handle)
{
    const space_link link = (space_link)handle;
    if (!space_is_record(space, link))
        return 0;
    const uint32_t tag = space_at(space, link)->tag;
    /* 1, 2, 3 are the states of blocks. */
    return tag >> SPACE_STATE_BITS == handle >> 32 &&
                   (tag & SPACE_STATE_MASK) - 1 < SPACE_STATES - 1
               ? link
               : 0;
}

/* The block that a handle names if it is in this state; else NULL. */
static inline struct space_record *space_block_in(const struct space *space, space_handle handle,
                                                  enum space_state state)
{
    const space_link link = (space_link)handle;
    const uint64_t tag = handle >> 32 << SPACE_STATE_BITS | state;
    return space_is_record(space, link) && space_at(space, link)->tag == tag ? space_at(space, link)
                                                                             : NULL;
}

void space_describe(const struct space *space, space_link link, struct space_block *block);

#endif
