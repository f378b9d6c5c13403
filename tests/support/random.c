#include "support/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct test_random test_random_seeded(const char *test)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t seed = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    const char *given = getenv("RAFFIA_TEST_SEED");
    if (given)
        seed = strtoull(given, NULL, 0);
    printf("%s: RAFFIA_TEST_SEED=%llu\n", test, (unsigned long long)seed);
    fflush(stdout);
    return (struct test_random){seed};
}

uint64_t test_random_next(struct test_random *random)
{
    uint64_t z = random->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

size_t test_random_below(struct test_random *random, size_t bound)
{
    return (size_t)(test_random_next(random) % bound);
}

size_t test_random_size(struct test_random *random, size_t maximum)
{
    unsigned bits = 64 - (unsigned)__builtin_clzll(maximum);
    size_t limit = (size_t)1 << test_random_below(random, bits + 1);
    size_t size = 1 + test_random_below(random, limit);
    return size < maximum ? size : maximum;
}
