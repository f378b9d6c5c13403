/*
 * The inside of the model: what its two files share.
 */
#ifndef SUPPORT_SPACE_MODEL_INSIDE_H
#define SUPPORT_SPACE_MODEL_INSIDE_H

#include "support/space_model.h"

#include <stdio.h>
#include <stdlib.h>

/* What a granule belongs to: nobody, or the block with this number. */
#define MODEL_ABSENT UINT32_MAX
#define MODEL_FREE   0u
#define MODEL_FIRST  1u /* of block numbers */
#define STALE_MAX    64

/* Of so few stretches of free space each is looked at by any request. */
#define FEW_STRETCHES 32

struct model_block {
    space_handle handle;
    uint32_t first, count; /* granules */
    size_t requested;
    enum space_state state;
};

struct space_model {
    struct space *space;
    size_t granule;
    uint32_t granules;
    uint32_t *owners;           /* of each granule */
    struct model_block *blocks; /* live ones first; their number is the place plus MODEL_FIRST */
    uint32_t block_count;
    space_handle stale[STALE_MAX];
    uint32_t stale_count;
    bool faults;
};

#define REQUIRE(what, ...)                                                                         \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            fprintf(stderr, "space model, line %d: ", __LINE__);                                   \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fprintf(stderr, "\n");                                                                 \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* First granule of the run of granules with the same owner, and the one behind its last. */
uint32_t space_model_run_start(const struct space_model *model, uint32_t granule);
uint32_t space_model_run_end(const struct space_model *model, uint32_t granule);

/* Asks for what is at an offset `inside` a granule, by its exact start and by containment. */
void space_model_compare_lookups(const struct space_model *model, uint32_t granule, size_t inside);

#endif
