/* Blocks in the order of streams. */
#include "pool/pool_fixture.h"
#include "support/cmocka.h"

#include <pthread.h>
#include <string.h>

static driver_stream make_stream(void)
{
    driver_stream stream;
    assert_ok(sim_driver.stream_create(0, &stream));
    return stream;
}

static void a_block_freed_on_a_stream_is_free_when_the_stream_is_there(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_CHUNK);
    driver_stream stream = make_stream();
    char source[100];
    memset(source, 6, sizeof source);
    for (int i = 0; i < 2; i++) {
        raffia_stream order = i ? stream : NULL;
        void *block;
        assert_ok(raffia_pool_alloc_on(pool, order, TEST_CHUNK, 0, &block));
        assert_ok(sim_stream_delay(0, order, 2000));
        assert_ok(sim_driver.copy(0, order, block, source, sizeof source));
        assert_ok(raffia_pool_free_on(pool, order, block));
        size_t pending;
        assert_ok(sim_stream_pending(0, order, &pending));
        assert_int_equal(pending, 0);
        assert_int_equal(((char *)block)[99], 6); /* done before it became free */
        assert_int_equal(stats_of(pool).live_blocks, 0);
    }
    assert_ok(sim_driver.stream_destroy(0, stream));
    assert_ok(raffia_pool_free_on(pool, NULL, NULL));
    drop_pool(pool);
}

struct freeing {
    raffia_pool *pool;
    driver_stream stream;
    void *block;
    raffia_status status;
};

static void *free_on_a_thread(void *argument)
{
    struct freeing *freeing = argument;
    freeing->status = raffia_pool_free_on(freeing->pool, freeing->stream, freeing->block);
    return NULL;
}

static void a_pending_block_is_nobodys(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_CHUNK);
    driver_stream stream = make_stream();
    struct freeing freeing = {pool, stream, must_alloc(pool, TEST_CHUNK), RAFFIA_OK};
    pthread_t thread;
    assert_ok(sim_stream_hold(0, stream));
    assert_ok(sim_stream_delay(0, stream, 1));
    assert_int_equal(pthread_create(&thread, NULL, free_on_a_thread, &freeing), 0);
    while (stats_of(pool).requested_bytes) /* until the block is pending */
        ;
    raffia_pool_stats stats = stats_of(pool);
    assert_int_equal(stats.in_use_bytes, TEST_CHUNK);
    assert_int_equal(stats.live_blocks, 1);
    void *none;
    raffia_block found;
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, raffia_pool_alloc(pool, 1, 0, &none));
    assert_status(RAFFIA_ERROR_BAD_ADDRESS, raffia_pool_free(pool, freeing.block));
    assert_error_mentions("waits for its stream");
    assert_status(RAFFIA_ERROR_BAD_ADDRESS, raffia_pool_free_on(pool, NULL, freeing.block));
    assert_status(RAFFIA_ERROR_BAD_ADDRESS, raffia_pool_find(pool, freeing.block, &found));
    assert_status(RAFFIA_ERROR_BAD_ADDRESS, raffia_pool_resize(pool, freeing.block, 1));
    assert_ok(raffia_pool_check(pool));

    assert_ok(sim_stream_resume(0, stream));
    pthread_join(thread, NULL);
    assert_ok(freeing.status);
    must_free(pool, must_alloc(pool, TEST_CHUNK));
    assert_ok(sim_driver.stream_destroy(0, stream));
    drop_pool(pool);
}

static void a_pending_block_keeps_an_orphaned_pool_alive(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_CHUNK);
    driver_stream stream = make_stream();
    struct freeing freeing = {pool, stream, must_alloc(pool, 100), RAFFIA_OK};
    pthread_t thread;
    assert_ok(sim_stream_hold(0, stream));
    assert_ok(sim_stream_delay(0, stream, 1));
    assert_int_equal(pthread_create(&thread, NULL, free_on_a_thread, &freeing), 0);
    while (stats_of(pool).requested_bytes)
        ;
    raffia_pool_release(pool);
    assert_ok(sim_stream_resume(0, stream));
    pthread_join(thread, NULL);
    assert_ok(freeing.status);
    assert_ok(sim_driver.stream_destroy(0, stream));
    assert_true(sim_is_idle());
}

static void a_stream_that_cannot_be_waited_for_leaves_the_block_live(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_CHUNK);
    driver_stream stream = make_stream();
    void *block = must_alloc(pool, 100);
    const char *const verbs[] = {"stream_is_capturing", "stream_wait"};
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        sim_fail_next(verbs[i], RAFFIA_ERROR_DRIVER, RAFFIA_REASON_NONE);
        assert_status(RAFFIA_ERROR_DRIVER, raffia_pool_free_on(pool, stream, block));
        assert_int_equal(stats_of(pool).requested_bytes, 100);
    }
    assert_ok(sim_stream_capture_begin(0, stream));
    assert_status(RAFFIA_ERROR_BUSY, raffia_pool_free_on(pool, stream, block));
    assert_error_mentions("captured");
    assert_ok(sim_stream_capture_end(0, stream, false));
    assert_ok(raffia_pool_check(pool));
    assert_ok(raffia_pool_free_on(pool, stream, block));
    assert_ok(sim_driver.stream_destroy(0, stream));
    drop_pool(pool);
}

static void damage_is_told_when_a_stream_gets_there(void **state)
{
    (void)state;
    struct pool_plan plan = small_plan();
    plan.flags = RAFFIA_POOL_GUARD;
    raffia_pool *pool = make_pool(&plan);
    char *block = must_alloc(pool, 100);
    assert_ok(sim_stream_delay(0, NULL, 2000));
    assert_ok(sim_driver.fill(0, NULL, block, 1, 101));
    assert_status(RAFFIA_ERROR_CORRUPT, raffia_pool_free_on(pool, NULL, block));
    assert_error_mentions("the block of 100 bytes");
    drop_pool(pool);
}

static void a_device_without_streams_takes_only_null(void **state)
{
    (void)state;
    fresh_device(&(struct sim_config){.synchronous = true});
    raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_CHUNK);
    void *block = NULL;
    int not_a_stream;
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT,
                  raffia_pool_alloc_on(pool, &not_a_stream, 1, 0, &block));
    assert_error_mentions("no streams");
    assert_null(block);
    assert_ok(raffia_pool_alloc_on(pool, NULL, 1, 0, &block));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, raffia_pool_free_on(pool, &not_a_stream, block));
    assert_ok(raffia_pool_free_on(pool, NULL, block));
    drop_pool(pool);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, set_up_device)
    const struct CMUnitTest tests[] = {
        TEST(a_block_freed_on_a_stream_is_free_when_the_stream_is_there),
        TEST(a_pending_block_is_nobodys),
        TEST(a_pending_block_keeps_an_orphaned_pool_alive),
        TEST(a_stream_that_cannot_be_waited_for_leaves_the_block_live),
        TEST(damage_is_told_when_a_stream_gets_there),
        TEST(a_device_without_streams_takes_only_null),
    };
    return cmocka_run_group_tests_name("pool streams", tests, NULL, NULL);
}
