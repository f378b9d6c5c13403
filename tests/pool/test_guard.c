/* Guard patterns behind blocks (SPEC B9). */
#include "pool/pool_fixture.h"
#include "support/cmocka.h"
#include "support/log_capture.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static raffia_pool *make_guarded(void)
{
    struct pool_plan plan = small_plan();
    plan.flags = RAFFIA_POOL_GUARD;
    return make_pool(&plan);
}

static void b9_guards_are_no_concern_of_a_caller_who_behaves(void **state)
{
    (void)state;
    raffia_pool *pool = make_guarded();
    const size_t sizes[] = {0, 1, 239, 240, 241, 256, 4096, TEST_PAGE};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char *block = must_alloc(pool, sizes[i]);
        raffia_block found;
        memset(block, 0, sizes[i]);
        assert_ok(raffia_pool_check(pool));
        assert_ok(raffia_pool_find(pool, block, &found));
        assert_int_equal(found.requested_bytes, sizes[i] ? sizes[i] : TEST_GRANULE);
        assert_int_equal(stats_of(pool).requested_bytes, found.requested_bytes);
        assert_true(found.bytes > found.requested_bytes);
        assert_ok(raffia_pool_resize(pool, block, 3 * sizes[i]));
        memset(block, 1, 3 * sizes[i]);
        assert_ok(raffia_pool_resize(pool, block, 1));
        assert_ok(raffia_pool_check(pool));
        must_free(pool, block);
    }
    const raffia_pool_stats stats = stats_of(pool);
    must_free(pool, must_alloc(pool, stats.largest_free_bytes));
    assert_int_equal(stats_of(pool).driver_calls, stats.driver_calls);
    drop_pool(pool);
}

/* A pool that is frozen can still be emptied. */
static void expect_damage(raffia_pool *pool, const char *block, size_t bytes, size_t distance)
{
    char sentence[96];
    snprintf(sentence, sizeof sentence, "the block of %zu bytes at %p", bytes, (const void *)block);
    assert_error_mentions(sentence);
    snprintf(sentence, sizeof sentence, "first %zu bytes behind it", distance);
    assert_error_mentions(sentence);
    void *none = NULL;
    assert_status(RAFFIA_ERROR_CORRUPT, raffia_pool_alloc(pool, 1, 0, &none));
    assert_null(none);
}

static void b9_an_overrun_is_caught_when_the_block_is_freed(void **state)
{
    (void)state;
    const size_t distances[] = {0, 1, 15, 23};
    for (size_t i = 0; i < sizeof distances / sizeof *distances; i++) {
        raffia_pool *pool = make_guarded();
        char *block = must_alloc(pool, 1000), *neighbour = must_alloc(pool, 1000);
        block[1000 + distances[i]] = 'x';
        must_free(pool, neighbour);
        assert_status(RAFFIA_ERROR_CORRUPT, raffia_pool_free(pool, block));
        expect_damage(pool, block, 1000, distances[i]);
        assert_int_equal(stats_of(pool).live_blocks, 0);
        drop_pool(pool);
    }
}

/* The slack is read back in pieces: damage in the first, the last and between. */
static void b9_an_overrun_far_behind_the_block_is_caught(void **state)
{
    (void)state;
    const size_t slack = TEST_CHUNK - 1000;
    const size_t distances[] = {64 * KIB - 1, 64 * KIB, 100 * KIB, slack - 1};
    for (size_t i = 0; i < sizeof distances / sizeof *distances; i++) {
        struct pool_plan plan = small_plan();
        plan.flags = RAFFIA_POOL_GUARD;
        plan.granule = TEST_CHUNK;
        raffia_pool *pool = make_pool(&plan);
        char *block = must_alloc(pool, 1000);
        block[1000 + distances[i]] = 'x';
        assert_status(RAFFIA_ERROR_CORRUPT, raffia_pool_free(pool, block));
        expect_damage(pool, block, 1000, distances[i]);
        drop_pool(pool);
    }
}

static void b9_a_block_that_fills_its_granules_gets_one_more_for_the_guard(void **state)
{
    (void)state;
    const size_t granules[] = {TEST_GRANULE, TEST_PAGE};
    for (size_t i = 0; i < sizeof granules / sizeof *granules; i++) {
        const size_t granule = granules[i];
        struct pool_plan plan = small_plan();
        raffia_block found;
        plan.flags = RAFFIA_POOL_GUARD;
        plan.granule = granule;
        raffia_pool *pool = make_pool(&plan);
        char *full = must_alloc(pool, 2 * granule), *less = must_alloc(pool, 2 * granule - 1);
        assert_ok(raffia_pool_find(pool, less, &found));
        assert_int_equal(found.bytes, 2 * granule);
        assert_ok(raffia_pool_find(pool, full, &found));
        assert_int_equal(found.bytes, 3 * granule);
        memset(full, 1, 2 * granule);
        assert_ok(raffia_pool_check(pool));
        full[3 * granule - 1] = 'x';
        must_free(pool, less);
        assert_status(RAFFIA_ERROR_CORRUPT, raffia_pool_free(pool, full));
        expect_damage(pool, full, 2 * granule, granule - 1);
        drop_pool(pool);
    }
}

static void b9_a_look_at_the_guards_names_the_first_damaged_block(void **state)
{
    (void)state;
    enum { BLOCKS = 100 };
    raffia_pool *pool = make_guarded();
    char *blocks[BLOCKS];
    raffia_guard_report report;
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = must_alloc(pool, 300);
    must_free(pool, blocks[7]);
    assert_ok(raffia_pool_check_guards(pool, &report));
    assert_int_equal(report.checked_blocks, BLOCKS - 1);
    assert_int_equal(report.skipped_blocks, 0);
    assert_int_equal(report.damaged_blocks, 0);
    assert_null(report.address);

    blocks[41][300] = 'x';
    blocks[42][305] = 'x';
    char *first = blocks[41] < blocks[42] ? blocks[41] : blocks[42];
    const size_t distance = first == blocks[41] ? 0 : 5;
    assert_status(RAFFIA_ERROR_CORRUPT, raffia_pool_check_guards(pool, &report));
    expect_damage(pool, first, 300, distance);
    assert_int_equal(report.checked_blocks, BLOCKS - 1);
    assert_int_equal(report.damaged_blocks, 2);
    assert_ptr_equal(report.address, first);
    assert_int_equal(report.requested_bytes, 300);
    assert_int_equal(report.damage_offset, 300 + distance);

    blocks[41][300] = blocks[42][305] = (char)0xFD;
    assert_ok(raffia_pool_check_guards(pool, NULL));
    for (int i = 0; i < BLOCKS; i++)
        if (i != 7)
            must_free(pool, blocks[i]);
    drop_pool(pool);
}

static void b9_only_a_pool_with_guards_can_be_asked_about_them(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_CHUNK);
    raffia_guard_report report = {.checked_blocks = 7};
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, raffia_pool_check_guards(pool, &report));
    assert_error_mentions("RAFFIA_POOL_GUARD");
    assert_int_equal(report.checked_blocks, 7);
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, raffia_pool_check_guards(NULL, &report));
    drop_pool(pool);
}

static void b9_an_overrun_is_caught_by_a_check_of_the_pool(void **state)
{
    (void)state;
    raffia_pool *pool = make_guarded();
    char *block = must_alloc(pool, 5000);
    assert_ok(raffia_pool_check(pool));
    block[5000] = 'x';
    assert_status(RAFFIA_ERROR_CORRUPT, raffia_pool_check(pool));
    expect_damage(pool, block, 5000, 0);
    assert_status(RAFFIA_ERROR_CORRUPT, raffia_pool_free(pool, block));
    drop_pool(pool);
}

static void wrong_addresses_are_refused_as_without_guards(void **state)
{
    (void)state;
    raffia_pool *pool = make_guarded();
    char *block = must_alloc(pool, 300);
    assert_status(RAFFIA_ERROR_BAD_ADDRESS, raffia_pool_free(pool, block + 1));
    assert_error_mentions("inside the block");
    assert_status(RAFFIA_ERROR_BAD_ADDRESS, raffia_pool_resize(pool, block + 1, 10));
    assert_status(RAFFIA_ERROR_BAD_ADDRESS, raffia_pool_free(pool, &pool));
    must_free(pool, block);
    assert_status(RAFFIA_ERROR_BAD_ADDRESS, raffia_pool_free(pool, block));
    assert_status(RAFFIA_ERROR_BAD_ADDRESS, raffia_pool_resize(pool, block, 10));
    assert_int_equal(stats_of(pool).bad_frees, 3);
    drop_pool(pool);
}

/* The old guard is gone by then, and the block must have one all the same. */
static void a_resize_that_is_refused_leaves_the_guard(void **state)
{
    (void)state;
    raffia_pool *pool = make_guarded();
    char *block = must_alloc(pool, 300), *neighbour = must_alloc(pool, 300);
    char *low = block < neighbour ? block : neighbour;
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, raffia_pool_resize(pool, low, 2000));
    assert_error_mentions("cannot grow from 512 B to 2 KiB (2000 bytes and a guard) where it is");
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, raffia_pool_resize(pool, low, SIZE_MAX));
    assert_ok(raffia_pool_check(pool));
    low[300] = 'x';
    assert_status(RAFFIA_ERROR_CORRUPT, raffia_pool_check(pool));
    low[300] = (char)0xFD;
    must_free(pool, block);
    must_free(pool, neighbour);
    drop_pool(pool);
}

/* A size of 0 is one granule, which has no room for a guard. */
static void a_resize_to_nothing_that_is_refused_says_what_it_takes(void **state)
{
    (void)state;
    raffia_pool *pool = make_guarded();
    char *block = must_alloc(pool, 100), *neighbour = must_alloc(pool, 100);
    char *low = block < neighbour ? block : neighbour;
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, raffia_pool_resize(pool, low, 0));
    assert_error_mentions(
        "cannot grow from 256 B to 512 B (0 bytes, which are one granule, and a guard) where");
    must_free(pool, neighbour);
    must_free(pool, block);
    drop_pool(pool);
}

static void b9_an_overrun_is_caught_before_a_resize_hides_it(void **state)
{
    (void)state;
    raffia_pool *pool = make_guarded();
    char *block = must_alloc(pool, 100);
    block[101] = 'x';
    assert_status(RAFFIA_ERROR_CORRUPT, raffia_pool_resize(pool, block, 50));
    expect_damage(pool, block, 100, 1);
    block[101] = (char)0xFD;
    must_free(pool, block);
    drop_pool(pool);
}

static void b9_an_overrun_in_an_orphaned_pool_is_still_told(void **state)
{
    (void)state;
    raffia_pool *pool = make_guarded();
    char *block = must_alloc(pool, 100);
    raffia_pool_release(pool);
    block[100] = 'x';
    assert_status(RAFFIA_ERROR_CORRUPT, raffia_pool_free(pool, block));
    assert_true(sim_is_idle());
}

static raffia_status out_of_reach(int device, raffia_device_info *info)
{
    raffia_status status = sim_driver.device_info(device, info);
    info->cpu_accessible = false;
    return status;
}

static void b9_memory_out_of_the_cpus_reach_is_guarded_by_the_device(void **state)
{
    (void)state;
    for (int synchronous = 0; synchronous < 2; synchronous++) {
        fresh_device(&(struct sim_config){.synchronous = synchronous});
        struct driver remote = sim_driver;
        struct pool_plan plan = small_plan();
        remote.device_info = out_of_reach;
        plan.device.driver = &remote;
        plan.flags = RAFFIA_POOL_GUARD;
        raffia_pool *pool = make_pool(&plan);
        char *block = must_alloc(pool, 1000);
        assert_ok(remote.fill(0, NULL, block, 7, 1000));
        assert_ok(remote.stream_wait(0, NULL));
        assert_ok(raffia_pool_check_guards(pool, NULL));
        assert_ok(remote.fill(0, NULL, block, 7, 1001));
        assert_ok(remote.stream_wait(0, NULL));
        assert_status(RAFFIA_ERROR_CORRUPT, raffia_pool_free(pool, block));
        expect_damage(pool, block, 1000, 0);
        drop_pool(pool);
    }
}

static raffia_status refuse_copy(int device, driver_stream stream, void *destination,
                                 const void *source, size_t bytes)
{
    (void)device, (void)stream, (void)destination, (void)source, (void)bytes;
    return driver_unsupported("sim", "copying for a test");
}

static raffia_status say_hidden(int device, raffia_device_info *info)
{
    raffia_status status = sim_driver.device_info(device, info);
    info->cpu_accessible = false;
    return status;
}

/* A guard that cannot be read is no damage, and must not keep a block from being freed. */
static void a_guard_that_cannot_be_read_is_passed_over(void **state)
{
    (void)state;
    struct driver mute = sim_driver;
    struct pool_plan plan = small_plan();
    raffia_guard_report report;
    mute.copy = refuse_copy;
    mute.device_info = say_hidden; /* so that the device has to read it */
    plan.device.driver = &mute;
    plan.flags = RAFFIA_POOL_GUARD;
    raffia_pool *pool = make_pool(&plan);
    char *block = must_alloc(pool, 1000);
    assert_ok(raffia_pool_check_guards(pool, &report));
    assert_int_equal(report.skipped_blocks, 1);
    assert_int_equal(report.checked_blocks, 0);
    log_capture_start();
    must_free(pool, block);
    log_capture_stop();
    assert_int_equal(log_capture_count(), 1);
    assert_non_null(strstr(log_capture_line(0), "could not be looked at"));
    drop_pool(pool);
}

enum { THREADS = 3, ROUNDS = 150 };

static void *come_and_go(void *argument)
{
    raffia_pool *pool = argument;
    for (size_t i = 0; i < ROUNDS; i++) {
        void *block = NULL;
        const raffia_status status = i % 2 ? raffia_pool_alloc_on(pool, NULL, 1 + 37 * i, 0, &block)
                                           : raffia_pool_alloc(pool, 1 + 37 * i, 0, &block);
        if (status || raffia_pool_resize(pool, block, 1 + 17 * i) || raffia_pool_free(pool, block))
            return argument; /* which says that it went wrong */
    }
    return NULL;
}

static void guards_are_looked_at_while_blocks_come_and_go(void **state)
{
    (void)state;
    raffia_pool *pool = make_guarded();
    pthread_t threads[THREADS];
    void *wrong;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, come_and_go, pool), 0);
    for (int i = 0; i < ROUNDS; i++)
        assert_ok(raffia_pool_check_guards(pool, NULL));
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], &wrong);
        assert_null(wrong);
    }
    drop_pool(pool);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, set_up_device)
    const struct CMUnitTest tests[] = {
        TEST(b9_guards_are_no_concern_of_a_caller_who_behaves),
        TEST(b9_an_overrun_is_caught_when_the_block_is_freed),
        TEST(b9_an_overrun_far_behind_the_block_is_caught),
        TEST(b9_a_block_that_fills_its_granules_gets_one_more_for_the_guard),
        TEST(b9_a_look_at_the_guards_names_the_first_damaged_block),
        TEST(b9_only_a_pool_with_guards_can_be_asked_about_them),
        TEST(b9_an_overrun_is_caught_by_a_check_of_the_pool),
        TEST(wrong_addresses_are_refused_as_without_guards),
        TEST(a_resize_that_is_refused_leaves_the_guard),
        TEST(a_resize_to_nothing_that_is_refused_says_what_it_takes),
        TEST(b9_an_overrun_is_caught_before_a_resize_hides_it),
        TEST(b9_an_overrun_in_an_orphaned_pool_is_still_told),
        TEST(b9_memory_out_of_the_cpus_reach_is_guarded_by_the_device),
        TEST(a_guard_that_cannot_be_read_is_passed_over),
        TEST(guards_are_looked_at_while_blocks_come_and_go),
    };
    return cmocka_run_group_tests_name("pool guards", tests, NULL, NULL);
}
