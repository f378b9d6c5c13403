/*
 * Interface, policy, execution (SPEC B1): a caller cannot tell which path served it, and deciding
 * the path asks nobody.
 */
#include "driver/sim/sim.h"
#include "policy/ladder.h"
#include "policy/route.h"
#include "resource/umd_fixture.h"
#include "support/cmocka.h"

#include <raffia/config.h>
#include <raffia/umd.h>

#include <string.h>

enum { MARK = 0x6b };

static const struct sizes {
    size_t bytes, alignment;
} requests[] = {
    {1, 256}, {4096, 4096}, {3 * MIB, 0}, {MIB, 2 * MIB}, {20 * MIB, 0}, {17 * MIB, 256},
};

enum { REQUESTS = sizeof requests / sizeof *requests };

/* What a caller does, and all that it sees. Which requests the pool served is told by its count. */
static void live_as_a_caller(unsigned *from_pool_p)
{
    unsigned char *blocks[REQUESTS];
    *from_pool_p = 0;
    for (size_t i = 0; i < REQUESTS; i++) {
        blocks[i] = must_get(0, requests[i].bytes, requests[i].alignment);
        memset(blocks[i], (int)(MARK + i), requests[i].bytes);
        *from_pool_p += is_in_pool(0, blocks[i]);
    }
    for (size_t i = 0; i < REQUESTS; i++) {
        assert_int_equal(blocks[i][0], MARK + i);
        assert_int_equal(blocks[i][requests[i].bytes - 1], MARK + i);
        assert_int_equal(umd_huge_page_free(0, blocks[i] + 1), RAFFIA_ERROR_BAD_ADDRESS);
        must_give(0, blocks[i]);
        assert_int_equal(umd_huge_page_free(0, blocks[i]), RAFFIA_ERROR_BAD_ADDRESS);
    }
}

static void b1_a_caller_cannot_tell_which_path_served_it(void **state)
{
    (void)state;
    unsigned from_pool;
    live_as_a_caller(&from_pool); /* nobody asked for huge pages */
    assert_int_equal(from_pool, 0);

    assert_ok(raffia_config_set("pages", "try"));
    live_as_a_caller(&from_pool); /* the default pool, for those worth it */
    assert_int_equal(from_pool, 4);
    must_destroy(0);

    must_init(0, 6 * MIB); /* too small for most of them */
    live_as_a_caller(&from_pool);
    assert_int_equal(from_pool, 2);
    assert_int_equal(status_of(0).fallbacks, 2);
    must_destroy(0);

    const struct sim_config without_huge_pages = {.page_count = 1,
                                                  .pages = {{RAFFIA_PAGE_REGULAR, SIM_BASE_PAGE}}};
    sim_reset();
    assert_ok(sim_configure(0, &without_huge_pages));
    live_as_a_caller(&from_pool);
    if (status_of(0).is_initialized)
        must_destroy(0);
}

static long driver_calls(void)
{
    static const char *const verbs[] = {"devices",      "device_info", "range_reserve",
                                        "chunk_create", "chunk_map",   "page_size_of",
                                        "mem_alloc",    "mem_free"};
    long calls = 0;
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        calls += sim_calls(verbs[i]);
    return calls;
}

static void b1_policy_decides_without_asking_the_driver(void **state)
{
    (void)state;
    raffia_device_info device;
    struct policy_parameters parameters;
    struct policy_ladder ladder;
    assert_ok(raffia_device_query("sim:0", &device));
    const long before = driver_calls();
    policy_parameters_for(&device, &parameters);
    assert_ok(policy_ladder_make(RAFFIA_PAGES_TRY, parameters.page_size, &device, &ladder));
    for (size_t i = 0; i < REQUESTS; i++) {
        const struct policy_request request = {
            .bytes = requests[i].bytes, .alignment = 256, .mode = RAFFIA_PAGES_TRY};
        const struct policy_decision decision = policy_route(&request, &parameters);
        assert_int_equal(decision.route,
                         requests[i].bytes > parameters.threshold ? POLICY_HUGE : POLICY_REGULAR);
    }
    assert_int_equal(driver_calls(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(b1_a_caller_cannot_tell_which_path_served_it, set_up_umd,
                                        tear_down_umd),
        cmocka_unit_test_setup_teardown(b1_policy_decides_without_asking_the_driver, set_up_umd,
                                        tear_down_umd),
    };
    return cmocka_run_group_tests_name("life layers", tests, NULL, NULL);
}
