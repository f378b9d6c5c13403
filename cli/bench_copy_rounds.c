#include "cli/bench_copy_rounds.h"

#include "cli/bench_copy_batch.h"
#include "cli/bench_copy_sweep.h"
#include "cli/bench_device.h"
#include "cli/bench_memory.h"
#include "cli/bench_pool.h"
#include "cli/interrupt.h"
#include "core/checked.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/text.h"

#include <raffia/copy.h>

#include <math.h>
#include <stdio.h>

/* Copies of one sample: enough for a rate, and few enough to be done in a second or so. */
#define COPIES_MAX ((size_t)65536)

enum side { PINNED, PAGEABLE, SIDES };
enum direction { TO_DEVICE, TO_HOST, DIRECTIONS };

struct bench {
    const struct bench_copy_plan *plan;
    struct bench_report *report;
    struct bench_device device;
    size_t largest; /* copy */
    raffia_pool *device_pool, *pinned_pool;
    void *on_device;
    void *on_host[SIDES];
    struct bench_row *rows[DIRECTIONS][SIDES][BENCH_COPY_SIZES_MAX];
};

/* Bytes of one sample. */
static size_t sample_bytes(const struct bench_copy_plan *plan, size_t size)
{
    return core_min(core_max(plan->total_bytes, size), size * COPIES_MAX);
}

static void note_small_samples(const struct bench *bench)
{
    const struct bench_copy_plan *plan = bench->plan;
    for (size_t i = 0; i < plan->size_count; i++) {
        char size[CORE_SIZE_TEXT_MAX], bytes[CORE_SIZE_TEXT_MAX], total[CORE_SIZE_TEXT_MAX];
        const size_t sample = sample_bytes(plan, plan->sizes[i]);
        if (sample < plan->total_bytes)
            bench_report_note(
                bench->report, "a sample in copies of %s is %zu of them, %s, and not --total %s",
                core_format_size(plan->sizes[i], size), COPIES_MAX, core_format_size(sample, bytes),
                core_format_size(plan->total_bytes, total));
    }
}

static raffia_status make_rows(struct bench *bench)
{
    static const char *const directions[DIRECTIONS] = {"h2d", "d2h"};
    static const char *const sides[SIDES] = {"pinned", "pageable"};
    const struct bench_copy_plan *plan = bench->plan;
    for (int direction = 0; direction < DIRECTIONS; direction++)
        for (int side = 0; side < SIDES; side++)
            for (size_t i = 0; i < plan->size_count; i++) {
                char name[BENCH_NAME_MAX], size[CORE_SIZE_TEXT_MAX];
                snprintf(name, sizeof name, "%s.%s.%s", directions[direction], sides[side],
                         core_format_size(plan->sizes[i], size));
                struct bench_row *row =
                    bench_report_row(bench->report, name, 1, plan->options.runs);
                if (!row)
                    return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
                row->bytes_each = sample_bytes(plan, plan->sizes[i]);
                bench->rows[direction][side][i] = row;
            }
    return RAFFIA_OK;
}

static raffia_status make_memory(struct bench *bench)
{
    unsigned char *pageable;
    raffia_status status = bench_memory_map(bench->largest, &pageable);
    if (status)
        return status;
    bench->on_host[PAGEABLE] = pageable;
    status = bench_memory_touch(pageable, bench->largest, 1);
    if (!status)
        status = bench_device_pool(&bench->device, bench->largest, &bench->device_pool);
    if (!status)
        status = raffia_pool_alloc(bench->device_pool, bench->largest, 0, &bench->on_device);
    if (!status)
        status = bench_device_pinned_pool(&bench->device, bench->largest, &bench->plan->options,
                                          &bench->pinned_pool);
    return status
               ? status
               : raffia_pool_alloc(bench->pinned_pool, bench->largest, 0, &bench->on_host[PINNED]);
}

static void free_memory(struct bench *bench)
{
    bench_memory_unmap(bench->on_host[PAGEABLE], bench->largest);
    if (bench->on_device)
        (void)!raffia_pool_free(bench->device_pool, bench->on_device);
    if (bench->on_host[PINNED])
        (void)!raffia_pool_free(bench->pinned_pool, bench->on_host[PINNED]);
    raffia_pool_release(bench->device_pool);
    raffia_pool_release(bench->pinned_pool);
}

static raffia_status run_sample(struct bench *bench, enum direction direction, enum side side,
                                size_t size, bool warm_up)
{
    struct bench_row *row = bench->rows[direction][side][size];
    void *host = bench->on_host[side], *device = bench->on_device;
    const bool up = direction == TO_DEVICE;
    double started = core_clock_seconds();
    raffia_status status =
        bench_device_copies(&bench->device, up ? device : host, up ? host : device,
                            bench->plan->sizes[size], row->bytes_each);
    if (!status && !warm_up)
        bench_row_add(row, core_clock_seconds() - started);
    return status;
}

static raffia_status run_round(struct bench *bench, bool warm_up)
{
    raffia_status status = RAFFIA_OK;
    for (int direction = 0; direction < DIRECTIONS; direction++)
        for (int side = 0; side < SIDES; side++)
            for (size_t i = 0; !status && i < bench->plan->size_count; i++)
                status = run_sample(bench, (enum direction)direction, (enum side)side, i, warm_up);
    return status ? status : cli_interrupt_check();
}

static double best_rate(const struct bench *bench, enum direction direction)
{
    double best = 0;
    for (size_t i = 0; i < bench->plan->size_count; i++) {
        const struct bench_row *row = bench->rows[direction][PINNED][i];
        best = fmax(best, (double)row->bytes_each / bench_row_median(row));
    }
    return best;
}

static raffia_status run(struct bench *bench)
{
    raffia_status status = make_rows(bench);
    note_small_samples(bench);
    if (!status)
        status = make_memory(bench);
    /* The first round warms up and is dropped. */
    for (unsigned round = 0; !status && round <= bench->plan->options.runs; round++)
        status = run_round(bench, round == 0);
    for (int direction = 0; direction < DIRECTIONS; direction++)
        for (size_t i = 0; !status && i < bench->plan->size_count; i++)
            status = bench_pool_show(bench->pinned_pool, bench->rows[direction][PINNED][i]);
    if (status)
        return status;
    bench_report_value(bench->report, "copy.h2d_pinned_gb_per_s",
                       best_rate(bench, TO_DEVICE) * 1e-9);
    bench_report_value(bench->report, "copy.d2h_pinned_gb_per_s", best_rate(bench, TO_HOST) * 1e-9);
    status = bench_copy_batch(&bench->device, bench->on_device, bench->on_host[PINNED],
                              bench->plan->options.runs, bench->report);
    if (!status && bench->plan->sweep)
        status = bench_copy_sweep(&bench->device, bench->on_device, bench->on_host[PINNED],
                                  bench->plan->options.runs, bench->report);
    return status;
}

raffia_status bench_copy_measure(const struct bench_copy_plan *plan, struct bench_report *report)
{
    struct bench bench = {.plan = plan, .report = report};
    bench.largest = bench_copy_batch_bytes();
    if (plan->sweep)
        bench.largest = core_max(bench.largest, bench_copy_sweep_bytes());
    for (size_t i = 0; i < plan->size_count; i++)
        bench.largest = core_max(bench.largest, plan->sizes[i]);
    raffia_status status =
        bench_memory_check(2 * bench.largest, "the benchmark (twice the largest copy)", "--sizes");
    if (!status)
        status = bench_device_open(plan->options.device, &bench.device);
    if (status)
        return status;
    snprintf(report->title, sizeof report->title, "Copies between host and %.40s (%.40s)",
             bench.device.info.name, bench.device.info.model);
    status = run(&bench);
    raffia_copy_release_kernels();
    free_memory(&bench);
    bench_device_close(&bench.device);
    return status;
}
