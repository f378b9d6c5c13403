/*
 * What a pair of calls on one stream costs in the pool alone: nanoseconds, the least and the median
 * of many rounds, with a loop that makes no calls beside it. The device is the simulated one, whose
 * answers to who a stream is, and whether it is captured, are replaced by empty functions. Built on
 * request and run by hand, with the objects of a release build:
 *
 *     scripts/build release && cmake --build build/release --target measure_streams
 *     build/release/bench/measure/measure_streams BLOCKS [BYTES]
 *         that are alive; of 2 to 64 MiB unless all of one size
 *     build/release/bench/measure/measure_streams BLOCKS BYTES ROUNDS
 *         only so many rounds, to have instructions counted
 */
#include "driver/sim/sim.h"
#include "pool/pool_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { BLOCKS_MAX = 4096, PAIRS = 10000, ROUNDS = 300 };

#define MIB ((size_t)1 << 20)

enum way { ON_A_STREAM, IN_NO_ORDER, NOT_AT_ALL, WAYS };
static const char *const way_names[WAYS] = {"on a stream", "in no order", "no calls"};

struct bench {
    raffia_pool *pool;
    driver_stream stream;
    void *blocks[BLOCKS_MAX];
    size_t alive, bytes;
    uint64_t random;
};

static void must(raffia_status status)
{
    if (!status)
        return;
    fprintf(stderr, "%s\n", raffia_last_error());
    exit(1);
}

static raffia_status same_id(int device, driver_stream stream, uint64_t *id_p)
{
    (void)device;
    *id_p = (uintptr_t)stream;
    return RAFFIA_OK;
}

static raffia_status never_captured(int device, driver_stream stream, bool *capturing_p)
{
    (void)device, (void)stream;
    *capturing_p = false;
    return RAFFIA_OK;
}

static uint64_t next(struct bench *bench)
{
    bench->random ^= bench->random << 13;
    bench->random ^= bench->random >> 7;
    return bench->random ^= bench->random << 17;
}

static size_t next_size(struct bench *bench)
{
    return bench->bytes ? bench->bytes : 2 * MIB + next(bench) % (62 * MIB);
}

static void exchange(struct bench *bench, enum way way)
{
    void **block_p = &bench->blocks[next(bench) % bench->alive];
    const size_t bytes = next_size(bench);
    if (way == ON_A_STREAM) {
        must(raffia_pool_free_on(bench->pool, bench->stream, *block_p));
        must(raffia_pool_alloc_on(bench->pool, bench->stream, bytes, 0, block_p));
    } else if (way == IN_NO_ORDER) {
        must(raffia_pool_free(bench->pool, *block_p));
        must(raffia_pool_alloc(bench->pool, bytes, 0, block_p));
    } else {
        __asm__ volatile("" : : "r"(bytes), "r"(block_p) : "memory");
    }
}

static double run(struct bench *bench, enum way way)
{
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (int i = 0; i < PAIRS; i++)
        exchange(bench, way);
    clock_gettime(CLOCK_MONOTONIC, &end);
    return ((double)(end.tv_sec - start.tv_sec) * 1e9 + (double)(end.tv_nsec - start.tv_nsec)) /
           PAIRS;
}

static int compare(const void *one, const void *other)
{
    const double a = *(const double *)one, b = *(const double *)other;
    return a < b ? -1 : a > b;
}

static void set_up(struct bench *bench)
{
    static struct driver driver;
    const struct sim_config config = {.capacity_bytes = 32 * 1024 * MIB,
                                      .page_count = 1,
                                      .pages = {{RAFFIA_PAGE_DEVICE, 2 * MIB}}};
    const size_t size = 16 * 1024 * MIB;
    driver = sim_driver;
    driver.stream_id = same_id;
    driver.stream_is_capturing = never_captured;
    const struct pool_plan plan = {.device = {&driver, 0},
                                   .name = "measured",
                                   .kind = RAFFIA_PAGE_DEVICE,
                                   .page_size = 2 * MIB,
                                   .initial_bytes = size,
                                   .maximum_bytes = size,
                                   .chunk_bytes = size,
                                   .granule = 256,
                                   .threads = 1,
                                   .numa_node = -1,
                                   .asked_kind = RAFFIA_PAGE_DEVICE,
                                   .asked_size = 2 * MIB};
    raffia_fallback_reason reason;
    must(sim_configure(0, &config));
    must(pool_create(&plan, &bench->pool, &reason));
    must(sim_driver.stream_create(0, &bench->stream));
    for (size_t i = 0; i < bench->alive; i++)
        must(raffia_pool_alloc_on(bench->pool, bench->stream, next_size(bench), 0,
                                  &bench->blocks[i]));
    (void)run(bench, ON_A_STREAM);
}

int main(int count, char **words)
{
    static struct bench bench = {.random = 88172645463325252u};
    static double ns[WAYS][ROUNDS];
    bench.alive = count > 1 ? strtoul(words[1], NULL, 10) : 1;
    bench.bytes = count > 2 ? strtoul(words[2], NULL, 10) : 0;
    if (bench.alive == 0 || bench.alive > BLOCKS_MAX || bench.bytes > 64 * MIB)
        return fprintf(stderr, "1 to %d blocks of at most 64 MiB\n", BLOCKS_MAX), 2;
    set_up(&bench);
    if (count > 3) {
        for (unsigned long i = strtoul(words[3], NULL, 10); i > 0; i--)
            (void)run(&bench, ON_A_STREAM);
        return 0;
    }
    for (int round = 0; round < ROUNDS; round++)
        for (enum way way = 0; way < WAYS; way++)
            ns[way][round] = run(&bench, way);
    for (enum way way = 0; way < WAYS; way++) {
        qsort(ns[way], ROUNDS, sizeof ns[way][0], compare);
        printf("%s: %.1f, median %.1f ns\n", way_names[way], ns[way][0], ns[way][ROUNDS / 2]);
    }
    return 0;
}
