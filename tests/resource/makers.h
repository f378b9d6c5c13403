/*
 * Every resource and adaptor, made the same way, so that one suite tests them all.
 */
#ifndef TESTS_RESOURCE_MAKERS_H
#define TESTS_RESOURCE_MAKERS_H

#include "support/cmocka.h"

#include <raffia/adaptors.h>
#include <raffia/memory_resources.h>
#include <raffia/resources.h>

#include <stdbool.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)
#define PIB ((size_t)1 << 50)

enum trait {
    CHECKS_FREES = 1u << 0,  /* foreign, second and interior frees are refused, and wrong sizes */
    NO_STREAMS = 1u << 1,    /* takes NULL only, unless its memory is pinned for the device */
    ZERO_IS_BLOCK = 1u << 2, /* passes 0 bytes on to what gives a block for it */
    FINDS = 1u << 3,         /* find, usable size and walk */
    STREAMS_ONLY = 1u << 4,  /* not to be had on a device without streams */
    ALIGNMENT_TAKES_ROOM = 1u << 5, /* one beyond 256 is looked at in a free */
    HOST_MEMORY = 1u << 6,          /* gives the machine's memory, whatever the device */
};

struct maker {
    const char *name;
    raffia_status (*make)(const char *device, raffia_resource **resource_p);
    size_t largest;       /* request that must succeed; larger ones may be refused */
    size_t largest_align; /* alignment that must succeed */
    unsigned traits;
};

extern const struct maker makers[];
extern const size_t maker_count;

/* The plain resource of a device, which must be to be had. */
raffia_resource *must_make_device(const char *device);

/* A resource as a program writes it, over the C library, with the four functions only. */
struct users_resource {
    size_t live; /* blocks */
    unsigned properties;
    raffia_status failure; /* answers this if it is set */
    int released;
};
raffia_resource_ref users_ref(struct users_resource *users);

#endif
