/*
 * Free space over a range of offsets: pure bookkeeping, no memory is touched and no driver known.
 * docs/allocator.md tells how it works and what it costs.
 *
 * The range [0, range_bytes) starts out *absent*. The owner adds parts when they are mapped and
 * removes them, while they are free, before they are unmapped. What is present is always either in
 * blocks or free, and neighbouring free space is one stretch: it is merged the moment it touches.
 *
 * Sizes and offsets are bytes and multiples of the granule. Not thread-safe: the owner's lock
 * covers it, also where nothing seems to change. Nothing allocates host memory on the way that
 * frees a block, so a free cannot fail for want of it.
 */
#ifndef SPACE_SPACE_H
#define SPACE_SPACE_H

#include <raffia/base.h>
#include <raffia/status.h>

struct space;

/* Names a block without a search. Valid until the block is freed; 0 is never valid. */
typedef uint64_t space_handle;

/* What a block is doing. Kept here, in one place, for everybody who asks. */
enum space_state {
    SPACE_FREE = 0, /* nobody's; may be allocated */
    SPACE_HELD,     /* handed out */
    SPACE_CACHED,   /* kept by a cache for reuse: not free, not handed out */
    SPACE_PENDING,  /* freed on a stream that has not got there yet */
    SPACE_STATES,
};

struct space_options {
    size_t range_bytes; /* end of the offsets; a multiple of the granule, and below 2^32 - 1 of
                           them: 1 TiB of 256 bytes */
    size_t granule;     /* a power of two, at most 4 GiB */
    bool slabs;         /* small blocks lie in slabs (slab.h), where granule and range allow it */
};

/* Where in the range an allocation should go. */
enum space_placement {
    SPACE_PLACE_ANY = 0, /* where it hurts the least; at the start of the stretch it is cut from */
    SPACE_PLACE_LOW,     /* lowest offset there is: long-lived blocks */
    SPACE_PLACE_HIGH,    /* highest offset there is: for comparison, no pool asks for it */
};

struct space_request {
    size_t bytes;     /* at least 1; rounded up to the granule */
    size_t alignment; /* of the offset; a power of two; below the granule, as 0, it means the
                         granule */
    enum space_placement placement;
    bool thorough; /* look at every stretch that may fit; see space_allocate() */
};

struct space_block {
    space_handle handle; /* 0 for free space */
    size_t offset;
    size_t bytes;
    size_t requested; /* what space_request.bytes said; `bytes` for free space */
    enum space_state state;
};

struct space_stats {
    size_t present_bytes; /* added and not removed */
    size_t free_bytes;
    size_t largest_free; /* exact, not the floor of a size class; free slots do not count */
    size_t free_blocks;  /* those neither */
    size_t blocks;       /* not free */
    size_t state_bytes[SPACE_STATES]; /* per state; SPACE_FREE is free_bytes */
    size_t requested_bytes;           /* over blocks that are SPACE_HELD */
};

/* OUT_OF_HOST_MEMORY; INVALID_ARGUMENT, also for a range of too many granules. */
raffia_status space_create(const struct space_options *options, struct space **space_p);

/* Whatever is still in it. NULL is ignored. */
void space_destroy(struct space *space);

/* Makes an absent part of the range present and free. OUT_OF_HOST_MEMORY leaves it absent;
 * INVALID_ARGUMENT if any of it is present already. Takes as long as space_containing(). */
raffia_status space_add(struct space *space, size_t offset, size_t bytes);

/* Makes a present part absent. BUSY, and nothing changes, unless all of it is free;
 * OUT_OF_HOST_MEMORY, and nothing changes. */
raffia_status space_remove(struct space *space, size_t offset, size_t bytes);

/*
 * Takes a block. It is SPACE_HELD. OUT_OF_MEMORY if no stretch of free space holds it;
 * OUT_OF_HOST_MEMORY. Failing is as cheap as succeeding, and records no sentence: the pool knows
 * more to say.
 *
 * The time it takes is bounded, whatever the space holds, by looking at no more than a few dozen
 * stretches. So a request may be refused, or be placed less low or high than it could be,
 *  - with the granule's alignment, if the only stretches that hold it are of its own size class (a
 *    quarter octave; sizes below 8 granules have one each) and behind many others there that do
 * not;
 *  - with a larger alignment, if no stretch is of a class above that of its size and alignment
 *    together, and those that hold it are behind many that do not;
 *  - LOW and HIGH look at so many stretches in each eighth of the range, the lowest or highest
 *    first, and take the best of the first eighth that has any.
 * A thorough request looks at all of them, which is linear in stretches of its class, or for an
 * alignment or a placement in all that are as large: it is what to try before giving up. It also
 * has slabs without blocks given back first, and takes a slot of a larger class last, wherever that
 * lies.
 */
raffia_status space_allocate(struct space *space, const struct space_request *request,
                             struct space_block *block);

/* Frees a block by its handle. BAD_ADDRESS if there is none such. */
raffia_status space_free(struct space *space, space_handle handle);

/* Frees the block that starts at `offset` if it is SPACE_HELD and `requested` is what was asked
 * for, or 0, which goes for all; says how many bytes it had. BAD_ADDRESS, and no sentence recorded,
 * if there is none such. The short way of space_find() and space_free(). */
raffia_status space_free_held(struct space *space, size_t offset, size_t requested,
                              size_t *bytes_p);

/* What was asked for, of a block that is there. Constant time. */
size_t space_requested(const struct space *space, space_handle handle);

/* Describes the block that starts at `offset`; BAD_ADDRESS if none starts exactly there (free
 * space, the inside of a block, absent, outside). Constant time, no sentence recorded. */
raffia_status space_find(struct space *space, size_t offset, struct space_block *block);

/* Describes the block or stretch of free space that contains `offset`; NOT_FOUND where the range is
 * absent. Takes time with the number of blocks between `offset` and the nearest of: both ends of
 * the range, and the place of the last such question (or of space_is_free(), space_add(),
 * space_remove()). Asking for one part after the other is cheap. */
raffia_status space_containing(struct space *space, size_t offset, struct space_block *block);

/* Grows into the free space behind the block, slabs without blocks included, or gives the tail
 * back. OUT_OF_MEMORY if there is not enough behind it; the block is then unchanged. Giving back
 * may need a record: OUT_OF_HOST_MEMORY, and the block is unchanged. The handle stays valid. A
 * block in a slab keeps its slot: it gives nothing back, and OUT_OF_MEMORY is what does not fit
 * into that.
 */
raffia_status space_resize(struct space *space, space_handle handle, size_t bytes);

/* Changes the state of a block to anything but SPACE_FREE. */
raffia_status space_set_state(struct space *space, space_handle handle, enum space_state state);

/* Hands out a block that is not free again, for a request that it has room for, without touching
 * its size: it is SPACE_HELD and `requested` is what space_request.bytes would have said.
 * INVALID_ARGUMENT, and the block is unchanged, if it is smaller, larger by 4 GiB or more, or that
 * is 0. */
raffia_status space_reuse(struct space *space, space_handle handle, size_t requested);

/* Sees to it that space_absorb() of `other` cannot fail. OUT_OF_HOST_MEMORY. */
raffia_status space_prepare_absorb(struct space *space, const struct space *other);

/* Moves every block of `other` to the same place here, where all of that is free, and leaves
 * `other` with nothing present. Both have the same range and granule. Handles of the blocks turn
 * stale. Linear in the records of `other`, after a search of its first block as long as
 * space_containing(). */
void space_absorb(struct space *space, struct space *other);

/* Linear in the stretches of the largest size class. Slabs without blocks are given back first. */
void space_query(struct space *space, struct space_stats *stats);

/* Whether all of [offset, offset + bytes) is present and free; no bytes always are. Takes as long
 * as space_containing(). */
bool space_is_free(struct space *space, size_t offset, size_t bytes);

/* Visits blocks and free stretches in order of offset, until the visitor returns false. Absent
 * parts are passed over. The visitor must not change the space. Free slots of a slab are free
 * stretches here, though no request but a small one can have them. */
typedef bool (*space_visitor)(void *context, const struct space_block *block);
void space_walk(struct space *space, space_visitor visitor, void *context);

/* The same for who looks for places: a slab is one block, SPACE_CACHED and without a handle. */
void space_walk_places(struct space *space, space_visitor visitor, void *context);

/* Verifies every invariant. CORRUPT, with a sentence, for the first that does not hold. */
raffia_status space_check(struct space *space);

#endif
