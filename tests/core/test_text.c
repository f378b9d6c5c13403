/* Numbers as text, read strictly and written for people. */
#include "core/text.h"
#include "support/cmocka.h"

#include <string.h>

static void accepts(const char *text, size_t expected)
{
    size_t bytes = 0;
    assert_ok(core_parse_size(text, &bytes));
    assert_int_equal(bytes, expected);
}

static void refuses(const char *text)
{
    size_t bytes = 4711;
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, core_parse_size(text, &bytes));
    assert_int_equal(bytes, 4711);
}

static void sizes_are_parsed_strictly(void **state)
{
    (void)state;
    accepts("0", 0);
    accepts("4096", 4096);
    accepts("4096B", 4096);
    accepts("64MiB", (size_t)64 << 20);
    accepts("1.5GiB", (size_t)3 << 29);
    accepts("2GB", 2000000000);
    accepts("7kB", 7000);
    accepts("7KB", 7000);
    accepts("1TiB", (size_t)1 << 40);
    size_t none = 0;
    assert_ok(core_parse_size_or_none("none", &none));
    assert_true(none == RAFFIA_NONE);
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, core_parse_size_or_none("many", &none));
    assert_error_mentions("or none");
    refuses("none");
    assert_null(strstr(raffia_last_error(), "or none"));
    accepts("18446744073709551614", SIZE_MAX - 1);
    static const char *const bad[] = {"",
                                      " 1",
                                      "1 ",
                                      "-1",
                                      "+1",
                                      "1 MiB",
                                      "MiB",
                                      "0x10",
                                      "1mib",
                                      "1M",
                                      "1.MiB",
                                      ".5GiB",
                                      "1.5",
                                      "0.3B",
                                      "1e3",
                                      "NONE",
                                      "1MiBB",
                                      "1,5GiB",
                                      "1..5GB",
                                      "nan",
                                      "inf",
                                      "18446744073709551615",
                                      "18446744073709551616",
                                      "17179869184GiB",
                                      "1.0000000000000000000001GiB"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        refuses(bad[i]);
}

static void shares_and_counts(void **state)
{
    (void)state;
    double share = -1;
    assert_ok(core_parse_share("8%", 1, &share));
    assert_float_equal(share, 0.08, 1e-12);
    assert_ok(core_parse_share("12.5%", 1, &share));
    assert_float_equal(share, 0.125, 1e-12);
    static const char *const bad[] = {
        "8",    "101%", "-1%", "%",   "1e1%", "nan%",   " 8%",    "8 %",
        "0x8%", "",     "8.%", ".5%", "8%%",  "1.2.3%", "100.1%", "99999999999999999999%"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, core_parse_share(bad[i], 1, &share));
    assert_float_equal(share, 0.125, 1e-12);
    assert_ok(core_parse_share("0%", 1, &share));
    assert_float_equal(share, 0, 1e-12);
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, core_parse_share("101%", 1, &share));
    assert_error_mentions("'101%' is more than the 100% allowed");
    assert_ok(core_parse_share("100%", 1, &share));
    assert_float_equal(share, 1, 1e-12);
    assert_ok(core_parse_share("0.0625%", 1, &share));
    assert_float_equal(share, 0.000625, 1e-12);
    uint64_t count = 0;
    assert_ok(core_parse_count("16", 16, &count));
    assert_int_equal(count, 16);
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, core_parse_count("17", 16, &count));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, core_parse_count("1x", 16, &count));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, core_parse_count("", 16, &count));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT,
                  core_parse_count("18446744073709551616", UINT64_MAX, &count));
    assert_int_equal(count, 16);
}

static void sizes_are_formatted_for_people(void **state)
{
    (void)state;
    char text[CORE_SIZE_TEXT_MAX];
    assert_string_equal(core_format_size(0, text), "0 B");
    assert_string_equal(core_format_size(1023, text), "1023 B");
    assert_string_equal(core_format_size((size_t)2 << 20, text), "2 MiB");
    assert_string_equal(core_format_size((size_t)3 << 29, text), "1.50 GiB");
    assert_string_equal(core_format_size(((size_t)1 << 30) - 4096, text), "1.00 GiB");
    assert_string_equal(core_format_size(((size_t)1 << 30) - (6 << 20), text), "1018 MiB");
    assert_string_equal(core_format_size(RAFFIA_NONE, text), "16.00 EiB");
    assert_string_equal(core_format_size((size_t)5 << 59, text), "2.50 EiB");
    assert_string_equal(core_format_size(((size_t)1 << 60) - 1, text), "1.00 EiB");
    assert_string_equal(core_format_size(1025, text), "1.00 KiB");
    assert_string_equal(core_format_size(1536 + 6, text), "1.51 KiB");
    assert_string_equal(core_format_size(((size_t)1 << 20) - 1, text), "1.00 MiB");
    assert_string_equal(core_format_size((size_t)3 << 40, text), "3 TiB");
    assert_string_equal(core_format_size((size_t)5000 << 40, text), "4.88 PiB");
    assert_string_equal(core_format_size(SIZE_MAX - 1, text), "16.00 EiB");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_parsed_strictly),
        cmocka_unit_test(shares_and_counts),
        cmocka_unit_test(sizes_are_formatted_for_people),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
