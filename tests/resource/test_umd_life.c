/* Threads, failures, forked children and a log that calls back, with raffia/umd.h. */
#include "core/memory.h"
#include "resource/umd_fixture.h"
#include "support/cmocka.h"
#include "support/fault_loop.h"
#include "support/random.h"

#include <raffia/config.h>
#include <raffia/log.h>

#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILD_TIMEOUT_SECONDS 20

/* ---- every call may fail -------------------------------------------------------------------- */

static raffia_status get(size_t bytes, size_t align, void **block)
{
    *block = umd_huge_page_alloc(0, bytes, align);
    return *block ? RAFFIA_OK : raffia_last_status();
}

static void give_if_any(void *block)
{
    if (block)
        must_give(0, block);
}

static raffia_status use(void)
{
    void *pooled = NULL, *fallback = NULL, *small = NULL;
    PoolStatus status;
    raffia_status outcome = get(6 * MIB, 0, &pooled);
    if (!outcome)
        outcome = get(4 * MIB, 0, &fallback);
    if (!outcome)
        outcome = get(KIB, 64, &small);
    if (!outcome)
        outcome = (raffia_status)umd_huge_page_pool_query(0, &status);
    if (pooled && fallback && pooled == fallback)
        fail_msg("one block was handed out twice");
    give_if_any(fallback);
    give_if_any(pooled);
    give_if_any(small);
    return outcome;
}

static raffia_status life_with_init(void *context)
{
    (void)context;
    raffia_status outcome = (raffia_status)umd_huge_page_pool_init(0, 8 * MIB);
    if (outcome)
        assert_true(sim_is_idle());
    if (!outcome) {
        outcome = use();
        /* Whether the device is there is asked again only when nothing is held of it. */
        must_destroy(0);
    }
    assert_true(sim_is_idle());
    return outcome;
}

static raffia_status lazy_life(void *context)
{
    (void)context;
    assert_ok(raffia_config_set("pages", "try")); /* forgets that building failed before */
    raffia_status outcome = use();
    PoolStatus status;
    if (!umd_huge_page_pool_query(0, &status) && status.is_initialized)
        must_destroy(0);
    return outcome;
}

static void b7_any_call_of_a_pools_life_may_fail(void **state)
{
    (void)state;
    assert_true(fault_loop(life_with_init, NULL, 500) > 15);
}

static void b4_any_call_of_a_lazy_pools_life_may_fail(void **state)
{
    (void)state;
    assert_ok(raffia_config_set("pool_maximum", "8MiB"));
    assert_true(fault_loop(lazy_life, NULL, 500) > 15);
    /* A query that fails by itself leaves the pool where it is. */
    if (status_of(0).is_initialized)
        must_destroy(0);
}

static void a_free_that_the_driver_refuses_can_be_tried_again(void **state)
{
    (void)state;
    void *block = must_get(0, MIB, 256);
    sim_fail_next("mem_free", RAFFIA_ERROR_DRIVER, RAFFIA_REASON_NONE);
    assert_int_equal(umd_huge_page_free(0, block), RAFFIA_ERROR_DRIVER);
    must_give(0, block);
    assert_int_equal(umd_huge_page_free(0, block), RAFFIA_ERROR_BAD_ADDRESS);
}

/* ---- threads -------------------------------------------------------------------------------- */

#define THREADS 4
#define ROUNDS  150
#define HELD    6

struct worker {
    uint64_t seed;
    const char *complaint;
};

static bool is_mine(const unsigned char *block, size_t bytes, unsigned char mark)
{
    return block[0] == mark && block[bytes / 2] == mark && block[bytes - 1] == mark;
}

static void mark_block(unsigned char *block, size_t bytes, unsigned char mark)
{
    block[0] = block[bytes / 2] = block[bytes - 1] = mark;
}

/* Threads must not use cmocka's assertions: a failing one would jump out of its thread. */
static void *allocate_and_free(void *context)
{
    struct worker *worker = context;
    struct test_random random = {worker->seed};
    const unsigned char mark = (unsigned char)(worker->seed + 1);
    unsigned char *blocks[HELD] = {NULL};
    size_t sizes[HELD] = {0};
    for (int round = 0; round < ROUNDS * HELD; round++) {
        const size_t i = test_random_below(&random, HELD);
        const int device = (int)(i % 2);
        if (blocks[i]) {
            if (!is_mine(blocks[i], sizes[i], mark))
                worker->complaint = "a block was overwritten by another thread";
            if (umd_huge_page_free(device, blocks[i]))
                worker->complaint = "a block could not be freed";
            blocks[i] = NULL;
            continue;
        }
        sizes[i] = 1 + test_random_below(&random, 3 * MIB);
        blocks[i] = umd_huge_page_alloc(device, sizes[i], test_random_below(&random, 3) ? 0 : 256);
        if (!blocks[i])
            worker->complaint = "a request failed";
        else
            mark_block(blocks[i], sizes[i], mark);
    }
    for (size_t i = 0; i < HELD; i++)
        if (blocks[i] && umd_huge_page_free((int)(i % 2), blocks[i]))
            worker->complaint = "a block could not be freed at the end";
    return NULL;
}

/* Init, destroy, query and bad frees, while others allocate: each succeeds or says BUSY. */
static void *meddle(void *context)
{
    struct worker *worker = context;
    int local;
    for (int round = 0; round < ROUNDS; round++) {
        const int device = round % 2;
        PoolStatus status;
        const int init = umd_huge_page_pool_init(device, 8 * MIB);
        if (init && init != RAFFIA_ERROR_BUSY)
            worker->complaint = "init failed";
        if (umd_huge_page_pool_query(device, &status))
            worker->complaint = "query failed";
        if (umd_huge_page_free(device, &local) != RAFFIA_ERROR_BAD_ADDRESS)
            worker->complaint = "a foreign address was freed";
        const int destroy = umd_huge_page_pool_destroy(device);
        if (destroy && destroy != RAFFIA_ERROR_BUSY && destroy != RAFFIA_ERROR_NOT_FOUND)
            worker->complaint = "destroy failed";
    }
    return NULL;
}

static void run_threads(void *(*first)(void *))
{
    pthread_t threads[THREADS];
    struct worker workers[THREADS] = {{0}};
    for (size_t i = 0; i < THREADS; i++) {
        workers[i].seed = i;
        assert_int_equal(
            pthread_create(&threads[i], NULL, i == 0 ? first : allocate_and_free, &workers[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < THREADS; i++)
        if (workers[i].complaint)
            fail_msg("thread %zu: %s", i, workers[i].complaint);
}

static void destroy_all(void)
{
    for (int device = 0; device < 2; device++)
        if (status_of(device).is_initialized)
            must_destroy(device);
}

static void b13_threads_share_pools_that_are_too_small(void **state)
{
    (void)state;
    must_init(0, 8 * MIB);
    must_init(1, 8 * MIB);
    run_threads(allocate_and_free);
    assert_true(status_of(0).hits > 0 && status_of(0).fallbacks > 0);
    assert_int_equal(status_of(0).free_size, 8 * MIB);
    destroy_all();
}

static void pools_come_and_go_under_threads_that_use_them(void **state)
{
    (void)state;
    assert_ok(raffia_config_set("pool_maximum", "8MiB"));
    for (int lazily = 0; lazily < 2; lazily++) {
        assert_ok(raffia_config_set("pages", lazily ? "try" : NULL));
        run_threads(meddle);
        destroy_all();
    }
}

static void *get_one(void *context)
{
    struct worker *worker = context;
    void *block = umd_huge_page_alloc(0, 2 * MIB, 0);
    if (!block || umd_huge_page_free(0, block))
        worker->complaint = "a request failed";
    return NULL;
}

static void b4_threads_that_want_the_first_pool_build_it_once(void **state)
{
    (void)state;
    const struct sim_config slow = {.map_us = 20000};
    assert_ok(sim_configure(0, &slow));
    assert_ok(raffia_config_set("pages", "try"));
    assert_ok(raffia_config_set("pool_maximum", "16MiB"));
    pthread_t threads[THREADS];
    struct worker workers[THREADS] = {{0}};
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, get_one, &workers[i]), 0);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < THREADS; i++)
        assert_null(workers[i].complaint);
    assert_int_equal(sim_calls("range_reserve"), 1);
    assert_int_equal(status_of(0).hits, THREADS);
    assert_int_equal(status_of(0).fallbacks, 0);
    must_destroy(0);
}

/* ---- a log that calls back ------------------------------------------------------------------ */

static int calls_back;

static void allocate_while_logging(void *context, raffia_log_level level, const char *message)
{
    static bool inside;
    (void)context;
    (void)level;
    (void)message;
    if (inside)
        return;
    inside = true;
    void *block = umd_huge_page_alloc(0, 2 * MIB, 0);
    calls_back += block && umd_huge_page_free(0, block) == 0;
    inside = false;
}

static void the_log_may_allocate_while_a_pool_is_built(void **state)
{
    (void)state;
    assert_ok(raffia_config_set("pages", "try"));
    calls_back = 0;
    const raffia_log_level level = raffia_log_get_level();
    raffia_log_set_level(RAFFIA_LOG_INFO);
    raffia_log_set_sink(allocate_while_logging, NULL);
    void *block = umd_huge_page_alloc(0, 2 * MIB, 0);
    raffia_log_set_sink(NULL, NULL);
    raffia_log_set_level(level);
    assert_non_null(block);
    assert_true(is_in_pool(0, block));
    assert_true(calls_back > 0);
    must_give(0, block);
    must_destroy(0);
}

/* ---- forked children ------------------------------------------------------------------------ */

/* Runs in the child: the number of the first expectation that fails, or 0. */
static int live_as_a_child(void *pooled, void *regular)
{
    PoolStatus status;
    /* The driver has the last word: this one does not survive a fork until it is reset. */
    if (umd_huge_page_pool_query(0, &status) != RAFFIA_ERROR_FORKED || umd_huge_page_alloc(0, 1, 0))
        return 8;
    sim_reset();
    if (umd_huge_page_pool_query(0, &status) || status.is_initialized)
        return 1;
    if (umd_huge_page_free(0, pooled) != RAFFIA_ERROR_BAD_ADDRESS ||
        umd_huge_page_free(0, regular) != RAFFIA_ERROR_BAD_ADDRESS)
        return 2;
    if (umd_huge_page_pool_destroy(0) != RAFFIA_ERROR_NOT_FOUND)
        return 3;
    if (umd_huge_page_pool_init(0, 8 * MIB))
        return 4;
    void *block = umd_huge_page_alloc(0, 2 * MIB, 0);
    void *fallback = umd_huge_page_alloc(0, 16 * MIB, 0);
    if (!block || !fallback || umd_huge_page_free(0, block) || umd_huge_page_free(0, fallback))
        return 5;
    if (umd_huge_page_pool_destroy(0))
        return 6;
    return sim_is_idle() ? 0 : 7;
}

static void b8_a_child_starts_afresh_and_leaves_its_parents_pools_alone(void **state)
{
    (void)state;
    must_init(0, 8 * MIB);
    char *pooled = must_get(0, 2 * MIB, 0), *regular = must_get(0, MIB, 256);
    const PoolStatus before = status_of(0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(CHILD_TIMEOUT_SECONDS); /* a deadlock ends it */
        _exit(live_as_a_child(pooled, regular));
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    const PoolStatus after = status_of(0);
    assert_memory_equal(&after, &before, sizeof after);
    assert_int_equal(pooled[0], 1);
    assert_int_equal(regular[0], 1);
    must_give(0, pooled);
    must_give(0, regular);
    must_destroy(0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_umd, tear_down_umd)
    const struct CMUnitTest tests[] = {
        TEST(b7_any_call_of_a_pools_life_may_fail),
        TEST(b4_any_call_of_a_lazy_pools_life_may_fail),
        TEST(a_free_that_the_driver_refuses_can_be_tried_again),
        TEST(b13_threads_share_pools_that_are_too_small),
        TEST(pools_come_and_go_under_threads_that_use_them),
        TEST(b4_threads_that_want_the_first_pool_build_it_once),
        TEST(the_log_may_allocate_while_a_pool_is_built),
        TEST(b8_a_child_starts_afresh_and_leaves_its_parents_pools_alone),
    };
    return cmocka_run_group_tests_name("umd life", tests, NULL, NULL);
}
