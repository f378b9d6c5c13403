/* Many pairs of allocation and free. */
#include "cli/bench_alloc.h"
#include "cli/bench_alloc_ways.h"
#include "cli/bench_pool.h"
#include "cli/bench_umd.h"
#include "core/checked.h"
#include "core/clock.h"
#include "core/memory.h"

/* Regular pairs of all rounds together: each takes milliseconds. */
#define REGULAR_PAIRS_MAX 200u

/* No regular page is larger. */
#define BASE_PAGE_MAX ((uint64_t)64 << 10)

/* Clock readings that are timed together. */
#define CLOCK_READINGS 1000u

static size_t regular_pairs_each(const struct bench_alloc *bench)
{
    unsigned runs = bench->plan->options.runs;
    size_t all = core_min(bench->plan->pairs, REGULAR_PAIRS_MAX);
    return core_max(all / runs, 1);
}

raffia_status bench_alloc_pair_rows(struct bench_alloc *bench)
{
    size_t runs = bench->plan->options.runs, pairs = bench->plan->pairs;
    const struct {
        struct bench_row **row_p;
        const char *name;
        size_t capacity;
    } rows[] = {
        {&bench->pair_pool, "pair.pool", pairs},
        {&bench->pair_pool_alloc, "pair.pool.alloc", pairs},
        {&bench->pair_pool_free, "pair.pool.free", pairs},
        {&bench->pair_pool_mean, "pair.pool.mean", runs},
        {&bench->pair_direct_mean, "pair.direct.mean", runs},
        {&bench->pair_regular, "pair.regular", runs * regular_pairs_each(bench)},
        {&bench->pair_malloc_mean, "pair.malloc.mean", runs},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        *rows[i].row_p = bench_report_row(bench->report, rows[i].name, 1, rows[i].capacity);
        if (!*rows[i].row_p)
            return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    }
    return RAFFIA_OK;
}

/* The mean of a pass that reads the clock only at both ends. */
static raffia_status measure_mean(const struct pair_way *way, const struct pair_load *load,
                                  struct bench_row *row, bool warm_up)
{
    struct pair_result result;
    raffia_status status = pairs_run(way, load, &result, NULL);
    if (!status && !warm_up)
        bench_row_add(row, result.seconds / (double)load->pairs);
    return status;
}

/* The tail: each call by itself. The last pass is the one that is kept. */
static raffia_status measure_tail(struct bench_alloc *bench, const struct pair_way *way,
                                  const struct pair_load *load)
{
    struct pair_times times = {bench_row_take(bench->pair_pool_alloc, load->pairs),
                               bench_row_take(bench->pair_pool_free, load->pairs)};
    struct pair_result result;
    raffia_status status = pairs_run(way, load, &result, &times);
    double *pairs = bench_row_take(bench->pair_pool, load->pairs);
    for (size_t i = 0; i < load->pairs; i++)
        pairs[i] = times.take[i] + times.give[i];
    return status;
}

static raffia_status measure_umd(struct bench_alloc *bench, const struct pair_load *load,
                                 bool warm_up)
{
    raffia_status status = bench_umd_open(bench->pool_bytes, &bench->plan->options);
    if (status)
        return status;
    int device_id = BENCH_UMD_DEVICE;
    struct pair_way way = pair_way_umd(&device_id);
    status = measure_mean(&way, load, bench->pair_pool_mean, warm_up);
    if (!status)
        status = measure_tail(bench, &way, load);
    if (!status)
        status = (raffia_status)umd_huge_page_pool_query(BENCH_UMD_DEVICE, &bench->umd);
    raffia_status closed = bench_umd_close();
    return status ? status : closed;
}

/* One block at a time, because all of it is touched. */
static raffia_status measure_regular(const struct bench_alloc *bench, const struct pair_load *load,
                                     bool warm_up)
{
    struct pair_way way = pair_way_regular();
    struct pair_load one = *load;
    one.pairs = 1;
    one.live_max = 1;
    struct pair_result result;
    size_t count = warm_up ? 1 : regular_pairs_each(bench);
    raffia_status status = RAFFIA_OK;
    for (size_t i = 0; !status && i < count; i++) {
        one.sizes = load->sizes + bench->pair_regular->count % load->pairs;
        status = pairs_run(&way, &one, &result, NULL);
        if (!status && !warm_up)
            bench_row_add(bench->pair_regular, result.seconds);
    }
    return status;
}

raffia_status bench_alloc_direct_round(struct bench_alloc *bench, raffia_pool *pool, bool warm_up)
{
    struct pair_load load;
    raffia_status status = pair_load_make(bench->pool_bytes, bench->plan->pairs, &load);
    if (status)
        return status;
    struct pair_way way = pair_way_pool(pool);
    status = measure_mean(&way, &load, bench->pair_direct_mean, warm_up);
    core_free(load.sizes);
    return status ? status : bench_pool_show(pool, bench->pair_direct_mean);
}

raffia_status bench_alloc_pair_round(struct bench_alloc *bench, bool warm_up)
{
    struct pair_load load;
    raffia_status status = pair_load_make(bench->pool_bytes, bench->plan->pairs, &load);
    if (status)
        return status;
    struct pair_way by_malloc = pair_way_malloc();
    status = measure_umd(bench, &load, warm_up);
    if (!status)
        status = measure_mean(&by_malloc, &load, bench->pair_malloc_mean, warm_up);
    if (!status)
        status = measure_regular(bench, &load, warm_up);
    core_free(load.sizes);
    return status;
}

static double clock_seconds(void)
{
    double started = core_clock_seconds(), ended = started;
    for (unsigned i = 0; i < CLOCK_READINGS; i++)
        ended = core_clock_seconds();
    return (ended - started) / CLOCK_READINGS;
}

void bench_alloc_note_fallbacks(struct bench_report *report, const PoolStatus *umd)
{
    bench_report_value(report, "alloc.fallbacks", (double)umd->fallbacks);
    bench_report_note(report,
                      "the pool of pair.pool has pages of %llu bytes; of %llu allocations %llu "
                      "were not found room for there and were served from regular memory",
                      (unsigned long long)umd->page_size,
                      (unsigned long long)(umd->hits + umd->fallbacks),
                      (unsigned long long)umd->fallbacks);
}

void bench_alloc_pair_add(struct bench_alloc *bench)
{
    struct bench_report *report = bench->report;
    const struct bench_row *pool = bench->pair_pool;
    bench_report_ratio(report, "alloc.pair_regular_over_pool", bench->pair_regular,
                       bench->pair_pool_mean, bench->umd.page_size > BASE_PAGE_MAX);
    bench_report_value(report, "alloc.pool_pair_ns", bench_row_median(bench->pair_pool_mean) * 1e9);
    bench_report_value(report, "alloc.pool_pair_p50_ns", bench_row_quantile(pool, 0.5) * 1e9);
    bench_report_value(report, "alloc.pool_pair_p99_ns", bench_row_quantile(pool, 0.99) * 1e9);
    bench_report_value(report, "alloc.pool_pair_max_ns", bench_row_quantile(pool, 1) * 1e9);
    bench_report_value(report, "alloc.direct_pair_ns",
                       bench_row_median(bench->pair_direct_mean) * 1e9);
    bench_report_value(report, "alloc.regular_pair_ns", bench_row_mean(bench->pair_regular) * 1e9);
    bench_report_value(report, "alloc.malloc_pair_ns",
                       bench_row_median(bench->pair_malloc_mean) * 1e9);
    bench_report_value(report, "alloc.clock_ns", clock_seconds() * 1e9);
    bench_report_note(report,
                      "a pair of pair.pool, pair.pool.alloc and pair.pool.free has clock readings "
                      "inside (two for each call, alloc.clock_ns each); the pass of pair.pool.mean "
                      "reads the clock only at both ends");
    bench_alloc_note_fallbacks(report, &bench->umd);
    bench_report_note(report, "malloc() hands out untouched memory: its cost comes with the first "
                              "access, and is not in pair.malloc.mean");
}
