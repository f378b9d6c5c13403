/*
 * soak [OPERATIONS [SEEDS]]: random operations on pools of every kind, checked against a map.
 *
 * Without arguments a share of it that takes seconds, for the suite.
 */
#include "soak/soak.h"

#include <raffia/pool.h>

#include <stdio.h>
#include <stdlib.h>

#ifdef __SANITIZE_THREAD__
#define OPERATIONS_DEFAULT 60000u /* each of them is forty times as dear */
#else
#define OPERATIONS_DEFAULT 200000u
#endif
#define SEEDS_DEFAULT 20u

static struct soak soak_of(uint64_t seed, size_t operations)
{
    static const unsigned flags[] = {RAFFIA_POOL_REMAPPABLE, 0, RAFFIA_POOL_REMAPPABLE,
                                     RAFFIA_POOL_REMAPPABLE | RAFFIA_POOL_FIXED};
    static const unsigned threads[] = {1, 2, 4};
    return (struct soak){
        .seed = seed,
        .operations = operations,
        .threads = threads[seed % 3],
        /* Each with and without learning, and both among the first seeds. */
        .flags = flags[seed % 4] | (seed % 2 == seed / 4 % 2 ? RAFFIA_POOL_ADAPTIVE : 0u),
        .granule = seed % 5 < 3 ? 256 : 4096,
        .asynchronous = seed % 7 == 3 || seed % 7 == 5,
    };
}

int main(int argc, char **argv)
{
    const size_t operations = argc > 1 ? strtoull(argv[1], NULL, 10) : OPERATIONS_DEFAULT;
    const size_t seeds = argc > 2 ? strtoull(argv[2], NULL, 10) : SEEDS_DEFAULT;
    struct soak_figures all = {0};
    bool good = operations && seeds;
    for (size_t seed = 1; good && seed <= seeds; seed++) {
        const struct soak soak = soak_of(seed, operations / seeds);
        struct soak_figures figures = {0};
        good = soak_run(&soak, &figures);
        printf("seed %2zu: %u threads, flags %#x, granule %zu%s: %llu allocations, %llu refused, "
               "%llu bad frees, %llu remaps of %llu chunks, %.0f %% full, %zu checks\n",
               seed, soak.threads, soak.flags, soak.granule, soak.asynchronous ? ", streams" : "",
               (unsigned long long)figures.allocations, (unsigned long long)figures.refused,
               (unsigned long long)figures.bad_frees, (unsigned long long)figures.remaps,
               (unsigned long long)figures.remapped_chunks,
               100 * figures.fill / (double)(figures.checks ? figures.checks : 1), figures.checks);
        fflush(stdout);
        all.allocations += figures.allocations;
        all.frees += figures.frees;
        all.refused += figures.refused;
        all.remaps += figures.remaps;
        all.bad_frees += figures.bad_frees;
        all.resizes += figures.resizes;
    }
    printf("%llu operations: %llu refused, %llu bad frees, %llu remaps: %s\n",
           (unsigned long long)(all.allocations + all.frees + all.resizes),
           (unsigned long long)all.refused, (unsigned long long)all.bad_frees,
           (unsigned long long)all.remaps, good ? "all sound" : "BROKEN");
    /* A soak that fills nothing, refuses nothing and moves nothing has shown nothing. */
    return good && all.refused && all.remaps && all.bad_frees ? 0 : 1;
}
