/* Progress, cancellation and stalls, seen from the thread that waits for a load. */
#include "load/watch.h"

#include "core/clock.h"
#include "core/error.h"

#include <inttypes.h>

#define REPORT_INTERVAL_NS UINT64_C(100000000)
#define NS_PER_MILLISECOND UINT64_C(1000000)

void load_watch_start(struct load_watch *watch, const raffia_load_options *options,
                      struct load_source *source, uint64_t bytes_total, double started)
{
    uint64_t now = core_clock_ns();
    *watch = (struct load_watch){
        .options = options,
        .source = source,
        .bytes_total = bytes_total,
        .started = started,
        .report_at_ns = now + REPORT_INTERVAL_NS,
        .activity_ns = now,
    };
}

uint64_t load_watch_pause_ns(const struct load_watch *watch)
{
    uint64_t stall_ns = watch->options->stall_timeout_ms * NS_PER_MILLISECOND;
    return stall_ns && stall_ns < REPORT_INTERVAL_NS ? stall_ns : REPORT_INTERVAL_NS;
}

bool load_watch_flag_set(const raffia_load_options *options)
{
    return options->cancel && __atomic_load_n(options->cancel, __ATOMIC_RELAXED) != 0;
}

raffia_status load_watch_ask(const raffia_load_options *options, const char *before)
{
    return load_watch_flag_set(options)
               ? core_error(RAFFIA_ERROR_CANCELLED, "cancelled before %s", before)
               : RAFFIA_OK;
}

raffia_status load_watch_look(struct load_watch *watch, bool finally)
{
    const raffia_load_options *options = watch->options;
    raffia_load_progress progress = {
        .bytes_done = atomic_load(&watch->source->bytes_done),
        .bytes_total = watch->bytes_total,
        .seconds = core_clock_seconds() - watch->started,
    };
    bool cancelled = load_watch_flag_set(options);
    uint64_t now = core_clock_ns();
    if (!cancelled && options->progress && (finally || now >= watch->report_at_ns)) {
        watch->report_at_ns = now + REPORT_INTERVAL_NS;
        cancelled = !options->progress(options->progress_context, &progress);
    }
    if (!cancelled)
        return RAFFIA_OK;
    if (progress.bytes_done >= progress.bytes_total)
        return core_error(RAFFIA_ERROR_CANCELLED,
                          "the load was cancelled just as all %" PRIu64
                          " bytes were there; they were given up",
                          progress.bytes_total);
    return core_error(RAFFIA_ERROR_CANCELLED,
                      "the load was cancelled after %" PRIu64 " of %" PRIu64 " bytes",
                      progress.bytes_done, progress.bytes_total);
}

bool load_watch_stalled(struct load_watch *watch)
{
    uint64_t activity = atomic_load(&watch->source->activity), now = core_clock_ns();
    if (activity != watch->activity) {
        watch->activity = activity;
        watch->activity_ns = now;
    }
    uint64_t allowed_ns = watch->options->stall_timeout_ms * NS_PER_MILLISECOND;
    return allowed_ns && now - watch->activity_ns >= allowed_ns;
}
