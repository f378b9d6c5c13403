/*
 * The kernel that gathers and scatters: as PTX for a GPU (kernels/copy.ptx), as a C function for
 * the simulated device. Loaded for a device when it is first needed there, and kept.
 */
#ifndef COPY_KERNEL_H
#define COPY_KERNEL_H

#include "driver/driver.h"

#include <raffia/resource.h>

/* Most bytes of a piece, each of which is a warp's work; kernels/copy.ptx has it in it. */
#define COPY_PIECE ((size_t)4096)

/* Most pieces of a launch, so that its threads can be counted. */
#define COPY_PIECES_MAX ((size_t)1 << 24)

/* An entry of the kernel's table. */
struct copy_piece {
    uint64_t to, from, bytes;
};

/* UNSUPPORTED where the device's driver runs no code, or refused the kernel before. */
raffia_status copy_kernel_find(struct driver_device device, driver_function *kernel_p);

/* Copies the pieces of a table, 1 to COPY_PIECES_MAX. It is pinned or device memory, and stays
 * until the stream got there. */
raffia_status copy_kernel_gather(struct driver_device device, driver_stream stream,
                                 driver_function kernel, const struct copy_piece *table,
                                 size_t count);

/* One copy, of 1 to COPY_PIECES_MAX pieces; no table is needed. */
raffia_status copy_kernel_one(struct driver_device device, driver_stream stream,
                              driver_function kernel, const struct driver_copy *copy);

/* Memory that is pinned for the device, for tables, where the process's pinned resource is for
 * another device. Made when first asked for, and kept beside the kernel, which must have been found
 * before. The owner is the caller's. */
raffia_status copy_kernel_tables(struct driver_device device, raffia_resource **resource_p);

#endif
