#include "cli/bench_pool.h"

raffia_status bench_pool_make(size_t bytes, unsigned threads, const struct bench_options *options,
                              raffia_pool **pool_p)
{
    raffia_pool_options pool = {
        .struct_size = sizeof pool,
        .device = "host",
        .name = "bench",
        .pages = options->pages,
        .page_size = options->page_size,
        .initial_bytes = bytes,
        .chunk_bytes = bytes,
        .granule = RAFFIA_NONE,
        .flags = RAFFIA_POOL_FIXED,
        .threads = threads,
    };
    return raffia_pool_create(&pool, pool_p);
}

raffia_status bench_pool_show(raffia_pool *pool, struct bench_row *row)
{
    raffia_pool_stats stats;
    raffia_status status = raffia_pool_query(pool, &stats);
    if (status)
        return status;
    row->pages = stats.pages;
    row->has_pages = stats.pages.total_bytes > 0;
    return RAFFIA_OK;
}

void bench_pool_note(struct bench_report *report, const struct bench_row *row)
{
    const raffia_page_report *pages = &row->pages;
    if (!bench_row_is_huge(row))
        bench_report_note(report,
                          "no huge pages could be had (%s): the ratios would compare small pages "
                          "with small pages and are left out; raffia doctor says what helps",
                          raffia_fallback_reason_text(pages->reason));
    else if (pages->reason != RAFFIA_REASON_NONE)
        bench_report_note(report, "the huge rows have %s pages: %s",
                          raffia_page_kind_name(pages->got_kind),
                          raffia_fallback_reason_text(pages->reason));
}
