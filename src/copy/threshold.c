/* From which size on the kernel is the slower way: the setting, or what a measurement says. */
#include "copy/copy.h"
#include "copy/kernel.h"
#include "core/checked.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/log.h"
#include "core/process.h"
#include "core/text.h"

#include <raffia/pinned.h>

#define SMALLEST  ((size_t)256)
#define LARGEST   ((size_t)256 << 10)
#define CLASSES   7 /* of counts: 1, 2, 4, ... */
#define COUNT_MAX ((size_t)1 << (CLASSES - 1))
#define BYTES_MAX (LARGEST * COUNT_MAX)
#define TIMES     5 /* the fastest counts: what slows a copy down is other work */
#define FACTOR    2
#define KNOWN_MAX 64

/* A kernel has to be so much faster: what is as fast one time is slower another. */
#define MARGIN 1.05

/* ---- what was measured ------------------------------------------------------------------------
 */

/* For so many copies at once as the class says, smaller ones than this go by a kernel; 0: none. */
struct limits {
    size_t of[CLASSES];
};

struct known {
    struct driver_device device; /* no driver: the entry is free */
    struct limits limits;
};

/* Guarded by the lock of the process. A forked child has the same machine. */
static struct known known[KNOWN_MAX];

static bool recall(struct driver_device device, struct limits *limits)
{
    bool found = false;
    core_process_lock();
    for (int i = 0; i < KNOWN_MAX && !found; i++) {
        found = known[i].device.driver == device.driver && known[i].device.index == device.index;
        if (found)
            *limits = known[i].limits;
    }
    core_process_unlock();
    return found;
}

static void remember(struct driver_device device, const struct limits *limits)
{
    core_process_lock();
    for (int i = 0; i < KNOWN_MAX; i++) {
        const bool same =
            known[i].device.driver == device.driver && known[i].device.index == device.index;
        if (!same && known[i].device.driver)
            continue;
        known[i] = (struct known){device, *limits};
        break;
    }
    core_process_unlock();
}

/* ---- measuring ------------------------------------------------------------------------------- */

struct trial {
    const struct copy_device *on;
    driver_stream stream;
    char *on_device, *pinned;
    raffia_copy_element copies[COUNT_MAX];
};

/* Copies that the driver cannot join: their places are apart. */
static void list_copies(struct trial *trial, size_t bytes, size_t count)
{
    const size_t step = core_min(2 * bytes, BYTES_MAX / count);
    for (size_t i = 0; i < count; i++)
        trial->copies[i] =
            (raffia_copy_element){trial->on_device + i * step, trial->pinned + i * step, bytes};
}

static raffia_status refuse(const struct copy_device *on)
{
    char name[RAFFIA_DEVICE_NAME_MAX];
    return core_error(RAFFIA_ERROR_UNSUPPORTED,
                      "no kernel makes copies on '%s': it runs none, or there is no memory that is "
                      "pinned for it",
                      driver_device_name(on->device, name));
}

/* From the first submission until all is done; the fastest of some times. */
static raffia_status time_copies(struct trial *trial, size_t bytes, size_t count, size_t limit,
                                 double *seconds_p)
{
    const raffia_memory_resources none = {{0}, {0}};
    const struct driver_device on = trial->on->device;
    raffia_status status = RAFFIA_OK;
    double best = 0;
    size_t by_kernel = 0;
    list_copies(trial, bytes, count);
    for (int i = 0; i <= TIMES && !status; i++) { /* the first warms up */
        const double started = core_clock_seconds();
        status = copy_batch_below(trial->on, trial->stream, trial->copies, count, limit, &none,
                                  &by_kernel);
        if (!status && limit && by_kernel != count)
            status = refuse(trial->on);
        if (!status)
            status = on.driver->stream_wait(on.index, trial->stream);
        const double seconds = core_clock_seconds() - started;
        if (i == 1 || (i > 1 && seconds < best))
            best = seconds;
    }
    if (!status)
        *seconds_p = best;
    return status;
}

static raffia_status is_faster(struct trial *trial, size_t bytes, size_t count, bool *faster_p)
{
    double kernel, driver;
    raffia_status status = time_copies(trial, bytes, count, SIZE_MAX, &kernel);
    if (!status)
        status = time_copies(trial, bytes, count, 0, &driver);
    if (!status)
        *faster_p = kernel * MARGIN < driver;
    return status;
}

/* The size of the first copies that are no faster by a kernel, or the largest tried; 0 if that is
 * the smallest. That one is tried twice: where it is disturbed no kernel would be used at all. */
static raffia_status find_limit(struct trial *trial, size_t count, size_t *limit_p)
{
    bool faster = true;
    raffia_status status = RAFFIA_OK;
    size_t bytes = SMALLEST;
    for (;; bytes *= FACTOR) {
        status = is_faster(trial, bytes, count, &faster);
        if (!status && !faster && bytes == SMALLEST)
            status = is_faster(trial, bytes, count, &faster);
        if (status || !faster || bytes == LARGEST)
            break;
    }
    *limit_p = bytes == SMALLEST ? 0 : bytes;
    return status;
}

static raffia_status find_limits(struct trial *trial, struct limits *found)
{
    raffia_status status = RAFFIA_OK;
    for (size_t i = 0; i < CLASSES && !status; i++)
        status = find_limit(trial, (size_t)1 << i, &found->of[i]);
    /* Fewer copies are no better for a kernel, whatever a measurement that was disturbed says. */
    for (size_t i = CLASSES - 1; i-- > 0;)
        found->of[i] = core_min(found->of[i], found->of[i + 1]);
    return status;
}

/* Memory and a stream of its own, and back. */
static raffia_status measure(const struct copy_device *on, struct limits *found)
{
    const struct driver_device device = on->device, pinned = on->copier;
    struct trial trial = {.on = on};
    char name[RAFFIA_DEVICE_NAME_MAX];
    void *memory;
    raffia_status status = device.driver->mem_alloc(device.index, BYTES_MAX, &memory);
    if (status)
        return status;
    trial.on_device = memory;
    status = pinned.driver->mem_alloc(pinned.index, BYTES_MAX, &memory);
    if (status)
        goto free_device;
    trial.pinned = memory;
    status = device.driver->stream_create(device.index, &trial.stream);
    if (status)
        goto free_pinned;
    status = find_limits(&trial, found);
    /* Also what a failure has left under way. */
    struct core_error_record cause;
    core_error_save(&cause);
    (void)!device.driver->stream_wait(device.index, trial.stream);
    (void)!raffia_stream_retire(driver_device_name(device, name), trial.stream);
    (void)!device.driver->stream_destroy(device.index, trial.stream);
    (void)!pinned.driver->mem_free(pinned.index, trial.pinned, BYTES_MAX);
    (void)!device.driver->mem_free(device.index, trial.on_device, BYTES_MAX);
    core_error_restore(&cause);
    return status;
free_pinned:
    (void)!pinned.driver->mem_free(pinned.index, trial.pinned, BYTES_MAX);
free_device:
    (void)!device.driver->mem_free(device.index, trial.on_device, BYTES_MAX);
    return status;
}

/* The two numbers that say most of it. */
static raffia_copy_thresholds summarize(const struct limits *limits)
{
    raffia_copy_thresholds both = {.bytes = limits->of[CLASSES - 1]};
    for (size_t i = CLASSES; both.bytes && i-- > 0 && limits->of[i];)
        both.count = (size_t)1 << i;
    return both;
}

static raffia_status calibrate(const struct copy_device *on, struct limits *limits)
{
    char name[RAFFIA_DEVICE_NAME_MAX], size[CORE_SIZE_TEXT_MAX];
    struct limits found = {{0}};
    if (!on->runs_kernels || on->copier.driver == on->device.driver)
        return refuse(on);
    raffia_status status = measure(on, &found);
    if (status)
        return status;
    remember(on->device, &found);
    const raffia_copy_thresholds both = summarize(&found);
    core_log_info("copies on %s of less than %s, or less the fewer there are, are made by a kernel "
                  "where the threshold is measured, if there are %zu at once or more",
                  driver_device_name(on->device, name), core_format_size(both.bytes, size),
                  both.count);
    *limits = found;
    return RAFFIA_OK;
}

raffia_status raffia_copy_calibrate(const char *device, raffia_copy_thresholds *thresholds)
{
    struct limits found;
    struct copy_device on = {0};
    raffia_status status = copy_device_open(device, &on);
    if (!status)
        status = calibrate(&on, &found);
    if (!status && thresholds)
        *thresholds = summarize(&found);
    return status;
}

/* ---- the limit in force ---------------------------------------------------------------------- */

/* What is not to be had is not asked for again, until somebody calibrates. */
static void calibrate_unasked(const struct copy_device *on, struct limits *limits)
{
    struct core_error_record before;
    core_error_save(&before);
    if (!calibrate(on, limits))
        return;
    char name[RAFFIA_DEVICE_NAME_MAX];
    core_log_warn("the kernel copy threshold of %s cannot be measured, and is 0: %s",
                  driver_device_name(on->device, name), raffia_last_error());
    core_error_restore(&before);
    *limits = (struct limits){{0}};
    remember(on->device, limits);
}

static bool is_being_recorded(const struct copy_device *on, driver_stream stream)
{
    bool capturing;
    struct core_error_record before;
    core_error_save(&before);
    if (!copy_is_capturing(on, stream, &capturing))
        return capturing;
    core_error_restore(&before);
    return true; /* measuring would meet the same failure */
}

/* The class of the largest count tried that is not above it. */
static size_t class_of(size_t count)
{
    return 63 - (size_t)__builtin_clzll(core_min(core_max(count, 1), COUNT_MAX));
}

size_t copy_threshold(const struct copy_device *on, driver_stream stream, size_t count)
{
    const size_t limit = raffia_kernel_copy_threshold();
    struct limits limits;
    if (limit != RAFFIA_KERNEL_COPY_AUTO || !on->runs_kernels)
        return limit;
    if (!recall(on->device, &limits)) {
        if (is_being_recorded(on, stream))
            return 0;
        calibrate_unasked(on, &limits);
    }
    return limits.of[class_of(count)];
}
