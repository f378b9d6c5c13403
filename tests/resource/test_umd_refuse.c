/* What raffia/umd.h refuses, and with which reason. */
#include "resource/umd_fixture.h"
#include "support/cmocka.h"
#include "support/log_capture.h"

#include <raffia/config.h>
#include <raffia/pool.h>

#include <stdlib.h>
#include <string.h>

static void b5_bad_words_are_refused(void **state)
{
    (void)state;
    for (int with_pool = 0; with_pool < 2; with_pool++) {
        if (with_pool)
            must_init(0, 8 * MIB);
        refused(RAFFIA_ERROR_INVALID_ARGUMENT, 0, 0, 0);
        assert_error_mentions("0 bytes");
        refused(RAFFIA_ERROR_INVALID_ARGUMENT, 0, MIB, 3);
        assert_error_mentions("power of two");
        refused(RAFFIA_ERROR_INVALID_ARGUMENT, 0, MIB, 3 * MIB);
        const unsigned bad[] = {RAFFIA_HINT_LONG_LIVED | RAFFIA_HINT_SHORT_LIVED,
                                RAFFIA_HINT_HUGE | RAFFIA_HINT_REGULAR, 1u << 30};
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
            assert_null(umd_huge_page_alloc_hint(0, MIB, 0, bad[i]));
            assert_int_equal(raffia_last_status(), RAFFIA_ERROR_INVALID_ARGUMENT);
        }
        /* Sizes and alignments that wrap are no block. */
        assert_null(umd_huge_page_alloc(0, UINT64_MAX, 0));
        assert_null(umd_huge_page_alloc(0, UINT64_MAX - 100, (uint64_t)1 << 63));
        assert_null(umd_huge_page_alloc(0, 1, (uint64_t)1 << 63));
    }
    assert_int_equal(status_of(0).free_size, 8 * MIB);
    must_destroy(0);
}

static void b7_a_bad_address_is_refused_and_harms_nothing(void **state)
{
    (void)state;
    must_init(0, 16 * MIB);
    char *block = must_get(0, 4 * MIB, 0), *regular = must_get(0, MIB, 256);
    char *freed = must_get(0, 2 * MIB, 0), *freed_regular = must_get(0, MIB, 256);
    must_give(0, freed);
    must_give(0, freed_regular);
    int local;
    char *const bad[] = {(char *)&local,
                         block + 1,
                         block + 2 * MIB,
                         block - 1,
                         regular + 1,
                         regular + 256,
                         freed,
                         freed_regular,
                         (char *)status_of(0).cpu_addr + 14 * MIB,
                         (char *)UINTPTR_MAX};
    const PoolStatus before = status_of(0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (umd_huge_page_free(0, bad[i]) != RAFFIA_ERROR_BAD_ADDRESS)
            fail_msg("address %zu was accepted", i);
        assert_int_equal(raffia_last_status(), RAFFIA_ERROR_BAD_ADDRESS);
    }
    const PoolStatus after = status_of(0);
    assert_memory_equal(&after, &before, sizeof after);
    assert_int_equal(umd_huge_page_free(0, NULL), 0);
    assert_int_equal(block[4 * MIB - 1], 2);
    assert_int_equal(regular[MIB - 1], 2);
    must_give(0, block);
    must_give(0, regular);
    must_destroy(0);
    /* Nor where there is nothing at all. */
    assert_int_equal(umd_huge_page_free(0, block), RAFFIA_ERROR_BAD_ADDRESS);
    assert_int_equal(umd_huge_page_free(1, block), RAFFIA_ERROR_BAD_ADDRESS);
}

static void b2_on_says_why_instead_of_falling_back(void **state)
{
    (void)state;
    assert_ok(raffia_config_set("pages", "on"));
    must_init(0, 8 * MIB);
    void *block = must_get(0, 6 * MIB, 0);
    refused(RAFFIA_ERROR_OUT_OF_MEMORY, 0, 4 * MIB, 0);
    assert_error_mentions("umd sim:0");
    refused(RAFFIA_ERROR_INVALID_ARGUMENT, 0, MIB, 64 * MIB);
    assert_int_equal(status_of(0).fallbacks, 0);
    /* It speaks of requests that are meant for huge pages. */
    must_give(0, must_get(0, MIB, 256));
    must_give(0, block);
    must_destroy(0);
    const struct sim_config config = {
        .capacity_bytes = GIB,
        .limits = {{RAFFIA_PAGE_DEVICE, PAGE, 0, RAFFIA_REASON_CGROUP}},
    };
    assert_ok(sim_configure(0, &config));
    refused(RAFFIA_ERROR_NO_HUGE_PAGES, 0, 32 * MIB, 0);
    assert_error_mentions("pages=on");
    assert_int_equal(umd_huge_page_pool_init(0, 8 * MIB), RAFFIA_ERROR_NO_HUGE_PAGES);
}

static void b4_a_failing_pool_is_not_built_anew_for_each_request(void **state)
{
    (void)state;
    assert_ok(raffia_config_set("pages", "try"));
    struct sim_config config = {.misaligned_bases = 100000};
    assert_ok(sim_configure(0, &config));
    long before = 0;
    for (int i = 1; i <= 15; i++) {
        must_give(0, must_get(0, 20 * MIB, 0));
        const long after = sim_calls("range_reserve");
        const bool tried = after > before;
        before = after;
        if (tried != (i == 1 || i == 3 || i == 7 || i == 15))
            fail_msg("request %d %s", i, tried ? "tried" : "did not try");
    }
    /* A changed setting may change everything. */
    config.misaligned_bases = 0;
    assert_ok(sim_configure(0, &config));
    assert_ok(raffia_config_set("pages", "try"));
    void *block = must_get(0, 20 * MIB, 0);
    assert_true(is_in_pool(0, block));
    must_give(0, block);
    must_destroy(0);
}

static void b4_an_out_of_memory_error_says_what_is_free_idle_and_set(void **state)
{
    (void)state;
    const struct sim_config config = {.capacity_bytes = 64 * MIB};
    assert_ok(sim_configure(0, &config));
    must_init(0, 16 * MIB);
    void *pool_block = must_get(0, 16 * MIB, 0), *regular = must_get(0, 16 * MIB, 256);
    refused(RAFFIA_ERROR_OUT_OF_MEMORY, 0, 33 * MIB, 0);
    assert_error_mentions("32 MiB are free");
    assert_error_mentions("idle");
    assert_error_mentions("pool_share");
    assert_error_mentions("sim:0");
    must_give(0, pool_block);
    must_give(0, regular);
    must_destroy(0);
}

static void b4_idle_chunks_are_given_back_before_a_request_fails(void **state)
{
    (void)state;
    const struct sim_config config = {.capacity_bytes = 64 * MIB};
    assert_ok(sim_configure(0, &config));
    must_init(0, 48 * MIB);
    /* Too large for the pool, and for what is free beside it. */
    void *block = must_get(0, 60 * MIB, 256);
    assert_false(is_in_pool(0, block));
    assert_true(status_of(0).total_size <= 4 * MIB);
    must_give(0, block);
    /* The pool takes its memory back when it is wanted. */
    block = must_get(0, 48 * MIB, 0);
    assert_true(is_in_pool(0, block));
    must_give(0, block);
    must_destroy(0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_umd, tear_down_umd)
    const struct CMUnitTest tests[] = {
        TEST(b5_bad_words_are_refused),
        TEST(b7_a_bad_address_is_refused_and_harms_nothing),
        TEST(b2_on_says_why_instead_of_falling_back),
        TEST(b4_a_failing_pool_is_not_built_anew_for_each_request),
        TEST(b4_an_out_of_memory_error_says_what_is_free_idle_and_set),
        TEST(b4_idle_chunks_are_given_back_before_a_request_fails),
    };
    return cmocka_run_group_tests_name("umd refuse", tests, NULL, NULL);
}
