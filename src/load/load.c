/* The two ways in: look at a model, or load it. */
#include "core/clock.h"
#include "core/error.h"
#include "core/log.h"
#include "core/sys.h"
#include "load/catalog_show.h"
#include "load/checksum.h"
#include "load/model.h"
#include "load/options.h"
#include "load/pipeline.h"
#include "load/read_back.h"
#include "load/watch.h"

#include <raffia/device.h>

#include <errno.h>
#include <inttypes.h>

static raffia_status check_place(raffia_model **model_p)
{
    return model_p ? RAFFIA_OK
                   : core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                                "there is no place to put the model (model_p is NULL)");
}

raffia_status raffia_model_inspect(const char *path, const raffia_load_options *options,
                                   raffia_model **model_p)
{
    raffia_load_options resolved;
    raffia_model *model;
    raffia_status status = check_place(model_p);
    if (!status)
        status = load_options_resolve(options, &resolved);
    if (!status)
        status = load_watch_ask(&resolved, "any file was opened");
    if (!status)
        status = load_model_open(path, &resolved, &model);
    if (status)
        return status;
    load_model_settle(model);
    *model_p = model;
    return RAFFIA_OK;
}

/* A write that went on during the load may have been read in half: what is in memory then is no
 * state the file ever had. */
static raffia_status check_unchanged(const struct catalog *catalog)
{
    for (size_t i = 0; i < catalog->file_count; i++) {
        const struct catalog_file *file = &catalog->files[i];
        struct stat now;
        if (sys_fstat(file->fd, &now))
            return core_error_errno(RAFFIA_ERROR_IO, errno,
                                    "%s: cannot tell whether it changed while it was read",
                                    catalog_show_path(file->path).text);
        if ((uint64_t)now.st_size != file->bytes)
            return core_error(
                RAFFIA_ERROR_CHANGED,
                "%s: the file changed while it was read: it had %" PRIu64
                " bytes and now has %" PRIu64 "; load it again when nobody writes to it",
                catalog_show_path(file->path).text, file->bytes, (uint64_t)now.st_size);
        if (now.st_ino != file->inode || now.st_dev != file->device ||
            now.st_mtim.tv_sec != file->modified.tv_sec ||
            now.st_mtim.tv_nsec != file->modified.tv_nsec)
            return core_error(RAFFIA_ERROR_CHANGED,
                              "%s: the file was written to while it was read; load it again "
                              "when nobody writes to it",
                              catalog_show_path(file->path).text);
    }
    return RAFFIA_OK;
}

/* Memory that staging buffers may still take, now that the model has its own. */
static size_t room_for_staging(void)
{
    raffia_device_info host;
    if (raffia_device_query("host", &host) || host.total_bytes == 0)
        return SIZE_MAX; /* not known */
    return host.free_bytes;
}

/* Whether the device answers, which for the first who asks may mean that a context is made. */
static raffia_status wake_device(const raffia_load_options *options, raffia_load_report *report)
{
    if (options->pool || options->memory || options->resource.ops)
        return RAFFIA_OK;
    double before = core_clock_seconds();
    struct driver_device device;
    raffia_device_info info;
    raffia_status status = driver_open(options->device, &device);
    if (!status)
        status = device.driver->context_state(device.index);
    /* A GPU's driver makes its context for the first question about memory. */
    if (!status && (device.driver->capabilities & DRIVER_IS_ASYNCHRONOUS))
        status = device.driver->device_info(device.index, &info);
    if (!status)
        report->context_seconds = core_clock_seconds() - before;
    return status;
}

/* How the bytes get from the files to the destination: cut to what readers write themselves, or to
 * slots of a ring, which is opened. */
static raffia_status prepare_way(raffia_model *model, const raffia_load_options *given,
                                 raffia_load_options *options, struct staging **ring_p)
{
    *ring_p = NULL;
    if (!model->destination.staged) {
        model->report.context_seconds = 0;
        if (options->reader != RAFFIA_READER_BUFFERED)
            load_options_fit_room(options, room_for_staging());
        return load_plan_cut(&model->plan, options->window_bytes, options->window_bytes);
    }
    /* Room is asked for only where memory will be taken: that reads a dozen files. */
    model->shape = load_options_shape(given, options, SIZE_MAX);
    if (!load_ring_is_kept(model->destination.device, &model->shape))
        model->shape = load_options_shape(given, options, room_for_staging());
    raffia_status status = load_ring_open(model->destination.device, &model->shape, ring_p);
    if (!status)
        status = load_plan_cut(&model->plan, model->shape.first_bytes, model->shape.slot_bytes);
    if (status) {
        staging_close(*ring_p);
        *ring_p = NULL;
    }
    return status;
}

static raffia_status fill(raffia_model **model_p, const raffia_load_options *given,
                          raffia_load_options *options, double started)
{
    raffia_model *model = *model_p;
    raffia_load_report *report = &model->report;
    struct staging *ring = NULL;
    raffia_status status = model->plan.needed ? wake_device(options, report) : RAFFIA_OK;
    double before = core_clock_seconds();
    if (!status)
        status = load_destination_make(options, &model->plan, &model->destination);
    if (status)
        return status;
    load_model_place(model);
    report->map_seconds = core_clock_seconds() - before;
    status = prepare_way(model, given, options, &ring);
    double reading = core_clock_seconds();
    if (!status)
        status = load_pipeline_run(model_p, options, ring, started);
    if (!status)
        status = check_unchanged(model->catalog);
    if (status)
        return status;
    double read = core_clock_seconds();
    report->read_seconds = read - reading;
    if (options->checksum != RAFFIA_CHECKSUM_NONE)
        status = load_checksum(model, options);
    report->checksum_seconds = core_clock_seconds() - read;
    return status;
}

raffia_status raffia_model_load(const char *path, const raffia_load_options *options,
                                raffia_model **model_p)
{
    double started = core_clock_seconds();
    raffia_load_options resolved;
    raffia_model *model;
    raffia_status status = check_place(model_p);
    if (!status)
        status = load_options_resolve(options, &resolved);
    if (!status)
        status = load_watch_ask(&resolved, "any file was opened");
    if (!status)
        status = load_model_open(path, &resolved, &model);
    if (status)
        return status;
    raffia_load_report *report = &model->report;
    report->open_seconds = core_clock_seconds() - started;
    status = load_watch_ask(&resolved, "any memory was made");
    if (!status)
        status = fill(&model, options, &resolved, started);
    if (status) {
        raffia_model_release(model);
        return status;
    }
    report->bytes_total = model->selection.bytes;
    report->tensors = model->selection.count;
    report->files = model->catalog->file_count;
    report->memory_bytes = model->destination.bytes;
    load_destination_report(&model->destination, &report->pages);
    load_model_settle(model);
    report->total_seconds = core_clock_seconds() - started;
    core_log_info("loaded %s: %zu tensors, %" PRIu64 " bytes (%" PRIu64 " past the page cache) "
                  "in %.3f s with %u threads",
                  catalog_show_path(path).text, report->tensors, report->bytes_total,
                  report->bytes_direct, report->total_seconds, report->threads);
    *model_p = model;
    return RAFFIA_OK;
}
