/* Blocks that change their size where they are. */
#include "pool/pool_fixture.h"
#include "support/cmocka.h"

#include <string.h>

static void a_block_shrinks_and_grows_in_place(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_MAXIMUM);
    char *block = must_alloc(pool, 10000);
    memset(block, 3, 10000);
    assert_ok(raffia_pool_resize(pool, block, 300));
    assert_int_equal(stats_of(pool).in_use_bytes, 512);
    assert_int_equal(stats_of(pool).requested_bytes, 300);
    assert_int_equal(block[299], 3);
    assert_ok(raffia_pool_resize(pool, block, 20000));
    assert_int_equal(stats_of(pool).requested_bytes, 20000);
    assert_int_equal(stats_of(pool).peak_in_use_bytes, 20224);
    assert_int_equal(block[299], 3);
    assert_ok(raffia_pool_resize(pool, block, 0));
    assert_int_equal(stats_of(pool).in_use_bytes, TEST_GRANULE);
    assert_ok(raffia_pool_check(pool));
    must_free(pool, block);
    drop_pool(pool);
}

static void a_block_grows_into_chunks_that_are_not_mapped_yet(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_MAXIMUM);
    char *block = must_alloc(pool, 1000);
    memset(block, 4, 1000);
    assert_ok(raffia_pool_resize(pool, block, TEST_MAXIMUM));
    block[TEST_MAXIMUM - 1] = 1;
    assert_int_equal(block[999], 4);
    assert_int_equal(stats_of(pool).reserved_bytes, TEST_MAXIMUM);
    assert_ok(raffia_pool_check(pool));
    must_free(pool, block);
    drop_pool(pool);
}

static void a_block_with_a_neighbour_stays_as_it_is(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_MAXIMUM);
    char *block = must_alloc(pool, 1000), *neighbour = must_alloc(pool, 1000);
    const raffia_pool_stats before = stats_of(pool);
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, raffia_pool_resize(pool, block, 5000));
    assert_error_mentions("behind it is taken");
    assert_ok(raffia_pool_resize(pool, block, 1024)); /* its own rounding is its own */
    assert_ok(raffia_pool_resize(pool, block, 1000));
    assert_int_equal(stats_of(pool).in_use_bytes, before.in_use_bytes);
    assert_int_equal(stats_of(pool).requested_bytes, before.requested_bytes);
    /* Beyond the range, and beyond all numbers. */
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, raffia_pool_resize(pool, neighbour, TEST_MAXIMUM));
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, raffia_pool_resize(pool, neighbour, SIZE_MAX));
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, raffia_pool_resize(pool, neighbour, SIZE_MAX - 100));
    assert_ok(raffia_pool_check(pool));
    must_free(pool, block);
    must_free(pool, neighbour);
    drop_pool(pool);
}

static void a_fixed_pool_does_not_grow_for_a_block(void **state)
{
    (void)state;
    struct pool_plan plan = small_plan();
    plan.initial_bytes = TEST_CHUNK;
    plan.flags = RAFFIA_POOL_FIXED;
    raffia_pool *pool = make_pool(&plan);
    void *block = must_alloc(pool, 1000);
    assert_ok(raffia_pool_resize(pool, block, TEST_CHUNK));
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, raffia_pool_resize(pool, block, TEST_CHUNK + 1));
    must_free(pool, block);
    drop_pool(pool);
}

static void the_maximum_holds_for_blocks_that_grow(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(0, TEST_MAXIMUM);
    void *block = must_alloc(pool, TEST_CHUNK), *middle = must_alloc(pool, TEST_CHUNK),
         *last = must_alloc(pool, TEST_CHUNK);
    assert_ok(raffia_pool_set_maximum(pool, 3 * TEST_CHUNK));
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, raffia_pool_resize(pool, last, TEST_CHUNK + 1));
    must_free(pool, block); /* idle now: its chunk can move behind the last block */
    assert_ok(raffia_pool_resize(pool, last, TEST_CHUNK + 1));
    assert_int_equal(stats_of(pool).chunks, 3);
    assert_ok(raffia_pool_check(pool));
    must_free(pool, middle);
    must_free(pool, last);
    drop_pool(pool);
}

static void a_driver_that_refuses_leaves_the_block_as_it_was(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_MAXIMUM);
    void *block = must_alloc(pool, TEST_CHUNK);
    sim_fail_next("chunk_create", RAFFIA_ERROR_OUT_OF_MEMORY, RAFFIA_REASON_MEMORY);
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, raffia_pool_resize(pool, block, 2 * TEST_CHUNK));
    sim_fail_next("chunk_map", RAFFIA_ERROR_DRIVER, RAFFIA_REASON_NONE);
    assert_status(RAFFIA_ERROR_DRIVER, raffia_pool_resize(pool, block, 2 * TEST_CHUNK));
    assert_int_equal(stats_of(pool).in_use_bytes, TEST_CHUNK);
    assert_int_equal(stats_of(pool).reserved_bytes, TEST_CHUNK);
    assert_ok(raffia_pool_check(pool));
    assert_ok(raffia_pool_resize(pool, block, 2 * TEST_CHUNK));
    must_free(pool, block);
    drop_pool(pool);
}

static void only_the_start_of_a_live_block_can_be_resized(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_MAXIMUM);
    char *block = must_alloc(pool, 1000);
    assert_status(RAFFIA_ERROR_BAD_ADDRESS, raffia_pool_resize(pool, block + 256, 10));
    assert_error_mentions("inside the block");
    assert_status(RAFFIA_ERROR_BAD_ADDRESS, raffia_pool_resize(pool, NULL, 10));
    must_free(pool, block);
    assert_status(RAFFIA_ERROR_BAD_ADDRESS, raffia_pool_resize(pool, block, 10));
    drop_pool(pool);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, set_up_device)
    const struct CMUnitTest tests[] = {
        TEST(a_block_shrinks_and_grows_in_place),
        TEST(a_block_grows_into_chunks_that_are_not_mapped_yet),
        TEST(a_block_with_a_neighbour_stays_as_it_is),
        TEST(a_fixed_pool_does_not_grow_for_a_block),
        TEST(the_maximum_holds_for_blocks_that_grow),
        TEST(a_driver_that_refuses_leaves_the_block_as_it_was),
        TEST(only_the_start_of_a_live_block_can_be_resized),
    };
    return cmocka_run_group_tests_name("pool resize", tests, NULL, NULL);
}
