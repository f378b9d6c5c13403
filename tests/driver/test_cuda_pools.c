/* Pools of the CUDA driver, over a fake of NVIDIA's library. */
#include "driver/cuda_test.h"
#include "life/child.h"

#define D cuda_driver

static driver_pool make_pool(int device, size_t threshold)
{
    const struct driver_pool_spec spec = {.release_threshold = threshold};
    driver_pool pool = NULL;
    assert_ok(D.pool_create(device, &spec, &pool));
    return pool;
}

static void *get(driver_pool pool, driver_stream stream, size_t bytes)
{
    void *block = NULL;
    assert_ok(D.pool_alloc(0, pool, stream, bytes, &block));
    return block;
}

static void a_pool_keeps_up_to_its_threshold(void **state)
{
    (void)state;
    driver_pool pool = make_pool(0, MIB), all = make_pool(0, SIZE_MAX);
    void *blocks[] = {get(pool, NULL, 2 * MIB), get(pool, NULL, MIB), get(all, NULL, 4 * MIB)};
    for (int i = 0; i < 3; i++)
        assert_ok(D.pool_free(0, i == 2 ? all : pool, NULL, blocks[i]));
    assert_int_equal(cuda_test_usage().pool_blocks, 0);
    assert_int_equal(cuda_test_usage().bytes, 7 * MIB);
    assert_ok(D.stream_wait(0, NULL));
    assert_true(cuda_test_usage().bytes <= 5 * MIB);
    assert_ok(D.pool_trim(0, all, 0));
    assert_ok(D.pool_trim(0, pool, 0));
    assert_int_equal(cuda_test_usage().bytes, 0);
    assert_ok(D.pool_destroy(0, pool));
    assert_ok(D.pool_destroy(0, all));
    assert_int_equal(cuda_test_usage().misuses, 0);
}

static void a_pool_is_the_devices_that_was_named(void **state)
{
    (void)state;
    struct driver_memory found;
    driver_pool pool = make_pool(1, SIZE_MAX);
    void *block = NULL;
    assert_ok(D.pool_alloc(1, pool, NULL, MIB, &block));
    assert_ok(D.find_memory(1, block, &found));
    assert_int_equal(found.kind, DRIVER_MEMORY_DEVICE);
    assert_ok(D.find_memory(0, block, &found));
    assert_int_equal(found.kind, DRIVER_MEMORY_UNKNOWN);
    assert_ok(D.pool_free(1, pool, NULL, block));
    assert_ok(D.pool_destroy(1, pool));
    assert_int_equal(cuda_test_usage().misuses, 0);
}

static void what_cuda_refuses_leaves_nothing(void **state)
{
    (void)state;
    const struct driver_pool_spec spec = {.release_threshold = MIB};
    driver_pool pool = NULL;
    void *none = NULL;
    fake_cuda_fail("cuMemPoolCreate", 1, CUDA_ERROR_OUT_OF_MEMORY);
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, D.pool_create(0, &spec, &pool));
    fake_cuda_fail("cuMemPoolSetAttribute", 1, CUDA_ERROR_INVALID_VALUE);
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, D.pool_create(0, &spec, &pool));
    fake_cuda_fail("cuDeviceGetAttribute", 1, CUDA_ERROR_UNKNOWN);
    assert_status(RAFFIA_ERROR_DRIVER, D.pool_create(0, &spec, &pool));
    assert_null(pool);
    assert_int_equal(cuda_test_usage().pools, 0);
    pool = make_pool(0, 0);
    fake_cuda_fail("cuMemAllocFromPoolAsync", 1, CUDA_ERROR_OUT_OF_MEMORY);
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, D.pool_alloc(0, pool, NULL, MIB, &none));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, D.pool_alloc(0, pool, NULL, 0, &none));
    assert_null(none);
    void *block = get(pool, NULL, MIB);
    fake_cuda_fail("cuMemFreeAsync", 1, CUDA_ERROR_UNKNOWN);
    assert_status(RAFFIA_ERROR_DRIVER, D.pool_free(0, pool, NULL, block));
    assert_int_equal(cuda_test_usage().pool_blocks, 1);
    assert_ok(D.pool_free(0, pool, NULL, block));
    fake_cuda_fail("cuMemPoolTrimTo", 1, CUDA_ERROR_UNKNOWN);
    assert_status(RAFFIA_ERROR_DRIVER, D.pool_trim(0, pool, 0));
    fake_cuda_fail("cuMemPoolDestroy", 1, CUDA_ERROR_UNKNOWN);
    assert_status(RAFFIA_ERROR_DRIVER, D.pool_destroy(0, pool));
    assert_ok(D.pool_destroy(0, pool));
    assert_int_equal(cuda_test_usage().misuses, 0);
}

/* Neither the stream's capture nor, for the legacy default stream, another's is disturbed. */
static void a_capture_is_left_alone(void **state)
{
    (void)state;
    driver_stream captured, other;
    driver_pool pool = make_pool(0, SIZE_MAX);
    void *none = NULL;
    assert_ok(D.stream_create(0, &captured));
    assert_ok(D.stream_create(0, &other));
    void *block = get(pool, captured, MIB);
    fake_cuda_capture(captured, true);
    assert_status(RAFFIA_ERROR_BUSY, D.pool_alloc(0, pool, captured, MIB, &none));
    assert_status(RAFFIA_ERROR_BUSY, D.pool_alloc(0, pool, NULL, MIB, &none));
    assert_status(RAFFIA_ERROR_BUSY, D.pool_free(0, pool, captured, block));
    assert_status(RAFFIA_ERROR_BUSY, D.pool_free(0, pool, NULL, block));
    assert_int_equal(fake_cuda_calls("cuMemFreeAsync"), 0);
    assert_ok(D.pool_free(0, pool, other, block));
    assert_ok(D.pool_free(0, pool, other, get(pool, other, MIB)));
    assert_ok(D.pool_destroy(0, make_pool(0, 0)));
    assert_ok(D.pool_trim(0, pool, 0));
    fake_cuda_capture(captured, false);
    assert_ok(D.pool_destroy(0, pool));
    assert_ok(D.stream_destroy(0, captured));
    assert_ok(D.stream_destroy(0, other));
    assert_int_equal(cuda_test_usage().misuses, 0);
}

static void a_lost_context_says_so(void **state)
{
    (void)state;
    driver_pool pool = make_pool(0, SIZE_MAX);
    void *none = NULL, *block = get(pool, NULL, MIB);
    fake_cuda_poison(0, CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_status(RAFFIA_ERROR_DRIVER, D.pool_alloc(0, pool, NULL, MIB, &none));
    assert_string_equal(raffia_last_native_error(), "CUDA_ERROR_ILLEGAL_ADDRESS");
    assert_error_mentions("is lost to this process");
    assert_status(RAFFIA_ERROR_DRIVER, D.pool_free(0, pool, NULL, block));
    assert_status(RAFFIA_ERROR_DRIVER, D.pool_destroy(0, pool));
    fake_cuda_poison(0, CUDA_SUCCESS);
    assert_ok(D.pool_free(0, pool, NULL, block));
    assert_ok(D.pool_destroy(0, pool));
}

static void a_device_without_pools_says_so(void **state)
{
    (void)state;
    const struct fake_cuda_config config = {.no_pools = true};
    driver_pool pool;
    fake_cuda_reset(&config);
    assert_status(RAFFIA_ERROR_UNSUPPORTED, D.pool_create(0, &(struct driver_pool_spec){0}, &pool));
    assert_error_mentions("the device has no pools of its own");
    assert_int_equal(fake_cuda_calls("cuMemPoolCreate"), 0);
}

static int ask_old_driver(void *context)
{
    (void)context;
    driver_pool pool;
    void *block;
    setenv("RAFFIA_CUDA_LIBRARY", FAKE_CUDA_OLD_LIBRARY, 1);
    EXPECT(D.mem_alloc(0, MIB, &block) == RAFFIA_OK); /* everything else works */
    EXPECT(D.mem_free(0, block, MIB) == RAFFIA_OK);
    EXPECT(D.pool_create(0, &(struct driver_pool_spec){0}, &pool) == RAFFIA_ERROR_UNSUPPORTED);
    EXPECT(strstr(raffia_last_error(), "too old for pools"));
    return 0;
}

int main(void)
{
    /* First: what a process opened is its driver for good. */
    if (child_run(ask_old_driver, NULL))
        return 1;
    const struct fake_cuda_config config = {.devices = 2};
    cuda_test_use_fake(&config);
    const struct CMUnitTest tests[] = {
        CUDA_TEST(a_pool_keeps_up_to_its_threshold),
        CUDA_TEST(a_pool_is_the_devices_that_was_named),
        CUDA_TEST(what_cuda_refuses_leaves_nothing),
        CUDA_TEST(a_capture_is_left_alone),
        CUDA_TEST(a_lost_context_says_so),
        CUDA_TEST(a_device_without_pools_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
