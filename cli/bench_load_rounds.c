#include "cli/bench_load_rounds.h"

#include "cli/bench_load_device.h"
#include "cli/bench_load_ways.h"
#include "cli/bench_memory.h"
#include "cli/bench_pool.h"
#include "cli/interrupt.h"
#include "core/checked.h"
#include "core/error.h"
#include "core/parallel.h"
#include "core/text.h"

#include <stdio.h>

enum row {
    PLAIN_FRESH_4K,
    LOAD_FRESH_4K,
    LOAD_FRESH_HUGE,
    LOAD_STANDING_4K,
    LOAD_STANDING_HUGE,
    ROW_COUNT,
};

/* Every row is measured with one thread and with several; on one CPU both are the same row. */
enum { ONE_THREAD, ALL_THREADS, THREAD_CHOICES };

struct bench {
    const struct bench_options *plan;
    struct load_subject subject;
    struct bench_report *report;
    struct bench_row *rows[ROW_COUNT][THREAD_CHOICES];
    unsigned threads[THREAD_CHOICES];
    uint64_t bytes_direct; /* read from the disk after all */
};

static bool is_huge(enum row row)
{
    return row == LOAD_FRESH_HUGE || row == LOAD_STANDING_HUGE;
}

static raffia_status make_rows(struct bench *bench)
{
    const struct bench_options *plan = bench->plan;
    static const char *const names[ROW_COUNT] = {
        [PLAIN_FRESH_4K] = "plain.fresh4k",         [LOAD_FRESH_4K] = "load.fresh4k",
        [LOAD_FRESH_HUGE] = "load.freshhuge",       [LOAD_STANDING_4K] = "load.standing4k",
        [LOAD_STANDING_HUGE] = "load.standinghuge",
    };
    for (int row = 0; row < ROW_COUNT; row++)
        for (int choice = 0; choice < THREAD_CHOICES; choice++) {
            if (choice == ALL_THREADS && bench->threads[ALL_THREADS] == 1) {
                bench->rows[row][choice] = bench->rows[row][ONE_THREAD];
                continue;
            }
            char name[BENCH_NAME_MAX];
            snprintf(name, sizeof name, "%s.%s", names[row], choice == ONE_THREAD ? "1" : "n");
            struct bench_row *made =
                bench_report_row(bench->report, name, bench->threads[choice], plan->runs);
            if (!made || bench_row_split(made))
                return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
            made->bytes_each = raffia_model_bytes(bench->subject.model);
            bench->rows[row][choice] = made;
        }
    return RAFFIA_OK;
}

static struct load_terms terms_of(const struct bench *bench, enum row row, int choice)
{
    return (struct load_terms){
        .pages = is_huge(row) ? bench->plan->pages : RAFFIA_PAGES_OFF,
        .page_size = is_huge(row) ? bench->plan->page_size : 0,
        .threads = bench->threads[choice],
    };
}

static raffia_status measure(struct bench *bench, enum row row, int choice, raffia_pool *pool,
                             bool warm_up, struct load_sample *sample)
{
    struct load_terms terms = terms_of(bench, row, choice);
    if (pool)
        return load_standing(&bench->subject, pool, terms.threads, warm_up, sample);
    bench_memory_warm(raffia_model_bytes_needed(bench->subject.model), is_huge(row));
    if (row == PLAIN_FRESH_4K)
        return load_plainly(&bench->subject, terms.threads, warm_up, sample);
    return load_fresh(&bench->subject, &terms, warm_up, sample);
}

/* One row with each number of threads. `tables` is what the pool's page tables take. */
static raffia_status run_row(struct bench *bench, enum row row, raffia_pool *pool, uint64_t tables,
                             bool warm_up)
{
    int choices = bench->threads[ALL_THREADS] == 1 ? 1 : THREAD_CHOICES;
    for (int choice = 0; choice < choices; choice++) {
        struct load_sample sample;
        raffia_status status = cli_interrupt_check();
        if (status)
            return status;
        status = measure(bench, row, choice, pool, warm_up, &sample);
        if (status)
            return core_error_prefix("%s", bench->rows[row][choice]->name);
        if (warm_up)
            continue;
        struct bench_row *into = bench->rows[row][choice];
        bench_row_add_parts(into, sample.seconds, sample.parts);
        into->counted = true;
        into->faults = sample.faults;
        into->page_table_bytes = sample.page_table_bytes + tables;
        into->pages = sample.pages;
        into->has_pages = sample.pages.total_bytes > 0;
        bench->bytes_direct += sample.bytes_direct;
    }
    return RAFFIA_OK;
}

/* The pool stands while its rows are measured, and is made anew in each round: so no more than one
 * copy of the model is in memory at a time, and no row depends on one lucky set of pages. */
static raffia_status run_standing(struct bench *bench, enum row row, bool warm_up)
{
    struct load_terms terms = terms_of(bench, row, ALL_THREADS);
    raffia_pool *pool;
    uint64_t tables;
    raffia_status status = load_pool_make(&bench->subject, &terms, &pool, &tables);
    if (status)
        return status;
    status = run_row(bench, row, pool, tables, warm_up);
    raffia_pool_release(pool);
    return status;
}

static raffia_status run_round(struct bench *bench, bool warm_up)
{
    raffia_status status = RAFFIA_OK;
    for (enum row row = 0; !status && row < ROW_COUNT; row++)
        status = row == LOAD_STANDING_4K || row == LOAD_STANDING_HUGE
                     ? run_standing(bench, row, warm_up)
                     : run_row(bench, row, NULL, 0, warm_up);
    return status;
}

static bool got_huge_pages(const struct bench *bench)
{
    for (int row = 0; row < ROW_COUNT; row++)
        for (int choice = 0; is_huge((enum row)row) && choice < THREAD_CHOICES; choice++)
            if (!bench_row_is_huge(bench->rows[row][choice]))
                return false;
    return true;
}

static void add_ratios(struct bench *bench)
{
    struct bench_report *report = bench->report;
    bool huge = got_huge_pages(bench);
    struct bench_row *const *plain = bench->rows[PLAIN_FRESH_4K];
    struct bench_row *const *standing_4k = bench->rows[LOAD_STANDING_4K];
    struct bench_row *const *standing_huge = bench->rows[LOAD_STANDING_HUGE];
    bench_report_ratio(report, "load.fresh4k_over_pool", plain[ONE_THREAD],
                       standing_huge[ALL_THREADS], huge);
    bench_report_ratio(report, "load.fresh4k_over_pool_same_threads", plain[ALL_THREADS],
                       standing_huge[ALL_THREADS], huge);
    bench_report_ratio(report, "load.fresh4k_over_pool_one_thread", plain[ONE_THREAD],
                       standing_huge[ONE_THREAD], huge);
    bench_report_ratio(report, "load.pages_alone", standing_4k[ALL_THREADS],
                       standing_huge[ALL_THREADS], huge);
    bench_report_ratio(report, "load.pages_alone_fresh", bench->rows[LOAD_FRESH_4K][ALL_THREADS],
                       bench->rows[LOAD_FRESH_HUGE][ALL_THREADS], huge);
}

static void add_notes(struct bench *bench)
{
    struct bench_report *report = bench->report;
    const raffia_page_report *pages = &bench->rows[LOAD_STANDING_HUGE][ALL_THREADS]->pages;
    char size[CORE_SIZE_TEXT_MAX];
    bench_pool_note(report, bench->rows[LOAD_STANDING_HUGE][ALL_THREADS]);
    if (pages->got_kind == RAFFIA_PAGE_TRANSPARENT)
        bench_report_note(report, "behind each transparent huge page the kernel keeps a page table "
                                  "in reserve, so its tables are as large as for 4 KiB pages");
    if (bench->bytes_direct)
        bench_report_note(report,
                          "%s were not in the page cache and came from the disk: the medians may "
                          "show the disk",
                          core_format_size(bench->bytes_direct, size));
    bench_report_note(report, "every byte was verified for each row in the warm-up round");
}

static raffia_status run(struct bench *bench)
{
    raffia_status status = make_rows(bench);
    for (unsigned round = 0; !status && round <= bench->plan->runs; round++)
        status = run_round(bench, round == 0);
    if (status)
        return status;
    add_ratios(bench);
    add_notes(bench);
    return RAFFIA_OK;
}

raffia_status bench_load_check_memory(size_t bytes)
{
    size_t need;
    if (!core_multiply(bytes, 2, &need))
        return core_error(RAFFIA_ERROR_OVERFLOW, "a model of %zu bytes exceeds the address space",
                          bytes);
    return bench_memory_check(need, "the benchmark (twice the model's size)", "--size");
}

raffia_status bench_load_measure(const char *path, const struct bench_options *plan,
                                 struct bench_report *report)
{
    if (plan->device)
        return bench_load_device_measure(path, plan, report);
    struct bench bench = {.plan = plan, .report = report};
    bench.threads[ONE_THREAD] = 1;
    bench.threads[ALL_THREADS] = core_thread_count(plan->threads);
    raffia_status status = load_subject_open(path, &bench.subject);
    if (!status)
        status = bench_load_check_memory(raffia_model_bytes_needed(bench.subject.model));
    if (!status) {
        char size[CORE_SIZE_TEXT_MAX];
        snprintf(report->title, sizeof report->title, "Loading a model of %s from the page cache",
                 core_format_size(raffia_model_bytes(bench.subject.model), size));
        status = run(&bench);
    }
    load_subject_free(&bench.subject);
    return status;
}
