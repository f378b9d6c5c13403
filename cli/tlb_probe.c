#include "cli/tlb_probe.h"

#define LINE_BYTES 64u

/* Knuth's multiplier for 64 bits; the high bits of what it makes are as good as random. */
#define MULTIPLIER UINT64_C(6364136223846793005)
#define INCREMENT  UINT64_C(1442695040888963407)

/* 2^64 divided by the golden ratio: spreads neighbours apart. */
#define SPREAD UINT64_C(0x9e3779b97f4a7c15)

size_t probe_offset(size_t page)
{
    const unsigned line_bits = 6; /* 64 lines a page */
    size_t line = (size_t)((uint64_t)page * SPREAD >> (64 - line_bits));
    return page * PROBE_PAGE + line * LINE_BYTES;
}

/* A number below `bound`, which fits into 32 bits. */
static size_t next_below(uint64_t *state, size_t bound)
{
    *state = *state * MULTIPLIER + INCREMENT;
    return (size_t)((*state >> 32) * (uint64_t)bound >> 32);
}

uint64_t probe_read(const unsigned char *memory, size_t pages, size_t reads, uint64_t seed)
{
    uint64_t state = seed, sum = 0;
    for (size_t i = 0; i < reads; i++) {
        const void *at = memory + probe_offset(next_below(&state, pages));
        sum += *(const uint64_t *)at;
    }
    return sum;
}

void probe_ring_order(uint32_t *order, size_t pages)
{
    for (size_t i = 0; i < pages; i++)
        order[i] = (uint32_t)i;
    /* Sattolo's shuffle: what it leaves is one ring through all. */
    uint64_t state = 1;
    for (size_t i = pages - 1; i > 0 && pages > 1; i--) {
        size_t j = next_below(&state, i);
        uint32_t page = order[i];
        order[i] = order[j];
        order[j] = page;
    }
}

void probe_chain_make(unsigned char *memory, size_t pages, uint32_t *order)
{
    probe_ring_order(order, pages);
    for (size_t i = 0; i < pages; i++) {
        void *at = memory + probe_offset(i);
        *(uint64_t *)at = probe_offset(order[i]);
    }
}

size_t probe_chase(const unsigned char *memory, size_t offset, size_t steps)
{
    for (size_t i = 0; i < steps; i++) {
        const void *at = memory + offset;
        offset = (size_t)(*(const uint64_t *)at);
    }
    return offset;
}
