/* One large allocation: new memory in 4 KiB pages against a new pool and a standing one. */
#include "cli/bench_alloc.h"
#include "cli/bench_memory.h"
#include "cli/bench_pool.h"
#include "cli/interrupt.h"
#include "cli/process.h"
#include "cli/seed_figures.h"
#include "core/clock.h"

#include <stdio.h>

/* Allocations out of the standing pool in each round: they take a microsecond. */
#define STANDING_EACH 20u

static raffia_status add_row(struct bench_alloc *bench, const char *name, unsigned threads,
                             size_t capacity, struct bench_row **row_p)
{
    *row_p = bench_report_row(bench->report, name, threads, capacity);
    return *row_p ? RAFFIA_OK : raffia_last_status();
}

raffia_status bench_alloc_first_rows(struct bench_alloc *bench)
{
    unsigned runs = bench->plan->options.runs, all = bench->threads;
    raffia_status status = RAFFIA_OK;
    for (int choice = 0; !status && choice < BENCH_ALLOC_CHOICES; choice++) {
        if (choice == BENCH_ALLOC_ALL && all == 1) {
            bench->first_regular[choice] = bench->first_regular[BENCH_ALLOC_ONE];
            bench->first_pool[choice] = bench->first_pool[BENCH_ALLOC_ONE];
            break;
        }
        bool one = choice == BENCH_ALLOC_ONE;
        status = add_row(bench, one ? "first.regular.1" : "first.regular.n", one ? 1 : all, runs,
                         &bench->first_regular[choice]);
        if (!status)
            status = add_row(bench, one ? "first.pool.1" : "first.pool.n", one ? 1 : all, runs,
                             &bench->first_pool[choice]);
    }
    if (!status)
        status = add_row(bench, "build.pool", all, runs, &bench->build_pool);
    if (!status)
        status = add_row(bench, "standing.alloc", 1, (size_t)runs * STANDING_EACH,
                         &bench->standing_alloc);
    if (!status)
        status = add_row(bench, "standing.touch", 1, runs, &bench->standing_touch);
    return status;
}

static void add_sample(struct bench_row *row, double seconds, const struct process_facts *before,
                       bool warm_up)
{
    if (warm_up)
        return;
    struct process_facts after;
    process_facts_read(&after);
    bench_row_add(row, seconds);
    row->counted = true;
    row->faults = after.minor_faults - before->minor_faults;
    row->page_table_bytes = after.page_table_bytes > before->page_table_bytes
                                ? after.page_table_bytes - before->page_table_bytes
                                : 0;
}

static raffia_status measure_regular(const struct bench_alloc *bench, struct bench_row *row,
                                     bool warm_up)
{
    bench_memory_warm(bench->first_bytes, false);
    struct process_facts before;
    process_facts_read(&before);
    unsigned char *memory;
    double started = core_clock_seconds();
    raffia_status status = bench_memory_map(bench->first_bytes, &memory);
    if (status)
        return status;
    status = bench_memory_touch(memory, bench->first_bytes, row->threads);
    double seconds = core_clock_seconds() - started;
    if (!status)
        add_sample(row, seconds, &before, warm_up);
    bench_memory_unmap(memory, bench->first_bytes);
    return status;
}

static raffia_status measure_first_of_pool(const struct bench_alloc *bench, struct bench_row *row,
                                           bool warm_up)
{
    bench_memory_warm(bench->first_bytes, true);
    struct process_facts before;
    process_facts_read(&before);
    raffia_pool *pool;
    void *block;
    raffia_status status = cli_interrupt_check();
    if (status)
        return status;
    double started = core_clock_seconds();
    status = bench_pool_make(bench->first_bytes, row->threads, &bench->plan->options, &pool);
    if (status)
        return status;
    status = raffia_pool_alloc(pool, bench->first_bytes, 0, &block);
    double seconds = core_clock_seconds() - started;
    if (!status)
        add_sample(row, seconds, &before, warm_up);
    if (!status) {
        status = bench_pool_show(pool, row);
        raffia_status freed = raffia_pool_free(pool, block);
        status = status ? status : freed;
    }
    raffia_pool_release(pool);
    return status;
}

/* One allocation; with `touch` a byte of each base page is written too, though nothing is left to
 * be made there: it tells that the pool's pages are as ready as the regular ones. */
static raffia_status measure_standing(const struct bench_alloc *bench, raffia_pool *pool,
                                      struct bench_row *row, bool touch, bool warm_up)
{
    void *block;
    double started = core_clock_seconds();
    raffia_status status = raffia_pool_alloc(pool, bench->first_bytes, 0, &block);
    if (status)
        return status;
    if (touch)
        status = bench_memory_touch(block, bench->first_bytes, 1);
    double seconds = core_clock_seconds() - started;
    if (!status && !warm_up)
        bench_row_add(row, seconds);
    raffia_status freed = raffia_pool_free(pool, block);
    return status ? status : freed;
}

raffia_status bench_alloc_build(struct bench_alloc *bench, bool warm_up, raffia_pool **pool_p)
{
    bench_memory_warm(bench->pool_bytes, true);
    struct process_facts before;
    process_facts_read(&before);
    raffia_pool *pool;
    raffia_status status = cli_interrupt_check();
    if (status)
        return status;
    double started = core_clock_seconds();
    status = bench_pool_make(bench->pool_bytes, bench->threads, &bench->plan->options, &pool);
    if (status)
        return status;
    add_sample(bench->build_pool, core_clock_seconds() - started, &before, warm_up);
    status = bench_pool_show(pool, bench->build_pool);
    if (status) {
        raffia_pool_release(pool);
        return status;
    }
    *pool_p = pool;
    return RAFFIA_OK;
}

raffia_status bench_alloc_standing_round(struct bench_alloc *bench, raffia_pool *pool, bool warm_up)
{
    raffia_status status = RAFFIA_OK;
    for (unsigned i = 0; !status && i < STANDING_EACH; i++)
        status = measure_standing(bench, pool, bench->standing_alloc, false, warm_up);
    if (!status)
        status = measure_standing(bench, pool, bench->standing_touch, true, warm_up);
    if (!status)
        status = bench_pool_show(pool, bench->standing_alloc);
    return status ? status : bench_pool_show(pool, bench->standing_touch);
}

raffia_status bench_alloc_first_round(struct bench_alloc *bench, bool warm_up)
{
    raffia_status status = RAFFIA_OK;
    int choices = bench->threads == 1 ? 1 : BENCH_ALLOC_CHOICES;
    for (int choice = 0; !status && choice < choices; choice++) {
        status = measure_regular(bench, bench->first_regular[choice], warm_up);
        if (!status)
            status = measure_first_of_pool(bench, bench->first_pool[choice], warm_up);
    }
    return status;
}

void bench_alloc_first_add(struct bench_alloc *bench)
{
    struct bench_report *report = bench->report;
    struct bench_row *const *regular = bench->first_regular, *const *pool = bench->first_pool;
    bool huge = bench_row_is_huge(bench->build_pool) && bench_row_is_huge(pool[BENCH_ALLOC_ONE]) &&
                bench_row_is_huge(pool[BENCH_ALLOC_ALL]);
    bench_report_ratio(report, "alloc.regular_over_first", regular[BENCH_ALLOC_ONE],
                       pool[BENCH_ALLOC_ALL], huge);
    bench_report_ratio(report, "alloc.regular_over_first_same_threads", regular[BENCH_ALLOC_ALL],
                       pool[BENCH_ALLOC_ALL], huge);
    bench_report_ratio(report, "alloc.regular_over_first_one_thread", regular[BENCH_ALLOC_ONE],
                       pool[BENCH_ALLOC_ONE], huge);
    bench_report_ratio(report, "alloc.regular_over_standing", regular[BENCH_ALLOC_ONE],
                       bench->standing_alloc, huge);
    bench_report_ratio(report, "alloc.regular_over_standing_touched", regular[BENCH_ALLOC_ONE],
                       bench->standing_touch, huge);
    bench_report_value(report, "alloc.standing_us", bench_row_median(bench->standing_alloc) * 1e6);
    bench_report_value(report, "alloc.break_even_allocations",
                       bench_row_median(bench->build_pool) /
                           bench_row_median(regular[BENCH_ALLOC_ONE]));
    const struct seed_figure *seed = seed_figure(SEED_ALLOCATION);
    bench_report_note(report,
                      "seed figure, not measured here: %s from %g to %g %s (%gx); compare "
                      "first.regular.1 with standing.alloc, and with standing.touch",
                      seed->what, seed->before, seed->after, seed->unit, seed->ratio);
    bench_report_note(report,
                      "alloc.break_even_allocations: so many regular allocations of the large "
                      "block cost what building the whole pool costs");
}
