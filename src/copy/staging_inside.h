/*
 * A ring from the inside.
 */
#ifndef COPY_STAGING_INSIDE_H
#define COPY_STAGING_INSIDE_H

#include "copy/staging.h"
#include "core/error.h"

#include <pthread.h>
#include <stdatomic.h>

struct staging_slot {
    struct staging_slot *next; /* in the list of free slots, or of those being copied */
    unsigned char *memory;
    driver_event event; /* NULL on a device without streams */
    size_t stretch;
    unsigned piece_count, pieces_taken; /* guarded by the ring's lock */
    atomic_uint pieces_left;            /* to be put */
    struct driver_copy copies[STAGING_COPIES_MAX];
};

struct staging {
    struct driver_device device;
    int pinned_index;
    unsigned long generation; /* of the process; see core/process.h */
    struct staging_shape shape;
    struct pinned_memory memory;
    struct driver_device copier; /* the device; or the pinned one, which cuts copies where pieces
                                    end, if the memory is registered in more than one */
    bool ordered;                /* the device has streams */
    driver_stream stream;
    struct staging_slot *slots[STAGING_SLOTS_MAX];
    double build_seconds;

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    struct staging_work work;
    size_t next_stretch;
    struct staging_slot *filling; /* the slot whose pieces are being handed out, or NULL */
    bool opening;                 /* somebody is looking for the next one */
    struct staging_slot *free;
    struct staging_slot *copying, *copying_last; /* in order of submission */
    unsigned entered;
    bool stopped;
    bool failed; /* a driver's call did: the ring is not kept */
    double wait_seconds;
    uint64_t copies, bytes_copied;
};

/* staging_ring.c */
raffia_status staging_build(struct driver_device device, struct staging_shape shape,
                            unsigned threads, struct staging **ring_p);
/* Pre: nothing is under way. */
void staging_destroy(struct staging *ring);

/* Waits until nothing is under way; then all slots are free. */
raffia_status staging_drain(struct staging *ring);

#endif
