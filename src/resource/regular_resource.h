/*
 * Regular memory as a resource, for resources that are built on it.
 */
#ifndef RESOURCE_REGULAR_RESOURCE_H
#define RESOURCE_REGULAR_RESOURCE_H

#include "resource/resource.h"

/* The device's own memory, one request to its driver for each block. */
raffia_status resource_regular_make(struct driver_device device, raffia_resource **resource_p);

/* The pinned device that belongs to a device; UNSUPPORTED where there is none. NULL: the first. */
raffia_status resource_pinned_open(const char *device, struct driver_device *device_p);

#endif
