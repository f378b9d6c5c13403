/*
 * The host driver: this machine's own memory, in hugetlb, transparent or regular pages.
 */
#ifndef DRIVER_HOST_HOST_H
#define DRIVER_HOST_HOST_H

#include "driver/driver.h"

/* One device, "host", always there. */
extern const struct driver host_driver;

#endif
