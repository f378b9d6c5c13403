/*
 * Reading memory so that nearly every read needs another translation: one line of each 4 KiB page,
 * in random order.
 */
#ifndef CLI_TLB_PROBE_H
#define CLI_TLB_PROBE_H

#include <raffia/base.h>
#include <raffia/status.h>

/* The pages that the probe steps over, whatever lies behind the memory. */
#define PROBE_PAGE ((size_t)4096)

/* Offset of the line of a page; which line of the page it is varies, so that the lines do not
 * crowd into a few sets of the caches. */
size_t probe_offset(size_t page);

/*
 * Reads one word each of `reads` pages out of `pages`. The places do not depend on what is read, so
 * the processor has several under way. The result depends on all words read.
 */
uint64_t probe_read(const unsigned char *memory, size_t pages, size_t reads, uint64_t seed);

/* Fills in which page comes after each, so that all are one ring in random order, always the same.
 * At least one page. */
void probe_ring_order(uint32_t *order, size_t pages);

/* Makes the pages' lines one ring in random order, always the same: each word holds the offset of
 * the next. `order` is room for the number of each page. */
void probe_chain_make(unsigned char *memory, size_t pages, uint32_t *order);

/* Follows the ring from an offset on: each read has to wait for the one before. Returns where it
 * ends. */
size_t probe_chase(const unsigned char *memory, size_t offset, size_t steps);

#endif
