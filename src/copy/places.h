/*
 * Which side of a copy is what, as far as the device's driver knows; see find_memory() in driver.h.
 * The last answers are kept: the copies of a batch are from and to a few blocks as a rule, and a
 * question costs more than a copy of a kernel.
 */
#ifndef COPY_PLACES_H
#define COPY_PLACES_H

#include "driver/driver.h"

#define COPY_PLACES_KEPT 8u

/* All zero but for the device is empty. Good for one call: memory may go afterwards. */
struct copy_places {
    struct driver_device device;
    struct driver_memory known[COPY_PLACES_KEPT];
    unsigned known_count, next;
    struct driver_memory from, to; /* the stretches in which the last copy that suited began */
};

/* Whether all of some bytes lie there. */
static inline bool copy_place_holds(const struct driver_memory *place, const void *at, size_t bytes)
{
    const uintptr_t offset = (uintptr_t)at - place->start;
    return offset < place->bytes && bytes <= place->bytes - offset;
}

/* Whether one side is all pinned host memory and the other all the device's. */
bool copy_places_suit(struct copy_places *places, const struct driver_copy *copy);

/* The kind of all bytes from the address on; UNKNOWN if they are of several. */
enum driver_memory_kind copy_places_kind(struct copy_places *places, const void *at, size_t bytes);

#endif
