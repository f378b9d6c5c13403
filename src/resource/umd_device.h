/*
 * What the interface of raffia/umd.h keeps for each device: its pool, its record of regular blocks,
 * and the terms that requests are judged by.
 *
 * A device id is bound to a device while it has a pool, a block of regular memory or a call under
 * way; otherwise the next call binds it anew, by the settings of that moment.
 *
 * A device's lock is held for a few steps of bookkeeping, never during a call to a driver and never
 * while something is logged. Under it only pools' locks are taken, to count what is live and to
 * take or give back what is mapped.
 */
#ifndef RESOURCE_UMD_DEVICE_H
#define RESOURCE_UMD_DEVICE_H

#include "driver/driver.h"
#include "policy/parameters.h"
#include "resource/blocks.h"

#include <raffia/pool.h>

/* What a call goes by. Copied out under the lock; holds until umd_end(). */
struct umd_terms {
    struct driver_device device;
    raffia_pool *pool;     /* NULL: not built */
    bool on_purpose;       /* the pool was made by umd_huge_page_pool_init() */
    size_t unit;           /* its granule; before there is a pool, that of the pages to try */
    raffia_page_offer got; /* its pages; before there is a pool, the first ones to try */
    raffia_page_offer regular;
    raffia_pages_mode mode; /* of the process */
    struct policy_parameters parameters;
};

struct umd_device;

/* NOT_FOUND, or LIMIT for an id beyond what can be kept. */
raffia_status umd_find(int device_id, struct umd_device **device_p);

/*
 * The fast way (umd_fast.c), for requests without hints that the pool, which stands, can serve at
 * once. False: nothing was done; the long way does it, or says why not.
 */
bool umd_alloc_fast(int device_id, size_t bytes, size_t alignment, void **address_p);
bool umd_free_fast(int device_id, const void *address);

/* The mode that requests are judged by: a pool made on purpose asks for huge pages by itself. */
raffia_pages_mode umd_mode_for(const struct umd_terms *terms);

/* Starts a call that may make a pool or a block, after which umd_end() is due. NOT_FOUND, and what
 * the driver says. */
raffia_status umd_begin(struct umd_device *device, int device_id, struct umd_terms *terms);
void umd_end(struct umd_device *device);

/*
 * Between umd_begin() and umd_end(): makes the pool, of `pool_size` bytes (0: the default), and
 * updates the terms. One thread builds; others wait for it. Not on purpose: a pool that is there
 * already is a success, and after a failure some requests are refused at once before it is tried
 * again, unless `pages` is `on`. On purpose: BUSY if there is one.
 */
raffia_status umd_build(struct umd_device *device, uint64_t pool_size, bool on_purpose,
                        struct umd_terms *terms);

/* Between umd_begin() and umd_end(): puts a block of regular memory on record. */
raffia_status umd_record(struct umd_device *device, const struct resource_block *block,
                         bool is_fallback);

/* What an address may belong to. */
struct umd_owner {
    struct driver_device device;
    bool recorded; /* `block`, which was taken off the record, else maybe `pool` */
    struct resource_block block;
    raffia_pool *pool; /* retained for the caller, who releases it; may be NULL */
};

void umd_find_owner(struct umd_device *device, const void *address, struct umd_owner *owner);

/* Puts a block back that could not be freed. */
void umd_put_back(struct umd_device *device, const struct umd_owner *owner);

/* The pool, retained, or NULL, and the number of fallbacks. NOT_FOUND for the device. */
raffia_status umd_look(struct umd_device *device, int device_id, raffia_pool **pool_p,
                       uint64_t *fallbacks_p);

/* NOT_FOUND, BUSY. */
raffia_status umd_destroy(struct umd_device *device, int device_id);

#endif
