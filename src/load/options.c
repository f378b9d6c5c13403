/* Checking the options of a load and filling in its defaults. */
#include "load/options.h"

#include "core/checked.h"
#include "core/error.h"
#include "core/options.h"
#include "core/parallel.h"
#include "core/settings.h"
#include "load/catalog_build.h"

#define WINDOW_BYTES_DEFAULT ((size_t)4 << 20)
#define WINDOW_BYTES_MAX     ((size_t)1 << 30)

/* Rather fewer readers than buffers below this size: small direct reads waste a fast disk. */
#define WINDOW_BYTES_WORTHWHILE ((size_t)1 << 20)

_Static_assert(CORE_LOAD_BUDGET_MIN == LOAD_STAGING_UNIT,
               "every budget that the setting takes must be good for a buffer");

static raffia_status check_destination(const raffia_load_options *options)
{
    unsigned given = 0;
    given += options->pool != NULL;
    given += options->memory != NULL;
    given += options->resource.ops != NULL;
    given += options->resources.output.ops != NULL;
    if (given > 1)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "load options: pool, resource, resources and memory exclude each other, "
                          "but %u of them are given",
                          given);
    if (!options->memory && options->memory_bytes)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "load options: memory_bytes is %zu but memory is NULL",
                          options->memory_bytes);
    if ((!options->resource.ops && options->resource.context) ||
        (!options->resources.output.ops &&
         (options->resources.output.context || options->resources.temporary.ops)))
        return core_error(
            RAFFIA_ERROR_INVALID_ARGUMENT,
            "load options: the resource has a context but no operations, or a pair of "
            "resources has no output");
    return RAFFIA_OK;
}

static raffia_status check_selection(const raffia_load_options *options)
{
    if ((options->names == NULL) != (options->name_count == 0))
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "load options: names is %s but name_count is %zu; leave both zero to "
                          "load all tensors",
                          options->names ? "given" : "NULL", options->name_count);
    if ((options->slices == NULL) != (options->slice_count == 0))
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "load options: slices is %s but slice_count is %zu",
                          options->slices ? "given" : "NULL", options->slice_count);
    for (size_t i = 0; i < options->name_count; i++)
        if (!options->names[i])
            return core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "load options: names[%zu] is NULL", i);
    for (size_t i = 0; i < options->slice_count; i++)
        if (!options->slices[i].name)
            return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                              "load options: slices[%zu] has no name", i);
    return RAFFIA_OK;
}

static raffia_status check_choices(const raffia_load_options *options)
{
    if ((unsigned)options->pages > RAFFIA_PAGES_ON)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "load options: pages %d is unknown",
                          (int)options->pages);
    if ((unsigned)options->reader > RAFFIA_READER_DIRECT)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "load options: reader %d is unknown",
                          (int)options->reader);
    if ((unsigned)options->checksum > RAFFIA_CHECKSUM_XXH3)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "load options: checksum %d is unknown",
                          (int)options->checksum);
    if (options->threads > CORE_THREADS_MAX)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "load options: %u threads asked for, at most %u are allowed",
                          options->threads, CORE_THREADS_MAX);
    if (options->header_limit_bytes > CATALOG_HEADER_BYTES_MAX)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "load options: header_limit_bytes is %zu, at most %zu is allowed",
                          options->header_limit_bytes, CATALOG_HEADER_BYTES_MAX);
    if (options->window_bytes > WINDOW_BYTES_MAX)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "load options: window_bytes is %zu, at most %zu is allowed",
                          options->window_bytes, WINDOW_BYTES_MAX);
    return RAFFIA_OK;
}

/* Shrinks the windows so that each thread's buffer fits into the budget; where that would make them
 * too small to be worth while, threads are given up instead. */
static void fit_budget(raffia_load_options *options)
{
    size_t window = core_align_up_unchecked(options->window_bytes, LOAD_STAGING_UNIT);
    size_t share = options->budget_bytes / options->threads;
    size_t least = core_min(window, core_min(WINDOW_BYTES_WORTHWHILE, options->budget_bytes));
    options->window_bytes =
        core_align_down(core_min(window, core_max(share, least)), LOAD_STAGING_UNIT);
    options->threads =
        (unsigned)core_min(options->threads, options->budget_bytes / options->window_bytes);
}

static raffia_status resolve_staging(raffia_load_options *options)
{
    options->threads = core_thread_count(options->threads);
    if (options->window_bytes == 0)
        options->window_bytes = WINDOW_BYTES_DEFAULT;
    if (options->budget_bytes == 0)
        options->budget_bytes = core_setting_size(CORE_SETTING_LOAD_BUDGET);
    if (options->budget_bytes < LOAD_STAGING_UNIT)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "load options: a budget of %zu bytes is too small; one staging buffer "
                          "takes at least %zu",
                          options->budget_bytes, LOAD_STAGING_UNIT);
    fit_budget(options);
    return RAFFIA_OK;
}

void load_options_fit_room(raffia_load_options *options, size_t room)
{
    size_t most = core_max(room / 2, LOAD_STAGING_UNIT);
    if (options->budget_bytes <= most)
        return;
    options->budget_bytes = most;
    fit_budget(options);
}

raffia_status load_options_resolve(const raffia_load_options *given, raffia_load_options *resolved)
{
    raffia_status status =
        core_options_copy(resolved, sizeof *resolved, given, "raffia_load_options");
    if (!status)
        status = check_destination(resolved);
    if (!status)
        status = check_selection(resolved);
    if (!status)
        status = check_choices(resolved);
    if (status)
        return status;
    /* Said here, because a pool takes the default as leave to try: it is made on purpose elsewhere.
     */
    if (resolved->pages == RAFFIA_PAGES_DEFAULT)
        resolved->pages = raffia_pages_mode_in_force();
    if (resolved->header_limit_bytes == 0)
        resolved->header_limit_bytes = CATALOG_HEADER_BYTES_DEFAULT;
    return resolve_staging(resolved);
}

/* One reader for each CPU but one in so many, which are left to the driver and to the caller. */
#define RING_CPUS_SPARED 8u

/* The first slot is filled to this part, and each after it twice as far: the link has something to
 * do before a whole slot is full. */
#define RING_FIRST_PART 8u

/* One read into a slot, unless the caller says otherwise: long enough to be cheap, short enough for
 * all readers to share a slot. */
#define RING_PIECE_MIN ((size_t)1 << 20)
#define RING_PIECE_MAX ((size_t)2 << 20)

/* More slots than these hide nothing more. */
#define RING_SLOTS_MAX 8u

static unsigned ring_threads(const raffia_load_options *asked)
{
    unsigned threads = core_thread_count(asked->threads);
    if (asked->threads || core_setting_given(CORE_SETTING_THREADS))
        return threads;
    return threads - threads / RING_CPUS_SPARED;
}

struct load_shape load_options_shape(const raffia_load_options *given,
                                     const raffia_load_options *resolved, size_t room)
{
    raffia_load_options asked;
    if (core_options_copy(&asked, sizeof asked, given, "raffia_load_options"))
        asked = *resolved; /* they were found good before */
    struct load_shape shape = {.threads = ring_threads(&asked)};
    size_t budget = core_min(resolved->budget_bytes, core_max(room / 2, LOAD_STAGING_UNIT));
    size_t slot = core_min(core_setting_size(CORE_SETTING_LOAD_SLOT), WINDOW_BYTES_MAX);
    slot = core_min(core_align_up_unchecked(slot, LOAD_STAGING_UNIT),
                    core_align_down(budget / 2, LOAD_STAGING_UNIT));
    shape.slot_bytes = core_max(slot, LOAD_STAGING_UNIT);
    shape.slot_count = (unsigned)core_max(core_min(budget / shape.slot_bytes, RING_SLOTS_MAX), 1);
    shape.first_bytes = core_max(
        core_align_down(shape.slot_bytes / RING_FIRST_PART, LOAD_STAGING_UNIT), LOAD_STAGING_UNIT);
    size_t piece =
        asked.window_bytes
            ? asked.window_bytes
            : core_min(core_max(shape.slot_bytes / shape.threads, RING_PIECE_MIN), RING_PIECE_MAX);
    shape.piece_bytes =
        core_min(core_align_up_unchecked(piece, LOAD_STAGING_UNIT), shape.slot_bytes);
    return shape;
}
