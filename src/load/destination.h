/*
 * The memory a model is loaded into, whoever it belongs to.
 */
#ifndef LOAD_DESTINATION_H
#define LOAD_DESTINATION_H

#include "driver/driver.h"
#include "load/plan.h"

enum load_destination_kind {
    LOAD_DESTINATION_NONE = 0, /* nothing to load */
    LOAD_DESTINATION_OWN_POOL, /* made for this model */
    LOAD_DESTINATION_POOL,
    LOAD_DESTINATION_RESOURCE,
    LOAD_DESTINATION_MEMORY,
};

struct load_destination {
    enum load_destination_kind kind;
    raffia_pool *pool;         /* retained; for either kind of pool */
    raffia_resource *resource; /* an owner of the caller's */
    size_t alignment;          /* asked of the resource */
    unsigned char *base;       /* one block for all items, `bytes` large; or NULL and */
    unsigned char **blocks;    /* one block for each item of the plan */
    size_t block_count;
    size_t bytes; /* occupied, padding included */

    /* Memory that the CPU must not touch: bytes get there and back by copies of this device. */
    bool staged;
    struct driver_device device;
};

/* Finds room for the plan where the options say. All or nothing. */
raffia_status load_destination_make(const raffia_load_options *options,
                                    const struct load_plan *plan,
                                    struct load_destination *destination);

/* Where an item's first byte goes. */
unsigned char *load_destination_address(const struct load_destination *destination,
                                        const struct load_plan *plan, size_t item);

/* Page sizes of a pool's memory; leaves `pages` alone for other memory. */
void load_destination_report(const struct load_destination *destination, raffia_page_report *pages);

/* Gives blocks back to where they came from. A destination all zero is fine. */
void load_destination_free(struct load_destination *destination);

#endif
