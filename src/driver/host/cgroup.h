/*
 * What control groups allow this process, version 1, version 2 and both at once.
 */
#ifndef DRIVER_HOST_CGROUP_H
#define DRIVER_HOST_CGROUP_H

#include "driver/host/procfile.h"

/* The tightest limit among the process's own group and its ancestors: the one with the least room.
 */
struct host_limit {
    uint64_t limit;           /* bytes; HOST_UNLIMITED if there is none */
    uint64_t usage;           /* bytes, without file cache that the kernel would give up */
    char path[HOST_PATH_MAX]; /* the file that holds the limit; "" if there is none */
};

/* Bytes left below the limit. */
uint64_t host_limit_room(const struct host_limit *limit);

/* Ordinary memory (hugetlb pages are usually not part of it). */
void host_memory_limit(struct host_limit *limit);

/* Hugetlb pages of one size: `fault` is checked when a page is touched (SIGBUS), `reservation` when
 * memory is mapped (ENOMEM). */
void host_hugetlb_limits(size_t page_size, struct host_limit *fault,
                         struct host_limit *reservation);

#endif
