/*
 * Owners of resources that are not this library's.
 */
#ifndef RESOURCE_OWNER_H
#define RESOURCE_OWNER_H

#include "resource/resource.h"

/* An owner that keeps nothing alive: what the ref points at must outlive it. */
raffia_status owner_borrow(raffia_resource_ref ref, raffia_resource **resource_p);

/* What an owner forwards to; any other ref as it is. Whoever holds the owner, and counts his own
 * blocks, need not go through it. */
raffia_resource_ref owner_target(raffia_resource_ref ref);

#endif
