/* The calls of raffia/umd.h on simulated devices, and what every test asserts at its end. */
#ifndef RESOURCE_UMD_FIXTURE_H
#define RESOURCE_UMD_FIXTURE_H

#include "driver/sim/sim.h"

#include <raffia/umd.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

/* Page size of the simulated devices. */
#define PAGE (2 * MIB)

/* A cmocka setup: the driver is `sim`, with two devices of 1 GiB; settings are the defaults. */
int set_up_umd(void **state);

/* A cmocka teardown: nothing is left on any device, and nothing was misused. */
int tear_down_umd(void **state);

PoolStatus status_of(int device_id);

void must_init(int device_id, size_t bytes);
void must_destroy(int device_id);

/* Allocates, writes to both ends, and returns the address. */
void *must_get(int device_id, size_t bytes, size_t align);
void must_give(int device_id, void *address);

/* Whether the address lies in the device's pool. */
bool is_in_pool(int device_id, const void *address);

/* The allocation fails with this status. */
void refused(raffia_status expected, int device_id, size_t bytes, size_t align);

#endif
