/* Statistics of benchmarks. */
#include "cli/bench_report.h"
#include "support/cmocka.h"

#include <math.h>
#include <string.h>

static struct bench_row *row_of(struct bench_report *report, const char *name,
                                const double *samples, size_t count)
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
    struct bench_report report = {0};
    const double odd[] = {5, 1, 4, 2, 3}, even[] = {4, 1, 3, 2}, one[] = {7};
    const struct bench_row *row = row_of(&report, "odd", odd, 5);
    assert_true(near(bench_row_median(row), 3));
    assert_true(near(bench_row_quantile(row, 0), 1));
    assert_true(near(bench_row_quantile(row, 0.5), 3));
    assert_true(near(bench_row_quantile(row, 0.99), 5));
    assert_true(near(bench_row_quantile(row, 1), 5));
    assert_true(near(row->samples[0], 5)); /* as measured */
    row = row_of(&report, "even", even, 4);
    assert_true(near(bench_row_median(row), 2.5));
    assert_true(near(bench_row_quantile(row, 0.5), 2));
    row = row_of(&report, "one", one, 1);
    assert_true(near(bench_row_median(row), 7));
    assert_true(near(bench_row_quantile(row, 0.99), 7));
    bench_report_free(&report);
    (void)state;
}

static void the_99th_of_a_hundred_is_not_the_largest(void **state)
{
    struct bench_report report = {0};
    double samples[200];
    for (int i = 0; i < 200; i++)
        samples[i] = 200 - i;
    const struct bench_row *row = row_of(&report, "many", samples, 200);
    assert_true(near(bench_row_quantile(row, 0.99), 198));
    bench_report_free(&report);
    (void)state;
}

static void ratios_are_of_medians_and_unknown_where_they_mean_nothing(void **state)
{
    struct bench_report report = {0};
    const double slow[] = {10, 11, 12}, fast[] = {2, 2, 100}, zero[] = {0};
    struct bench_row *rows[] = {row_of(&report, "slow", slow, 3), row_of(&report, "fast", fast, 3),
                                row_of(&report, "zero", zero, 1)};
    bench_report_ratio(&report, "good", rows[0], rows[1], true);
    bench_report_ratio(&report, "unfair", rows[0], rows[1], false);
    bench_report_ratio(&report, "infinite", rows[0], rows[2], true);
    assert_true(report.ratios[0].known && near(report.ratios[0].value, 5.5));
    assert_false(report.ratios[1].known);
    assert_false(report.ratios[2].known);
    bench_report_free(&report);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(medians_and_quantiles_are_those_of_the_sorted_samples),
        cmocka_unit_test(the_99th_of_a_hundred_is_not_the_largest),
        cmocka_unit_test(ratios_are_of_medians_and_unknown_where_they_mean_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
