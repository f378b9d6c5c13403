/*
 * Guards (RAFFIA_POOL_GUARD): a pattern in the slack between what was asked for and the end of the
 * block. A request without slack gets one more granule, and where the driver can protect pages and
 * the granule is made of whole ones, that granule is read-only as well: writing to it faults.
 *
 * The CPU writes and reads the pattern itself where it can: a free waits for its stream, so that
 * what is handed out is in use by nobody. Otherwise the device does: in a stream of the pool's own,
 * or, for a block that is allocated on a stream, in that stream, ahead of the work that will use
 * the block.
 *
 * Guarded pools are for finding mistakes: their calls run one after the other, under the guard
 * lock, which comes before every other lock of the pool and is held during driver calls.
 */
#ifndef POOL_GUARD_H
#define POOL_GUARD_H

#include "pool/pool_internal.h"

/* A guard that a stream was told to write. Until the event has passed it may not be there. */
struct pool_guard_mark {
    size_t offset; /* of the block */
    driver_event event;
};

struct pool_guard {
    pthread_mutex_t lock;  /* guards all of this, and says that guards of HELD blocks are there */
    bool direct;           /* the CPU reaches the memory */
    bool protects;         /* a granule can be made read-only */
    driver_stream stream;  /* of our own, where the device has streams: it waits for no other but
                             a legacy default stream */
    unsigned char *buffer; /* for what is read back; none if direct */
    struct pool_guard_mark *marks;
    size_t mark_count, mark_room;
    struct space_block *census; /* room for all live blocks, so that looking takes no memory */
    size_t census_room;
};

/* Where a pattern was overwritten. */
struct pool_damage {
    raffia_block block;
    size_t distance; /* of the first damaged byte from the end of the block */
};

enum pool_guard_verdict {
    POOL_GUARD_INTACT = 0,
    POOL_GUARD_DAMAGED,
    POOL_GUARD_UNREAD, /* the device did not let us look; the error is recorded */
};

/* ---- the pattern (guard.c) ------------------------------------------------------------------ */

/* For a pool with the flag; nothing is left behind on failure. */
raffia_status pool_guard_create(struct raffia_pool *pool, const raffia_device_info *info);

/* Ignores a pool without guards. */
void pool_guard_destroy(struct raffia_pool *pool);

/* Guard lock held, here and below. Writes the pattern, and has it written on return. */
raffia_status pool_guard_put(struct raffia_pool *pool, const struct space_block *block);

/* Has a stream write the pattern; waits only if it is the pool's own. */
raffia_status pool_guard_fill(struct raffia_pool *pool, driver_stream stream,
                              const struct space_block *block);

enum pool_guard_verdict pool_guard_inspect(struct raffia_pool *pool,
                                           const struct space_block *block,
                                           struct pool_damage *damage);

/* Makes all of the block writable again. */
raffia_status pool_guard_lift(struct raffia_pool *pool, const struct space_block *block);

/* Guard lock not held. Freezes the pool; returns CORRUPT. */
raffia_status pool_report_damage(struct raffia_pool *pool, const struct pool_damage *damage);

/* ---- streams (guard_marks.c) ---------------------------------------------------------------- */

/* Guard lock held. Has the stream write the pattern, and leaves a mark. */
raffia_status pool_guard_put_on(struct raffia_pool *pool, raffia_stream stream,
                                const struct space_block *block);

/* No lock held; the block is the caller's alone (SPACE_PENDING). Waits until its guard is there. */
raffia_status pool_guard_wait(struct raffia_pool *pool, const struct space_block *block);

/* Guard lock held, here and below. Whether the guard is there now. */
bool pool_guard_is_there(struct raffia_pool *pool, const struct space_block *block);

/* Takes the mark of a block away, if it has one. */
void pool_guard_forget(struct raffia_pool *pool, const struct space_block *block);

/* ---- guarded calls (guarded.c) -------------------------------------------------------------- */

/* The three ways of a block, for a pool with guards. `stream_p` is NULL where no order was asked
 * for; the stream itself may be NULL. */
raffia_status pool_alloc_guarded(struct raffia_pool *pool, const struct space_request *request,
                                 size_t bytes, const raffia_stream *stream_p,
                                 struct space_block *block);
raffia_status pool_free_guarded(struct raffia_pool *pool, const raffia_stream *stream_p,
                                const void *address, size_t requested);
raffia_status pool_resize_guarded(struct raffia_pool *pool, const void *address, size_t requested,
                                  size_t bytes);

/* ---- looking at all guards (guard_check.c) -------------------------------------------------- */

/* Guard lock held. Makes room for one more live block. OUT_OF_HOST_MEMORY. */
raffia_status pool_guard_reserve_census(struct raffia_pool *pool);

/* Guard lock not held. CORRUPT, with the pool frozen, if any guard is damaged. *report is written
 * in any case. */
raffia_status pool_guard_check(struct raffia_pool *pool, raffia_guard_report *report);

/* Has the guards of all pools looked at when the process exits. */
void pool_guard_watch_exit(void);

#endif
