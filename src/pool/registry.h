/*
 * Every pool of the process, for what concerns them all: memory that one holds idle while another
 * is about to fail, checks at exit, metrics.
 */
#ifndef POOL_REGISTRY_H
#define POOL_REGISTRY_H

#include "driver/driver.h"

#include <raffia/pool.h>

/* Lists a pool that is complete. One from before a fork() is listed, and is passed over. */
void pool_registry_add(raffia_pool *pool);

/* Takes a pool out before it is torn down; one that was never listed may be. False while it is
 * visited: the last visitor to leave then calls pool_tear_down(), and the caller must not. */
bool pool_registry_remove(raffia_pool *pool);

/*
 * Visits the pools of this process until the visitor returns false, the newest first. No lock is
 * held during a visit, and none may be held by the caller: the visitor may take the pool's locks.
 * The pool cannot go away meanwhile, but its last owner may have left. A pool that is made
 * meanwhile is not visited.
 */
typedef bool (*pool_registry_visitor)(void *context, raffia_pool *pool);
void pool_registry_for_each(pool_registry_visitor visitor, void *context);

/* Somebody who is about to fail for want of memory. */
struct pool_need {
    struct driver_device device;
    raffia_page_kind kind; /* of the memory that is short */
    size_t page_size;
    size_t bytes;
    const raffia_pool *spared; /* asked already; may be NULL */
    /* What the device said of itself a moment ago; NULL: it is asked. */
    const raffia_device_info *info;
};

/*
 * Gives idle chunks of the device's pools back until `bytes` have gone, from pools that can help:
 * reserved huge pages are short by themselves, everything else comes out of the same memory. None
 * go where the need is larger than all that could be had. No lock may be held. Keeps the last
 * error. Returns the bytes given back.
 */
size_t pool_registry_trim(const struct pool_need *need);

/* Bytes in idle chunks of all pools of the device. No lock may be held. */
size_t pool_registry_idle_bytes(struct driver_device device);

#endif
