#include "cli/bench_rotate_rounds.h"

#include "cli/bench_report.h"
#include "cli/interrupt.h"
#include "cli/verify.h"
#include "core/checked.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/parallel.h"
#include "policy/sizing.h"

#include <raffia/load.h>

#include <string.h>

/* Everything is measured in this machine's own memory. */
#define DEVICE "host"

struct rotation {
    const struct rotate_plan *plan;
    const char *const *paths;
    enum rotate_way_kind kind;
    struct rotate_way *way;
    raffia_pool *pool; /* that stands; NULL if none does */
    raffia_model *held[ROTATE_MODELS_MAX];
};

const char *rotate_way_name(enum rotate_way_kind kind)
{
    static const char *const names[ROTATE_WAY_COUNT] = {
        [ROTATE_STAY] = "rotate.stay",
        [ROTATE_TURNS] = "rotate.turns",
        [ROTATE_REBUILT] = "rotate.rebuilt",
        [ROTATE_REGULAR] = "rotate.regular",
    };
    return names[kind];
}

/* ---- the pool that stands ------------------------------------------------------------------- */

static raffia_status size_pool(const struct rotation *rotation, size_t *bytes_p)
{
    size_t sum = 0, largest = 0, needed;
    for (unsigned i = 0; i < rotation->plan->models; i++) {
        raffia_model *model;
        raffia_status status = raffia_model_inspect(rotation->paths[i], NULL, &model);
        if (status)
            return status;
        needed = raffia_model_bytes_needed(model);
        raffia_model_release(model);
        largest = core_max(largest, needed);
        if (!core_add(sum, needed, &sum))
            return core_error(RAFFIA_ERROR_OVERFLOW, "the models do not fit the address space");
    }
    const bool fits = rotation->kind == ROTATE_STAY
                          ? policy_rotating_models_bytes(sum, 1, bytes_p)
                          : policy_resident_model_bytes(largest, 1, bytes_p);
    return fits ? RAFFIA_OK
                : core_error(RAFFIA_ERROR_OVERFLOW, "the pool does not fit the address space");
}

static raffia_status build_pool(struct rotation *rotation)
{
    const struct rotate_plan *plan = rotation->plan;
    struct rotate_way *way = rotation->way;
    raffia_pool_options options = {.struct_size = sizeof options,
                                   .device = DEVICE,
                                   .name = "rotation",
                                   .pages = plan->pages,
                                   .page_size = plan->page_size,
                                   .threads = plan->threads};
    raffia_pool_stats stats;
    raffia_status status = size_pool(rotation, &options.initial_bytes);
    if (status)
        return status;
    options.maximum_bytes = options.initial_bytes;
    double started = core_clock_seconds();
    status = raffia_pool_create(&options, &rotation->pool);
    way->build_seconds = core_clock_seconds() - started;
    if (status)
        return status;
    status = raffia_pool_query(rotation->pool, &stats);
    way->pool_bytes = stats.reserved_bytes;
    way->build_calls = stats.driver_calls;
    way->pages = stats.pages;
    return status;
}

/* ---- turns ---------------------------------------------------------------------------------- */

/* Calls made so far for the pool that stands, or for the one made for the model. What it takes to
 * give that back is known to nobody: the counter goes with the pool. */
static raffia_status driver_calls(const struct rotation *rotation, const raffia_model *model,
                                  uint64_t *calls_p)
{
    raffia_pool *pool = rotation->pool ? rotation->pool : raffia_model_pool(model);
    raffia_pool_stats stats;
    raffia_status status = raffia_pool_query(pool, &stats);
    if (status)
        return status;
    *calls_p = stats.driver_calls;
    return RAFFIA_OK;
}

static raffia_status verify(const struct rotation *rotation, const raffia_model *model)
{
    struct verify_result result;
    return verify_model(model, core_thread_count(rotation->plan->threads), &result);
}

/* The model that was in the place goes, the next one comes. */
static raffia_status take_turn(struct rotation *rotation, unsigned model,
                               struct rotate_round *round)
{
    const bool regular = rotation->kind == ROTATE_REGULAR;
    raffia_model **place = &rotation->held[rotation->kind == ROTATE_STAY ? model : 0];
    const raffia_load_options options = {
        .struct_size = sizeof options,
        .device = DEVICE,
        .pool = rotation->pool,
        .pages = regular ? RAFFIA_PAGES_OFF : rotation->plan->pages,
        .page_size = rotation->pool || regular ? 0 : rotation->plan->page_size,
        .threads = rotation->plan->threads,
        .cancel = cli_interrupt_flag(),
    };
    double started = core_clock_seconds();
    raffia_model_release(*place);
    *place = NULL;
    raffia_status status = raffia_model_load(rotation->paths[model], &options, place);
    double seconds = core_clock_seconds() - started;
    if (status == RAFFIA_ERROR_OUT_OF_MEMORY || status == RAFFIA_ERROR_NO_HUGE_PAGES) {
        round->failures++;
        return RAFFIA_OK;
    }
    if (!status)
        round->seconds[round->turns++] = seconds;
    return status;
}

static raffia_status play_round(struct rotation *rotation, unsigned number)
{
    struct rotate_round *round = &rotation->way->rounds[number];
    uint64_t before = 0, after = 0;
    raffia_status status = rotation->pool ? driver_calls(rotation, NULL, &before) : RAFFIA_OK;
    for (unsigned i = 0; !status && i < rotation->plan->models; i++) {
        status = take_turn(rotation, i, round);
        const raffia_model *model = rotation->held[rotation->kind == ROTATE_STAY ? i : 0];
        if (!status && model && number == 0)
            status = verify(rotation, model);
        if (!status && model && !rotation->pool) {
            status = driver_calls(rotation, model, &after);
            round->driver_calls += after;
            rotation->way->pages = raffia_model_report(model)->pages;
        }
    }
    if (!status && rotation->pool) {
        status = driver_calls(rotation, NULL, &after);
        round->driver_calls = after - before;
    }
    return status;
}

static raffia_status rotate(const struct rotate_plan *plan, const char *const *paths,
                            enum rotate_way_kind kind, struct rotate_way *way)
{
    struct rotation rotation = {.plan = plan, .paths = paths, .kind = kind, .way = way};
    way->rounds = core_calloc(plan->rounds, sizeof *way->rounds);
    if (!way->rounds)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    raffia_status status =
        kind == ROTATE_STAY || kind == ROTATE_TURNS ? build_pool(&rotation) : RAFFIA_OK;
    for (unsigned i = 0; !status && i < plan->rounds; i++)
        status = play_round(&rotation, i);
    for (unsigned i = 0; i < plan->models; i++)
        raffia_model_release(rotation.held[i]);
    raffia_pool_release(rotation.pool);
    return status ? core_error_prefix("%s", rotate_way_name(kind)) : RAFFIA_OK;
}

raffia_status rotate_measure(const struct rotate_plan *plan, const char *const *paths,
                             struct rotate_result *result)
{
    *result = (struct rotate_result){.plan = plan};
    raffia_status status = RAFFIA_OK;
    for (enum rotate_way_kind kind = 0; !status && kind < ROTATE_WAY_COUNT; kind++)
        status = rotate(plan, paths, kind, &result->ways[kind]);
    return status;
}

void rotate_result_free(struct rotate_result *result)
{
    for (int i = 0; i < ROTATE_WAY_COUNT; i++)
        core_free(result->ways[i].rounds);
    *result = (struct rotate_result){0};
}

/* ---- figures -------------------------------------------------------------------------------- */

raffia_status rotate_times_of(const struct rotate_result *result, enum rotate_way_kind kind,
                              unsigned first, unsigned end, struct rotate_times *times)
{
    const struct rotate_round *rounds = result->ways[kind].rounds;
    struct bench_row all = {.capacity = (size_t)(end - first) * result->plan->models};
    all.samples = core_calloc(core_max(all.capacity, 1), sizeof *all.samples);
    if (!all.samples)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    for (unsigned i = first; i < end; i++)
        for (unsigned turn = 0; turn < rounds[i].turns; turn++)
            bench_row_add(&all, rounds[i].seconds[turn]);
    *times = (struct rotate_times){bench_row_quantile(&all, 0.5), bench_row_quantile(&all, 1)};
    core_free(all.samples);
    return RAFFIA_OK;
}

uint64_t rotate_calls_of(const struct rotate_result *result, enum rotate_way_kind kind,
                         unsigned first, unsigned end)
{
    uint64_t calls = 0;
    for (unsigned i = first; i < end; i++)
        calls += result->ways[kind].rounds[i].driver_calls;
    return calls;
}

unsigned rotate_failures_of(const struct rotate_result *result, enum rotate_way_kind kind)
{
    unsigned failures = 0;
    for (unsigned i = 0; i < result->plan->rounds; i++)
        failures += result->ways[kind].rounds[i].failures;
    return failures;
}
