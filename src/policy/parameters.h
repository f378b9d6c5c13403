/*
 * What policy goes by on one device: the process's settings, and before them the rule for its model
 * (SPEC B3, B4).
 */
#ifndef POLICY_PARAMETERS_H
#define POLICY_PARAMETERS_H

#include <raffia/device.h>

struct policy_parameters {
    size_t threshold;    /* larger requests use huge pages; RAFFIA_NONE: none do for their size */
    size_t page_size;    /* the largest pages to try */
    double pool_share;   /* of the device's memory, for a default pool */
    size_t pool_maximum; /* cap of a default pool */
};

/* Reads the settings. Cannot fail: a bad one was warned of, and its default is used. */
void policy_parameters_for(const raffia_device_info *device, struct policy_parameters *parameters);

#endif
