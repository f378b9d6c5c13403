/* Which memory serves a request of raffia/umd.h, and the way back. */
#include "resource/umd_fixture.h"
#include "support/cmocka.h"
#include "support/log_capture.h"

#include <raffia/config.h>
#include <raffia/pages.h>

#include <stdio.h>
#include <string.h>

static size_t regular_blocks(void)
{
    struct sim_usage usage;
    sim_query(0, &usage);
    return usage.blocks;
}

static void b2_without_asking_all_memory_is_regular(void **state)
{
    (void)state;
    void *large = must_get(0, 32 * MIB, 0), *small = must_get(0, 1, 1);
    assert_int_equal(regular_blocks(), 2);
    assert_int_equal(status_of(0).is_initialized, 0);
    assert_int_equal(sim_calls("chunk_create"), 0);
    /* Nothing was meant for huge pages, so nothing fell back. */
    assert_int_equal(log_capture_count(), 0);
    must_give(0, large);
    must_give(0, small);
}

static void b4_the_first_request_that_wants_it_builds_the_default_pool(void **state)
{
    (void)state;
    assert_ok(raffia_config_set("pages", "try"));
    void *small = must_get(0, MIB, 256);
    assert_int_equal(status_of(0).is_initialized, 0);
    void *large = must_get(0, 17 * MIB, 256);
    PoolStatus status = status_of(0);
    assert_int_equal(status.is_initialized, 1);
    assert_int_equal(status.total_size, 80 * MIB);
    assert_int_equal(status.free_size, 62 * MIB);
    assert_true(is_in_pool(0, large));
    assert_false(is_in_pool(0, small));
    assert_int_equal(status.fallbacks, 0);
    must_give(0, small);
    must_give(0, large);
    must_destroy(0);
}

static void b3_size_and_alignment_choose_the_memory(void **state)
{
    (void)state;
    static const struct {
        size_t bytes, align;
        bool huge;
    } cases[] = {
        {1, 0, true},
        {1, 2 * MIB, true},
        {1, 4 * MIB, true},
        {1, MIB, false},
        {16 * MIB, 1, false},
        {16 * MIB, 256, false},
        {16 * MIB + 1, 1, true},
        {17 * MIB, MIB, true},
        {4 * KIB, 4 * KIB, false},
        {16 * MIB, 0, true},
    };
    must_init(0, 64 * MIB);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        void *block = must_get(0, cases[i].bytes, cases[i].align);
        if (is_in_pool(0, block) != cases[i].huge)
            fail_msg("%zu bytes aligned to %zu", cases[i].bytes, cases[i].align);
        must_give(0, block);
    }
    assert_int_equal(status_of(0).fallbacks, 0);
    assert_int_equal(status_of(0).hits, 6);
    must_destroy(0);
}

static void b3_thresholds_are_settings_also_of_one_model_of_device(void **state)
{
    (void)state;
    must_init(0, 64 * MIB);
    assert_ok(raffia_config_set("huge_threshold", "1MiB"));
    void *block = must_get(0, MIB + 1, 256);
    assert_true(is_in_pool(0, block));
    must_give(0, block);
    raffia_device_info info;
    assert_ok(raffia_device_query("sim:0", &info));
    char rules[200];
    snprintf(rules, sizeof rules, "%.4s*:threshold=8MiB", info.model);
    assert_ok(raffia_config_set("device_parameters", rules));
    block = must_get(0, 8 * MIB, 256);
    assert_false(is_in_pool(0, block));
    must_give(0, block);
    block = must_get(0, 8 * MIB + 1, 256);
    assert_true(is_in_pool(0, block));
    must_give(0, block);
    assert_ok(raffia_config_set("device_parameters", "*:threshold=none"));
    block = must_get(0, 32 * MIB, 256);
    assert_false(is_in_pool(0, block));
    must_give(0, block);
    must_destroy(0);
}

/* Twice each: the first request after a change reads the settings, the next goes by what was read.
 */
static void assert_in_pool_twice(size_t bytes, size_t align, bool expected)
{
    for (int i = 0; i < 2; i++) {
        void *block = must_get(0, bytes, align);
        if (is_in_pool(0, block) != expected)
            fail_msg("request %d of %zu bytes aligned to %zu: in the pool: %d", i, bytes, align,
                     !expected);
        must_give(0, block);
    }
}

static void b3_settings_that_change_hold_from_the_next_request_on(void **state)
{
    (void)state;
    assert_ok(raffia_config_set("pages", "try"));
    assert_in_pool_twice(17 * MIB, 256, true); /* builds it */
    assert_in_pool_twice(15 * MIB, 256, false);
    assert_ok(raffia_config_set("huge_threshold", "1MiB"));
    assert_in_pool_twice(15 * MIB, 256, true);
    assert_ok(raffia_config_set("pages", "off"));
    assert_in_pool_twice(15 * MIB, 256, false);
    assert_in_pool_twice(MIB, 0, false);
    assert_ok(raffia_config_set("pages", "on"));
    assert_in_pool_twice(15 * MIB, 256, true);
    assert_ok(raffia_config_set("huge_threshold", "none"));
    assert_in_pool_twice(15 * MIB, 256, false);
    assert_in_pool_twice(MIB, 0, true);
    must_destroy(0);
}

static void b11_each_request_is_logged_at_debug(void **state)
{
    (void)state;
    must_init(0, 8 * MIB);
    must_give(0, must_get(0, MIB, 0)); /* the terms are read */
    log_capture_start_at(RAFFIA_LOG_DEBUG);
    void *block = must_get(0, MIB, 0);
    const size_t after_get = log_capture_count();
    must_give(0, block);
    const size_t after_give = log_capture_count();
    log_capture_stop();
    assert_true(after_get > 0);
    assert_true(after_give > after_get);
    must_destroy(0);
}

static void b15_hints_override_size_and_choose_the_place(void **state)
{
    (void)state;
    must_init(0, 64 * MIB);
    const uint64_t base = status_of(0).gpu_addr;
    void *weights = umd_huge_page_alloc_hint(0, 2 * MIB, 256, RAFFIA_HINT_LONG_LIVED);
    void *activations = umd_huge_page_alloc_hint(0, 17 * MIB, 256, RAFFIA_HINT_SHORT_LIVED);
    assert_int_equal((uintptr_t)weights, base);
    assert_int_equal((uintptr_t)activations, base + 2 * MIB);
    void *huge = umd_huge_page_alloc_hint(0, 1, 1, RAFFIA_HINT_HUGE | RAFFIA_HINT_WILL_GROW);
    assert_int_equal((uintptr_t)huge, base + 20 * MIB);
    void *regular = umd_huge_page_alloc_hint(0, 20 * MIB, 0, RAFFIA_HINT_REGULAR);
    assert_non_null(regular);
    assert_false(is_in_pool(0, regular));
    /* Less than a page of weights is not worth one; short life changes nothing about the route. */
    void *few = umd_huge_page_alloc_hint(0, MIB, 256, RAFFIA_HINT_LONG_LIVED);
    void *brief = umd_huge_page_alloc_hint(0, 4 * MIB, 256, RAFFIA_HINT_SHORT_LIVED);
    assert_false(is_in_pool(0, few));
    assert_false(is_in_pool(0, brief));
    void *const all[] = {weights, activations, huge, regular, few, brief};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        must_give(0, all[i]);
    must_destroy(0);
}

static void b8_sizes_are_rounded_up_to_whole_pages(void **state)
{
    (void)state;
    must_init(0, 16 * MIB);
    void *block = must_get(0, 3 * MIB, 0);
    assert_int_equal(status_of(0).free_size, 12 * MIB);
    void *byte = must_get(0, 1, 0);
    assert_int_equal(status_of(0).free_size, 10 * MIB);
    must_give(0, block);
    /* 11 MiB would fit by the byte, in pages they are 12. */
    must_give(0, byte);
    byte = must_get(0, 5 * MIB, 0);
    block = must_get(0, 10 * MIB + 1, 0);
    assert_false(is_in_pool(0, block));
    assert_int_equal(status_of(0).fallbacks, 1);
    must_give(0, byte);
    must_give(0, block);
    must_destroy(0);
}

static void b9_every_address_out_of_the_pool_is_aligned_to_its_pages(void **state)
{
    (void)state;
    must_init(0, 64 * MIB);
    void *blocks[10];
    for (size_t i = 0; i < 10; i++) {
        blocks[i] = must_get(0, 1 + i * 700 * KIB, 0);
        assert_true(is_in_pool(0, blocks[i]));
        assert_int_equal((uintptr_t)blocks[i] % PAGE, 0);
    }
    for (size_t i = 0; i < 10; i++)
        must_give(0, blocks[i]);
    void *aligned = must_get(0, MIB, 16 * MIB);
    assert_true(is_in_pool(0, aligned));
    must_give(0, aligned);
    must_destroy(0);
}

static void b7_a_fallback_block_is_freed_by_the_same_call(void **state)
{
    (void)state;
    must_init(0, 8 * MIB);
    void *first = must_get(0, 6 * MIB, 0);
    void *second = must_get(0, 4 * MIB, 0);
    void *third = must_get(0, 2 * MIB, 0);
    assert_true(is_in_pool(0, first));
    assert_false(is_in_pool(0, second));
    assert_true(is_in_pool(0, third));
    assert_int_equal(regular_blocks(), 1);
    assert_int_equal(status_of(0).fallbacks, 1);
    must_give(0, second);
    assert_int_equal(regular_blocks(), 0);
    assert_int_equal(umd_huge_page_free(0, second), RAFFIA_ERROR_BAD_ADDRESS);
    must_give(0, first);
    must_give(0, third);
    must_destroy(0);
}

static void b7_freed_neighbours_are_one_again(void **state)
{
    (void)state;
    must_init(0, 16 * MIB);
    void *blocks[8];
    for (int i = 0; i < 8; i++)
        blocks[i] = must_get(0, 2 * MIB, 0);
    for (int i = 0; i < 8; i += 2)
        must_give(0, blocks[i]);
    assert_int_equal(status_of(0).free_list_count, 4);
    assert_int_equal(status_of(0).largest_free, 2 * MIB);
    for (int i = 1; i < 8; i += 2)
        must_give(0, blocks[i]);
    assert_int_equal(status_of(0).free_list_count, 1);
    void *whole = must_get(0, 16 * MIB, 0);
    assert_true(is_in_pool(0, whole));
    must_give(0, whole);
    must_destroy(0);
}

static uint64_t counted(raffia_fallback_reason reason)
{
    raffia_fallback_count rows[64];
    const size_t count = raffia_fallbacks(rows, 64);
    uint64_t sum = 0;
    for (size_t i = 0; i < count && i < 64; i++)
        if (rows[i].reason == reason)
            sum += rows[i].count;
    return sum;
}

static void b2_fallbacks_are_counted_by_reason_and_warned_of_once(void **state)
{
    (void)state;
    must_init(0, 4 * MIB);
    const uint64_t before = counted(RAFFIA_REASON_EXHAUSTED);
    void *blocks[3];
    log_capture_start();
    for (int i = 0; i < 3; i++)
        blocks[i] = must_get(0, 6 * MIB, 0);
    assert_int_equal(counted(RAFFIA_REASON_EXHAUSTED), before + 3);
    assert_true(log_capture_count() <= 1);
    assert_int_equal(status_of(0).fallbacks, 3);
    /* An alignment beyond the pool's is another reason. */
    const uint64_t unsupported = counted(RAFFIA_REASON_UNSUPPORTED);
    void *aligned = must_get(0, MIB, 64 * MIB);
    assert_false(is_in_pool(0, aligned));
    assert_int_equal(counted(RAFFIA_REASON_UNSUPPORTED), unsupported + 1);
    for (int i = 0; i < 3; i++)
        must_give(0, blocks[i]);
    must_give(0, aligned);
    must_destroy(0);
}

static void a_request_that_fell_back_leaves_the_last_error_alone(void **state)
{
    (void)state;
    must_init(0, 4 * MIB);
    refused(RAFFIA_ERROR_INVALID_ARGUMENT, 0, 0, 0);
    char sentence[1000];
    snprintf(sentence, sizeof sentence, "%s", raffia_last_error());
    must_give(0, must_get(0, 6 * MIB, 0));
    assert_string_equal(raffia_last_error(), sentence);
    must_destroy(0);
}

static void b10_huge_and_regular_memory_never_interleave(void **state)
{
    (void)state;
    must_init(0, 8 * MIB);
    void *blocks[40];
    size_t huge = 0;
    for (size_t i = 0; i < 40; i++) {
        blocks[i] = must_get(0, i % 3 ? 64 * KIB : 2 * MIB, i % 3 ? 256 : 0);
        huge += is_in_pool(0, blocks[i]);
        assert_true(i % 3 == 0 || !is_in_pool(0, blocks[i]));
    }
    assert_int_equal(huge, 4);
    assert_int_equal(status_of(0).fallbacks, 10);
    for (size_t i = 0; i < 40; i++)
        must_give(0, blocks[i]);
    must_destroy(0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_umd, tear_down_umd)
    const struct CMUnitTest tests[] = {
        TEST(b2_without_asking_all_memory_is_regular),
        TEST(b4_the_first_request_that_wants_it_builds_the_default_pool),
        TEST(b3_size_and_alignment_choose_the_memory),
        TEST(b3_thresholds_are_settings_also_of_one_model_of_device),
        TEST(b3_settings_that_change_hold_from_the_next_request_on),
        TEST(b11_each_request_is_logged_at_debug),
        TEST(b15_hints_override_size_and_choose_the_place),
        TEST(b8_sizes_are_rounded_up_to_whole_pages),
        TEST(b9_every_address_out_of_the_pool_is_aligned_to_its_pages),
        TEST(b7_a_fallback_block_is_freed_by_the_same_call),
        TEST(b7_freed_neighbours_are_one_again),
        TEST(b2_fallbacks_are_counted_by_reason_and_warned_of_once),
        TEST(a_request_that_fell_back_leaves_the_last_error_alone),
        TEST(b10_huge_and_regular_memory_never_interleave),
    };
    return cmocka_run_group_tests_name("umd route", tests, NULL, NULL);
}
