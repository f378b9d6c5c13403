/*
 * The default pinned resource: a pool, and beside it blocks that are pinned for themselves (SPEC
 * A6).
 */
#ifndef RESOURCE_PINNED_DEFAULT_H
#define RESOURCE_PINNED_DEFAULT_H

#include "resource/resource.h"

#include <raffia/pinned.h>

/* Multiples of 256; a maximum of 0 means no pool. */
struct pinned_sizes {
    size_t initial, maximum;
};

/* By the settings, `asked` bytes (0: nothing was asked for) and the default device. */
raffia_status pinned_sizes_find(size_t asked, struct pinned_sizes *sizes);

/* On the first pinned device, or where there is none on the host. */
raffia_status pinned_default_make(const struct pinned_sizes *sizes, raffia_resource **resource_p);

/* Of one that this copy of the library made: UNSUPPORTED otherwise. */
raffia_status pinned_default_query(raffia_resource_ref ref, raffia_pinned_info *info);

#endif
