#include "cli/bench_copy_batch.h"

#include "cli/bench_copy_ways.h"
#include "cli/interrupt.h"
#include "core/checked.h"
#include "core/error.h"
#include "core/text.h"

#include <stdio.h>

enum way { LOOP, BATCH, OURS, WAYS };

/* The first is the headline. */
static const struct shape {
    size_t bytes, count;
    bool down; /* to the host */
} shapes[] = {
    {256, 4096, false},  {256, 4096, true},  {256, 64, false},
    {4096, 1024, false}, {65536, 64, false},
};
#define SHAPES (sizeof shapes / sizeof *shapes)

struct batches {
    struct copy_list list;
    struct bench_row *rows[SHAPES][WAYS];
};

size_t bench_copy_batch_bytes(void)
{
    size_t most = 0;
    for (size_t i = 0; i < SHAPES; i++)
        most = core_max(most, 2 * shapes[i].bytes * shapes[i].count);
    return most;
}

static raffia_status make_rows(struct batches *batches, unsigned runs, struct bench_report *report)
{
    static const char *const ways[WAYS] = {"loop", "batch", "ours"};
    for (size_t i = 0; i < SHAPES; i++)
        for (int way = 0; way < WAYS; way++) {
            char name[BENCH_NAME_MAX], size[CORE_SIZE_TEXT_MAX];
            snprintf(name, sizeof name, "%s.%zux%s.%s", shapes[i].down ? "d2h" : "h2d",
                     shapes[i].count, core_format_size(shapes[i].bytes, size), ways[way]);
            struct bench_row *row = bench_report_row(report, name, 1, runs);
            if (!row)
                return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
            row->bytes_each = shapes[i].bytes * shapes[i].count;
            batches->rows[i][way] = row;
        }
    return RAFFIA_OK;
}

static raffia_status ours(struct copy_list *list)
{
    const raffia_memory_resources none = {{0}, {0}};
    return copy_batch_below(&list->on, list->device->stream, list->copies, list->count,
                            list->bytes + 1, &none, &list->by_kernel);
}

static raffia_status run_rounds(struct batches *batches, char *on_device, char *pinned,
                                unsigned runs, struct bench_report *report)
{
    static const copy_way ways[WAYS] = {copy_way_loop, copy_way_batch, ours};
    struct copy_list *list = &batches->list;
    raffia_status status = RAFFIA_OK;
    for (size_t i = 0; i < SHAPES && !status; i++) {
        const bool down = shapes[i].down;
        copy_list_fill(list, down ? pinned : on_device, down ? on_device : pinned, shapes[i].count,
                       shapes[i].bytes);
        /* The first round warms up and is dropped. */
        for (unsigned round = 0; round <= runs && !status; round++)
            for (int way = 0; way < WAYS && !status; way++) {
                status = copy_list_sample(list, ways[way], round ? batches->rows[i][way] : NULL);
                if (!status)
                    status = cli_interrupt_check();
            }
        if (!status && list->by_kernel != shapes[i].count)
            bench_report_note(report,
                              "%s: %zu of %zu copies were made by a kernel, the others by the "
                              "driver",
                              batches->rows[i][OURS]->name, list->by_kernel, shapes[i].count);
    }
    return status;
}

/* Ratios and advice. A device on which no kernel runs is told of in a note. */
static void conclude(const struct batches *batches, struct bench_report *report)
{
    struct bench_row *const *headline = batches->rows[0];
    char size[CORE_SIZE_TEXT_MAX];
    raffia_copy_thresholds found;
    bench_report_ratio(report, "copy.loop_over_ours", headline[LOOP], headline[OURS], true);
    bench_report_ratio(report, "copy.batch_over_ours", headline[BATCH], headline[OURS], true);
    if (raffia_copy_calibrate(batches->list.device->info.name, &found)) {
        bench_report_note(report, "no threshold is advised: %s", raffia_last_error());
        return;
    }
    bench_report_value(report, "copy.advised_threshold_bytes", (double)found.bytes);
    bench_report_value(report, "copy.advised_least_count", (double)found.count);
    if (found.bytes)
        bench_report_note(report,
                          "measured here: kernel_pinned_copy_threshold = %s pays for 64 or more "
                          "copies at once, smaller ones from %zu on; 'auto' has a threshold for "
                          "each number",
                          core_format_size(found.bytes, size), found.count);
    else
        bench_report_note(report,
                          "measured here: no kernel pays; kernel_pinned_copy_threshold = 0");
}

raffia_status bench_copy_batch(struct bench_device *device, void *on_device, void *pinned,
                               unsigned runs, struct bench_report *report)
{
    struct batches batches;
    raffia_status status = copy_list_open(device, &batches.list);
    if (!status)
        status = make_rows(&batches, runs, report);
    if (!status)
        status = run_rounds(&batches, on_device, pinned, runs, report);
    if (!status)
        conclude(&batches, report);
    copy_list_close(&batches.list);
    return status;
}
