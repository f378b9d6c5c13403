/*
 * Slabs: places cut into slots of one size, for blocks that are small.
 *
 * A slab is a part of the range, a record like any other, of SPACE_SLAB_UNITS and aligned to as
 * much. What is in its slots is told by a tag each, which lie apart with the slab's own few words:
 * taking a slot touches two lines, and four bytes take the place of a record with its table entry.
 * Slots that are free count as free space, though only a small block can lie there.
 *
 * Slots come in classes, 4 an octave as those of free stretches, but rounded up: at most a quarter
 * is lost to rounding. A slab without blocks goes back, unless it is the last of its class that has
 * room; and those too, before anything is refused, removed or looked at as a whole: see
 * space_drain().
 *
 * Where there are few blocks, records are as quick, and what lies free in slabs would be much of
 * what there is. So there are none before the books have grown to SPACE_SLAB_RECORDS; a class gets
 * its first one when it was asked for as much as one holds; and another one is made only while
 * little lies free in all of them.
 */
#ifndef SPACE_SLAB_H
#define SPACE_SLAB_H

#include "space/index.h"

#define SPACE_SLAB_SHIFT 8u
#define SPACE_SLAB_UNITS (1u << SPACE_SLAB_SHIFT)

/* Ranges with room for fewer slabs have none: they would be all that there is. */
#define SPACE_SLABS_IN_RANGE 256u

/* Books with room for fewer records have none. */
#define SPACE_SLAB_RECORDS 32768u

/* What lies free in slots may be at most one part in so many of what is present, and beside that
 * one in so many of what is taken in slots. */
#define SPACE_SLABS_SPARE_SHARE 128u
#define SPACE_SLABS_SPARE_SLOTS 8u

/* Larger granules are not small, and what is lost in a slot would not fit into its tag. */
#define SPACE_SLAB_GRANULE_MAX ((size_t)1024)

/* The tag of a slot: on top its generation, then the slack of a block or, of a free slot, the next
 * one that is free, and in the low bits the state. */
#define SLOT_SLACK_SHIFT      2u
#define SLOT_GENERATION_SHIFT 18u
#define SLOT_STATE_MASK       3u
#define SLOT_FACTOR_SHIFT     16u
#define SLOT_NONE             0xffffu /* no next slot; more than there are in a slab */

struct space_slab {
    struct space_slab *next, *previous; /* in the ring of its class, if it has room */
    space_link link;                    /* the record of its place */
    uint32_t offset;                    /* of that, in units */
    uint32_t factor;                    /* slots in a unit, times 2^16, rounded up */
    uint16_t slot_units, slots, used;
    uint16_t spare; /* the first free slot, or SLOT_NONE */
    uint32_t class;
    uint32_t tags[];
};

_Static_assert(SPACE_SLAB_UNITS < SLOT_NONE, "slots are named in 16 bits");
_Static_assert(SPACE_SLOT_UNITS_MAX *SPACE_SLAB_GRANULE_MAX - 1 <= SLOT_NONE, "slack has 16 bits");
_Static_assert(SPACE_STATES - 1 <= SLOT_STATE_MASK, "all states fit");

/* The handle of a slot: this bit, which those of records do not have, then the generation, the slot
 * and the link of the slab's record. */
#define SLOT_HANDLE                  ((space_handle)1 << 63)
#define SLOT_HANDLE_SLOT_SHIFT       32u
#define SLOT_HANDLE_GENERATION_SHIFT 40u

/* The class of blocks of so many units: that of the next larger size if none is as large. */
static inline uint32_t space_slab_class_of(uint32_t units)
{
    const unsigned top = 31 ^ (unsigned)__builtin_clz(units | 1 << SPACE_CLASS_BITS);
    const unsigned shift = top - SPACE_CLASS_BITS;
    return (shift << SPACE_CLASS_BITS) + ((units + (1u << shift) - 1) >> shift);
}

static inline enum space_state space_slot_state(const struct space_slab *slab, uint32_t slot)
{
    return (enum space_state)(slab->tags[slot] & SLOT_STATE_MASK);
}

static inline uint32_t space_slot_slack(const struct space_slab *slab, uint32_t slot)
{
    return slab->tags[slot] >> SLOT_SLACK_SHIFT & 0xffffu;
}

static inline void space_slot_put(struct space_slab *slab, uint32_t slot, uint32_t slack,
                                  enum space_state state)
{
    const uint32_t generation = slab->tags[slot] >> SLOT_GENERATION_SHIFT;
    slab->tags[slot] =
        generation << SLOT_GENERATION_SHIFT | slack << SLOT_SLACK_SHIFT | (uint32_t)state;
}

/* The slab that lies at a unit of the range, or NULL. */
static inline struct space_slab *space_slab_at(const struct space *space, uint32_t unit)
{
    return unit < space->slabs.end_unit ? space->slabs.table[unit >> SPACE_SLAB_SHIFT] : NULL;
}

/* The slot that contains a unit of the slab; that behind the last for what is left over. */
static inline uint32_t space_slot_of(const struct space_slab *slab, uint32_t unit)
{
    return (unit - slab->offset) * slab->factor >> SLOT_FACTOR_SHIFT;
}

static inline uint32_t space_slot_unit(const struct space_slab *slab, uint32_t slot)
{
    return slab->offset + slot * slab->slot_units;
}

static inline space_handle space_slot_handle(const struct space_slab *slab, uint32_t slot)
{
    const uint64_t generation = slab->tags[slot] >> SLOT_GENERATION_SHIFT;
    return SLOT_HANDLE | generation << SLOT_HANDLE_GENERATION_SHIFT |
           (uint64_t)slot << SLOT_HANDLE_SLOT_SHIFT | slab->link;
}

static inline uint32_t space_handle_slot(space_handle handle)
{
    return (uint32_t)(handle >> SLOT_HANDLE_SLOT_SHIFT) & (SPACE_SLAB_UNITS - 1);
}

/* ---- slabs.c -------------------------------------------------------------------------------- */

/* Whether a new space may have slabs. */
void space_slabs_allow(struct space *space, const struct space_options *options);

/* From now on it has some, if it may. */
void space_slabs_start(struct space *space);

/* A slab of the class with a free slot, made if the class is asked for often enough and there is a
 * place; else NULL. Nothing is said of a failure. */
struct space_slab *space_slab_for(struct space *space, uint32_t class) __attribute__((cold));

/* The same of any class from this one on, without making one. */
struct space_slab *space_slab_above(const struct space *space, uint32_t class);

/* To be called when the last free slot of a slab was taken; when it has a free one again; and when
 * it has no block any more, after which it may be gone. */
void space_slab_filled(struct space *space, struct space_slab *slab);
void space_slab_reopened(struct space *space, struct space_slab *slab);
void space_slab_emptied(struct space *space, struct space_slab *slab) __attribute__((cold));

/* Gives all slabs without blocks back to the free space. */
void space_drain_slabs(struct space *space);

static inline void space_drain(struct space *space)
{
    if (space->slabs.empty)
        space_drain_slabs(space);
}

/* The slab with the slot that a handle names; NULL if the handle is stale or was never one. */
struct space_slab *space_slab_of_handle(const struct space *space, space_handle handle,
                                        uint32_t *slot_p);

void space_slot_describe(const struct space *space, const struct space_slab *slab, uint32_t slot,
                         struct space_block *block);

/* What is at a unit of the slab: a block, or the free slots or the rest around it. */
void space_slab_describe(const struct space *space, const struct space_slab *slab, uint32_t unit,
                         struct space_block *block);

/* Changes what a slot in use is, and what is counted of it. */
void space_slot_change(struct space *space, struct space_slab *slab, uint32_t slot, uint32_t slack,
                       enum space_state state);

/* Sees to it that slabs of `other` can be taken over. OUT_OF_HOST_MEMORY. */
raffia_status space_slabs_prepare(struct space *space, const struct space *other);

/* Takes a slab over from `other`; its place has the record `link` here, which is in no ring. */
void space_slab_adopt(struct space *space, struct space *other, struct space_slab *slab,
                      space_link link);

/* Whatever is still in them. */
void space_slabs_destroy(struct space *space);

/* CORRUPT, with a sentence, for the first thing that does not hold. */
raffia_status space_slabs_check(const struct space *space);

/* ---- the short ways ------------------------------------------------------------------------- */

/* Takes a free slot, which the slab has. */
static inline uint32_t space_slot_take(struct space *space, struct space_slab *slab, size_t bytes)
{
    const uint32_t slot = slab->spare;
    const uint32_t slack = (uint32_t)(((size_t)slab->slot_units << space->granule_shift) - bytes);
    slab->spare = (uint16_t)space_slot_slack(slab, slot);
    space_slot_put(slab, slot, slack, SPACE_HELD);
    space->slabs.empty -= slab->used == 0;
    slab->used++;
    space->slabs.blocks++;
    space->slabs.used_units += slab->slot_units;
    space->free_units -= slab->slot_units;
    space->slack_bytes += slack;
    if (__builtin_expect(slab->spare == SLOT_NONE, 0))
        space_slab_filled(space, slab);
    return slot;
}

/* Frees a slot that is held. */
static inline void space_slot_give(struct space *space, struct space_slab *slab, uint32_t slot)
{
    const uint32_t first = slab->spare;
    space->slack_bytes -= space_slot_slack(slab, slot);
    space->free_units += slab->slot_units;
    space->slabs.blocks--;
    space->slabs.used_units -= slab->slot_units;
    /* One more generation; what overflows is lost. */
    slab->tags[slot] = ((slab->tags[slot] >> SLOT_GENERATION_SHIFT) + 1) << SLOT_GENERATION_SHIFT |
                       first << SLOT_SLACK_SHIFT;
    slab->spare = (uint16_t)slot;
    slab->used--;
    if (__builtin_expect(first == SLOT_NONE, 0))
        space_slab_reopened(space, slab);
    if (__builtin_expect(slab->used == 0, 0))
        space_slab_emptied(space, slab);
}

#endif
