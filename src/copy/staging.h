/*
 * Staging: a ring of pinned slots through which data goes from files to a device.
 *
 * The data is a sequence of stretches, each as long as a slot at most. Readers take pieces of the
 * stretch that is being filled; whoever puts in the last piece submits the slot's copies, as one
 * call on the ring's one stream, and an event behind them. A slot whose event has passed takes the
 * next stretch. So the link is busy as long as readers keep up, a slow reader holds up its own slot
 * only, and memory is bounded by the ring whatever the size of the data.
 *
 * Nothing here allocates between staging_begin() and the end, and a piece costs one lock.
 *
 * Locks: the ring's own is a leaf but for the callbacks `pieces`; no driver call is made under it.
 */
#ifndef COPY_STAGING_H
#define COPY_STAGING_H

#include "driver/pinned/pinned.h"

/* Most copies that one slot is submitted as. */
#define STAGING_COPIES_MAX 1024u

/* Most slots of a ring. */
#define STAGING_SLOTS_MAX 16u

struct staging;

struct staging_shape {
    size_t slot_bytes;   /* a multiple of the base page */
    unsigned slot_count; /* from 1 to STAGING_SLOTS_MAX */
};

/*
 * A ring for a device: the one that was kept for it, if that has this shape, or a new one, whose
 * pages are filled by so many threads. A ring that was kept is not asked whether its device still
 * answers: its first copy says so, and a ring that failed is not kept. Not shared: who asks while a
 * ring is in use gets another. UNSUPPORTED if host memory cannot be pinned for the device.
 */
raffia_status staging_open(struct driver_device device, struct staging_shape shape,
                           unsigned threads, struct staging **ring_p);

/* Whether staging_open() would find a ring of this shape: then it takes no more memory. */
bool staging_is_kept(struct driver_device device, struct staging_shape shape);

/* Ends the use of a ring. It is kept for the next, unless it failed or another is kept already. No
 * reader may be left in it. NULL is ignored. */
void staging_close(struct staging *ring);

/* Gives back every ring that is kept; rings in use are none of them. */
void staging_release_kept(void);

/* What is to be moved. The functions are called in any reader's thread, for each stretch once. */
struct staging_work {
    size_t stretch_count;

    /* How many pieces a stretch is filled in; at least 1. Called under the ring's lock. */
    unsigned (*pieces)(void *context, size_t stretch);

    /* Lists where the bytes of a full slot go; returns the number, at most STAGING_COPIES_MAX. */
    size_t (*copies)(void *context, size_t stretch, const unsigned char *slot,
                     struct driver_copy copies[static STAGING_COPIES_MAX]);

    void *context;

    /* The copies of a stretch are done: its bytes are there. Called under the ring's lock; may be
     * NULL. */
    void (*done)(void *context, size_t stretch);
};

/* Starts a sequence, with so many readers in the ring from now on, of which each has to leave once,
 * whether it came to take anything or not. The ring must be idle; `work` is copied. */
void staging_begin(struct staging *ring, const struct staging_work *work, unsigned readers);

/* A reader uses the ring no more. The last one of all waits for all copies, whatever went wrong
 * before, and returns what went wrong with them. */
raffia_status staging_leave(struct staging *ring);

struct staging_slot;

/* A piece to be filled by the reader who took it. */
struct staging_piece {
    struct staging_slot *slot;
    unsigned char *memory; /* the slot's first byte */
    size_t stretch;
    unsigned number; /* of the piece in the stretch */
};

/* Takes a piece, waiting for a slot if need be. *got_p is false when there is no more, or the ring
 * was stopped. A failure stops the ring. */
raffia_status staging_take(struct staging *ring, struct staging_piece *piece, bool *got_p);

/* The piece is filled. Submits the copies if it was the slot's last; a failure stops the ring. */
raffia_status staging_put(struct staging *ring, const struct staging_piece *piece);

/* Lets nobody take anything more, and wakes who waits. Pieces need not be put any more. */
void staging_stop(struct staging *ring);

/* Called with consecutive bytes of what is read back. */
typedef raffia_status (*staging_visitor)(void *context, const unsigned char *bytes, size_t count);

/* Copies device memory back, a slot's worth at a time, and shows it to the visitor. Several threads
 * may read at once, each through a slot of its own. The ring must have no work. */
raffia_status staging_read_back(struct staging *ring, const unsigned char *from, size_t bytes,
                                staging_visitor visit, void *context);

struct staging_stats {
    struct staging_shape shape;
    size_t bytes; /* of memory */
    enum pinned_way way;
    raffia_page_offer page;
    double build_seconds; /* 0: it was kept from before */
    double wait_seconds;  /* no slot was free, or readers were done, and copies were waited for */
    uint64_t copies;      /* submitted since staging_begin() */
    uint64_t bytes_copied;
};

void staging_query(struct staging *ring, struct staging_stats *stats);

#endif
