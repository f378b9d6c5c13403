/*
 * What a resource that has fixed-size ones beside it must know of them.
 */
#ifndef RESOURCE_FIXED_SIZE_RESOURCE_H
#define RESOURCE_FIXED_SIZE_RESOURCE_H

#include "resource/resource.h"

/* Whether the address lies in a chunk of a fixed-size resource; false for any other resource. */
bool resource_fixed_size_contains(raffia_resource_ref ref, const void *address);

#endif
