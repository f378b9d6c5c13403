/*
 * Reading memory so that nearly every read needs another translation: one line of each 4 KiB page,
 * in random order.
 *
 * A random read of more memory than the caches hold pays for the line, which takes the longest, and
 * for the translation, which is done meanwhile for other reads: the pages can hardly be told apart.
 * Of a few thousand pages spread over the memory the lines stay in the caches, while their
 * translations are too many for the TLB: what is left is what translating costs.
 */
#ifndef CLI_TLB_PROBE_H
#define CLI_TLB_PROBE_H

#include <raffia/base.h>
#include <raffia/status.h>

/* The pages that the probe steps over, whatever lies behind the memory. */
#define PROBE_PAGE ((size_t)4096)

/* What the caches hold of a page that is read. */
#define PROBE_LINE ((size_t)64)

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
/* Chooses one page of each of `count` equal parts of the memory, `count` being at most `pages`, and
 * puts them in random order, always the same. */
void probe_spread_make(uint32_t *chosen, size_t count, size_t pages);

/* Reads one word of each of the chosen pages in turn, `reads` in all. As probe_read(), the places
 * do not depend on what is read. */
uint64_t probe_read_chosen(const unsigned char *memory, const uint32_t *chosen, size_t count,
                           size_t reads);

/* Makes the pages' lines one ring in random order, always the same: each word holds the offset of
 * the next. `order` is room for the number of each page. */
void probe_chain_make(unsigned char *memory, size_t pages, uint32_t *order);

/* Most chains at once. */
#define PROBE_CHAINS_MAX 8

/* Offsets of the ring of probe_chain_make(), whose `order` this is, that are as far apart as can
 * be along the ring. */
void probe_chain_starts(const uint32_t *order, size_t pages, size_t *places, unsigned count);

/* Follows the ring from each of 1, 2, 4 or 8 places on, side by side: in each chain a read has to
 * wait for the one before. `places` become where it ends. */
void probe_chase(const unsigned char *memory, size_t *places, unsigned count, size_t steps);

#endif
