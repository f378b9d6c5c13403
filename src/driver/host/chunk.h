/*
 * Physical chunks of the host driver.
 */
#ifndef DRIVER_HOST_CHUNK_H
#define DRIVER_HOST_CHUNK_H

#include "driver/driver.h"

#include <stdatomic.h>

/*
 * Hugetlb chunks, and all that are remappable or exportable, are a memfd: the memory belongs to the
 * file and is mapped shared, so a fork copies nothing. The others are anonymous memory, which comes
 * into being with the mapping and goes with it.
 */
struct host_chunk {
    struct driver_chunk_spec spec;
    int fd; /* -1: anonymous */
    atomic_uint mappings;
};

static inline struct host_chunk *host_chunk_of(driver_chunk handle)
{
    return (struct host_chunk *)(void *)handle;
}

/* Bytes of memory the chunk holds already, whoever put them there. */
size_t host_chunk_held(const struct host_chunk *chunk);

#endif
