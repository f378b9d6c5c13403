/* Reader threads, and waiting for them. */
#include "load/pipeline.h"

#include "core/checked.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/sys.h"
#include "load/catalog_show.h"
#include "load/feed.h"
#include "load/reader.h"
#include "load/watch.h"

#include <inttypes.h>
#include <time.h>

#define NS_PER_SECOND UINT64_C(1000000000)

struct job;

struct worker {
    struct job *job;
    pthread_t thread;
    bool started;
    _Atomic size_t window; /* being read, plus one; 0 = none */
    struct load_reader reader;
};

/*
 * One load under way. It is shared by the caller and the reader threads, because a caller that
 * gives up on a stalled read leaves while that read is still going on: whoever drops the last
 * reference frees it.
 */
struct job {
    atomic_uint owners;
    raffia_model *abandoned; /* the model, once the caller has left it behind */
    struct load_source source;
    struct staging *ring; /* NULL: readers write to the destination */
    struct load_feed feed;
    _Atomic size_t next_window;
    struct worker *workers;
    unsigned worker_count;

    pthread_mutex_t lock; /* guards what follows; a leaf */
    pthread_cond_t finished;
    unsigned running; /* reader threads that have not finished */
    bool failed;
    struct core_error_record error; /* of the reader that failed first */
};

static raffia_status init_locks(struct job *job)
{
    pthread_condattr_t attributes;
    if (pthread_mutex_init(&job->lock, NULL))
        goto failed;
    if (pthread_condattr_init(&attributes))
        goto destroy_lock;
    /* The caller's pauses must not depend on the date being set. */
    int error_number = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    if (!error_number)
        error_number = pthread_cond_init(&job->finished, &attributes);
    pthread_condattr_destroy(&attributes);
    if (!error_number)
        return RAFFIA_OK;
destroy_lock:
    pthread_mutex_destroy(&job->lock);
failed:
    return core_error(RAFFIA_ERROR_OUT_OF_HOST_MEMORY, "the system gives no more locks");
}

/* Each reader is of use as long as there is a piece for it. */
static unsigned count_workers(const raffia_model *model, const raffia_load_options *options,
                              bool staged)
{
    size_t windows = model->plan.window_count, pieces = windows;
    if (!staged)
        return (unsigned)core_min(options->threads, pieces);
    if (!core_multiply(windows, model->shape.slot_bytes / model->shape.piece_bytes + 1, &pieces))
        pieces = windows;
    return (unsigned)core_min(model->shape.threads, pieces);
}

static raffia_status create_job(raffia_model *model, const raffia_load_options *options,
                                struct staging *ring, struct job **job_p)
{
    struct job *job = core_calloc(1, sizeof *job);
    if (!job)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    raffia_status status = load_source_init(&job->source, model->catalog, &model->plan);
    if (status)
        goto free_job;
    job->source.mode = options->reader;
    job->source.staging_bytes = options->window_bytes;
    for (size_t i = 0; i < model->plan.item_count; i++)
        job->source.addresses[i] = load_destination_address(&model->destination, &model->plan, i);
    status = init_locks(job);
    if (status)
        goto close_source;
    job->ring = ring;
    job->worker_count = count_workers(model, options, ring != NULL);
    job->feed = (struct load_feed){.source = &job->source,
                                   .piece_bytes = model->shape.piece_bytes,
                                   .readers = job->worker_count ? job->worker_count : 1,
                                   .one_block = model->destination.blocks == NULL};
    /* At least one, for the calling thread to work with when there is no other. */
    job->workers = core_calloc(core_max(job->worker_count, 1), sizeof *job->workers);
    if (!job->workers) {
        status = RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
        goto destroy_locks;
    }
    for (unsigned i = 0; i < core_max(job->worker_count, 1); i++) {
        job->workers[i].job = job;
        job->workers[i].reader.source = &job->source;
    }
    atomic_init(&job->owners, 1);
    *job_p = job;
    return RAFFIA_OK;
destroy_locks:
    pthread_cond_destroy(&job->finished);
    pthread_mutex_destroy(&job->lock);
close_source:
    load_source_close(&job->source);
free_job:
    core_free(job);
    return status;
}

static void release_job(struct job *job)
{
    if (atomic_fetch_sub(&job->owners, 1) != 1)
        return;
    raffia_model *abandoned = job->abandoned;
    staging_close(job->ring);
    pthread_cond_destroy(&job->finished);
    pthread_mutex_destroy(&job->lock);
    load_source_close(&job->source);
    core_free(job->workers);
    core_free(job);
    raffia_model_release(abandoned);
}

/* Takes windows until there are none, or none is wanted. `watch` is given where the caller has to
 * read by itself. */
static raffia_status read_windows(struct worker *worker, struct load_watch *watch)
{
    struct job *job = worker->job;
    const struct load_plan *plan = job->source.plan;
    raffia_status status = RAFFIA_OK;
    while (!status && !load_stopped(&job->source)) {
        size_t window = atomic_fetch_add(&job->next_window, 1);
        if (window >= plan->window_count)
            break;
        atomic_store(&worker->window, window + 1);
        status = load_read_window(&worker->reader, &plan->windows[window]);
        atomic_store(&worker->window, 0);
        if (!status && watch)
            status = load_watch_look(watch, false);
    }
    load_reader_close(&worker->reader);
    return status;
}

static void stop(struct job *job)
{
    atomic_store(&job->source.stop, true);
    if (job->ring)
        staging_stop(job->ring);
}

/* The same through the ring. Who leaves it last waits for the copies, whatever happened. */
static raffia_status feed_ring(struct worker *worker, struct load_watch *watch)
{
    struct job *job = worker->job;
    struct staging_piece piece;
    bool got = true;
    raffia_status status = RAFFIA_OK;
    while (!status && !load_stopped(&job->source)) {
        status = staging_take(job->ring, &piece, &got);
        if (status || !got)
            break;
        atomic_store(&worker->window, piece.stretch + 1);
        status = load_feed_piece(&job->feed, &worker->reader, &piece);
        atomic_store(&worker->window, 0);
        if (!status && !load_stopped(&job->source))
            status = staging_put(job->ring, &piece);
        if (!status && watch)
            status = load_watch_look(watch, false);
    }
    struct core_error_record cause;
    if (status) {
        core_error_save(&cause);
        stop(job);
    }
    raffia_status last = staging_leave(job->ring);
    return status ? core_error_restore(&cause) : last;
}

static raffia_status work(struct worker *worker, struct load_watch *watch)
{
    return worker->job->ring ? feed_ring(worker, watch) : read_windows(worker, watch);
}

static void *worker_main(void *argument)
{
    struct worker *worker = argument;
    struct job *job = worker->job;
    raffia_status status = work(worker, NULL);
    if (status)
        stop(job);
    pthread_mutex_lock(&job->lock);
    if (status) {
        if (!job->failed)
            core_error_save(&job->error);
        job->failed = true;
    }
    job->running--;
    pthread_cond_signal(&job->finished);
    pthread_mutex_unlock(&job->lock);
    release_job(job);
    return NULL;
}

/* Has readers that never came leave the ring. The calling thread reads where there is none. */
static void leave_for_absent(struct job *job, unsigned started)
{
    for (unsigned i = started ? started : 1; job->ring && i < job->worker_count; i++) {
        raffia_status status = staging_leave(job->ring);
        if (!status)
            continue;
        stop(job);
        pthread_mutex_lock(&job->lock);
        if (!job->failed)
            core_error_save(&job->error);
        job->failed = true;
        pthread_mutex_unlock(&job->lock);
    }
}

/* Starts as many as the system gives. Returns their number. */
static unsigned start_workers(struct job *job)
{
    unsigned started = 0;
    for (unsigned i = 0; i < job->worker_count; i++) {
        struct worker *worker = &job->workers[i];
        atomic_fetch_add(&job->owners, 1);
        pthread_mutex_lock(&job->lock);
        job->running++;
        pthread_mutex_unlock(&job->lock);
        int error_number = sys_thread_create(&worker->thread, worker_main, worker);
        worker->started = error_number == 0;
        if (error_number) {
            pthread_mutex_lock(&job->lock);
            job->running--;
            pthread_mutex_unlock(&job->lock);
            atomic_fetch_sub(&job->owners, 1);
            core_log_info("only %u of %u reader threads could be started", started,
                          job->worker_count);
            leave_for_absent(job, started);
            break;
        }
        started++;
    }
    return started;
}

static struct timespec moment_after(uint64_t pause_ns)
{
    uint64_t at = core_clock_ns() + pause_ns;
    return (struct timespec){.tv_sec = (time_t)(at / NS_PER_SECOND),
                             .tv_nsec = (long)(at % NS_PER_SECOND)};
}

static raffia_status describe_stall(const struct job *job, const struct load_watch *watch)
{
    for (unsigned i = 0; i < job->worker_count; i++) {
        size_t window = atomic_load(&job->workers[i].window);
        if (window == 0)
            continue;
        const struct load_window *stuck = &job->source.plan->windows[window - 1];
        return core_error(RAFFIA_ERROR_TIMED_OUT,
                          "%s: no byte came for %u ms while %zu bytes at offset %" PRIu64
                          " were read",
                          catalog_show_path(job->source.catalog->files[stuck->file].path).text,
                          watch->options->stall_timeout_ms, stuck->bytes, stuck->file_offset);
    }
    return core_error(RAFFIA_ERROR_TIMED_OUT, "no byte came for %u ms%s",
                      watch->options->stall_timeout_ms,
                      job->ring ? ", while copies to the device were waited for" : "");
}

/* Waits until no reader is running, or, if `may_leave`, until a stall; *left_p says which. */
static raffia_status wait_for_workers(struct job *job, struct load_watch *watch, bool may_leave,
                                      bool *left_p)
{
    raffia_status status = RAFFIA_OK;
    pthread_mutex_lock(&job->lock);
    while (job->running > 0 && !*left_p) {
        struct timespec moment = moment_after(load_watch_pause_ns(watch));
        pthread_cond_timedwait(&job->finished, &job->lock, &moment);
        if (job->running == 0)
            break;
        pthread_mutex_unlock(&job->lock);
        if (!status && !load_stopped(&job->source))
            status = load_watch_look(watch, false);
        if (load_watch_stalled(watch) && status != RAFFIA_ERROR_TIMED_OUT && (!status || may_leave))
            status = describe_stall(job, watch);
        *left_p = may_leave && status == RAFFIA_ERROR_TIMED_OUT;
        if (status)
            stop(job);
        pthread_mutex_lock(&job->lock);
    }
    pthread_mutex_unlock(&job->lock);
    return status;
}

/* Every thread has finished, or is to look after itself. */
static void part_from_workers(struct job *job, bool left)
{
    for (unsigned i = 0; i < job->worker_count; i++) {
        if (!job->workers[i].started)
            continue;
        if (left)
            pthread_detach(job->workers[i].thread);
        else
            pthread_join(job->workers[i].thread, NULL);
    }
}

static void report_ring(struct staging *ring, raffia_load_report *report)
{
    struct staging_stats stats;
    staging_query(ring, &stats);
    report->bytes_copied = stats.bytes_copied;
    report->copies = stats.copies;
    report->staging_bytes = stats.bytes;
    report->slot_bytes = stats.shape.slot_bytes;
    report->slots = stats.shape.slot_count;
    report->pinned = pinned_way_name(stats.way);
    report->staging_page_kind = stats.page.kind;
    report->staging_page_size = stats.page.size;
    report->ring_seconds = stats.build_seconds;
    report->wait_seconds = stats.wait_seconds;
}

static void fill_report(const struct job *job, raffia_load_report *report)
{
    const struct load_source *source = &job->source;
    report->bytes_buffered = atomic_load(&source->bytes_buffered);
    report->bytes_direct = atomic_load(&source->bytes_direct);
    report->bytes_staged = atomic_load(&source->bytes_staged);
    report->reads = atomic_load(&source->reads);
    report->direct_refusals = atomic_load(&source->direct_refusals);
    report->staging_bytes = atomic_load(&source->staging_used);
    report->windows = source->plan->window_count;
    if (job->ring)
        report_ring(job->ring, report);
}

static void begin_ring(struct job *job)
{
    const struct staging_work work = load_feed_work(&job->feed);
    staging_begin(job->ring, &work, job->worker_count ? job->worker_count : 1);
}

raffia_status load_pipeline_run(raffia_model **model_p, const raffia_load_options *options,
                                struct staging *ring, double started)
{
    raffia_model *model = *model_p;
    struct job *job;
    raffia_status status = load_watch_ask(options, "any tensor was read");
    if (!status)
        status = create_job(model, options, ring, &job);
    if (status) {
        staging_close(ring);
        return status;
    }
    if (ring)
        begin_ring(job);
    struct load_watch watch;
    load_watch_start(&watch, options, &job->source, model->selection.bytes, started);
    bool left = false;
    model->report.threads = start_workers(job);
    if (model->report.threads > 0)
        status = wait_for_workers(job, &watch, model->destination.kind == LOAD_DESTINATION_OWN_POOL,
                                  &left);
    else
        status = work(&job->workers[0], &watch);
    part_from_workers(job, left);
    if (left) {
        job->abandoned = model;
        *model_p = NULL;
        release_job(job);
        return status;
    }
    if (!status && job->failed)
        status = core_error_restore(&job->error);
    if (!status)
        status = load_watch_look(&watch, true);
    fill_report(job, &model->report);
    release_job(job);
    return status;
}
