/*
 * Putting memory behind a mapped range, by several threads, with errors instead of signals.
 */
#ifndef DRIVER_HOST_FILL_H
#define DRIVER_HOST_FILL_H

#include "driver/host/claims.h"

/*
 * Fills every page of the range (MADV_POPULATE_WRITE), and settles the claim as it goes. Returns 0
 * or an errno: EFAULT where a touch would have raised SIGBUS, ENOMEM, EINVAL where the kernel has
 * no such call. Pages filled before the failure stay.
 */
int host_fill(void *at, size_t bytes, size_t page_size, unsigned threads, struct host_claim *claim);

/*
 * Asks the kernel to make one transparent huge page of each `page_size` bytes (MADV_COLLAPSE, Linux
 * 6.1). Where nothing lies yet, one base page of each is filled first, and the kernel needs to copy
 * no more than that. It may leave some as they are: the caller reads back.
 */
void host_collapse(void *at, size_t bytes, size_t page_size, unsigned threads,
                   struct host_claim *claim);

#endif
