/*
 * Reading tensors back from memory that the CPU cannot touch.
 */
#ifndef LOAD_READ_BACK_H
#define LOAD_READ_BACK_H

#include "copy/staging.h"
#include "load/model.h"

/* Whether load_ring_open() would find a ring that is kept. */
bool load_ring_is_kept(struct driver_device device, const struct load_shape *shape);

/*
 * Opens a ring of the shape for a device. Where there is no memory for it, it makes do with fewer
 * slots, and *shape says how many.
 */
raffia_status load_ring_open(struct driver_device device, struct load_shape *shape,
                             struct staging **ring_p);

#endif
