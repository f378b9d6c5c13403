/* The tables of names: statuses, page kinds, reasons, modes, the version. */
#include "support/cmocka.h"

#include <raffia/config.h>
#include <raffia/pages.h>
#include <raffia/status.h>
#include <raffia/version.h>

#include <stdio.h>
#include <string.h>

static const raffia_status statuses[] = {
#define STATUS(name, code, text) name,
    RAFFIA_STATUS_LIST(STATUS)
#undef STATUS
};

enum { STATUSES = sizeof statuses / sizeof *statuses };

static void each_status_has_a_code_name_and_text_of_its_own(void **state)
{
    (void)state;
    for (int i = 0; i < STATUSES; i++) {
        assert_int_equal(statuses[i], -i); /* no gaps: codes never change */
        assert_true(strlen(raffia_status_text(statuses[i])) > 0);
        for (int j = 0; j < i; j++) {
            assert_string_not_equal(raffia_status_name(statuses[i]),
                                    raffia_status_name(statuses[j]));
            assert_string_not_equal(raffia_status_text(statuses[i]),
                                    raffia_status_text(statuses[j]));
        }
    }
    assert_string_equal(raffia_status_name(RAFFIA_OK), "RAFFIA_OK");
    assert_string_equal(raffia_status_name(RAFFIA_ERROR_MISMATCH), "RAFFIA_ERROR_MISMATCH");
}

static void foreign_statuses_have_a_name(void **state)
{
    (void)state;
    static const int foreign[] = {1, -STATUSES, -1000, 1000};
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
        assert_string_equal(raffia_status_name((raffia_status)foreign[i]), "RAFFIA_UNKNOWN");
        assert_string_equal(raffia_status_text((raffia_status)foreign[i]), "unknown status");
    }
}

static void page_kinds_and_modes_have_names(void **state)
{
    (void)state;
    static const char *const kinds[] = {"none", "regular", "transparent", "hugetlb", "device"};
    assert_int_equal(sizeof kinds / sizeof *kinds, RAFFIA_PAGE_KIND_COUNT);
    for (int i = 0; i < RAFFIA_PAGE_KIND_COUNT; i++)
        assert_string_equal(raffia_page_kind_name((raffia_page_kind)i), kinds[i]);
    assert_string_equal(raffia_page_kind_name(RAFFIA_PAGE_KIND_COUNT), "unknown");
    assert_string_equal(raffia_page_kind_name((raffia_page_kind)-1), "unknown");

    static const char *const modes[] = {"default", "off", "try", "on"};
    for (int i = 0; i <= RAFFIA_PAGES_ON; i++)
        assert_string_equal(raffia_pages_mode_name((raffia_pages_mode)i), modes[i]);
    assert_string_equal(raffia_pages_mode_name((raffia_pages_mode)4), "unknown");
    assert_string_equal(raffia_pages_mode_name((raffia_pages_mode)-1), "unknown");
}

static void each_reason_has_a_label_and_a_clause_of_its_own(void **state)
{
    (void)state;
    for (int i = 0; i < RAFFIA_REASON_COUNT; i++) {
        raffia_fallback_reason reason = (raffia_fallback_reason)i;
        const char *name = raffia_fallback_reason_name(reason);
        assert_true(strlen(name) > 0);
        assert_true(strlen(raffia_fallback_reason_text(reason)) > 0);
        /* Metrics use it as a label. */
        assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyz_"), strlen(name));
        for (int j = 0; j < i; j++) {
            raffia_fallback_reason other = (raffia_fallback_reason)j;
            assert_string_not_equal(name, raffia_fallback_reason_name(other));
            assert_string_not_equal(raffia_fallback_reason_text(reason),
                                    raffia_fallback_reason_text(other));
        }
    }
    assert_string_equal(raffia_fallback_reason_name(RAFFIA_REASON_POOL_EMPTY), "pool_empty");
    assert_string_equal(raffia_fallback_reason_name(RAFFIA_REASON_LIMIT), "limit");
    assert_string_equal(raffia_fallback_reason_name(RAFFIA_REASON_COUNT), "unknown");
    assert_string_equal(raffia_fallback_reason_text((raffia_fallback_reason)-1), "unknown reason");
}

static void the_mode_in_force_is_the_setting(void **state)
{
    (void)state;
    assert_ok(raffia_config_set("pages", "on"));
    assert_int_equal(raffia_pages_mode_in_force(), RAFFIA_PAGES_ON);
    assert_ok(raffia_config_set("pages", "off"));
    assert_int_equal(raffia_pages_mode_in_force(), RAFFIA_PAGES_OFF);
    assert_ok(raffia_config_set("pages", NULL));
}

static void the_version_is_that_of_the_headers(void **state)
{
    (void)state;
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", RAFFIA_VERSION_MAJOR, RAFFIA_VERSION_MINOR,
             RAFFIA_VERSION_PATCH);
    assert_string_equal(raffia_version_text(), text);
    assert_int_equal(raffia_version(), RAFFIA_VERSION);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_status_has_a_code_name_and_text_of_its_own),
        cmocka_unit_test(foreign_statuses_have_a_name),
        cmocka_unit_test(page_kinds_and_modes_have_names),
        cmocka_unit_test(each_reason_has_a_label_and_a_clause_of_its_own),
        cmocka_unit_test(the_mode_in_force_is_the_setting),
        cmocka_unit_test(the_version_is_that_of_the_headers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
