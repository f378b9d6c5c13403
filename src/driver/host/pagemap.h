/*
 * Reading back from the kernel which pages lie behind an address range of this process.
 *
 * Each function is one source of evidence and returns false where the kernel, or the rights of the
 * process, do not provide it. verify.c chooses.
 */
#ifndef DRIVER_HOST_PAGEMAP_H
#define DRIVER_HOST_PAGEMAP_H

#include <raffia/base.h>

/* Whether PAGEMAP_SCAN (Linux 6.7) is there. It needs /proc/self/pagemap, which a process that
 * changed its user id cannot open. */
bool host_pagemap_scan_works(void);

/* Bytes of the range that are mapped by whole page-directory entries: transparent or hugetlb. */
bool host_huge_bytes_by_scan(const void *at, size_t bytes, size_t *huge_p);

/*
 * The same from /proc/self/smaps. The kernel counts per mapping, and neighbouring mappings of one
 * kind are merged, so a range that shares its mapping with others gets the least number that the
 * count allows: never too much.
 */
bool host_huge_bytes_by_smaps(const void *at, size_t bytes, size_t *huge_p);

/* Page sizes of the mappings in a range, for hugetlb. */
struct host_mapped_sizes {
    size_t smallest;   /* 0 if nothing is mapped */
    size_t conforming; /* bytes in mappings whose pages are at least as large as expected */
    size_t covered;    /* bytes mapped at all */
};

/* From PROCMAP_QUERY (Linux 6.11), and from smaps, which walks all page tables of the process. */
bool host_mapped_sizes_by_query(const void *at, size_t bytes, size_t expected,
                                struct host_mapped_sizes *sizes);
bool host_mapped_sizes_by_smaps(const void *at, size_t bytes, size_t expected,
                                struct host_mapped_sizes *sizes);

#endif
