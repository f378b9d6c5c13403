#include "cli/tlb_probe.h"

#include <assert.h>

/* Knuth's multiplier for 64 bits; the high bits of what it makes are as good as random. */
#define MULTIPLIER UINT64_C(6364136223846793005)
#define INCREMENT  UINT64_C(1442695040888963407)

/* 2^64 divided by the golden ratio: spreads neighbours apart. */
#define SPREAD UINT64_C(0x9e3779b97f4a7c15)

size_t probe_offset(size_t page)
{
    const unsigned line_bits = 6; /* 64 lines a page */
    size_t line = (size_t)((uint64_t)page * SPREAD >> (64 - line_bits));
    return page * PROBE_PAGE + line * PROBE_LINE;
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

void probe_spread_make(uint32_t *chosen, size_t count, size_t pages)
{
    assert(count <= pages);
    uint64_t state = 1;
    for (size_t i = 0; i < count; i++) {
        const size_t first = pages * i / count, end = pages * (i + 1) / count;
        chosen[i] = (uint32_t)(first + next_below(&state, end - first));
    }
    for (size_t i = count; i > 1; i--) {
        const size_t j = next_below(&state, i);
        const uint32_t page = chosen[i - 1];
        chosen[i - 1] = chosen[j];
        chosen[j] = page;
    }
}

uint64_t probe_read_chosen(const unsigned char *memory, const uint32_t *chosen, size_t count,
                           size_t reads)
{
    uint64_t sum = 0;
    size_t next = 0;
    for (size_t i = 0; i < reads; i++) {
        const void *at = memory + probe_offset(chosen[next]);
        sum += *(const uint64_t *)at;
        next = next + 1 < count ? next + 1 : 0;
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

void probe_chain_starts(const uint32_t *order, size_t pages, size_t *places, unsigned count)
{
    size_t page = 0, step = 0;
    for (unsigned i = 0; i < count; i++) {
        for (; step < pages * i / count; step++)
            page = order[page];
        places[i] = probe_offset(page);
    }
}

/* In line with a count that is known, so that nothing but the reads is waited for. */
static inline __attribute__((always_inline)) void chase(const unsigned char *memory, size_t *places,
                                                        unsigned count, size_t steps)
{
    size_t at[PROBE_CHAINS_MAX];
    for (unsigned chain = 0; chain < count; chain++)
        at[chain] = places[chain];
    for (size_t i = 0; i < steps; i++)
        for (unsigned chain = 0; chain < count; chain++) {
            const void *word = memory + at[chain];
            at[chain] = (size_t)(*(const uint64_t *)word);
        }
    for (unsigned chain = 0; chain < count; chain++)
        places[chain] = at[chain];
}

void probe_chase(const unsigned char *memory, size_t *places, unsigned count, size_t steps)
{
    switch (count) {
    case 1:
        chase(memory, places, 1, steps);
        return;
    case 2:
        chase(memory, places, 2, steps);
        return;
    case 4:
        chase(memory, places, 4, steps);
        return;
    default:
        assert(count == PROBE_CHAINS_MAX);
        chase(memory, places, PROBE_CHAINS_MAX, steps);
    }
}
