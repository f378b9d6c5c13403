#include "core/fallbacks.h"
#include "core/log.h"
#include "support/cmocka.h"

#include <string.h>

enum { TABLE_ROWS = 64 };

static int warnings, notes;
static char last_message[512];

static void listen(void *context, raffia_log_level level, const char *message)
{
    (void)context;
    warnings += level == RAFFIA_LOG_WARN;
    notes += level == RAFFIA_LOG_INFO;
    strncpy(last_message, message, sizeof last_message - 1);
}

static void a_step_is_counted_and_warned_of_once(void **state)
{
    (void)state;
    raffia_log_set_sink(listen, NULL);
    raffia_log_set_level(RAFFIA_LOG_INFO);
    assert_int_equal(raffia_fallbacks(NULL, 0), 0);
    for (int i = 0; i < 3; i++)
        core_fallback(RAFFIA_PAGE_HUGETLB, 2 << 20, RAFFIA_PAGE_TRANSPARENT, 2 << 20,
                      RAFFIA_REASON_POOL_EMPTY, "0 of 512 are free");
    assert_int_equal(warnings, 1);
    assert_int_equal(notes, 2);
    assert_string_equal(last_message, "no 2 MiB hugetlb pages (pool_empty: 0 of 512 are free); "
                                      "using 2 MiB transparent");
    core_fallback(RAFFIA_PAGE_HUGETLB, 2 << 20, RAFFIA_PAGE_NONE, 0, RAFFIA_REASON_POOL_EMPTY, "x");
    assert_int_equal(warnings, 2);
    assert_non_null(strstr(last_message, "nothing left to try"));

    raffia_fallback_count rows[2] = {0};
    assert_int_equal(raffia_fallbacks(rows, 1), 2);
    assert_int_equal(rows[0].count, 3);
    assert_int_equal(rows[0].to_kind, RAFFIA_PAGE_TRANSPARENT);
    assert_int_equal(rows[1].count, 0);
    assert_int_equal(raffia_fallbacks(rows, 2), 2);
    assert_int_equal(rows[1].count, 1);
}

static void a_full_table_goes_on_counting(void **state)
{
    (void)state;
    raffia_log_set_level(RAFFIA_LOG_OFF);
    for (size_t size = 1; size <= TABLE_ROWS + 10; size++)
        core_fallback(RAFFIA_PAGE_HUGETLB, size, RAFFIA_PAGE_REGULAR, 4096, RAFFIA_REASON_FAULT,
                      "x");
    raffia_fallback_count rows[TABLE_ROWS];
    assert_int_equal(raffia_fallbacks(rows, TABLE_ROWS), TABLE_ROWS);
    uint64_t total = 0;
    for (size_t i = 0; i < TABLE_ROWS; i++)
        total += rows[i].count;
    assert_int_equal(total, 4 + TABLE_ROWS + 10);
}

static void names_are_distinct_and_foreign_values_unknown(void **state)
{
    (void)state;
    for (int i = 0; i < RAFFIA_REASON_COUNT; i++) {
        const char *name = raffia_fallback_reason_name((raffia_fallback_reason)i);
        assert_true(strlen(raffia_fallback_reason_text((raffia_fallback_reason)i)) > 0);
        for (int j = 0; j < i; j++)
            assert_string_not_equal(name, raffia_fallback_reason_name((raffia_fallback_reason)j));
    }
    for (int i = 0; i < RAFFIA_PAGE_KIND_COUNT; i++)
        for (int j = 0; j < i; j++)
            assert_string_not_equal(raffia_page_kind_name((raffia_page_kind)i),
                                    raffia_page_kind_name((raffia_page_kind)j));
    assert_string_equal(raffia_page_kind_name(RAFFIA_PAGE_KIND_COUNT), "unknown");
    assert_string_equal(raffia_fallback_reason_name(RAFFIA_REASON_COUNT), "unknown");
    assert_string_equal(raffia_fallback_reason_text((raffia_fallback_reason)-1), "unknown reason");
    assert_string_equal(raffia_pages_mode_name(RAFFIA_PAGES_DEFAULT), "default");
    assert_string_equal(raffia_pages_mode_name(RAFFIA_PAGES_OFF), "off");
    assert_string_equal(raffia_pages_mode_name(RAFFIA_PAGES_TRY), "try");
    assert_string_equal(raffia_pages_mode_name(RAFFIA_PAGES_ON), "on");
    assert_string_equal(raffia_pages_mode_name((raffia_pages_mode)9), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_is_counted_and_warned_of_once),
        cmocka_unit_test(a_full_table_goes_on_counting),
        cmocka_unit_test(names_are_distinct_and_foreign_values_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
