/*
 * Copies from the inside: a batch with the limit below which a kernel makes them.
 */
#ifndef COPY_COPY_H
#define COPY_COPY_H

#include "driver/driver.h"

#include <raffia/copy.h>

/* Whose streams and memory, and who copies where no kernel does. */
struct copy_device {
    struct driver_device device;
    struct driver_device copier; /* the pinned device, which cuts copies where registered pieces
                                    end; or the device */
    bool runs_kernels;
};

raffia_status copy_device_open(const char *name, struct copy_device *on);

/* threshold.c. The limit in force for `count` copies at once; under "auto" the first question
 * measures. 0: none is made by a kernel. */
size_t copy_threshold(const struct copy_device *on, driver_stream stream, size_t count);

/* Makes the copies smaller than `limit` by the kernel, as far as it can be used. *by_kernel_p is
 * how many it made; may be NULL. */
raffia_status copy_batch_below(const struct copy_device *on, driver_stream stream,
                               const raffia_copy_element *copies, size_t count, size_t limit,
                               const raffia_memory_resources *resources, size_t *by_kernel_p);

/* Whether the stream is being recorded; false on a device without streams. */
raffia_status copy_is_capturing(const struct copy_device *on, driver_stream stream,
                                bool *capturing_p);

/* table.c. Memory for the kernel's table, that the CPU can write. */
struct copy_table {
    raffia_resource *owner; /* of `from`, if it is the pinned resource */
    raffia_resource_ref from;
    struct copy_piece *pieces;
    size_t room;
};

/* False if there is none to be had; nothing is then recorded as an error. */
bool copy_table_take(const struct copy_device *on, driver_stream stream,
                     const raffia_memory_resources *resources, size_t pieces,
                     struct copy_table *table);
/* In the order of the stream. */
void copy_table_give(driver_stream stream, struct copy_table *table);

#endif
