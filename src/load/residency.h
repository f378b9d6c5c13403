/*
 * How much of a stretch of a file is in the page cache.
 */
#ifndef LOAD_RESIDENCY_H
#define LOAD_RESIDENCY_H

#include <stddef.h>
#include <stdint.h>

/*
 * The share in the page cache, from 0 to 1, or a negative number where the kernel tells neither by
 * cachestat(2) nor by reads that must not wait. The second is an estimate from a few places, and
 * takes a disk so fast that it answers before the read returns for the cache. mincore(2) is no
 * help: it wants a mapping, and answers only for files one may write.
 */
double load_cached_share(int fd, uint64_t offset, size_t bytes);

#endif
