#include "cli/bench_copy_batch.h"

#include "cli/interrupt.h"
#include "copy/copy.h"
#include "core/checked.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/text.h"

#include <stdio.h>

enum way { LOOP, BATCH, OURS, WAYS };

/* The first is the headline. Copies lie twice their size apart, so that nobody can join them. */
static const struct shape {
    size_t bytes, count;
    bool down; /* to the host */
} shapes[] = {
    {256, 4096, false},  {256, 4096, true},  {256, 64, false},
    {4096, 1024, false}, {65536, 64, false},
};
#define SHAPES    (sizeof shapes / sizeof *shapes)
#define COUNT_MAX 4096

struct batches {
    struct bench_device *device;
    struct copy_device on;
    struct bench_row *rows[SHAPES][WAYS];
    raffia_copy_element *copies; /* COUNT_MAX */
    struct driver_copy *listed;  /* the same */
    size_t by_kernel;            /* of the last batch of ours */
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

static void list_copies(struct batches *batches, const struct shape *shape, char *on_device,
                        char *pinned)
{
    for (size_t i = 0; i < shape->count; i++) {
        char *there = on_device + 2 * i * shape->bytes, *here = pinned + 2 * i * shape->bytes;
        char *to = shape->down ? here : there, *from = shape->down ? there : here;
        batches->copies[i] = (raffia_copy_element){to, from, shape->bytes};
        batches->listed[i] = (struct driver_copy){to, from, shape->bytes};
    }
}

static raffia_status submit(struct batches *batches, const struct shape *shape, enum way way)
{
    const struct driver_device on = batches->on.device;
    const driver_stream stream = batches->device->stream;
    const raffia_memory_resources none = {{0}, {0}};
    raffia_status status = RAFFIA_OK;
    switch (way) {
    case LOOP:
        for (size_t i = 0; i < shape->count && !status; i++)
            status = on.driver->copy(on.index, stream, batches->listed[i].destination,
                                     batches->listed[i].source, shape->bytes);
        return status;
    case BATCH:
        return on.driver->copy_batch(on.index, stream, batches->listed, shape->count);
    default:
        return copy_batch_below(&batches->on, stream, batches->copies, shape->count,
                                shape->bytes + 1, &none, &batches->by_kernel);
    }
}

static raffia_status run_sample(struct batches *batches, size_t i, enum way way, bool warm_up)
{
    const double started = core_clock_seconds();
    raffia_status status = submit(batches, &shapes[i], way);
    raffia_status waited = bench_device_wait(batches->device);
    if (!status)
        status = waited;
    if (!status && !warm_up)
        bench_row_add(batches->rows[i][way], core_clock_seconds() - started);
    return status;
}

static raffia_status run_rounds(struct batches *batches, char *on_device, char *pinned,
                                unsigned runs, struct bench_report *report)
{
    raffia_status status = RAFFIA_OK;
    for (size_t i = 0; i < SHAPES && !status; i++) {
        list_copies(batches, &shapes[i], on_device, pinned);
        /* The first round warms up and is dropped. */
        for (unsigned round = 0; round <= runs && !status; round++)
            for (int way = 0; way < WAYS && !status; way++) {
                status = run_sample(batches, i, (enum way)way, round == 0);
                if (!status)
                    status = cli_interrupt_check();
            }
        if (!status && batches->by_kernel != shapes[i].count)
            bench_report_note(report,
                              "%s: %zu of %zu copies were made by a kernel, the others by the "
                              "driver",
                              batches->rows[i][OURS]->name, batches->by_kernel, shapes[i].count);
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
    if (raffia_copy_calibrate(batches->device->info.name, &found)) {
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
    struct batches batches = {.device = device};
    batches.copies = core_calloc(COUNT_MAX, sizeof *batches.copies);
    batches.listed = core_calloc(COUNT_MAX, sizeof *batches.listed);
    raffia_status status =
        batches.copies && batches.listed ? RAFFIA_OK : RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    if (!status)
        status = copy_device_open(device->info.name, &batches.on);
    if (!status)
        status = make_rows(&batches, runs, report);
    if (!status)
        status = run_rounds(&batches, on_device, pinned, runs, report);
    if (!status)
        conclude(&batches, report);
    core_free(batches.copies);
    core_free(batches.listed);
    return status;
}
