/* The simulated device's pools: order, what is kept, and what is taken for a misuse. */
#include "driver/sim_test.h"

#define D sim_driver

static driver_pool make_pool(size_t threshold)
{
    const struct driver_pool_spec spec = {.release_threshold = threshold};
    driver_pool pool = NULL;
    assert_ok(D.pool_create(0, &spec, &pool));
    return pool;
}

static driver_stream make_stream(void)
{
    driver_stream stream = NULL;
    assert_ok(D.stream_create(0, &stream));
    return stream;
}

static char *get(driver_pool pool, driver_stream stream, size_t bytes)
{
    void *block = NULL;
    assert_ok(D.pool_alloc(0, pool, stream, bytes, &block));
    return block;
}

static void end(driver_pool pool, driver_stream stream)
{
    assert_ok(D.stream_wait(0, stream));
    assert_ok(D.stream_destroy(0, stream));
    assert_ok(D.pool_destroy(0, pool));
}

static void memory_is_used_again_in_order_only(void **state)
{
    (void)state;
    driver_pool pool = make_pool(SIZE_MAX);
    driver_stream a = make_stream(), b = make_stream();
    char *block = get(pool, a, 8 * KIB);
    assert_ok(D.stream_wait(0, a));
    assert_ok(sim_stream_hold(0, a));
    assert_ok(D.fill(0, a, block, 1, 8 * KIB));
    assert_ok(D.pool_free(0, pool, a, block));
    assert_int_equal(sim_test_usage(0).pool_blocks, 0);
    /* The free has not come: another stream gets other memory, the same one gets this at once. */
    char *elsewhere = get(pool, b, 8 * KIB);
    assert_ptr_not_equal(elsewhere, block);
    assert_ptr_equal(get(pool, a, 8 * KIB), block);
    assert_ok(D.pool_free(0, pool, a, block));
    assert_ok(sim_stream_resume(0, a));
    assert_ok(D.stream_wait(0, a));
    assert_ptr_equal(get(pool, b, 8 * KIB), block); /* now it has */
    assert_ok(D.pool_free(0, pool, b, block));
    assert_ok(D.pool_free(0, pool, b, elsewhere));
    assert_ok(D.stream_destroy(0, a));
    end(pool, b);
}

static void blocks_are_cut_and_the_device_gets_the_rest_back(void **state)
{
    (void)state;
    assert_ok(sim_configure(0, &(struct sim_config){.capacity_bytes = 4 * MIB}));
    driver_pool pool = make_pool(SIZE_MAX);
    char *block = get(pool, NULL, 3 * MIB);
    void *none = NULL;
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, D.pool_alloc(0, pool, NULL, 2 * MIB, &none));
    assert_ok(D.pool_free(0, pool, NULL, block));
    assert_ok(D.stream_wait(0, NULL));
    assert_int_equal(sim_test_usage(0).pool_bytes, 3 * MIB);
    char *halves[2] = {get(pool, NULL, MIB), get(pool, NULL, MIB)};
    assert_int_equal(sim_test_usage(0).pool_bytes, 3 * MIB);
    assert_int_equal(sim_test_usage(0).pool_block_bytes, 2 * MIB);
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, D.mem_alloc(0, 2 * MIB, &none));
    assert_ok(D.pool_trim(0, pool, 0)); /* nobody's third of it */
    assert_ok(D.mem_alloc(0, 2 * MIB, &none));
    assert_ok(D.mem_free(0, none, 2 * MIB));
    for (int i = 0; i < 2; i++)
        assert_ok(D.pool_free(0, pool, NULL, halves[i]));
    assert_ok(D.stream_wait(0, NULL));
    /* Idle pieces make room for a request that none of them holds. */
    block = get(pool, NULL, 4 * MIB);
    assert_ok(D.pool_free(0, pool, NULL, block));
    assert_ok(D.pool_destroy(0, pool));
}

static void what_is_beyond_the_threshold_goes_when_somebody_waits(void **state)
{
    (void)state;
    driver_event event;
    assert_ok(D.event_create(0, &event));
    for (int how = 0; how < 3; how++) {
        driver_pool pool = make_pool(MIB);
        char *large = get(pool, NULL, 2 * MIB), *small = get(pool, NULL, MIB);
        assert_ok(D.pool_free(0, pool, NULL, large));
        assert_ok(D.pool_free(0, pool, NULL, small));
        assert_ok(D.event_record(0, event, NULL));
        assert_int_equal(sim_test_usage(0).pool_bytes, 3 * MIB);
        if (how == 0)
            assert_ok(D.stream_wait(0, NULL));
        else if (how == 1)
            assert_ok(D.event_wait(0, event));
        else
            assert_ok(D.device_wait(0));
        assert_true(sim_test_usage(0).pool_bytes <= MIB);
        assert_ok(D.pool_destroy(0, pool));
        assert_int_equal(sim_test_usage(0).pool_bytes, 0);
    }
    assert_ok(D.event_destroy(0, event));
}

static void a_free_that_cannot_come_outlives_its_pool_and_stream(void **state)
{
    (void)state;
    driver_pool pool = make_pool(SIZE_MAX);
    driver_stream stream = make_stream(), other = make_stream();
    driver_event event;
    char *block = get(pool, stream, MIB);
    assert_ok(D.event_create(0, &event));
    assert_ok(sim_stream_hold(0, other));
    assert_ok(D.event_record(0, event, other));
    assert_ok(D.stream_wait_event(0, stream, event));
    assert_ok(D.fill(0, stream, block, 1, MIB));
    assert_ok(D.pool_free(0, pool, stream, block));
    assert_ok(D.stream_destroy(0, stream));
    assert_ok(D.pool_destroy(0, pool));
    assert_int_equal(sim_test_usage(0).pools, 0);
    assert_int_equal(sim_test_usage(0).pool_bytes, MIB);
    assert_ok(sim_stream_resume(0, other));
    assert_ok(D.device_wait(0));
    assert_int_equal(sim_test_usage(0).pool_bytes, 0);
    assert_ok(D.event_destroy(0, event));
    assert_ok(D.stream_destroy(0, other));
}

static void a_capture_is_left_alone(void **state)
{
    (void)state;
    driver_pool pool = make_pool(SIZE_MAX);
    driver_stream stream = make_stream();
    void *none = NULL;
    char *block = get(pool, stream, KIB);
    assert_ok(sim_stream_capture_begin(0, stream));
    assert_status(RAFFIA_ERROR_BUSY, D.pool_alloc(0, pool, stream, KIB, &none));
    assert_status(RAFFIA_ERROR_BUSY, D.pool_free(0, pool, stream, block));
    assert_ok(D.fill(0, stream, block, 1, KIB));
    assert_ok(sim_stream_capture_end(0, stream, true));
    assert_ok(D.pool_free(0, pool, stream, block));
    end(pool, stream);
}

static void a_device_without_streams_has_no_pools(void **state)
{
    (void)state;
    driver_pool pool;
    assert_ok(sim_configure(0, &(struct sim_config){.synchronous = true}));
    assert_status(RAFFIA_ERROR_UNSUPPORTED, D.pool_create(0, &(struct driver_pool_spec){0}, &pool));
}

static void pool_memory_can_be_hidden(void **state)
{
    (void)state;
    assert_ok(sim_configure(0, &(struct sim_config){.cpu_inaccessible = true}));
    driver_pool pool = make_pool(SIZE_MAX);
    char *whole = get(pool, NULL, 2 * MIB), bytes[4] = {0};
    assert_ok(D.pool_free(0, pool, NULL, whole));
    assert_ok(D.stream_wait(0, NULL));
    char *block = get(pool, NULL, MIB), *rest = get(pool, NULL, MIB);
    struct driver_memory found;
    assert_ok(D.fill(0, NULL, rest, 7, MIB));
    assert_ok(D.copy(0, NULL, block + MIB - 4, rest + MIB - 4, 4));
    assert_ok(D.copy(0, NULL, bytes, block + MIB - 4, 4));
    assert_ok(D.stream_wait(0, NULL));
    assert_memory_equal(bytes, "\7\7\7\7", 4);
    assert_ptr_not_equal(sim_view(rest), rest);
    assert_int_equal(*(char *)sim_view(rest), 7);
    assert_ok(D.find_memory(0, rest + 100, &found));
    assert_int_equal(found.kind, DRIVER_MEMORY_DEVICE);
    assert_int_equal(found.start, (uintptr_t)rest);
    assert_ok(D.pool_free(0, pool, NULL, rest));
    assert_ok(D.find_memory(0, rest, &found));
    assert_int_equal(found.kind, DRIVER_MEMORY_UNKNOWN);
    assert_ok(D.pool_free(0, pool, NULL, block));
    assert_ok(D.pool_destroy(0, pool));
}

static void wrong_calls_are_misuses(void **state)
{
    (void)state;
    driver_pool pool = make_pool(SIZE_MAX), other = make_pool(SIZE_MAX);
    driver_stream stream = make_stream();
    static char foreign[KIB];
    void *none = NULL;
    char *block = get(pool, stream, 100);
    assert_misuse(D.pool_free(0, pool, stream, foreign), "no block of the pool");
    assert_misuse(D.pool_free(0, pool, stream, block + 1), "no block of the pool");
    assert_misuse(D.pool_free(0, other, stream, block), "no block of the pool");
    assert_misuse(D.pool_destroy(0, pool), "is live");
    assert_misuse(D.fill(0, stream, block, 1, 101), "crosses the edge");
    assert_ok(D.pool_free(0, pool, stream, block));
    assert_misuse(D.pool_free(0, pool, stream, block), "freed before");
    assert_misuse(D.fill(0, stream, block, 1, 1), "was freed to its pool");
    block = get(pool, stream, 100);
    assert_ok(D.stream_retire(0, stream));
    assert_misuse(D.pool_alloc(0, pool, stream, 1, &none), "was retired");
    assert_misuse(D.pool_free(0, pool, stream, block), "was retired");
    assert_ok(D.pool_free(0, pool, NULL, block)); /* it was refused, not lost */
    assert_ok(D.stream_destroy(0, stream));
    assert_ok(D.pool_destroy(0, pool));
    assert_misuse(D.pool_alloc(0, pool, NULL, 1, &none), "does not exist");
    assert_misuse(D.pool_destroy(0, pool), "does not exist");
    assert_misuse(D.pool_trim(0, pool, 0), "does not exist");
    assert_ok(D.pool_destroy(0, other));
}

static void missing_order_is_a_misuse(void **state)
{
    (void)state;
    driver_pool pool = make_pool(SIZE_MAX);
    driver_stream a = make_stream(), b = make_stream();
    assert_ok(sim_stream_hold(0, a));
    char *block = get(pool, a, KIB);
    assert_ok(D.fill(0, b, block, 1, KIB)); /* before the allocation comes */
    assert_ok(D.stream_wait(0, b));
    assert_int_equal(sim_test_usage(0).misuses, 1);
    assert_non_null(strstr(sim_test_usage(0).first_misuse, "before the stream of its pool_alloc"));
    assert_ok(sim_stream_resume(0, a));
    assert_ok(D.stream_wait(0, a));
    assert_ok(sim_stream_hold(0, b));
    assert_ok(D.fill(0, b, block, 2, KIB));
    assert_ok(D.pool_free(0, pool, a, block)); /* and nobody waits for b */
    assert_ok(D.stream_wait(0, a));
    assert_int_equal(sim_test_usage(0).misuses, 2);
    assert_ok(sim_stream_resume(0, b));
    assert_ok(D.stream_destroy(0, b));
    end(pool, a);
}

static void a_lost_context_says_so(void **state)
{
    (void)state;
    driver_pool pool = make_pool(SIZE_MAX);
    void *none = NULL;
    char *block = get(pool, NULL, KIB);
    sim_poison(0);
    assert_status(RAFFIA_ERROR_DRIVER, D.pool_alloc(0, pool, NULL, KIB, &none));
    assert_status(RAFFIA_ERROR_DRIVER, D.pool_free(0, pool, NULL, block));
    assert_status(RAFFIA_ERROR_DRIVER, D.pool_trim(0, pool, 0));
    assert_status(RAFFIA_ERROR_DRIVER, D.pool_destroy(0, pool));
    assert_string_equal(raffia_last_native_error(), "SIM_POISONED");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SIM_TEST(memory_is_used_again_in_order_only),
        SIM_TEST(blocks_are_cut_and_the_device_gets_the_rest_back),
        SIM_TEST(what_is_beyond_the_threshold_goes_when_somebody_waits),
        SIM_TEST(a_free_that_cannot_come_outlives_its_pool_and_stream),
        SIM_TEST(a_capture_is_left_alone),
        SIM_TEST(a_device_without_streams_has_no_pools),
        SIM_TEST(pool_memory_can_be_hidden),
        SIM_TEST_OF_MISUSE(wrong_calls_are_misuses),
        SIM_TEST_OF_MISUSE(missing_order_is_a_misuse),
        SIM_TEST_OF_MISUSE(a_lost_context_says_so),
    };
    return cmocka_run_group_tests_name("pools of a simulated device", tests, NULL, NULL);
}
