/* Guards on a device with streams: written ahead of the work, looked at behind it (SPEC B9). */
#include "pool/pool_fixture.h"
#include "pool/stream_fixture.h"
#include "support/cmocka.h"
#include "support/fault_loop.h"

#include <pthread.h>
#include <string.h>

#define PATTERN ((char)0xFD)

static raffia_status say_hidden(int device, raffia_device_info *info)
{
    raffia_status status = sim_driver.device_info(device, info);
    info->cpu_accessible = false;
    return status;
}

/* The CPU writes guards itself where it can: a device that says it cannot. */
static struct driver hidden;

static int set_up_hidden_device(void **state)
{
    hidden = sim_driver;
    hidden.device_info = say_hidden;
    return set_up_device(state);
}

/* What a CPU does beyond a block while the stream is still on its way is damage too. */
static void b9_a_guard_that_the_cpu_can_write_is_there_at_once(void **state)
{
    (void)state;
    struct pool_plan plan = small_plan();
    plan.initial_bytes = TEST_CHUNK;
    plan.flags = RAFFIA_POOL_GUARD;
    raffia_pool *pool = make_pool(&plan);
    void *block = NULL;
    assert_ok(sim_stream_hold(0, NULL));
    assert_ok(sim_stream_delay(0, NULL, 1));
    assert_ok(raffia_pool_alloc_on(pool, NULL, 100, 0, &block));
    assert_true(((char *)block)[100] == PATTERN);
    ((char *)block)[100] = 1;
    assert_ok(sim_stream_resume(0, NULL));
    assert_status(RAFFIA_ERROR_CORRUPT, raffia_pool_free_on(pool, NULL, block));
    drop_pool(pool);
}

static raffia_pool *make_guarded(void)
{
    struct pool_plan plan = small_plan();
    plan.device.driver = &hidden;
    plan.initial_bytes = TEST_CHUNK;
    plan.flags = RAFFIA_POOL_GUARD;
    return make_pool(&plan);
}

/* Overwrites what the next block will be with something that is no guard. */
static void soil(raffia_pool *pool, size_t bytes)
{
    void *block = must_alloc(pool, 4 * bytes);
    memset(block, 0, 4 * bytes);
    must_free(pool, block);
}

static void b9_a_stream_writes_the_guard_before_the_work_and_it_is_looked_at_after(void **state)
{
    (void)state;
    raffia_pool *pool = make_guarded();
    driver_stream stream = make_stream();
    raffia_guard_report report;
    soil(pool, 100);
    assert_ok(sim_stream_hold(0, stream));
    char *block = must_alloc_on(pool, stream, 100); /* does not wait */
    assert_ok(sim_driver.fill(0, stream, block, 6, 100));
    assert_true(block[100] != PATTERN);
    assert_ok(raffia_pool_check_guards(pool, &report));
    assert_int_equal(report.skipped_blocks, 1);
    assert_int_equal(report.checked_blocks, 0);

    assert_ok(sim_stream_resume(0, stream));
    assert_ok(sim_driver.stream_wait(0, stream));
    assert_int_equal(block[99], 6);
    assert_true(block[100] == PATTERN);
    assert_ok(raffia_pool_check_guards(pool, &report));
    assert_int_equal(report.checked_blocks, 1);
    assert_ok(raffia_pool_free_on(pool, stream, block));
    assert_ok(sim_driver.stream_destroy(0, stream));
    drop_pool(pool);
}

static void b9_an_overrun_by_work_of_a_stream_is_caught_when_the_block_is_freed_there(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        raffia_pool *pool = make_guarded();
        driver_stream created = make_stream(), stream = i ? created : NULL;
        char *block = must_alloc_on(pool, stream, 100);
        assert_ok(sim_stream_delay(0, stream, 2000));
        assert_ok(sim_driver.fill(0, stream, block, 6, 101));
        assert_status(RAFFIA_ERROR_CORRUPT, raffia_pool_free_on(pool, stream, block));
        assert_error_mentions("the block of 100 bytes");
        assert_error_mentions("first 0 bytes behind it");
        assert_ok(sim_driver.stream_destroy(0, created));
        drop_pool(pool);
    }
}

struct freeing {
    raffia_pool *pool;
    void *block;
    raffia_status status;
};

static void *free_on_a_thread(void *argument)
{
    struct freeing *freeing = argument;
    freeing->status = raffia_pool_free(freeing->pool, freeing->block);
    return NULL;
}

/* Nobody used the block: its guard may not even be written when it is freed without a stream. */
static void b9_a_free_waits_for_a_guard_that_is_still_to_be_written(void **state)
{
    (void)state;
    raffia_pool *pool = make_guarded();
    driver_stream stream = make_stream();
    soil(pool, 100);
    assert_ok(sim_stream_hold(0, stream));
    struct freeing freeing = {pool, must_alloc_on(pool, stream, 100), RAFFIA_OK};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, free_on_a_thread, &freeing), 0);
    while (stats_of(pool).requested_bytes) /* until the block is pending */
        ;
    must_free(pool, must_alloc(pool, 50)); /* others are not held up */
    assert_int_equal(stats_of(pool).pending_blocks, 1);
    assert_ok(sim_stream_resume(0, stream));
    pthread_join(thread, NULL);
    assert_ok(freeing.status);
    assert_ok(sim_driver.stream_destroy(0, stream));
    drop_pool(pool);
}

static void b9_guards_of_plain_blocks_do_not_wait_for_streams_that_are_held_up(void **state)
{
    (void)state;
    raffia_pool *pool = make_guarded();
    driver_stream stream = make_stream();
    assert_ok(sim_stream_hold(0, stream));
    assert_ok(sim_stream_delay(0, stream, 1));
    soil(pool, 100);
    char *block = must_alloc(pool, 100);
    assert_true(block[100] == PATTERN);
    assert_ok(raffia_pool_check_guards(pool, NULL));
    assert_ok(raffia_pool_resize(pool, block, 50));
    assert_true(block[50] == PATTERN);
    must_free(pool, block);
    assert_ok(sim_stream_resume(0, stream));
    assert_ok(sim_driver.stream_destroy(0, stream));
    drop_pool(pool);
}

static void a_block_of_a_stream_can_be_resized_and_outlive_the_stream(void **state)
{
    (void)state;
    raffia_pool *pool = make_guarded();
    driver_stream stream = make_stream();
    char *resized = must_alloc_on(pool, stream, 100), *kept = must_alloc_on(pool, stream, 100);
    assert_ok(raffia_pool_resize(pool, resized, 40));
    assert_ok(sim_driver.stream_wait(0, stream));
    assert_ok(sim_driver.stream_destroy(0, stream));
    assert_ok(raffia_pool_check(pool));
    kept[100] = 'x';
    assert_status(RAFFIA_ERROR_CORRUPT, raffia_pool_free(pool, kept));
    must_free(pool, resized);
    drop_pool(pool);
}

static void a_stream_that_is_captured_gets_no_guarded_block(void **state)
{
    (void)state;
    raffia_pool *pool = make_guarded();
    driver_stream stream = make_stream();
    void *block = NULL;
    assert_ok(sim_stream_capture_begin(0, stream));
    assert_status(RAFFIA_ERROR_BUSY, raffia_pool_alloc_on(pool, stream, 100, 0, &block));
    assert_error_mentions("captured");
    assert_null(block);
    assert_ok(sim_stream_capture_end(0, stream, false));
    block = must_alloc_on(pool, stream, 100);
    assert_ok(sim_stream_capture_begin(0, stream));
    assert_status(RAFFIA_ERROR_BUSY, raffia_pool_free_on(pool, stream, block));
    assert_ok(sim_stream_capture_end(0, stream, false));
    assert_ok(raffia_pool_free_on(pool, stream, block));
    assert_ok(sim_driver.stream_destroy(0, stream));
    drop_pool(pool);
}

/* More marks than there is room for at first, and each taken away. */
static void many_blocks_of_streams_keep_their_marks_apart(void **state)
{
    (void)state;
    enum { BLOCKS = 50 };
    raffia_pool *pool = make_guarded();
    driver_stream streams[2] = {make_stream(), make_stream()};
    void *blocks[BLOCKS];
    raffia_guard_report report;
    assert_ok(sim_stream_hold(0, streams[1]));
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = must_alloc_on(pool, streams[i % 2], 100);
    assert_ok(sim_driver.stream_wait(0, streams[0]));
    assert_ok(raffia_pool_check_guards(pool, &report));
    assert_int_equal(report.checked_blocks, BLOCKS / 2);
    assert_int_equal(report.skipped_blocks, BLOCKS / 2);
    for (int i = 0; i < BLOCKS; i += 2)
        must_free(pool, blocks[i]);
    assert_ok(sim_stream_resume(0, streams[1]));
    for (int i = 1; i < BLOCKS; i += 2)
        assert_ok(raffia_pool_free_on(pool, streams[1], blocks[i]));
    for (int i = 0; i < 2; i++)
        assert_ok(sim_driver.stream_destroy(0, streams[i]));
    struct sim_usage usage;
    sim_query(0, &usage);
    assert_int_equal(usage.events, 0);
    drop_pool(pool);
}

static raffia_status life_on_a_stream(void *context)
{
    (void)context;
    raffia_pool *pool = NULL;
    raffia_fallback_reason reason;
    struct pool_plan plan = small_plan();
    void *block = NULL;
    plan.flags = RAFFIA_POOL_GUARD;
    raffia_status status = pool_create(&plan, &pool, &reason);
    if (status)
        return status;
    status = raffia_pool_alloc_on(pool, NULL, 100, 0, &block);
    if (!status)
        status = raffia_pool_resize(pool, block, 200);
    assert_ok(raffia_pool_check(pool));
    if (block) {
        raffia_status freed = raffia_pool_free_on(pool, NULL, block);
        if (freed)
            must_free(pool, block);
        status = status ? status : freed;
    }
    raffia_pool_release(pool);
    assert_true(sim_is_idle());
    return status;
}

static void any_call_of_a_guarded_life_on_a_stream_may_fail(void **state)
{
    (void)state;
    assert_ok(sim_driver.stream_wait(0, NULL)); /* the device keeps its default stream */
    assert_true(fault_loop(life_on_a_stream, NULL, 500) > 20);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, set_up_hidden_device)
    const struct CMUnitTest tests[] = {
        TEST(b9_a_guard_that_the_cpu_can_write_is_there_at_once),
        TEST(b9_a_stream_writes_the_guard_before_the_work_and_it_is_looked_at_after),
        TEST(b9_an_overrun_by_work_of_a_stream_is_caught_when_the_block_is_freed_there),
        TEST(b9_a_free_waits_for_a_guard_that_is_still_to_be_written),
        TEST(b9_guards_of_plain_blocks_do_not_wait_for_streams_that_are_held_up),
        TEST(a_block_of_a_stream_can_be_resized_and_outlive_the_stream),
        TEST(a_stream_that_is_captured_gets_no_guarded_block),
        TEST(many_blocks_of_streams_keep_their_marks_apart),
        TEST(any_call_of_a_guarded_life_on_a_stream_may_fail),
    };
    return cmocka_run_group_tests_name("guards on streams", tests, NULL, NULL);
}
