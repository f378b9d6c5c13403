#include "cli/bench_copy_sweep.h"

#include "cli/bench_copy_ways.h"
#include "cli/interrupt.h"
#include "core/checked.h"
#include "core/text.h"

#include <raffia/pinned.h>

#include <math.h>
#include <stdio.h>

enum way { LOOP, BATCH, AUTO, WAYS };
static const char *const way_names[WAYS] = {"loop", "batch", "auto"};

static const size_t sizes[] = {256, 1024, 4096, 16384, 65536, 262144};
static const size_t counts[] = {1, 2, 4, 8, 16, 64, 256, 1024, 4096};
#define SIZES     (sizeof sizes / sizeof *sizes)
#define COUNTS    (sizeof counts / sizeof *counts)
#define BYTES_MAX ((size_t)16 << 20) /* of one sample */

/* Samples for each round that was asked for: one takes some ten microseconds, and confidence
 * intervals need many. */
#define EACH 7u

struct cell {
    size_t bytes, count;
    bool by_kernel; /* under auto */
    struct bench_row *rows[WAYS];
};

struct sweep {
    struct copy_list list;
    struct cell cells[SIZES * COUNTS];
    size_t cell_count;
};

size_t bench_copy_sweep_bytes(void)
{
    return 2 * BYTES_MAX;
}

static raffia_status make_cell(struct sweep *sweep, size_t bytes, size_t count, unsigned runs,
                               struct bench_report *report)
{
    struct cell *cell = &sweep->cells[sweep->cell_count++];
    *cell = (struct cell){.bytes = bytes, .count = count};
    for (int way = 0; way < WAYS; way++) {
        char name[BENCH_NAME_MAX], size[CORE_SIZE_TEXT_MAX];
        snprintf(name, sizeof name, "sweep.%zux%s.%s", count, core_format_size(bytes, size),
                 way_names[way]);
        cell->rows[way] = bench_report_row(report, name, 1, (size_t)runs * EACH);
        if (!cell->rows[way])
            return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
        cell->rows[way]->bytes_each = bytes * count;
    }
    return RAFFIA_OK;
}

static raffia_status make_cells(struct sweep *sweep, unsigned runs, struct bench_report *report)
{
    raffia_status status = RAFFIA_OK;
    for (size_t i = 0; i < SIZES; i++)
        for (size_t k = 0; k < COUNTS && !status; k++)
            if (sizes[i] * counts[k] <= BYTES_MAX)
                status = make_cell(sweep, sizes[i], counts[k], runs, report);
    return status;
}

static raffia_status by_auto(struct copy_list *list)
{
    return raffia_copy_batch(list->device->info.name, list->device->stream, list->copies,
                             list->count, (raffia_memory_resources){{0}, {0}});
}

/* The ways take turns; the first round warms up and is dropped. */
static raffia_status run_cell(struct copy_list *list, struct cell *cell, size_t rounds)
{
    static const copy_way ways[WAYS] = {copy_way_loop, copy_way_batch, by_auto};
    raffia_status status = RAFFIA_OK;
    cell->by_kernel = cell->bytes < copy_threshold(&list->on, list->device->stream, cell->count);
    for (size_t round = 0; round <= rounds && !status; round++)
        for (int way = 0; way < WAYS && !status; way++)
            status = copy_list_sample(list, ways[way], round ? cell->rows[way] : NULL);
    return status ? status : cli_interrupt_check();
}

/* ---- what it says of auto ------------------------------------------------------------------- */

struct interval {
    double low, high;
};

/* Of the median, at 95 %: the samples that lie so many ranks from it, by the binomial
 * distribution's normal approximation. */
static struct interval confidence(const struct bench_row *row)
{
    const double half = 0.98 / sqrt((double)row->count);
    return (struct interval){bench_row_quantile(row, fmax(0.5 - half, 0)),
                             bench_row_quantile(row, fmin(0.5 + half, 1))};
}

static enum way better_of_drivers(const struct cell *cell)
{
    return bench_row_median(cell->rows[LOOP]) < bench_row_median(cell->rows[BATCH]) ? LOOP : BATCH;
}

static bool is_slower(const struct cell *cell)
{
    const enum way best = better_of_drivers(cell);
    return confidence(cell->rows[AUTO]).low > confidence(cell->rows[best]).high;
}

static void conclude(const struct sweep *sweep, struct bench_report *report)
{
    size_t slower = 0, by_kernel = 0;
    double least = INFINITY;
    for (size_t i = 0; i < sweep->cell_count; i++) {
        const struct cell *cell = &sweep->cells[i];
        const struct bench_row *best = cell->rows[better_of_drivers(cell)];
        const double ratio = bench_row_median(best) / bench_row_median(cell->rows[AUTO]);
        by_kernel += cell->by_kernel;
        least = fmin(least, ratio);
        if (!is_slower(cell))
            continue;
        slower++;
        if (report->note_count < BENCH_NOTES_MAX)
            bench_report_note(report, "%s (%s) takes %.2f us where %s takes %.2f",
                              cell->rows[AUTO]->name, cell->by_kernel ? "a kernel" : "no kernel",
                              bench_row_median(cell->rows[AUTO]) * 1e6, best->name,
                              bench_row_median(best) * 1e6);
    }
    bench_report_value(report, "copy.auto_cells", (double)sweep->cell_count);
    bench_report_value(report, "copy.auto_by_kernel", (double)by_kernel);
    bench_report_value(report, "copy.auto_slower", (double)slower);
    bench_report_value(report, "copy.best_over_auto_least", least);
}

static raffia_status run(struct sweep *sweep, void *on_device, const void *pinned, unsigned runs)
{
    raffia_status status = RAFFIA_OK;
    for (size_t i = 0; i < sweep->cell_count && !status; i++) {
        struct cell *cell = &sweep->cells[i];
        copy_list_fill(&sweep->list, on_device, pinned, cell->count, cell->bytes);
        status = run_cell(&sweep->list, cell, (size_t)runs * EACH);
    }
    return status;
}

raffia_status bench_copy_sweep(struct bench_device *device, void *on_device, void *pinned,
                               unsigned runs, struct bench_report *report)
{
    struct sweep sweep = {.cell_count = 0};
    const size_t before = raffia_kernel_copy_threshold();
    raffia_status status = copy_list_open(device, &sweep.list);
    if (!status)
        status = make_cells(&sweep, runs, report);
    raffia_kernel_copy_threshold_set(RAFFIA_KERNEL_COPY_AUTO);
    if (!status)
        status = run(&sweep, on_device, pinned, runs);
    raffia_kernel_copy_threshold_set(before);
    if (!status)
        conclude(&sweep, report);
    copy_list_close(&sweep.list);
    return status;
}
