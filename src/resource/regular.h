/*
 * The regular path: what the device's ordinary allocator gives, at any alignment.
 */
#ifndef RESOURCE_REGULAR_H
#define RESOURCE_REGULAR_H

#include "driver/driver.h"
#include "resource/blocks.h"

/* `bytes` is at least 1, `alignment` a power of two. OUT_OF_MEMORY, once idle chunks of the
 * device's pools were given back; OVERFLOW. No lock may be held. */
raffia_status resource_regular_alloc(struct driver_device device, size_t bytes, size_t alignment,
                                     struct resource_block *block);

raffia_status resource_regular_free(struct driver_device device,
                                    const struct resource_block *block);

#endif
