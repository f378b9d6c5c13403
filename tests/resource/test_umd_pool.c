/* Making, describing and destroying the pools of raffia/umd.h. */
#include "resource/umd_fixture.h"
#include "support/cmocka.h"

#include <raffia/config.h>
#include <raffia/pages.h>

#include <stdio.h>
#include <string.h>

static void b5_query_before_init_is_a_success_and_all_zero(void **state)
{
    (void)state;
    PoolStatus status, zero = {.device_id = 1};
    memset(&status, 0xff, sizeof status);
    status = status_of(1);
    assert_memory_equal(&status, &zero, sizeof zero);
}

static void b5_init_maps_the_pool_and_query_describes_it(void **state)
{
    (void)state;
    must_init(0, 64 * MIB);
    PoolStatus status = status_of(0);
    assert_int_equal(status.is_initialized, 1);
    assert_int_equal(status.total_size, 64 * MIB);
    assert_int_equal(status.free_size, 64 * MIB);
    assert_int_equal(status.largest_free, 64 * MIB);
    assert_int_equal(status.free_list_count, 1);
    assert_int_equal(status.page_size, PAGE);
    assert_int_equal(status.hits, 0);
    assert_int_equal(status.fallbacks, 0);
    assert_int_equal(status.gpu_addr % PAGE, 0);
    assert_int_equal(status.gpu_addr, (uintptr_t)status.cpu_addr);
    struct sim_usage usage;
    sim_query(0, &usage);
    assert_int_equal(usage.mapped_bytes, 64 * MIB);

    void *block = must_get(0, 10 * MIB, 0);
    status = status_of(0);
    assert_int_equal(status.free_size, 54 * MIB);
    assert_int_equal(status.largest_free, 54 * MIB);
    assert_int_equal(status.hits, 1);
    must_give(0, block);
    must_destroy(0);
    assert_int_equal(status_of(0).is_initialized, 0);
    assert_int_equal(status_of(0).total_size, 0);
}

static void b5_a_second_init_is_refused_and_changes_nothing(void **state)
{
    (void)state;
    must_init(0, 8 * MIB);
    const PoolStatus before = status_of(0);
    assert_int_equal(umd_huge_page_pool_init(0, 16 * MIB), RAFFIA_ERROR_BUSY);
    assert_error_mentions("already");
    const PoolStatus after = status_of(0);
    assert_memory_equal(&after, &before, sizeof after);
    must_destroy(0);
}

static void b5_a_destroyed_pool_can_be_built_again(void **state)
{
    (void)state;
    assert_int_equal(umd_huge_page_pool_destroy(0), RAFFIA_ERROR_NOT_FOUND);
    for (int round = 0; round < 3; round++) {
        must_init(0, 8 * MIB);
        must_give(0, must_get(0, MIB, 0));
        assert_int_equal(status_of(0).hits, 1);
        must_destroy(0);
    }
    assert_int_equal(umd_huge_page_pool_destroy(0), RAFFIA_ERROR_NOT_FOUND);
}

static void b5_a_pool_with_live_blocks_is_not_destroyed(void **state)
{
    (void)state;
    must_init(0, 8 * MIB);
    char *block = must_get(0, MIB, 0);
    assert_int_equal(umd_huge_page_pool_destroy(0), RAFFIA_ERROR_BUSY);
    assert_error_mentions("1 blocks");
    assert_int_equal(status_of(0).is_initialized, 1);
    assert_int_equal(block[0], 1);
    void *fallback = must_get(0, 9 * MIB, 0);
    must_give(0, block);
    /* Blocks of regular memory keep it too: their free must find the way. */
    assert_int_equal(umd_huge_page_pool_destroy(0), RAFFIA_ERROR_BUSY);
    must_give(0, fallback);
    must_destroy(0);
}

static void b5_an_unknown_device_is_not_found(void **state)
{
    (void)state;
    const int unknown[] = {-1, 2, 63, 64, 1000000, INT32_MIN, INT32_MAX};
    PoolStatus status;
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        assert_int_equal(umd_huge_page_pool_init(unknown[i], 0), RAFFIA_ERROR_NOT_FOUND);
        assert_int_equal(umd_huge_page_pool_destroy(unknown[i]), RAFFIA_ERROR_NOT_FOUND);
        assert_int_equal(umd_huge_page_pool_query(unknown[i], &status), RAFFIA_ERROR_NOT_FOUND);
        assert_int_equal(umd_huge_page_free(unknown[i], &status), RAFFIA_ERROR_NOT_FOUND);
        refused(RAFFIA_ERROR_NOT_FOUND, unknown[i], MIB, 0);
    }
    assert_error_mentions("sim");
    assert_int_equal(umd_huge_page_pool_query(0, NULL), RAFFIA_ERROR_INVALID_ARGUMENT);
}

static void b4_size_zero_is_the_default_share(void **state)
{
    (void)state;
    must_init(0, 0); /* 8 % of 1 GiB are 81.92 MiB */
    assert_int_equal(status_of(0).total_size, 80 * MIB);
    must_destroy(0);
    assert_ok(raffia_config_set("pool_share", "16%"));
    must_init(0, 0);
    assert_int_equal(status_of(0).total_size, 162 * MIB);
    must_destroy(0);
    assert_ok(raffia_config_set("pool_maximum", "32MiB"));
    must_init(0, 0);
    assert_int_equal(status_of(0).total_size, 32 * MIB);
    must_destroy(0);
}

static void b4_a_model_of_device_may_have_a_share_of_its_own(void **state)
{
    (void)state;
    raffia_device_info info;
    assert_ok(raffia_device_query("sim:0", &info));
    char rules[200];
    snprintf(rules, sizeof rules, "no such model:share=1%%;%s:share=2%%;*:share=3%%", info.model);
    assert_ok(raffia_config_set("device_parameters", rules));
    must_init(0, 0); /* 2 % of 1 GiB are 20.48 MiB */
    assert_int_equal(status_of(0).total_size, 20 * MIB);
    must_destroy(0);
}

static void b4_an_explicit_size_is_limited_by_what_is_free_alone(void **state)
{
    (void)state;
    assert_ok(raffia_config_set("pool_maximum", "32MiB"));
    must_init(0, 900 * MIB);
    assert_int_equal(status_of(0).total_size, 900 * MIB);
    must_destroy(0);
    assert_int_equal(umd_huge_page_pool_init(0, 2 * GIB), RAFFIA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(status_of(0).is_initialized, 0);
    assert_true(sim_is_idle());
    assert_int_equal(umd_huge_page_pool_init(0, UINT64_MAX), RAFFIA_ERROR_INVALID_ARGUMENT);
    assert_int_equal(umd_huge_page_pool_init(0, UINT64_MAX - 1), RAFFIA_ERROR_OVERFLOW);
    must_init(0, 3 * MIB);
    assert_int_equal(status_of(0).total_size, 4 * MIB);
    must_destroy(0);
}

static void b4_each_device_has_a_pool_of_its_own(void **state)
{
    (void)state;
    must_init(0, 8 * MIB);
    assert_int_equal(status_of(1).is_initialized, 0);
    must_init(1, 16 * MIB);
    assert_int_equal(status_of(0).total_size, 8 * MIB);
    assert_int_equal(status_of(1).total_size, 16 * MIB);
    void *zero = must_get(0, 8 * MIB, 0), *one = must_get(1, 8 * MIB, 0);
    assert_true(is_in_pool(0, zero));
    assert_true(is_in_pool(1, one));
    assert_int_equal(umd_huge_page_free(1, zero), RAFFIA_ERROR_BAD_ADDRESS);
    assert_int_equal(status_of(0).free_size, 0);
    assert_int_equal(status_of(1).free_size, 8 * MIB);
    must_give(0, zero);
    must_destroy(0);
    assert_int_equal(status_of(1).is_initialized, 1);
    must_give(1, one);
    must_destroy(1);
}

static void b6_a_misaligned_base_is_asked_for_again_and_then_refused(void **state)
{
    (void)state;
    struct sim_config config = {.misaligned_bases = 2};
    assert_ok(sim_configure(0, &config));
    must_init(0, 8 * MIB);
    assert_int_equal(status_of(0).gpu_addr % PAGE, 0);
    must_destroy(0);
    config.misaligned_bases = 1000;
    assert_ok(sim_configure(0, &config));
    assert_true(umd_huge_page_pool_init(0, 8 * MIB) < 0);
    assert_int_equal(status_of(0).is_initialized, 0);
    /* The lazy way it falls back. */
    assert_ok(raffia_config_set("pages", "try"));
    must_give(0, must_get(0, 32 * MIB, 0));
}

static void b6_smaller_pages_than_promised_are_not_taken_for_huge_ones(void **state)
{
    (void)state;
    struct sim_config config = {.smaller_pages = 1};
    assert_ok(sim_configure(0, &config));
    must_init(0, 8 * MIB); /* the ladder's next rung: regular pages */
    assert_int_equal(status_of(0).page_size, 4 * KIB);
    void *block = must_get(0, 3 * MIB, 0);
    assert_int_equal((uintptr_t)block % PAGE, 0);
    assert_int_equal(status_of(0).free_size, 4 * MIB);
    must_give(0, block);
    must_destroy(0);
    config.smaller_pages = 1;
    assert_ok(sim_configure(0, &config));
    assert_ok(raffia_config_set("pages", "on"));
    assert_int_equal(umd_huge_page_pool_init(0, 8 * MIB), RAFFIA_ERROR_NO_HUGE_PAGES);
}

static void b6_a_device_without_huge_pages_is_not_asked_for_them(void **state)
{
    (void)state;
    const struct sim_config config = {.page_count = 1, .pages = {{RAFFIA_PAGE_REGULAR, 4 * KIB}}};
    assert_ok(sim_configure(0, &config));
    assert_ok(raffia_config_set("pages", "on"));
    assert_int_equal(umd_huge_page_pool_init(0, 8 * MIB), RAFFIA_ERROR_NO_HUGE_PAGES);
    refused(RAFFIA_ERROR_NO_HUGE_PAGES, 0, 32 * MIB, 0);
    assert_int_equal(sim_calls("chunk_create"), 0);
}

static void b2_init_is_an_opt_in_that_the_setting_can_overrule(void **state)
{
    (void)state;
    must_init(0, 8 * MIB); /* `pages` is not set */
    assert_int_equal(status_of(0).page_size, PAGE);
    must_destroy(0);
    assert_ok(raffia_config_set("pages", "off"));
    must_init(0, 8 * MIB);
    assert_int_equal(status_of(0).page_size, 4 * KIB);
    void *block = must_get(0, MIB, 0);
    assert_true(is_in_pool(0, block));
    /* Switched on over a pool of regular pages: no request may be served from it. */
    assert_ok(raffia_config_set("pages", "on"));
    refused(RAFFIA_ERROR_NO_HUGE_PAGES, 0, MIB, 0);
    must_give(0, block);
    must_destroy(0);
}

static void b14_blocks_are_whole_gib_only_where_the_pages_are(void **state)
{
    (void)state;
    struct sim_config config = {
        .capacity_bytes = 4 * GIB,
        .page_count = 3,
        .pages = {{RAFFIA_PAGE_HUGETLB, GIB},
                  {RAFFIA_PAGE_HUGETLB, PAGE},
                  {RAFFIA_PAGE_REGULAR, 4 * KIB}},
    };
    assert_ok(sim_configure(0, &config));
    assert_ok(raffia_config_set("page_size", "1GiB"));
    must_init(0, 2 * GIB);
    assert_int_equal(status_of(0).page_size, GIB);
    void *block = must_get(0, MIB, 0);
    assert_int_equal((uintptr_t)block % GIB, 0);
    assert_int_equal(status_of(0).free_size, GIB);
    must_give(0, block);
    must_destroy(0);
    config.limits[0] =
        (struct sim_page_limit){RAFFIA_PAGE_HUGETLB, GIB, 0, RAFFIA_REASON_POOL_EMPTY};
    assert_ok(sim_configure(0, &config));
    must_init(0, 8 * MIB);
    assert_int_equal(status_of(0).page_size, PAGE);
    assert_int_equal(status_of(0).total_size, 8 * MIB);
    block = must_get(0, MIB, 0);
    assert_int_equal(status_of(0).free_size, 6 * MIB);
    must_give(0, block);
    must_destroy(0);
}

static void an_id_stays_with_its_device_while_it_is_in_use(void **state)
{
    (void)state;
    must_init(0, 8 * MIB);
    void *block = must_get(0, MIB, 0);
    assert_ok(raffia_config_set("driver", "host"));
    assert_int_equal(status_of(0).total_size, 8 * MIB);
    void *other = must_get(0, MIB, 0);
    assert_true(is_in_pool(0, other));
    must_give(0, other);
    must_give(0, block);
    must_destroy(0);
    assert_int_equal(umd_huge_page_pool_init(1, 8 * MIB), RAFFIA_ERROR_NOT_FOUND);
    assert_error_mentions("host");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_umd, tear_down_umd)
    const struct CMUnitTest tests[] = {
        TEST(b5_query_before_init_is_a_success_and_all_zero),
        TEST(b5_init_maps_the_pool_and_query_describes_it),
        TEST(b5_a_second_init_is_refused_and_changes_nothing),
        TEST(b5_a_destroyed_pool_can_be_built_again),
        TEST(b5_a_pool_with_live_blocks_is_not_destroyed),
        TEST(b5_an_unknown_device_is_not_found),
        TEST(b4_size_zero_is_the_default_share),
        TEST(b4_a_model_of_device_may_have_a_share_of_its_own),
        TEST(b4_an_explicit_size_is_limited_by_what_is_free_alone),
        TEST(b4_each_device_has_a_pool_of_its_own),
        TEST(b6_a_misaligned_base_is_asked_for_again_and_then_refused),
        TEST(b6_smaller_pages_than_promised_are_not_taken_for_huge_ones),
        TEST(b6_a_device_without_huge_pages_is_not_asked_for_them),
        TEST(b2_init_is_an_opt_in_that_the_setting_can_overrule),
        TEST(b14_blocks_are_whole_gib_only_where_the_pages_are),
        TEST(an_id_stays_with_its_device_while_it_is_in_use),
    };
    return cmocka_run_group_tests_name("umd pool", tests, NULL, NULL);
}
