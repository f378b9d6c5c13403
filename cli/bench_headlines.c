#include "cli/bench_headlines.h"

#include "cli/bench_tlb_rounds.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define SOURCE_CLOCK "clock"

/* Two rows, in `unit`, of which a second has `scale`. */
static void from_rows(const struct bench_report *report, const char *before, const char *after,
                      double scale, struct bench_headline *headline)
{
    const struct bench_row *slow = bench_report_find_row(report, before);
    const struct bench_row *fast = bench_report_find_row(report, after);
    assert(slow && fast);
    headline->before = bench_row_median(slow) * scale;
    headline->after = bench_row_median(fast) * scale;
    headline->ratio = headline->before / headline->after;
    headline->known = bench_row_is_huge(fast) && isfinite(headline->ratio);
}

/* The row with all threads is missing where there is but one. */
static const char *with_threads(const struct bench_report *report, const char *all, const char *one)
{
    return bench_report_find_row(report, all) ? all : one;
}

static void begin(const struct bench_report *report, const char *unit,
                  struct bench_headline *headline)
{
    *headline = (struct bench_headline){.unit = unit, .comparable = true, .source = SOURCE_CLOCK};
    snprintf(headline->what, sizeof headline->what, "%s", report->title);
}

void bench_headline_load(const struct bench_report *report, struct bench_headline *headline)
{
    begin(report, "s", headline);
    from_rows(report, "plain.fresh4k.1",
              with_threads(report, "load.standinghuge.n", "load.standinghuge.1"), 1, headline);
}

void bench_headline_allocation(const struct bench_report *report, struct bench_headline *headline)
{
    begin(report, "ms", headline);
    from_rows(report, "first.regular.1", "standing.touch", 1e3, headline);
}

void bench_headline_step(const struct bench_report *report, struct bench_headline *headline)
{
    begin(report, "ms", headline);
    from_rows(report, "first.regular", "first.pool", 1e3, headline);
}

void bench_headline_tlb(const struct bench_report *report, struct bench_headline *headline)
{
    begin(report, "ns a read", headline);
    const struct bench_number *misses =
        bench_report_find_ratio(report, "tlb.misses_regular_over_huge");
    if (!misses) {
        from_rows(report, "spread.regular", "spread.huge", 1e9, headline);
        headline->source = TLB_SOURCE_PROBE;
        headline->comparable = false;
        return;
    }
    headline->unit = "misses";
    headline->source = TLB_SOURCE_COUNTERS;
    headline->known = misses->known;
    headline->ratio = misses->value;
    headline->before = bench_report_find_value(report, "tlb.misses_regular")->value;
    headline->after = bench_report_find_value(report, "tlb.misses_huge")->value;
}
