#include "cli/bench_alloc_device.h"

#include "cli/bench_alloc.h"
#include "cli/bench_alloc_ways.h"
#include "cli/bench_device_ways.h"
#include "cli/bench_memory.h"
#include "cli/bench_pool.h"
#include "cli/interrupt.h"
#include "core/checked.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/text.h"

#include <raffia/config.h>
#include <raffia/umd.h>

#include <stdio.h>
#include <string.h>

#define POOL_BYTES_MAX   ((size_t)8 << 30)
#define FIRST_BYTES_MAX  ((size_t)1 << 30)
#define PINNED_BYTES_MAX ((size_t)4 << 30)

/* The pool takes a half of the device's free memory at most, the pinned rows a quarter of the
 * host's. */
#define POOL_SHARE   2
#define PINNED_SHARE 4

/* Pairs of one large block in a round: the driver's take a millisecond each. */
#define LARGE_PAIRS 5u

enum row {
    PAIR_UMD,
    PAIR_DIRECT,
    PAIR_STREAM,
    PAIR_ASYNC,
    LARGE_POOL,
    LARGE_REGULAR,
    BUILD_POOL,
    PINNED_BUILD,
    PINNED_FREE,
    HOSTALLOC_BUILD,
    HOSTALLOC_FREE,
    ROW_COUNT,
};

struct bench {
    const struct bench_alloc_plan *plan;
    struct bench_report *report;
    struct bench_device device;
    struct cuda_peer *peer;           /* NULL: the device has none */
    char no_peer[BENCH_NOTE_MAX / 2]; /* why not */
    size_t pool_bytes, first_bytes, pinned_bytes;
    struct pair_load load;
    PoolStatus umd; /* its pool, after the last pass */
    struct bench_row *rows[ROW_COUNT];
};

static bool is_of_peer(enum row row)
{
    return row == PAIR_ASYNC || row == LARGE_REGULAR || row == HOSTALLOC_BUILD ||
           row == HOSTALLOC_FREE;
}

/* Those of a peer only where there is one. */
static raffia_status make_rows(struct bench *bench)
{
    static const char *const names[ROW_COUNT] = {
        [PAIR_UMD] = "pair.pool.mean",       [PAIR_DIRECT] = "pair.direct.mean",
        [PAIR_STREAM] = "pair.stream.mean",  [PAIR_ASYNC] = "pair.async.mean",
        [LARGE_POOL] = "large.pool",         [LARGE_REGULAR] = "large.regular",
        [BUILD_POOL] = "build.pool",         [PINNED_BUILD] = "pinned.build",
        [PINNED_FREE] = "pinned.free",       [HOSTALLOC_BUILD] = "hostalloc.build",
        [HOSTALLOC_FREE] = "hostalloc.free",
    };
    for (int row = 0; row < ROW_COUNT; row++) {
        if (is_of_peer((enum row)row) && !bench->peer)
            continue;
        const bool many = row == LARGE_POOL || row == LARGE_REGULAR;
        bench->rows[row] =
            bench_report_row(bench->report, names[row], 1,
                             bench->plan->options.runs * (many ? LARGE_PAIRS : (size_t)1));
        if (!bench->rows[row])
            return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    }
    return RAFFIA_OK;
}

static void add(struct bench *bench, enum row row, double seconds, bool warm_up)
{
    if (!warm_up)
        bench_row_add(bench->rows[row], seconds);
}

static raffia_status choose_sizes(struct bench *bench)
{
    const struct bench_alloc_plan *plan = bench->plan;
    const size_t unit = PAIR_STEP_BYTES, free_bytes = bench->device.info.free_bytes;
    bench->pool_bytes =
        plan->pool_bytes ? plan->pool_bytes
                         : core_align_down(core_min(POOL_BYTES_MAX, free_bytes / POOL_SHARE), unit);
    bench->first_bytes =
        plan->first_bytes ? plan->first_bytes : core_min(FIRST_BYTES_MAX, bench->pool_bytes);
    if (bench->pool_bytes > free_bytes || bench->first_bytes > bench->pool_bytes ||
        bench->pool_bytes < 2 * unit)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "a pool of %zu bytes (--pool) with an allocation of %zu (--first) does "
                          "not fit into the %zu bytes that are free on %s",
                          bench->pool_bytes, bench->first_bytes, free_bytes,
                          bench->device.info.name);
    bench->pinned_bytes = plan->pinned_bytes;
    if (bench->pinned_bytes)
        return bench_memory_check(bench->pinned_bytes, "the pinned rows", "--pinned");
    return bench_memory_choose(PINNED_BYTES_MAX, PINNED_SHARE, &bench->pinned_bytes);
}

static raffia_status measure_pairs(struct bench *bench, struct pair_way way, enum row row,
                                   bool warm_up)
{
    struct pair_result result;
    raffia_status status = pairs_run(&way, &bench->load, &result, NULL);
    raffia_status waited = bench_device_wait(&bench->device);
    if (!status && !waited)
        add(bench, row, result.seconds / (double)bench->load.pairs, warm_up);
    return status ? status : waited;
}

static raffia_status measure_large(struct bench *bench, struct pair_way way, enum row row,
                                   bool warm_up)
{
    raffia_status status = RAFFIA_OK;
    for (unsigned i = 0; !status && i < LARGE_PAIRS; i++) {
        void *block;
        double started = core_clock_seconds();
        status = way.take(way.context, bench->first_bytes, &block);
        if (!status)
            status = way.give(way.context, block, bench->first_bytes);
        if (!status)
            add(bench, row, core_clock_seconds() - started, warm_up);
    }
    return status;
}

static raffia_status measure_pool(struct bench *bench, bool warm_up)
{
    raffia_pool *pool;
    double started = core_clock_seconds();
    raffia_status status = bench_device_pool(&bench->device, bench->pool_bytes, &pool);
    if (status)
        return status;
    add(bench, BUILD_POOL, core_clock_seconds() - started, warm_up);
    const struct pair_way direct = pair_way_pool(pool);
    struct stream_way on_stream = {pool, bench->device.stream};
    status = measure_pairs(bench, direct, PAIR_DIRECT, warm_up);
    if (!status)
        status = measure_pairs(bench, pair_way_stream(&on_stream), PAIR_STREAM, warm_up);
    if (!status)
        status = measure_large(bench, direct, LARGE_POOL, warm_up);
    if (!status)
        status = bench_pool_show(pool, bench->rows[BUILD_POOL]);
    raffia_pool_release(pool);
    return status;
}

static raffia_status measure_umd(struct bench *bench, bool warm_up)
{
    int device_id = bench->device.device.index;
    raffia_status status = raffia_config_set("driver", bench->device.device.driver->name);
    if (!status)
        status = (raffia_status)umd_huge_page_pool_init(device_id, bench->pool_bytes);
    if (!status) {
        status = measure_pairs(bench, pair_way_umd(&device_id), PAIR_UMD, warm_up);
        if (!status)
            status = (raffia_status)umd_huge_page_pool_query(device_id, &bench->umd);
        raffia_status destroyed = (raffia_status)umd_huge_page_pool_destroy(device_id);
        status = status ? status : destroyed;
    }
    raffia_status reset = raffia_config_set("driver", NULL);
    return status ? status : reset;
}

static raffia_status take_regular(void *context, size_t bytes, void **block_p)
{
    return cuda_peer_alloc(context, bytes, block_p);
}

static raffia_status give_regular(void *context, void *block, size_t bytes)
{
    (void)bytes;
    return cuda_peer_free(context, block);
}

static raffia_status measure_peer(struct bench *bench, bool warm_up)
{
    struct async_way async = {bench->peer, bench->device.stream};
    raffia_status status = measure_pairs(bench, pair_way_async(&async), PAIR_ASYNC, warm_up);
    const struct pair_way regular = {bench->peer, take_regular, give_regular};
    if (!status)
        status = measure_large(bench, regular, LARGE_REGULAR, warm_up);
    return status;
}

/* ---- pinned memory -------------------------------------------------------------------------- */

static raffia_status measure_pinned(struct bench *bench, bool warm_up)
{
    bench_memory_warm(bench->pinned_bytes, true);
    raffia_pool *pool;
    double started = core_clock_seconds();
    raffia_status status =
        bench_device_pinned_pool(&bench->device, bench->pinned_bytes, &bench->plan->options, &pool);
    if (status)
        return status;
    add(bench, PINNED_BUILD, core_clock_seconds() - started, warm_up);
    status = bench_pool_show(pool, bench->rows[PINNED_BUILD]);
    started = core_clock_seconds();
    raffia_pool_release(pool);
    add(bench, PINNED_FREE, core_clock_seconds() - started, warm_up);
    return status;
}

static raffia_status measure_hostalloc(struct bench *bench, bool warm_up)
{
    bench_memory_warm(bench->pinned_bytes, false);
    void *memory;
    double started = core_clock_seconds();
    raffia_status status = cuda_peer_host_alloc(bench->peer, bench->pinned_bytes, &memory);
    if (status)
        return status;
    add(bench, HOSTALLOC_BUILD, core_clock_seconds() - started, warm_up);
    started = core_clock_seconds();
    status = cuda_peer_host_free(bench->peer, memory);
    add(bench, HOSTALLOC_FREE, core_clock_seconds() - started, warm_up);
    return status;
}

/* ---- rounds --------------------------------------------------------------------------------- */

static raffia_status run_round(struct bench *bench, bool warm_up)
{
    static raffia_status (*const parts[])(struct bench *, bool) = {
        measure_pool, measure_umd, measure_peer, measure_pinned, measure_hostalloc};
    raffia_status status = RAFFIA_OK;
    for (size_t i = 0; !status && i < sizeof parts / sizeof *parts; i++) {
        const bool of_peer = parts[i] == measure_peer || parts[i] == measure_hostalloc;
        if (!of_peer || bench->peer)
            status = parts[i](bench, warm_up);
        if (!status)
            status = cli_interrupt_check();
    }
    return status;
}

/* Of a peer's row over ours; unknown without a peer. */
static void add_ratio(struct bench *bench, const char *name, enum row peer, enum row ours)
{
    const bool known = bench->peer != NULL;
    bench_report_ratio(bench->report, name, bench->rows[known ? peer : ours], bench->rows[ours],
                       known);
}

static void add_results(struct bench *bench)
{
    struct bench_report *report = bench->report;
    struct bench_row *const *rows = bench->rows;
    add_ratio(bench, "alloc.async_over_pool", PAIR_ASYNC, PAIR_STREAM);
    add_ratio(bench, "alloc.async_over_umd", PAIR_ASYNC, PAIR_UMD);
    add_ratio(bench, "alloc.regular_over_pool_large", LARGE_REGULAR, LARGE_POOL);
    add_ratio(bench, "pinned.hostalloc_over_build", HOSTALLOC_BUILD, PINNED_BUILD);
    add_ratio(bench, "pinned.hostfree_over_free", HOSTALLOC_FREE, PINNED_FREE);
    bench_report_value(report, "alloc.pool_pair_ns", bench_row_median(rows[PAIR_UMD]) * 1e9);
    bench_report_value(report, "alloc.direct_pair_ns", bench_row_median(rows[PAIR_DIRECT]) * 1e9);
    bench_report_value(report, "alloc.stream_pair_ns", bench_row_median(rows[PAIR_STREAM]) * 1e9);
    bench_report_value(report, "alloc.context_ms", bench->device.open_seconds * 1e3);
    if (bench->peer)
        bench_report_value(report, "alloc.async_pair_ns", bench_row_median(rows[PAIR_ASYNC]) * 1e9);
    else
        bench_report_note(report, "no rows of the driver's own allocators: %s", bench->no_peer);
    bench_alloc_note_fallbacks(report, &bench->umd);
    char pinned[CORE_SIZE_TEXT_MAX];
    bench_report_note(report,
                      "pinned rows: %s of host memory, made and registered with the device, beside "
                      "what the driver allocates pinned itself (hostalloc)",
                      core_format_size(bench->pinned_bytes, pinned));
}

/* A device without a peer is measured all the same. */
static raffia_status open_peer(struct bench *bench)
{
    raffia_status status = cuda_peer_open(bench->device.device, &bench->peer);
    if (status != RAFFIA_ERROR_UNSUPPORTED)
        return status;
    snprintf(bench->no_peer, sizeof bench->no_peer, "%s", raffia_last_error());
    return RAFFIA_OK;
}

static raffia_status run(struct bench *bench)
{
    raffia_status status = choose_sizes(bench);
    if (!status)
        status = pair_load_make(bench->pool_bytes, bench->plan->pairs, &bench->load);
    if (!status)
        status = open_peer(bench);
    if (!status)
        status = make_rows(bench);
    /* The first round warms up and is dropped. */
    for (unsigned round = 0; !status && round <= bench->plan->options.runs; round++)
        status = run_round(bench, round == 0);
    if (!status)
        add_results(bench);
    return status;
}

raffia_status bench_alloc_device_measure(const struct bench_alloc_plan *plan,
                                         struct bench_report *report)
{
    struct bench bench = {.plan = plan, .report = report};
    raffia_status status = bench_device_open(plan->options.device, &bench.device);
    if (status)
        return status;
    snprintf(report->title, sizeof report->title,
             "Getting memory of %.40s (%.40s): %zu pairs of allocation and free",
             bench.device.info.name, bench.device.info.model, plan->pairs);
    status = run(&bench);
    cuda_peer_close(bench.peer);
    bench_device_close(&bench.device);
    core_free(bench.load.sizes);
    return status;
}
