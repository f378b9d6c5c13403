/* What the table of headlines takes out of the benchmarks' reports. */
#include "cli/bench_headlines.h"
#include "cli/bench_tlb_rounds.h"
#include "support/cmocka.h"

#include <math.h>
#include <string.h>

static bool near(double a, double b)
{
    return fabs(a - b) < 1e-9;
}

static void add_row(struct bench_report *report, const char *name, double seconds, bool huge)
{
    struct bench_row *row = bench_report_row(report, name, 1, 1);
    assert_non_null(row);
    bench_row_add(row, seconds);
    row->has_pages = true;
    row->pages.got_kind = huge ? RAFFIA_PAGE_TRANSPARENT : RAFFIA_PAGE_REGULAR;
}

static struct bench_report *tlb_report(bool huge)
{
    struct bench_report *report = bench_report_new();
    assert_non_null(report);
    add_row(report, "spread.regular", 90e-9, false);
    add_row(report, "spread.huge", 30e-9, huge);
    return report;
}

static void b11_without_counters_the_tlb_row_is_a_time_and_says_so(void **state)
{
    struct bench_report *report = tlb_report(true);
    struct bench_headline headline;
    bench_headline_tlb(report, &headline);
    assert_string_equal(headline.source, TLB_SOURCE_PROBE);
    assert_true(headline.known && near(headline.ratio, 3) && near(headline.before, 90));
    assert_null(strstr(headline.unit, "miss"));
    assert_false(headline.comparable);
    bench_report_free(report);
    (void)state;
}

static void b11_counted_misses_are_compared_with_the_seeds(void **state)
{
    struct bench_report *report = tlb_report(true);
    bench_report_value(report, "tlb.misses_regular", 1e6);
    bench_report_value(report, "tlb.misses_huge", 1e4);
    bench_report_quotient(report, "tlb.misses_regular_over_huge", 1e6, 1e4, true);
    struct bench_headline headline;
    bench_headline_tlb(report, &headline);
    assert_string_equal(headline.source, TLB_SOURCE_COUNTERS);
    assert_string_equal(headline.unit, "misses");
    assert_true(headline.known && headline.comparable && near(headline.ratio, 100));
    assert_true(near(headline.before, 1e6) && near(headline.after, 1e4));
    bench_report_free(report);
    (void)state;
}

static void without_huge_pages_there_is_no_ratio(void **state)
{
    struct bench_report *report = tlb_report(false);
    struct bench_headline headline;
    bench_headline_tlb(report, &headline);
    assert_false(headline.known);
    bench_report_free(report);
    (void)state;
}

static void on_one_cpu_the_load_row_has_one_thread(void **state)
{
    struct bench_report *report = bench_report_new();
    assert_non_null(report);
    add_row(report, "plain.fresh4k.1", 3, false);
    add_row(report, "load.standinghuge.1", 2, true);
    struct bench_headline headline;
    bench_headline_load(report, &headline);
    assert_true(near(headline.ratio, 1.5));
    add_row(report, "load.standinghuge.n", 1, true);
    bench_headline_load(report, &headline);
    assert_true(headline.known && headline.comparable && near(headline.ratio, 3));
    bench_report_free(report);
    (void)state;
}

static void the_seeds_ratios_follow_from_its_figures(void **state)
{
    for (int i = 0; i < SEED_HEADLINES; i++) {
        const struct seed_figure *seed = seed_figure((enum seed_headline)i);
        /* One of them was stated as 8.5 for 38 and 4. */
        assert_true(fabs(seed->before / seed->after / seed->ratio - 1) < 0.13);
    }
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(b11_without_counters_the_tlb_row_is_a_time_and_says_so),
        cmocka_unit_test(b11_counted_misses_are_compared_with_the_seeds),
        cmocka_unit_test(without_huge_pages_there_is_no_ratio),
        cmocka_unit_test(on_one_cpu_the_load_row_has_one_thread),
        cmocka_unit_test(the_seeds_ratios_follow_from_its_figures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
