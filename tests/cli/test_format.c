/* Numbers for people. */
#include "cli/format.h"
#include "support/cmocka.h"

#include <math.h>
#include <string.h>

static void durations_have_a_fitting_unit(void **state)
{
    char text[CLI_FORMAT_MAX];
    assert_string_equal(cli_format_seconds(2.346, text), "2.35 s");
    assert_string_equal(cli_format_seconds(0.0456, text), "45.6 ms");
    assert_string_equal(cli_format_seconds(7.8e-6, text), "7.80 us");
    assert_string_equal(cli_format_seconds(123e-9, text), "123 ns");
    assert_string_equal(cli_format_seconds(0, text), "0.000 s");
    assert_string_equal(cli_format_seconds(NAN, text), "-");
    (void)state;
}

static void rates_have_a_fitting_unit(void **state)
{
    char text[CLI_FORMAT_MAX];
    assert_string_equal(cli_format_rate(12.34e9, 1, text), "12.3 GB/s");
    assert_string_equal(cli_format_rate(5e6, 2, text), "2.50 MB/s");
    assert_string_equal(cli_format_rate(100, 1, text), "0.100 kB/s");
    assert_string_equal(cli_format_rate(100, 0, text), "-");
    (void)state;
}

static void rounding_keeps_three_digits(void **state)
{
    char text[CLI_FORMAT_MAX];
    assert_string_equal(cli_format_number(9.996, text), "10.0");
    assert_string_equal(cli_format_number(99.96, text), "100");
    assert_string_equal(cli_format_number(0.99951, text), "1.00");
    assert_string_equal(cli_format_number(1234567, text), "1234567");
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(durations_have_a_fitting_unit),
        cmocka_unit_test(rates_have_a_fitting_unit),
        cmocka_unit_test(rounding_keeps_three_digits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
