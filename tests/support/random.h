/*
 * Random numbers that can be repeated: SplitMix64. A property test prints its seed; setting
 * RAFFIA_TEST_SEED runs it again.
 */
#ifndef SUPPORT_RANDOM_H
#define SUPPORT_RANDOM_H

#include <stddef.h>
#include <stdint.h>

struct test_random {
    uint64_t state;
};

/* Seeds from RAFFIA_TEST_SEED or else the clock, and prints the seed with the test's name. */
struct test_random test_random_seeded(const char *test);

uint64_t test_random_next(struct test_random *random);

/* From 0 to bound - 1. */
size_t test_random_below(struct test_random *random, size_t bound);

/* From 1 to maximum, small values as likely as large ones on a logarithmic scale. */
size_t test_random_size(struct test_random *random, size_t maximum);

#endif
