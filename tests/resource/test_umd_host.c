/* The calls of raffia/umd.h over the memory of this machine. */
#include "support/cmocka.h"
#include "support/fault_loop.h"
#include "support/log_capture.h"

#include <raffia/config.h>
#include <raffia/umd.h>

#include <string.h>

#define MIB ((size_t)1 << 20)

static int set_up(void **state)
{
    (void)state;
    log_capture_start(); /* this machine may have no huge pages, and then warns of it */
    return raffia_config_set("driver", "host");
}

static int tear_down(void **state)
{
    (void)state;
    log_capture_stop();
    return 0;
}

static void b5_all_calls_work_on_the_host(void **state)
{
    (void)state;
    assert_int_equal(umd_huge_page_pool_init(0, 7 * MIB), 0);
    PoolStatus status;
    assert_int_equal(umd_huge_page_pool_query(0, &status), 0);
    assert_int_equal(status.total_size, 8 * MIB);
    assert_int_equal((uintptr_t)status.cpu_addr % (2 * MIB), 0);
    assert_true(status.page_size >= 4096);
    char *pooled = umd_huge_page_alloc(0, 3 * MIB, 0),
         *fallback = umd_huge_page_alloc(0, 6 * MIB, 0);
    char *small = umd_huge_page_alloc(0, 1000, 64);
    assert_non_null(pooled);
    assert_non_null(fallback);
    assert_non_null(small);
    memset(pooled, 1, 3 * MIB);
    memset(fallback, 2, 6 * MIB);
    memset(small, 3, 1000);
    assert_int_equal((uintptr_t)pooled % (2 * MIB), 0);
    assert_int_equal((uintptr_t)fallback % (2 * MIB), 0);
    assert_int_equal(pooled[3 * MIB - 1], 1);
    assert_int_equal(umd_huge_page_pool_query(0, &status), 0);
    assert_int_equal(status.free_size, 4 * MIB);
    assert_int_equal(status.fallbacks, 1);
    assert_int_equal(umd_huge_page_pool_destroy(0), RAFFIA_ERROR_BUSY);
    assert_int_equal(umd_huge_page_free(0, fallback), 0);
    assert_int_equal(umd_huge_page_free(0, small), 0);
    assert_int_equal(umd_huge_page_free(0, pooled + 1), RAFFIA_ERROR_BAD_ADDRESS);
    assert_int_equal(umd_huge_page_free(0, pooled), 0);
    assert_int_equal(umd_huge_page_pool_destroy(0), 0);
    assert_int_equal(umd_huge_page_pool_init(1, 0), RAFFIA_ERROR_NOT_FOUND);
}

static raffia_status life(void *context)
{
    (void)context;
    raffia_status outcome = (raffia_status)umd_huge_page_pool_init(0, 2 * MIB);
    if (outcome)
        return outcome;
    void *pooled = umd_huge_page_alloc(0, 2 * MIB, 0), *fallback = NULL;
    if (pooled) /* small, because sanitizers keep what was freed for a while */
        fallback = umd_huge_page_alloc_hint(0, 4096, 4096, RAFFIA_HINT_HUGE);
    if (!fallback)
        outcome = raffia_last_status();
    assert_int_equal(umd_huge_page_free(0, pooled), 0);
    assert_int_equal(umd_huge_page_free(0, fallback), 0);
    assert_int_equal(umd_huge_page_pool_destroy(0), 0);
    return outcome;
}

static void b7_any_call_of_a_life_on_the_host_may_fail(void **state)
{
    (void)state;
    assert_true(fault_loop(life, NULL, 500) > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(b5_all_calls_work_on_the_host, set_up, tear_down),
        cmocka_unit_test_setup_teardown(b7_any_call_of_a_life_on_the_host_may_fail, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests_name("umd host", tests, NULL, NULL);
}
