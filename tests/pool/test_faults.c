/* Whole lives of pools, with each call of each life failing once. */
#include "pool/pool_fixture.h"
#include "support/cmocka.h"
#include "support/fault_loop.h"

#include <string.h>

#define BLOCKS 6

static void assert_device_is_clean(void)
{
    struct sim_usage usage;
    sim_query(0, &usage);
    assert_string_equal(usage.first_misuse, "");
    assert_true(sim_is_idle());
}

/* After any failure the pool must be sound, own up to all that is mapped, and what is live must be
 * intact. */
static void assert_sound(raffia_pool *pool, char *const blocks[BLOCKS], size_t bytes)
{
    struct sim_usage usage;
    sim_query(0, &usage);
    assert_int_equal(usage.mapped_bytes, stats_of(pool).reserved_bytes);
    assert_ok(raffia_pool_check(pool));
    for (size_t i = 0; i < BLOCKS; i++)
        for (size_t at = 0; blocks[i] && at < bytes; at += TEST_PAGE)
            assert_int_equal(blocks[i][at], (char)i + 1);
}

static raffia_status fill(raffia_pool *pool, char *blocks[BLOCKS], size_t bytes)
{
    for (size_t i = 0; i < BLOCKS; i++) {
        void *block = NULL;
        raffia_status status = blocks[i] ? RAFFIA_OK : raffia_pool_alloc(pool, bytes, 0, &block);
        if (status)
            return status;
        if (block) {
            blocks[i] = block;
            memset(block, (int)i + 1, bytes);
        }
    }
    return RAFFIA_OK;
}

/* A free must not fail, whatever does. */
static void empty(raffia_pool *pool, char *blocks[BLOCKS], size_t step)
{
    for (size_t i = 0; i < BLOCKS; i += step) {
        if (blocks[i])
            must_free(pool, blocks[i]);
        blocks[i] = NULL;
    }
}

static raffia_status live(raffia_pool *pool, char *blocks[BLOCKS], size_t bytes)
{
    raffia_page_report report;
    raffia_status status = fill(pool, blocks, bytes);
    assert_sound(pool, blocks, bytes);
    empty(pool, blocks, 2);
    if (!status)
        status = raffia_pool_trim(pool, 0, NULL);
    assert_sound(pool, blocks, bytes);
    if (!status)
        status = fill(pool, blocks, bytes);
    assert_sound(pool, blocks, bytes);
    if (!status)
        status = raffia_pool_verify(pool, &report);
    if (!status && blocks[BLOCKS - 1])
        status = raffia_pool_resize(pool, blocks[BLOCKS - 1], bytes + TEST_PAGE);
    if (!status)
        status = raffia_pool_set_maximum(pool, TEST_CHUNK);
    assert_sound(pool, blocks, bytes);
    return status;
}

static raffia_status life_of_a_pool(void *context)
{
    const struct pool_plan *plan = context;
    char *blocks[BLOCKS] = {NULL};
    raffia_pool *pool = NULL;
    raffia_fallback_reason reason;
    raffia_status status = pool_create(plan, &pool, &reason);
    if (status) {
        assert_null(pool);
        assert_device_is_clean();
        return status;
    }
    status = live(pool, blocks, 5 * TEST_PAGE);
    empty(pool, blocks, 1);
    assert_ok(raffia_pool_check(pool));
    const raffia_pool_stats stats = stats_of(pool);
    assert_int_equal(stats.free_bytes, stats.reserved_bytes);
    raffia_pool_release(pool);
    assert_device_is_clean();
    return status;
}

static void any_call_of_a_pools_life_may_fail(void **state)
{
    (void)state;
    const unsigned flags[] = {0,
                              RAFFIA_POOL_REMAPPABLE,
                              RAFFIA_POOL_GUARD,
                              RAFFIA_POOL_ADAPTIVE,
                              RAFFIA_POOL_ADAPTIVE | RAFFIA_POOL_GUARD,
                              RAFFIA_POOL_ADAPTIVE | RAFFIA_POOL_REMAPPABLE};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        struct pool_plan plan = small_plan();
        plan.initial_bytes = 2 * TEST_CHUNK;
        plan.maximum_bytes = 9 * TEST_CHUNK;
        plan.flags = flags[i];
        assert_true(fault_loop(life_of_a_pool, &plan, 1000) > 30);
    }
}

static raffia_status life_beside_a_full_device(void *context)
{
    (void)context;
    raffia_pool *pool = NULL;
    raffia_fallback_reason reason;
    struct pool_plan plan = small_plan();
    raffia_status status = pool_create(&plan, &pool, &reason);
    if (status)
        return status;
    void *low = NULL, *pin = NULL, *large = NULL;
    status = raffia_pool_alloc(pool, TEST_CHUNK, 0, &low);
    if (!status)
        status = raffia_pool_alloc(pool, TEST_CHUNK, 0, &pin);
    if (low)
        must_free(pool, low);
    if (!status) /* the chunk of `low` has to move behind that of `pin` */
        status = raffia_pool_alloc(pool, 2 * TEST_CHUNK, 0, &large);
    assert_ok(raffia_pool_check(pool));
    if (pin)
        must_free(pool, pin);
    if (large)
        must_free(pool, large);
    raffia_pool_release(pool);
    assert_device_is_clean();
    return status;
}

static void any_call_may_fail_while_chunks_move(void **state)
{
    (void)state;
    fresh_device(&(struct sim_config){.capacity_bytes = 3 * TEST_CHUNK});
    assert_true(fault_loop(life_beside_a_full_device, NULL, 500) > 10);
}

static raffia_status life_on_streams(void *context)
{
    (void)context;
    raffia_pool *pool = NULL;
    raffia_fallback_reason reason;
    struct pool_plan plan = small_plan();
    raffia_status status = pool_create(&plan, &pool, &reason);
    if (status)
        return status;
    void *block = NULL;
    status = raffia_pool_alloc_on(pool, NULL, 100, 0, &block);
    if (!status) {
        status = raffia_pool_free_on(pool, NULL, block);
        if (status)
            must_free(pool, block);
    }
    raffia_pool_release(pool);
    return status;
}

static void any_call_of_a_stream_may_fail(void **state)
{
    (void)state;
    /* The device makes its default stream when it is first waited for, and keeps it. */
    assert_ok(sim_driver.stream_wait(0, NULL));
    assert_true(fault_loop(life_on_streams, NULL, 200) > 5);
}

/* The verbs that give memory back are failed one by one: the teardown must try again. */
static void a_teardown_outlasts_a_failing_driver(void **state)
{
    (void)state;
    const char *const verbs[] = {"chunk_unmap", "chunk_destroy", "range_release"};
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        raffia_pool *pool = make_pool_of(3 * TEST_CHUNK, TEST_MAXIMUM);
        sim_fail_next(verbs[i], RAFFIA_ERROR_DRIVER, RAFFIA_REASON_NONE);
        drop_pool(pool);
    }
}

/* What the pool kept account of goes; that nothing of it leaks, the address sanitizer says. */
static void a_pool_ends_when_its_device_is_lost(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(3 * TEST_CHUNK, TEST_MAXIMUM);
    void *block = must_alloc(pool, 1000);
    sim_poison(0);
    assert_ok(raffia_pool_free(pool, block));
    raffia_pool_release(pool);
    struct sim_usage usage;
    sim_query(0, &usage);
    assert_int_equal(usage.misuses, 0);
    fresh_device(NULL);
    drop_pool(make_pool_of(3 * TEST_CHUNK, TEST_MAXIMUM));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, set_up_device)
    const struct CMUnitTest tests[] = {
        TEST(any_call_of_a_pools_life_may_fail),   TEST(any_call_may_fail_while_chunks_move),
        TEST(any_call_of_a_stream_may_fail),       TEST(a_teardown_outlasts_a_failing_driver),
        TEST(a_pool_ends_when_its_device_is_lost),
    };
    return cmocka_run_group_tests_name("pool faults", tests, NULL, NULL);
}
