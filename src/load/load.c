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

static raffia_status fill(raffia_model **model_p, raffia_load_options *options, double started)
{
    raffia_model *model = *model_p;
    raffia_load_report *report = &model->report;
    double before = core_clock_seconds();
    raffia_status status = load_destination_make(options, &model->plan, &model->destination);
    if (status)
        return status;
    load_model_place(model);
    double mapped = core_clock_seconds();
    report->map_seconds = mapped - before;
    if (options->reader != RAFFIA_READER_BUFFERED)
        load_options_fit_room(options, room_for_staging());
    status = load_plan_cut(&model->plan, options->window_bytes);
    if (!status)
        status = load_pipeline_run(model_p, options, started);
    if (!status)
        status = check_unchanged(model->catalog);
    if (status)
        return status;
    double read = core_clock_seconds();
    report->read_seconds = read - mapped;
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
        status = fill(&model, &resolved, started);
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
