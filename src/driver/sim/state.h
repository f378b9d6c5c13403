/*
 * The simulated device from the inside: its records, and the one lock that guards all of them.
 *
 * Locking: sim_lock guards everything here, of every device and stream, and there is no other lock.
 * A verb takes it in sim_enter() and drops it in sim_leave(). Waiting is on sim_changed alone,
 * which is broadcast whenever work is submitted, done or may begin. Work itself (the copying, the
 * kernel) runs without the lock: what it touches stays mapped because chunk_unmap() and mem_free()
 * refuse memory that an operation on any queue touches. Since a kernel of a test may call anything,
 * nothing of a caller's is called under the lock.
 *
 * Fork: the lock is taken only after sim_is_forked() was seen to be false.
 */
#ifndef DRIVER_SIM_STATE_H
#define DRIVER_SIM_STATE_H

#include "core/error.h"
#include "driver/driver.h"
#include "driver/sim/sim.h"
#include "driver/sim/spans.h"

#include <pthread.h>

struct sim_stream;

struct sim_device {
    int index;
    struct sim_config config; /* defaults filled in; the misbehaviours count down */
    bool poisoned;
    bool abandoned; /* being reset: queued work is dropped */

    /* Addresses. */
    struct sim_spans ranges;        /* owner: the twin, for memory that is hidden */
    struct sim_spans mappings;      /* owner: struct sim_mapping */
    struct sim_spans blocks;        /* mem_alloc(); owner: the twin of a block that is hidden */
    struct sim_spans graves;        /* blocks freed lately; owner: their age */
    struct sim_spans registrations; /* host_register() */
    struct sim_spans host_blocks;   /* host_alloc() */
    struct sim_spans pool_blocks;   /* memory of pools; owner: struct sim_pool_block */

    /* Objects, by the address of their record. */
    struct sim_spans chunks;
    struct sim_spans events;
    struct sim_spans modules;
    struct sim_spans pools;

    /* Memory. */
    size_t used_bytes;                         /* of the capacity; chunks, blocks and pools */
    size_t chunk_bytes;                        /* of them, chunks */
    size_t offer_bytes[RAFFIA_PAGE_SIZES_MAX]; /* of them, by entry of config.pages */
    bool store_open;
    int store;          /* memfd that holds every chunk that cannot be exported */
    size_t store_end;   /* offsets below were given out; none is given out twice while open */
    size_t graves_made; /* for their age */

    /* Order. A handle is the address of its slot, so that a new stream gets the handle of a dead
     * one as soon as there is one: with real devices it happens when one can least use it. */
    struct sim_stream *slots[SIM_STREAMS_MAX];
    struct sim_stream *default_stream; /* made when first used */
    struct sim_stream *all;            /* every stream whose worker runs */
    uint64_t next_sequence;

    size_t misuses;
    char first_misuse[256];
};

extern pthread_mutex_t sim_lock;
extern pthread_cond_t sim_changed;
extern struct sim_device sim_devices[SIM_DEVICES_MAX];
extern int sim_device_count;

/* Whether this process is a child of the one that uses the devices. The first to ask owns them. */
bool sim_is_forked(void);
/* Makes the calling process, a forked child, the owner. */
void sim_adopt(void);

/* Takes the lock and sees to it that the devices have their defaults. Pre: not forked. */
void sim_acquire(void);
void sim_leave(void);

/* Sleeps. Pre: the lock is not held. */
void sim_pause(unsigned microseconds);

/* Gives back all memory and addresses of a device. Pre: its streams, events and modules are gone.
 */
void sim_device_clear(struct sim_device *device);

/* The next sim_acquire() gives every device its defaults again. */
void sim_forget_configuration(void);

/* The configuration with its defaults filled in. */
struct sim_config sim_config_whole(const struct sim_config *config);

/* Records a misuse and returns its status. The sentence says what was done and why it is wrong. */
raffia_status sim_misuse(struct sim_device *device, const char *format, ...) RAFFIA_PRINTF(2, 3);
#ifdef __clang_analyzer__ /* see core/error.h */
#define sim_misuse(...) core_failure(sim_misuse(__VA_ARGS__))
#endif

/* Puts the bare reservation back where something was mapped. */
raffia_status sim_make_bare(void *at, size_t bytes);

/* Takes bytes of the device's capacity; OUT_OF_MEMORY. Giving them back cannot fail. */
size_t sim_free_memory(const struct sim_device *device);
raffia_status sim_take_memory(struct sim_device *device, size_t bytes);
void sim_give_memory(struct sim_device *device, size_t bytes);

#endif
