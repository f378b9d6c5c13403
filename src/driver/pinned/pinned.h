/*
 * The pinned driver: host memory that a GPU can copy from and to directly.
 *
 * A decorator. Memory is the host driver's: chunks in huge pages, filled and read back; mapping one
 * also registers it with the GPU's driver. Streams, events and copies are the GPU's. There is one
 * device for each GPU that was asked for, "pinned:" and the GPU's name.
 *
 * Registering may be refused (locked-memory limits, tables too large for one call). The ladder then
 * is: smaller pieces; memory that the GPU's driver allocates itself, where the address may be its
 * choice; memory that is not pinned, which copies still take, though slower. Every step is counted.
 */
#ifndef DRIVER_PINNED_PINNED_H
#define DRIVER_PINNED_PINNED_H

#include "driver/driver.h"

extern const struct driver pinned_driver;

/* Devices there can be: GPUs that memory was pinned for in this process. */
#define PINNED_DEVICES_MAX 64

/* The index of the pinned device for a GPU, which is made when first asked for and stays.
 * UNSUPPORTED if host memory cannot be registered with it. */
raffia_status pinned_open(struct driver_device gpu, int *index_p);

/* The GPU of a pinned device. */
struct driver_device pinned_gpu(int index);

/* How memory is pinned: the steps of the ladder. */
enum pinned_way {
    PINNED_REGISTERED,
    PINNED_IN_SMALLER_PIECES,
    PINNED_BY_DRIVER,
    PINNED_PAGEABLE,
    PINNED_WAY_COUNT,
};

/* "registered", ...; static storage. */
const char *pinned_way_name(enum pinned_way way);

/* What exists now. */
void pinned_query(int index, raffia_pinned_usage *usage);

/* Host memory registered piece by piece, from its start. */
struct pinned_registration {
    char *at;
    size_t bytes;
    size_t piece_bytes;
    size_t registered; /* of `bytes`; whole pieces but for the last */
};

/* The registered piece that contains an address, of whatever device; false if there is none. */
bool pinned_piece_find(const void *at, uintptr_t *start_p, size_t *bytes_p);

/* Memory of its own address range, or the GPU driver's. */
struct pinned_memory {
    void *at;
    size_t bytes; /* as asked for */
    enum pinned_way way;
    raffia_page_offer page; /* of the host's memory; REGULAR and the base page if BY_DRIVER */
    driver_chunk chunk;     /* NULL if BY_DRIVER */
    size_t range_bytes;
    struct pinned_registration registration;
};

/*
 * Takes `bytes` in the first kind of page of `rungs` that can be had, pinned as well as it can be.
 * Steps down are counted. Fails only for want of memory, or if the GPU cannot be used at all.
 */
raffia_status pinned_take(int index, const raffia_page_offer *rungs, size_t rung_count,
                          size_t bytes, unsigned threads, struct pinned_memory *memory);

/* Gives it back. No copy may be under way. A failure leaves the memory to be given back again. */
raffia_status pinned_give(int index, struct pinned_memory *memory);

#endif
