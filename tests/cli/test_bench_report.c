/* Statistics of benchmarks. */
#include "cli/bench_report.h"
#include "support/cmocka.h"

#include <math.h>
#include <string.h>

static struct bench_report *report;

static int make_report(void **state)
{
    (void)state;
    report = bench_report_new();
    return report ? 0 : -1;
}

static int free_report(void **state)
{
    (void)state;
    bench_report_free(report);
    return 0;
}

static struct bench_row *row_of(const char *name, const double *samples, size_t count)
{
    struct bench_row *row = bench_report_row(report, name, 1, count);
    assert_non_null(row);
    for (size_t i = 0; i < count; i++)
        bench_row_add(row, samples[i]);
    return row;
}

static bool near(double a, double b)
{
    return fabs(a - b) < 1e-12;
}

static void medians_and_quantiles_are_those_of_the_sorted_samples(void **state)
{
    const double odd[] = {5, 1, 4, 2, 3}, even[] = {4, 1, 3, 2}, one[] = {7};
    const struct bench_row *row = row_of("odd", odd, 5);
    assert_true(near(bench_row_median(row), 3));
    assert_true(near(bench_row_quantile(row, 0), 1));
    assert_true(near(bench_row_quantile(row, 0.5), 3));
    assert_true(near(bench_row_quantile(row, 0.99), 5));
    assert_true(near(bench_row_quantile(row, 1), 5));
    assert_true(near(bench_row_mean(row), 3));
    assert_true(near(row->samples[0], 5)); /* as measured */
    row = row_of("even", even, 4);
    assert_true(near(bench_row_median(row), 2.5));
    assert_true(near(bench_row_quantile(row, 0.5), 2));
    row = row_of("one", one, 1);
    assert_true(near(bench_row_median(row), 7));
    assert_true(near(bench_row_quantile(row, 0.99), 7));
    (void)state;
}

static void samples_can_be_written_in_place_and_cut(void **state)
{
    const double old[] = {9, 9, 9, 9};
    struct bench_row *row = row_of("row", old, 4);
    double *samples = bench_row_take(row, 3);
    for (int i = 0; i < 3; i++)
        samples[i] = i + 1;
    assert_int_equal(row->count, 3);
    assert_true(near(bench_row_mean(row), 2));
    bench_row_cut(row, 2);
    bench_row_add(row, 6);
    assert_true(near(bench_row_mean(row), 3));
    (void)state;
}

static void the_99th_of_a_hundred_is_not_the_largest(void **state)
{
    double samples[200];
    for (int i = 0; i < 200; i++)
        samples[i] = 200 - i;
    const struct bench_row *row = row_of("many", samples, 200);
    assert_true(near(bench_row_quantile(row, 0.99), 198));
    (void)state;
}

static void ratios_are_of_medians_and_unknown_where_they_mean_nothing(void **state)
{
    const double slow[] = {10, 11, 12}, fast[] = {2, 2, 100}, zero[] = {0};
    struct bench_row *rows[] = {row_of("slow", slow, 3), row_of("fast", fast, 3),
                                row_of("zero", zero, 1)};
    bench_report_ratio(report, "good", rows[0], rows[1], true);
    bench_report_ratio(report, "unfair", rows[0], rows[1], false);
    bench_report_ratio(report, "infinite", rows[0], rows[2], true);
    assert_true(bench_report_find_ratio(report, "good")->known);
    assert_true(near(bench_report_find_ratio(report, "good")->value, 5.5));
    assert_false(bench_report_find_ratio(report, "unfair")->known);
    assert_false(bench_report_find_ratio(report, "infinite")->known);
    (void)state;
}

static void values_are_found_by_name_and_unknown_where_they_are_no_number(void **state)
{
    bench_report_value(report, "pairs_ns", 120);
    bench_report_value(report, "nothing", NAN);
    assert_true(near(bench_report_find_value(report, "pairs_ns")->value, 120));
    assert_false(bench_report_find_value(report, "nothing")->known);
    assert_null(bench_report_find_value(report, "pairs"));
    assert_null(bench_report_find_ratio(report, "pairs_ns"));
    assert_null(bench_report_find_row(report, "pairs_ns"));
    (void)state;
}

static void b18_the_parts_of_a_row_have_medians_of_their_own(void **state)
{
    static const double parts[3][BENCH_WAIT] = {
        {[BENCH_OPEN] = 1, [BENCH_MAP] = 2, [BENCH_READ] = 3, [BENCH_RELEASE] = 0.5},
        {[BENCH_OPEN] = 1, [BENCH_MAP] = 9, [BENCH_READ] = 4, [BENCH_RELEASE] = 0.5},
        {[BENCH_OPEN] = 1, [BENCH_MAP] = 1, [BENCH_READ] = 5, [BENCH_RELEASE] = 0.5},
    };
    struct bench_row *row = bench_report_row(report, "split", 1, 3);
    assert_non_null(row);
    assert_int_equal(bench_row_split(row), RAFFIA_OK);
    for (int i = 0; i < 3; i++)
        bench_row_add_parts(row, 16, parts[i]);
    assert_true(near(bench_row_part(row, BENCH_OPEN), 1));
    assert_true(near(bench_row_part(row, BENCH_MAP), 2));
    assert_true(near(bench_row_part(row, BENCH_READ), 4));
    assert_true(near(bench_row_part(row, BENCH_RELEASE), 0.5));
    assert_true(near(bench_row_part(row, BENCH_WAIT), 8.5)); /* what the others leave of 16 */
    assert_int_equal(bench_row_bottleneck(row), BENCH_WAIT);
    (void)state;
}

static void b18_the_bottleneck_is_the_longest_part(void **state)
{
    const double parts[BENCH_WAIT] = {[BENCH_OPEN] = 1, [BENCH_MAP] = 2, [BENCH_READ] = 1.5};
    struct bench_row *row = bench_report_row(report, "split", 1, 1);
    assert_non_null(row);
    assert_int_equal(bench_row_split(row), RAFFIA_OK);
    /* Clocks that are read one after the other can make the parts longer than the whole. */
    bench_row_add_parts(row, 4, parts);
    assert_true(near(bench_row_part(row, BENCH_WAIT), 0));
    assert_string_equal(bench_part_name(bench_row_bottleneck(row)), "map");
    (void)state;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_report, free_report)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(medians_and_quantiles_are_those_of_the_sorted_samples),
        TEST(samples_can_be_written_in_place_and_cut),
        TEST(the_99th_of_a_hundred_is_not_the_largest),
        TEST(ratios_are_of_medians_and_unknown_where_they_mean_nothing),
        TEST(values_are_found_by_name_and_unknown_where_they_are_no_number),
        TEST(b18_the_parts_of_a_row_have_medians_of_their_own),
        TEST(b18_the_bottleneck_is_the_longest_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
