/*
 * The registry of current resources: one block of memory for the whole process, whichever copies of
 * the library are loaded.
 *
 * The block is a symbol of the kind STB_GNU_UNIQUE: the dynamic linker gives every copy the address
 * of the first definition, even where copies are opened with RTLD_LOCAL. A program that links the
 * library statically takes part if it exports the symbol
 * (-Wl,--export-dynamic-symbol=raffia_current_block).
 *
 * Copies may be of different versions. What they share is this layout and the first members of
 * struct raffia_resource; a copy that finds another layout keeps a block of its own, and warns.
 */
#ifndef RESOURCE_CURRENT_H
#define RESOURCE_CURRENT_H

#include "core/lock.h"
#include "resource/resource.h"

#include <raffia/current_resource.h>

#define CURRENT_LAYOUT 1u

struct current_entry {
    char device[RAFFIA_DEVICE_NAME_MAX]; /* "" after the last one in use */
    /* Each holds an owner, or is NULL. What is current is `set`, or without it `initial`. */
    _Atomic(struct raffia_resource *) set;
    _Atomic(struct raffia_resource *) initial;
};

struct current_block {
    atomic_uint layout; /* 0 until the first copy comes along */
    struct core_lock lock;
    /*
     * Under the lock pointers are exchanged and owners added, nothing else: no call to a resource
     * or a driver. Each change is one store, so that what a child inherits from the middle of one
     * is whole.
     */
    struct current_entry entries[RAFFIA_CURRENT_DEVICES_MAX];
};

/* All zero at first; see current_block.c. */
extern struct current_block raffia_current_block RAFFIA_API;

/*
 * One place of the registry, by key: a device's name, or what else there is one of per process.
 * NULL, with LIMIT recorded, if there are too many.
 */
struct current_entry *current_find(const char *key);

/* Makes an initial resource. */
typedef raffia_status (*current_maker)(void *argument, raffia_resource **resource_p);

/* Sees to it that there is an initial resource; *made_p, which may be NULL: it is this call's. */
raffia_status current_need_initial(struct current_entry *entry, current_maker make, void *argument,
                                   bool *made_p);

/* What is current, with an owner for the caller. There is an initial resource. */
raffia_resource *current_acquire(struct current_entry *entry);

/* The initial resource, or NULL; borrowed, and never replaced. */
raffia_resource *current_initial(struct current_entry *entry);

/* Sets a resource, which gets an owner more, or with NULL the initial one. The previous one is
 * handed over, or with NULL released. There is an initial resource. */
void current_exchange(struct current_entry *entry, raffia_resource *resource,
                      raffia_resource **previous_p);

/* Bytes set aside for it, for layouts to come. */
#define CURRENT_BLOCK_BYTES 8192

#endif
