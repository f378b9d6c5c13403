/* Guard patterns behind blocks. */
#include "pool/pool_fixture.h"
#include "support/cmocka.h"

#include <stdio.h>
#include <string.h>

static raffia_pool *make_guarded(void)
{
    struct pool_plan plan = small_plan();
    plan.flags = RAFFIA_POOL_GUARD;
    return make_pool(&plan);
}

static void guards_are_no_concern_of_a_caller_who_behaves(void **state)
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
        assert_true(found.bytes >= found.requested_bytes + 16);
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

static void an_overrun_is_caught_when_the_block_is_freed(void **state)
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

static void an_overrun_is_caught_on_demand(void **state)
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

static void an_overrun_is_caught_before_a_resize_hides_it(void **state)
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

static void an_overrun_in_an_orphaned_pool_is_still_told(void **state)
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

static void memory_out_of_the_cpus_reach_cannot_be_guarded(void **state)
{
    (void)state;
    struct driver remote = sim_driver;
    struct pool_plan plan = small_plan();
    raffia_pool *pool = NULL;
    raffia_fallback_reason reason;
    remote.device_info = out_of_reach;
    plan.device.driver = &remote;
    plan.flags = RAFFIA_POOL_GUARD;
    assert_status(RAFFIA_ERROR_UNSUPPORTED, pool_create(&plan, &pool, &reason));
    assert_error_mentions("RAFFIA_POOL_GUARD");
    assert_null(pool);
    assert_true(sim_is_idle());
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, set_up_device)
    const struct CMUnitTest tests[] = {
        TEST(guards_are_no_concern_of_a_caller_who_behaves),
        TEST(an_overrun_is_caught_when_the_block_is_freed),
        TEST(an_overrun_is_caught_on_demand),
        TEST(an_overrun_is_caught_before_a_resize_hides_it),
        TEST(an_overrun_in_an_orphaned_pool_is_still_told),
        TEST(memory_out_of_the_cpus_reach_cannot_be_guarded),
    };
    return cmocka_run_group_tests_name("pool guards", tests, NULL, NULL);
}
