/*
 * The initial resource of a device: regular memory, or by policy a pool of huge pages.
 */
#ifndef RESOURCE_INITIAL_H
#define RESOURCE_INITIAL_H

#include "resource/resource.h"

/* OUT_OF_HOST_MEMORY. Takes no memory of the device yet. */
raffia_status resource_initial_make(struct driver_device device, raffia_resource **resource_p);

#endif
