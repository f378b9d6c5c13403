/* The passes over one trace. */
#include "cli/bench_pool.h"
#include "cli/bench_sim.h"
#include "cli/bench_trace.h"
#include "cli/replay_ways.h"
#include "core/checked.h"
#include "core/error.h"
#include "core/memory.h"

#include <math.h>
#include <stdio.h>

#define HUGE_BYTES ((size_t)2 << 20)

/* Beyond this no machine has memory, and sums of sizes stay far from wrapping. */
#define LIMIT_MAX ((size_t)1 << 50)

size_t bench_trace_page_bytes(const struct bench_trace_plan *plan)
{
    return plan->page_size ? plan->page_size : HUGE_BYTES;
}

static raffia_status choose_limit(struct bench_trace *bench)
{
    const struct bench_trace_plan *plan = bench->plan;
    const double peak = (double)bench->trace->peak_bytes;
    const double factor = plan->limit_factor > 0 ? plan->limit_factor : 2;
    const size_t unit = core_max(plan->chunk_bytes, bench_trace_page_bytes(plan));
    double limit = plan->limit_factor > 0 || !plan->pool_bytes ? ceil(peak * factor)
                                                               : (double)plan->pool_bytes;
    if (limit > (double)LIMIT_MAX)
        return core_error(RAFFIA_ERROR_LIMIT,
                          "a pool of %.0f bytes would be needed: more than any machine has", limit);
    bench->limit = (core_max((size_t)limit, 1) + unit - 1) / unit * unit;
    bench->chunk_bytes = plan->chunk_bytes;
    if (!plan->chunk_bytes && (plan->limit_factor > 0 || plan->remap))
        bench->chunk_bytes = bench_trace_page_bytes(plan);
    return RAFFIA_OK;
}

/* One chunk is mapped at creation: a pool that maps nothing then has its pages chosen before
 * anybody knows whether there are any of them. */
raffia_status bench_trace_pool(const struct bench_trace *bench, size_t limit, size_t chunk_bytes,
                               raffia_pool **pool_p)
{
    const raffia_pool_options options = {
        .struct_size = sizeof options,
        .device = bench->plan->device,
        .name = "trace",
        .pages = bench->plan->pages,
        .page_size = bench->plan->page_size,
        .maximum_bytes = limit,
        .chunk_bytes = chunk_bytes,
        .granule = bench->plan->granule,
        .flags = (bench->plan->remap ? RAFFIA_POOL_REMAPPABLE : 0u) |
                 (bench->plan->adaptive ? RAFFIA_POOL_ADAPTIVE : 0u),
    };
    return raffia_pool_create(&options, pool_p);
}

/* A run that times each call, and the rows it fills. */
struct each_run {
    struct replay_each each;
    struct bench_row *takes, *gives;
};

static raffia_status prepare_each(struct bench_trace *bench, const char *kind, struct each_run *run)
{
    const struct trace *trace = bench->trace;
    char name[BENCH_NAME_MAX];
    snprintf(name, sizeof name, "%s.alloc", kind);
    const size_t takes = trace->blocks, gives = trace->count - trace->blocks;
    run->takes = bench_report_row(bench->report, name, 1, takes + 1);
    snprintf(name, sizeof name, "%s.free", kind);
    run->gives = run->takes ? bench_report_row(bench->report, name, 1, gives + 1) : NULL;
    if (!run->gives)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    run->each = (struct replay_each){.take_seconds = bench_row_take(run->takes, takes),
                                     .give_seconds = bench_row_take(run->gives, gives)};
    return RAFFIA_OK;
}

static raffia_status run_each(struct bench_trace *bench, const struct replay_way *way,
                              struct each_run *run, struct replay_result *result)
{
    raffia_status status = replay_run_each(way, bench->trace, bench->names, &run->each, result);
    bench_row_cut(run->takes, run->each.takes);
    bench_row_cut(run->gives, run->each.gives);
    return status;
}

/* What the observer of the first pass knows. */
struct observer {
    struct trace_series *series;
    raffia_pool *pool;
    size_t distance; /* operations from one trim to the next; 0: there are none */
    size_t trims;
    double trimmed_bytes, untrimmed_bytes; /* sums */
};

static raffia_status trim(struct observer *observer)
{
    raffia_pool_stats stats;
    size_t released;
    raffia_status status = raffia_pool_trim(observer->pool, 0, &released);
    if (!status)
        status = raffia_pool_query(observer->pool, &stats);
    if (status)
        return status;
    const size_t chunks = (stats.in_use_bytes + stats.chunk_bytes - 1) / stats.chunk_bytes;
    observer->trims++;
    observer->trimmed_bytes += (double)released;
    observer->untrimmed_bytes +=
        (double)stats.reserved_bytes - (double)(chunks * stats.chunk_bytes);
    return RAFFIA_OK;
}

static raffia_status observe(void *context, size_t op)
{
    struct observer *observer = context;
    raffia_status status = RAFFIA_OK;
    if (observer->distance && (op + 1) % observer->distance == 0)
        status = trim(observer);
    return status ? status : trace_series_look(observer->series, observer->pool, op);
}

static void add_figures(struct bench_trace *bench, const struct replay_result *result,
                        const raffia_pool_stats *stats)
{
    struct bench_report *report = bench->report;
    const struct trace *trace = bench->trace;
    const double peak = trace->peak_bytes ? (double)trace->peak_bytes : NAN;
    bench_report_value(report, "trace.operations", (double)trace->count);
    bench_report_value(report, "trace.allocations", (double)trace->blocks);
    bench_report_value(report, "trace.live_blocks_max", (double)trace->live_max);
    bench_report_value(report, "trace.live_blocks_end", (double)trace->live_end);
    bench_report_value(report, "trace.peak_requested_bytes", (double)trace->peak_bytes);
    bench_report_value(report, "trace.peak_in_use_bytes", (double)stats->peak_in_use_bytes);
    bench_report_value(report, "trace.peak_reserved_bytes", (double)stats->peak_reserved_bytes);
    bench_report_value(report, "trace.limit_bytes", (double)bench->limit);
    bench_report_value(report, "trace.reserved_over_requested",
                       (double)stats->peak_reserved_bytes / peak);
    bench_report_value(report, "trace.in_use_over_requested",
                       (double)stats->peak_in_use_bytes / peak);
    bench_report_value(report, "trace.failures", (double)result->refused);
    bench_report_value(report, "trace.refused_bytes", (double)result->refused_bytes);
    bench_report_value(report, "trace.hits", (double)stats->hits);
    bench_report_value(report, "trace.misses", (double)stats->misses);
    bench_report_value(report, "trace.driver_calls", (double)stats->driver_calls);
}

static void add_remap_figures(struct bench_trace *bench, const raffia_pool_stats *stats)
{
    struct bench_report *report = bench->report;
    bench_report_value(report, "trace.remaps", (double)stats->remaps);
    bench_report_value(report, "trace.remapped_chunks", (double)stats->remapped_chunks);
    bench_report_value(report, "trace.operations_per_remap",
                       (double)bench->trace->count / (double)stats->remaps);
    bench_report_value(report, "trace.remap_us_per_chunk",
                       (double)stats->remap_ns * 1e-3 / (double)stats->remapped_chunks);
    bench_report_value(report, "trace.remap_unmap_us_per_chunk",
                       (double)stats->remap_unmap_ns * 1e-3 / (double)stats->remapped_chunks);
    bench_report_value(report, "trace.remap_refusals",
                       (double)(stats->remap_address_refusals + stats->remap_mapping_refusals));
    bench_report_value(report, "trace.stranded_bytes_end", (double)stats->stranded_bytes);
}

static void add_trim_figures(struct bench_trace *bench, const struct observer *observer,
                             const raffia_pool_stats *stats)
{
    struct bench_report *report = bench->report;
    if (bench->plan->trims) {
        bench_report_value(report, "trace.trims", (double)observer->trims);
        bench_report_value(report, "trace.trimmed_bytes", observer->trimmed_bytes);
        bench_report_value(report, "trace.untrimmed_bytes",
                           observer->untrimmed_bytes / (double)core_max(observer->trims, 1));
    }
    if (bench->plan->adaptive)
        bench_report_value(report, "trace.placed_low", (double)stats->placed_low);
}

/* The first pass, on a pool that grows as it is asked: what it needed is what counts. */
static raffia_status cold_pass(struct bench_trace *bench, raffia_pool *pool,
                               const struct replay_way *way, struct trace_series *series)
{
    struct observer observer = {.series = series, .pool = pool};
    struct each_run run;
    struct replay_result result;
    raffia_pool_stats stats;
    raffia_status status = prepare_each(bench, "cold", &run);
    if (status)
        return status;
    if (bench->plan->trims)
        observer.distance = core_max(bench->trace->count / bench->plan->trims, 1);
    run.each.observe = observe;
    run.each.observe_context = &observer;
    status = run_each(bench, way, &run, &result);
    if (!status)
        status = raffia_pool_query(pool, &stats);
    if (status)
        return status;
    add_figures(bench, &result, &stats);
    if (bench->plan->remap)
        add_remap_figures(bench, &stats);
    add_trim_figures(bench, &observer, &stats);
    run.takes->pages = stats.pages;
    run.takes->has_pages = stats.pages.total_bytes > 0;
    return replay_drain(way, bench->trace, bench->names);
}

/* Latencies of both calls together. */
static raffia_status add_latencies(struct bench_trace *bench, const struct each_run *run)
{
    struct bench_row all = {.capacity = run->takes->count + run->gives->count};
    all.samples = core_calloc(all.capacity + 1, sizeof *all.samples);
    if (!all.samples)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < run->takes->count; i++)
        bench_row_add(&all, run->takes->samples[i]);
    for (size_t i = 0; i < run->gives->count; i++)
        bench_row_add(&all, run->gives->samples[i]);
    bench_report_value(bench->report, "trace.op_p50_ns", bench_row_quantile(&all, 0.5) * 1e9);
    bench_report_value(bench->report, "trace.op_p99_ns", bench_row_quantile(&all, 0.99) * 1e9);
    bench_report_value(bench->report, "trace.op_max_ns", bench_row_quantile(&all, 1) * 1e9);
    core_free(all.samples);
    return RAFFIA_OK;
}

static raffia_status warm_pass(struct bench_trace *bench, const struct replay_way *way)
{
    struct each_run run;
    struct replay_result result;
    raffia_status status = prepare_each(bench, "warm", &run);
    if (!status)
        status = run_each(bench, way, &run, &result);
    if (!status)
        status = replay_drain(way, bench->trace, bench->names);
    return status ? status : add_latencies(bench, &run);
}

static raffia_status mean_pass(struct bench_trace *bench, const struct replay_way *way,
                               struct bench_row *row)
{
    struct replay_result result;
    raffia_status status = replay_run(way, bench->trace, bench->names, &result);
    if (!status)
        bench_row_add(row, result.seconds / (double)result.done);
    raffia_status drained = replay_drain(way, bench->trace, bench->names);
    return status ? status : drained;
}

/* Passes that read the clock at both ends only, beside the same passes doing nothing. */
static raffia_status mean_passes(struct bench_trace *bench, const struct replay_way *way)
{
    const unsigned runs = bench->plan->runs;
    const struct replay_way nothing = replay_way_floor();
    struct bench_row *mean = bench_report_row(bench->report, "warm.mean", 1, runs);
    struct bench_row *floor = mean ? bench_report_row(bench->report, "floor.mean", 1, runs) : NULL;
    if (!floor)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    raffia_status status = RAFFIA_OK;
    for (unsigned i = 0; !status && i < runs; i++) {
        status = mean_pass(bench, &nothing, floor);
        if (!status)
            status = mean_pass(bench, way, mean);
    }
    bench_report_value(bench->report, "trace.op_ns", bench_row_median(mean) * 1e9);
    bench_report_value(bench->report, "trace.floor_ns", bench_row_median(floor) * 1e9);
    bench_report_value(bench->report, "trace.clock_ns", replay_clock_seconds() * 1e9);
    return status;
}

static raffia_status measure(struct bench_trace *bench, struct trace_series *series)
{
    raffia_pool *pool = NULL;
    raffia_status status = bench_trace_pool(bench, bench->limit, bench->chunk_bytes, &pool);
    if (status)
        return status;
    const struct replay_way plain = replay_way_pool(pool);
    const struct replay_way touching = replay_way_pool_touching(pool);
    const struct replay_way *way = bench->plan->touch ? &touching : &plain;
    status = cold_pass(bench, pool, way, series);
    if (!status)
        status = warm_pass(bench, way);
    if (!status)
        status = mean_passes(bench, way);
    raffia_pool_release(pool);
    double need;
    if (!status && bench->plan->need && !(status = bench_trace_need(bench, &need)))
        bench_report_value(bench->report, "trace.need_over_peak", need);
    return status;
}

static void add_notes(const struct bench_trace *bench)
{
    struct bench_report *report = bench->report;
    const struct trace *trace = bench->trace;
    bench_report_note(report, "trace.op_ns is a median of means, trace.floor_ns of it are the "
                              "harness; trace.op_p50_ns, _p99_ns, _max_ns and the rows .alloc and "
                              ".free have two readings of the clock in them, trace.clock_ns each");
    if (trace->streams > 1)
        bench_report_note(report,
                          "%zu streams are in the trace; a free counts as done when it is made",
                          trace->streams);
    if (trace->skipped)
        bench_report_note(report, "%zu lines were passed over: failures and empty blocks",
                          trace->skipped);
    if (bench->plan->device && bench_sim_is(bench->plan->device))
        bench_report_note(report, "the device is simulated: the times of growth (cold.*) are not "
                                  "those of any memory");
    if (bench->plan->touch)
        bench_report_note(report, "the times have the touching of each block in them");
}

raffia_status bench_trace_measure(const struct bench_trace_plan *plan, const char *name,
                                  const struct trace *trace, struct bench_report *report,
                                  struct trace_series *series)
{
    struct bench_trace bench = {.plan = plan, .trace = trace, .report = report};
    snprintf(report->title, sizeof report->title, "Trace %.100s, replayed on a pool of %s", name,
             plan->device ? plan->device : "the default device");
    trace_series_choose(series, trace);
    raffia_status status = choose_limit(&bench);
    if (!status && plan->device && bench_sim_is(plan->device))
        status = bench_sim_prepare(core_max(bench.limit, (size_t)trace->peak_bytes) * 5,
                                   plan->page_size);
    bench.names = status ? NULL : replay_names_new(trace);
    if (!status && !bench.names)
        status = RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    if (!status)
        status = measure(&bench, series);
    if (!status)
        add_notes(&bench);
    core_free(bench.names);
    return status;
}
