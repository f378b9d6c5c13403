/* Many threads, one pool. */
#include "core/memory.h"
#include "pool/pool_fixture.h"
#include "support/cmocka.h"
#include "support/random.h"

#include <pthread.h>
#include <string.h>

#define THREADS 4
#define ROUNDS  400
#define HOLDING 8

struct worker {
    raffia_pool *pool;
    uint64_t seed;
    bool may_be_refused;
    const char *complaint; /* what went wrong, for the main thread to say */
};

/* Threads must not use cmocka's assertions: a failing one would jump out of its thread. */
static void check_and_free(struct worker *worker, unsigned char **block, size_t bytes,
                           unsigned char mark)
{
    for (size_t i = 0; i < bytes; i++)
        if ((*block)[i] != mark) {
            worker->complaint = "a block was overwritten by another thread";
            break;
        }
    if (raffia_pool_free(worker->pool, *block))
        worker->complaint = "a free was refused";
    *block = NULL;
}

static void *hammer(void *argument)
{
    struct worker *worker = argument;
    struct test_random random = {worker->seed};
    const unsigned char mark = (unsigned char)(worker->seed % 251 + 1);
    unsigned char *blocks[HOLDING] = {NULL};
    size_t sizes[HOLDING];
    for (size_t round = 0; round < ROUNDS; round++) {
        const size_t i = test_random_below(&random, HOLDING);
        if (blocks[i]) {
            check_and_free(worker, &blocks[i], sizes[i], mark);
            continue;
        }
        void *address;
        sizes[i] = test_random_size(&random, TEST_CHUNK / 2);
        raffia_status status = raffia_pool_alloc(worker->pool, sizes[i], 0, &address);
        if (!status) {
            blocks[i] = address;
            memset(address, mark, sizes[i]);
        } else if (!worker->may_be_refused || status != RAFFIA_ERROR_OUT_OF_MEMORY) {
            worker->complaint = raffia_status_name(status);
        }
    }
    for (size_t i = 0; i < HOLDING; i++)
        if (blocks[i])
            check_and_free(worker, &blocks[i], sizes[i], mark);
    return NULL;
}

static void *trim_now_and_then(void *argument)
{
    struct worker *worker = argument;
    for (size_t round = 0; round < ROUNDS / 10; round++) {
        raffia_pool_stats stats;
        if (raffia_pool_trim(worker->pool, 2 * TEST_CHUNK, NULL) ||
            raffia_pool_query(worker->pool, &stats) || raffia_pool_verify(worker->pool, NULL) ||
            raffia_pool_check(worker->pool))
            worker->complaint = raffia_status_name(raffia_last_status());
        if (stats.free_bytes + stats.in_use_bytes != stats.reserved_bytes)
            worker->complaint = "a snapshot does not agree with itself";
    }
    return NULL;
}

static void run_workers(raffia_pool *pool, bool may_be_refused, bool trimming)
{
    struct worker workers[THREADS + 1];
    pthread_t threads[THREADS + 1];
    const size_t count = THREADS + (trimming ? 1 : 0);
    for (size_t i = 0; i < count; i++) {
        workers[i] = (struct worker){pool, 1000 + i, may_be_refused, NULL};
        void *(*work)(void *) = i < THREADS ? hammer : trim_now_and_then;
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (size_t i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < count; i++)
        if (workers[i].complaint)
            fail_msg("thread %zu: %s", i, workers[i].complaint);
}

static void threads_share_a_pool(void **state)
{
    (void)state;
    /* Room for what all can hold at once, however it lies. */
    raffia_pool *pool = make_pool_of(0, 2 * THREADS * HOLDING * TEST_CHUNK);
    run_workers(pool, false, false);
    drop_pool(pool);
}

static void growers_and_trimmers_race_without_harm(void **state)
{
    (void)state;
    fresh_device(&(struct sim_config){.map_us = 50});
    raffia_pool *pool = make_pool_of(0, 2 * THREADS * HOLDING * TEST_CHUNK);
    run_workers(pool, false, true);
    drop_pool(pool);
    pool = make_adaptive_pool_of(0, 2 * THREADS * HOLDING * TEST_CHUNK);
    run_workers(pool, false, true);
    drop_pool(pool);
}

static void a_pool_too_small_refuses_whole_requests(void **state)
{
    (void)state;
    fresh_device(&(struct sim_config){.capacity_bytes = 4 * TEST_CHUNK, .alloc_us = 20});
    raffia_pool *pool = make_pool_of(0, 6 * TEST_CHUNK);
    run_workers(pool, true, true);
    drop_pool(pool);
}

struct racer {
    raffia_pool *pool;
    pthread_barrier_t *start;
    void *block;
    raffia_status status;
};

static void *grow_at_once(void *argument)
{
    struct racer *racer = argument;
    pthread_barrier_wait(racer->start);
    racer->status = raffia_pool_alloc(racer->pool, TEST_CHUNK, 0, &racer->block);
    return NULL;
}

static void *free_at_once(void *argument)
{
    struct racer *racer = argument;
    pthread_barrier_wait(racer->start);
    racer->status = raffia_pool_free(racer->pool, racer->block);
    return NULL;
}

static void race(struct racer racers[THREADS], void *(*run)(void *))
{
    pthread_barrier_t start;
    pthread_t threads[THREADS];
    assert_int_equal(pthread_barrier_init(&start, NULL, THREADS), 0);
    for (size_t i = 0; i < THREADS; i++) {
        racers[i].start = &start;
        assert_int_equal(pthread_create(&threads[i], NULL, run, &racers[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&start);
}

static void growers_at_once_grow_no_more_than_they_need(void **state)
{
    (void)state;
    fresh_device(&(struct sim_config){.map_us = 200});
    raffia_pool *pool = make_pool_of(0, THREADS * TEST_CHUNK);
    struct racer racers[THREADS] = {{0}};
    for (size_t i = 0; i < THREADS; i++)
        racers[i].pool = pool;
    race(racers, grow_at_once);
    for (size_t i = 0; i < THREADS; i++)
        assert_ok(racers[i].status);
    assert_int_equal(stats_of(pool).reserved_bytes, THREADS * TEST_CHUNK);
    assert_int_equal(stats_of(pool).free_bytes, 0);
    for (size_t i = 0; i < THREADS; i++)
        must_free(pool, racers[i].block);
    drop_pool(pool);
}

static void the_last_of_many_frees_tears_the_pool_down_once(void **state)
{
    (void)state;
    const long memory = core_memory_live();
    for (int round = 0; round < 20; round++) {
        raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_CHUNK);
        struct racer racers[THREADS] = {{0}};
        for (size_t i = 0; i < THREADS; i++) {
            racers[i].pool = pool;
            racers[i].block = must_alloc(pool, 100);
        }
        raffia_pool_release(pool);
        race(racers, free_at_once);
        for (size_t i = 0; i < THREADS; i++)
            assert_ok(racers[i].status);
        assert_true(sim_is_idle());
        assert_int_equal(core_memory_live(), memory);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, set_up_device)
    const struct CMUnitTest tests[] = {
        TEST(threads_share_a_pool),
        TEST(growers_and_trimmers_race_without_harm),
        TEST(a_pool_too_small_refuses_whole_requests),
        TEST(growers_at_once_grow_no_more_than_they_need),
        TEST(the_last_of_many_frees_tears_the_pool_down_once),
    };
    return cmocka_run_group_tests_name("pool threads", tests, NULL, NULL);
}
