/*
 * The regular path: what the device's ordinary allocator gives, at any alignment.
 */
#ifndef RESOURCE_REGULAR_H
#define RESOURCE_REGULAR_H

#include "driver/driver.h"
#include "resource/blocks.h"

/* Something that takes `bytes` of the device's memory; OUT_OF_MEMORY if there are none. */
typedef raffia_status (*resource_taker)(void *context, size_t bytes, void **start_p);

/* Takes memory, and if there is none asks again once idle chunks of the device's pools were given
 * back. `what` is the kind of memory, for the refusal. No lock may be held. */
raffia_status resource_take_memory(struct driver_device device, const char *what, size_t bytes,
                                   resource_taker take, void *context, void **start_p);

/* What to ask a driver for so that `bytes` can be aligned; `alignment` is a power of two. OVERFLOW.
 */
raffia_status resource_add_slack(size_t bytes, size_t alignment, size_t *total_p);

/* The block for `bytes` in so many, slack included, that start where the driver says. */
struct resource_block resource_align_block(void *start, size_t total, size_t bytes,
                                           size_t alignment);

/* `bytes` is at least 1, `alignment` a power of two. OUT_OF_MEMORY, once idle chunks of the
 * device's pools were given back; OVERFLOW. No lock may be held. */
raffia_status resource_regular_alloc(struct driver_device device, size_t bytes, size_t alignment,
                                     struct resource_block *block);

raffia_status resource_regular_free(struct driver_device device,
                                    const struct resource_block *block);

#endif
