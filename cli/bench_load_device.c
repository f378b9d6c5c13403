#include "cli/bench_load_device.h"

#include "cli/bench_device.h"
#include "cli/bench_load_ways.h"
#include "cli/bench_memory.h"
#include "cli/cold_read.h"
#include "cli/interrupt.h"
#include "cli/memory_watch.h"
#include "core/checked.h"
#include "core/clock.h"
#include "core/memory.h"
#include "core/parallel.h"
#include "core/settings.h"
#include "core/text.h"

#include <stdio.h>

/* Copied by one sample of the link, if the model is as large: enough for its rate to settle. */
#define LINK_BYTES_MAX ((size_t)2 << 30)

/* Samples of the link in a round; the best of all is what loads are held against. */
#define LINK_EACH 3u

enum row { LINK, FIRST, SECOND, COLD, COLD_READ, ROW_COUNT };

/* What a load is done for: its time, its contents, or neither. */
enum purpose { COUNT, CHECK, WATCH };

struct bench {
    const struct bench_options *plan;
    struct bench_report *report;
    struct bench_device device;
    struct load_subject subject;
    unsigned threads;
    size_t copy_bytes; /* of one copy of the link: a slot of the loads' staging ring */
    size_t link_bytes; /* copied by one sample of the link */
    bool ring;         /* loads go through one */
    raffia_pool *standing;
    struct bench_row *rows[ROW_COUNT];
    bool direct;           /* the file system allows direct reads */
    uint64_t cold_direct;  /* bytes that cold loads read past the page cache */
    uint64_t cold_bytes;   /* bytes that they read */
    uint64_t memory_above; /* the start, in a load */
};

static raffia_status make_rows(struct bench *bench)
{
    static const char *const names[ROW_COUNT] = {
        [LINK] = "link.pinned", [FIRST] = "load.first",    [SECOND] = "load.second",
        [COLD] = "load.cold",   [COLD_READ] = "read.cold",
    };
    for (int row = 0; row < ROW_COUNT; row++) {
        if (bench->plan->hot_only && (row == COLD || row == COLD_READ))
            continue;
        const size_t each = row == LINK ? LINK_EACH : 1;
        struct bench_row *made = bench_report_row(
            bench->report, names[row], row == LINK ? 1 : bench->threads, bench->plan->runs * each);
        const bool split = row == FIRST || row == SECOND || row == COLD;
        if (!made || (split && bench_row_split(made)))
            return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
        made->bytes_each =
            row == COLD_READ ? bench->subject.file_bytes : raffia_model_bytes(bench->subject.model);
        bench->rows[row] = made;
    }
    return RAFFIA_OK;
}

/* ---- the link ------------------------------------------------------------------------------- */

/* How large the copies are is known from the load that came before. */
static void size_link(struct bench *bench, const raffia_load_report *report)
{
    bench->ring = report->pinned != NULL;
    bench->copy_bytes =
        bench->ring ? report->slot_bytes : core_setting_size(CORE_SETTING_LOAD_SLOT);
    bench->link_bytes =
        core_max(core_min(LINK_BYTES_MAX, (size_t)report->bytes_total), bench->copy_bytes);
    bench->rows[LINK]->bytes_each = bench->link_bytes;
}

/* Copies of the ring's own size, one behind the other. */
static raffia_status copy_over_link(struct bench *bench, void *to, const void *from, bool warm_up)
{
    raffia_status status = RAFFIA_OK;
    for (unsigned i = 0; !status && i < LINK_EACH; i++) {
        double started = core_clock_seconds();
        status =
            bench_device_copies(&bench->device, to, from, bench->copy_bytes, bench->link_bytes);
        if (!status && !warm_up)
            bench_row_add(bench->rows[LINK], core_clock_seconds() - started);
    }
    return status;
}

/* In blocks of their own: the model may be smaller than a copy. */
static raffia_status measure_link(struct bench *bench, bool warm_up)
{
    raffia_pool *pinned = NULL, *pool = NULL;
    void *from = NULL, *to = NULL;
    raffia_status status =
        bench_device_pinned_pool(&bench->device, bench->copy_bytes, bench->plan, &pinned);
    if (!status)
        status = bench_device_pool(&bench->device, bench->copy_bytes, &pool);
    if (!status)
        status = raffia_pool_alloc(pinned, bench->copy_bytes, 0, &from);
    if (!status)
        status = raffia_pool_alloc(pool, bench->copy_bytes, 0, &to);
    if (!status)
        status = copy_over_link(bench, to, from, warm_up);
    if (to)
        (void)!raffia_pool_free(pool, to);
    if (from)
        (void)!raffia_pool_free(pinned, from);
    raffia_pool_release(pool);
    raffia_pool_release(pinned);
    return status;
}

/* ---- loads ---------------------------------------------------------------------------------- */

static raffia_load_options load_options(const struct bench *bench, raffia_pool *pool)
{
    return (raffia_load_options){
        .struct_size = sizeof(raffia_load_options),
        .device = bench->device.info.name,
        .pages = RAFFIA_PAGES_TRY,
        .pool = pool,
        .threads = bench->plan->threads,
        .cancel = cli_interrupt_flag(),
    };
}

/* Copies each tensor back and compares it. */
static raffia_status check_on_device(struct bench *bench, const raffia_model *model)
{
    const struct driver_device *on = &bench->device.device;
    raffia_status status = RAFFIA_OK;
    for (size_t i = 0; !status && i < raffia_model_tensor_count(model); i++) {
        const raffia_tensor *tensor = raffia_model_tensor_at(model, i);
        void *back = core_malloc(core_max(tensor->bytes, 1));
        if (!back)
            return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
        if (tensor->bytes)
            status = on->driver->copy(on->index, bench->device.stream, back, tensor->data,
                                      tensor->bytes);
        raffia_status waited = bench_device_wait(&bench->device);
        status = status ? status : waited;
        if (!status)
            status = load_subject_check(&bench->subject, i, back);
        core_free(back);
    }
    return status;
}

/* Makes sure that a load which did nothing would not find the right bytes in place. */
static raffia_status overwrite(struct bench *bench)
{
    const struct driver_device *on = &bench->device.device;
    const size_t bytes = raffia_model_bytes_needed(bench->subject.model);
    void *block;
    raffia_status status =
        raffia_pool_alloc(bench->standing, bytes, RAFFIA_TENSOR_ALIGNMENT, &block);
    if (status)
        return status;
    status = on->driver->fill(on->index, bench->device.stream, block, 0xa5, bytes);
    raffia_status waited = bench_device_wait(&bench->device);
    raffia_status freed = raffia_pool_free(bench->standing, block);
    return status ? status : waited ? waited : freed;
}

/* The clock runs from the call to the last byte on the device; giving the model back is a part of
 * its own and not in it. */
static raffia_status measure_load(struct bench *bench, enum row row, enum purpose purpose)
{
    raffia_pool *pool = row == FIRST ? NULL : bench->standing;
    raffia_status status = pool ? overwrite(bench) : RAFFIA_OK;
    if (status)
        return status;
    const raffia_load_options options = load_options(bench, pool);
    raffia_model *model;
    double started = core_clock_seconds();
    status = raffia_model_load(bench->subject.path, &options, &model);
    double seconds = core_clock_seconds() - started;
    if (status)
        return status;
    const raffia_load_report *report = raffia_model_report(model);
    const double parts[BENCH_WAIT] = {[BENCH_OPEN] = report->open_seconds,
                                      [BENCH_MAP] = report->map_seconds,
                                      [BENCH_READ] = report->read_seconds};
    if (purpose == COUNT)
        bench_row_add_parts(bench->rows[row], seconds, parts);
    if (purpose == COUNT && row == COLD) {
        bench->cold_direct += report->bytes_direct;
        bench->cold_bytes += report->bytes_total;
    }
    size_link(bench, report);
    if (purpose == CHECK)
        status = check_on_device(bench, model);
    raffia_model_release(model);
    return status;
}

/* Pool and ring, if there is one, are made inside the clock; the context is up. */
static raffia_status measure_first(struct bench *bench, bool warm_up)
{
    bench_memory_warm((size_t)128 << 20, true);
    raffia_load_release_staging();
    return measure_load(bench, FIRST, warm_up ? CHECK : COUNT);
}

static raffia_status measure_cold(struct bench *bench, bool warm_up)
{
    double seconds;
    raffia_status status = cold_evict(&bench->subject.summary);
    if (!status)
        status = cold_read(&bench->subject.summary, bench->threads, &seconds);
    bench->direct = status != RAFFIA_ERROR_UNSUPPORTED;
    if (!status && !warm_up)
        bench_row_add(bench->rows[COLD_READ], seconds);
    if (status == RAFFIA_ERROR_UNSUPPORTED)
        return RAFFIA_OK;
    if (!status)
        status = cold_evict(&bench->subject.summary);
    return status ? status : measure_load(bench, COLD, warm_up ? CHECK : COUNT);
}

/* Reads the files once, so that they are in the page cache. */
static raffia_status fetch(struct bench *bench)
{
    struct load_sample sample;
    return load_plainly(&bench->subject, bench->threads, false, &sample);
}

/* ---- rounds --------------------------------------------------------------------------------- */

static raffia_status run_round(struct bench *bench, bool warm_up)
{
    const bool hot_only = bench->plan->hot_only;
    raffia_status status = hot_only ? RAFFIA_OK : fetch(bench);
    if (!status)
        status = measure_first(bench, warm_up);
    /* The model of the first load was given back to the driver, which clears what it gets while the
     * next load runs: 6 GiB were seen to cost that one 11 ms (performance notes, entry 10). A load
     * that is not timed takes that upon it. */
    if (!status)
        status = measure_load(bench, SECOND, WATCH);
    if (!status)
        status = measure_link(bench, warm_up);
    if (!status)
        status = measure_load(bench, SECOND, warm_up ? CHECK : COUNT);
    if (!status && !hot_only)
        status = measure_cold(bench, warm_up);
    if (!status)
        status = cli_interrupt_check();
    return status;
}

/* Ring included: it is made anew. */
static raffia_status watch_memory(struct bench *bench)
{
    raffia_load_release_staging();
    struct memory_watch watch;
    raffia_status status = memory_watch_start(&watch);
    if (status)
        return status;
    status = measure_load(bench, SECOND, WATCH);
    bench->memory_above = memory_watch_stop(&watch);
    return status;
}

/* Rate of the loads over that of the best copy. */
static void add_share(struct bench *bench, const char *name, enum row row)
{
    const struct bench_row *link = bench->rows[LINK], *load = bench->rows[row];
    const double best = (double)link->bytes_each / bench_row_quantile(link, 0);
    bench_report_quotient(bench->report, name, (double)load->bytes_each / bench_row_median(load),
                          best, true);
}

/* Where the CPU can touch the device's memory, loads read straight into it. */
static void add_link_notes(struct bench *bench)
{
    struct bench_report *report = bench->report;
    char size[CORE_SIZE_TEXT_MAX];
    core_format_size(bench->copy_bytes, size);
    if (bench->ring)
        bench_report_note(report,
                          "link.pinned: copies of %s, as the ring makes them; the shares are of "
                          "its best sample",
                          size);
    else
        bench_report_note(report,
                          "link.pinned: copies of %s by the device. The loads make none: the CPU "
                          "can touch this device's memory, and the files are read into it; the "
                          "shares compare with the best sample all the same",
                          size);
    bench_report_note(report,
                      "load.first makes the pool%s inside the clock, load.second finds %s and "
                      "follows another such load; the context was up before "
                      "(load.context_seconds)",
                      bench->ring ? " and the ring" : "", bench->ring ? "them" : "it");
}

static void add_results(struct bench *bench)
{
    struct bench_report *report = bench->report;
    add_share(bench, "load.link_share", SECOND);
    add_share(bench, "load.first_link_share", FIRST);
    if (bench->direct)
        bench_report_quotient(report, "load.cold_share", bench_row_median(bench->rows[COLD_READ]),
                              bench_row_median(bench->rows[COLD]), true);
    bench_report_value(report, "load.second_seconds", bench_row_median(bench->rows[SECOND]));
    bench_report_value(report, "load.context_seconds", bench->device.open_seconds);
    bench_report_value(report, "load.host_bytes_above_start", (double)bench->memory_above);
    bench_report_value(report, "load.copy_bytes", (double)bench->copy_bytes);
    if (bench->direct)
        bench_report_note(
            report,
            "cold: the files were dropped from the page cache before each; %.1f %% "
            "of the bytes of load.cold came from the disk directly. read.cold is "
            "direct reads of the same files by as many threads, with no device",
            bench->cold_bytes ? 100 * (double)bench->cold_direct / (double)bench->cold_bytes : 0);
    else if (!bench->plan->hot_only)
        bench_report_note(report, "the file system refuses direct reads: no cold rows");
    add_link_notes(bench);
    bench_report_note(report, "every tensor was copied back and compared for each kind of load in "
                              "the warm-up round");
}

static raffia_status run(struct bench *bench)
{
    raffia_status status = make_rows(bench);
    if (!status)
        status = bench_device_pool(&bench->device, raffia_model_bytes_needed(bench->subject.model),
                                   &bench->standing);
    /* The first round warms up, checks every byte and is dropped. */
    for (unsigned round = 0; !status && round <= bench->plan->runs; round++)
        status = run_round(bench, round == 0);
    if (!status)
        status = watch_memory(bench);
    if (!status)
        add_results(bench);
    return status;
}

raffia_status bench_load_device_measure(const char *path, const struct bench_options *plan,
                                        struct bench_report *report)
{
    struct bench bench = {.plan = plan, .report = report};
    bench.threads = core_thread_count(plan->threads);
    raffia_status status = bench_device_open(plan->device, &bench.device);
    if (status)
        return status;
    status = load_subject_open(path, &bench.subject);
    if (!status) {
        char size[CORE_SIZE_TEXT_MAX];
        snprintf(report->title, sizeof report->title, "Loading a model of %s into %.40s (%.40s)",
                 core_format_size(raffia_model_bytes(bench.subject.model), size),
                 bench.device.info.name, bench.device.info.model);
        status = run(&bench);
    }
    raffia_pool_release(bench.standing);
    load_subject_free(&bench.subject);
    bench_device_close(&bench.device);
    return status;
}
