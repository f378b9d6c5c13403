/*
 * Choosing the evidence for page sizes.
 */
#ifndef DRIVER_HOST_VERIFY_H
#define DRIVER_HOST_VERIFY_H

#include "driver/host/chunk.h"

/* Evidence for a chunk just mapped at `at`. Hugetlb: the file system of its memfd says the page
 * size of each of its pages, and none can differ. */
void host_read_chunk_pages(const struct host_chunk *chunk, const void *at,
                           struct driver_page_evidence *evidence);

#endif
