/*
 * Small copies between pinned and device memory, many at once, and the ways to make them that are
 * timed beside each other.
 */
#ifndef CLI_BENCH_COPY_WAYS_H
#define CLI_BENCH_COPY_WAYS_H

#include "cli/bench_device.h"
#include "cli/bench_report.h"
#include "copy/copy.h"

/* Most copies at once. */
#define COPY_LIST_MAX ((size_t)4096)

/* The same copies, as each way wants them. */
struct copy_list {
    struct bench_device *device;
    struct copy_device on;
    raffia_copy_element *copies;
    struct driver_copy *listed;
    size_t count;
    size_t bytes;     /* of each */
    size_t by_kernel; /* of the last time, by a way that tells */
};

/* Close it in any case. */
raffia_status copy_list_open(struct bench_device *device, struct copy_list *list);
void copy_list_close(struct copy_list *list);

/* Copies lie twice their size apart, so that nobody can join them. */
void copy_list_fill(struct copy_list *list, void *to, const void *from, size_t count, size_t bytes);

/* Submits all of them. */
typedef raffia_status (*copy_way)(struct copy_list *list);

raffia_status copy_way_loop(struct copy_list *list);  /* one call of the driver for each */
raffia_status copy_way_batch(struct copy_list *list); /* the driver's batched copy */

/* Times them from the first submission until all is done, and adds that to the row; NULL: none. */
raffia_status copy_list_sample(struct copy_list *list, copy_way way, struct bench_row *row);

#endif
