#include "cli/bench_step_device.h"

#include "cli/bench_kernels.h"
#include "cli/bench_memory.h"
#include "cli/bench_pool.h"
#include "cli/interrupt.h"
#include "cli/step_work.h"
#include "core/checked.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/text.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#define WEIGHT_SEED 1u
#define BATCH_SEED  2u

/* Each step's batch begins so many bytes further on in the source: steps differ, and cost nothing
 * to make. */
#define SHIFT_BYTES  ((size_t)4096)
#define SHIFTS_BYTES ((size_t)1 << 20)

enum side { REGULAR, POOL, SIDES };

/* Memory of one path. */
struct path {
    float *weights;             /* on the device */
    unsigned char *source;      /* batches, in host memory: pageable, or pinned for POOL */
    raffia_pool *pool, *pinned; /* POOL only */
};

struct bench {
    const struct bench_step_plan *plan;
    struct bench_report *report;
    struct bench_device device;
    struct bench_kernels kernels;
    unsigned char *source;  /* in pageable memory */
    unsigned char *weights; /* the same */
    unsigned char *results; /* room for a batch, to compare */
    struct path paths[SIDES];
    uint64_t hashes[SIDES];
    struct bench_row *first[SIDES], *steps[SIDES];
};

static size_t source_bytes(const struct bench *bench)
{
    return bench->plan->batch_bytes + SHIFTS_BYTES;
}

static raffia_status take(const struct bench *bench, enum side side, size_t bytes, void **block_p)
{
    const struct driver_device *on = &bench->device.device;
    if (side == POOL)
        return raffia_pool_alloc_on(bench->paths[POOL].pool, bench->device.stream, bytes, 0,
                                    block_p);
    return on->driver->mem_alloc(on->index, bytes, block_p);
}

static raffia_status give(const struct bench *bench, enum side side, void *block, size_t bytes)
{
    const struct driver_device *on = &bench->device.device;
    if (side == POOL)
        return raffia_pool_free_on(bench->paths[POOL].pool, bench->device.stream, block);
    return on->driver->mem_free(on->index, block, bytes);
}

static raffia_status copy(const struct bench *bench, void *to, const void *from, size_t bytes)
{
    const struct driver_device *on = &bench->device.device;
    return on->driver->copy(on->index, bench->device.stream, to, from, bytes);
}

/* Outside the clock: what the step computed, as a number. */
static raffia_status take_hash(struct bench *bench, enum side side, const void *batch)
{
    const size_t bytes = bench->plan->batch_bytes;
    raffia_status status = copy(bench, bench->results, batch, bytes);
    raffia_status waited = bench_device_wait(&bench->device);
    bench->hashes[side] = XXH3_64bits(bench->results, bytes);
    return status ? status : waited;
}

/* Memory for the batch, the batch moved there, the arithmetic, the memory given back. */
static raffia_status run_step(struct bench *bench, enum side side, size_t step, double *seconds_p)
{
    const struct bench_step_plan *plan = bench->plan;
    const uint64_t count = plan->batch_bytes / sizeof(float);
    const unsigned char *from = bench->paths[side].source + step * SHIFT_BYTES % SHIFTS_BYTES;
    void *batch;
    double started = core_clock_seconds();
    raffia_status status = take(bench, side, plan->batch_bytes, &batch);
    if (status)
        return status;
    status = copy(bench, batch, from, plan->batch_bytes);
    if (!status)
        status = bench_kernels_sweep(&bench->kernels, batch, count, bench->paths[side].weights,
                                     plan->weight_bytes / sizeof(float), step * count);
    raffia_status waited = bench_device_wait(&bench->device);
    double computed = core_clock_seconds();
    status = status ? status : waited;
    if (!status)
        status = take_hash(bench, side, batch);
    double giving = core_clock_seconds();
    raffia_status given = give(bench, side, batch, plan->batch_bytes);
    *seconds_p = computed - started + (core_clock_seconds() - giving);
    return status ? status : given;
}

/* ---- the memory that stays ------------------------------------------------------------------ */

static raffia_status open_pools(struct bench *bench, struct path *path)
{
    const struct bench_step_plan *plan = bench->plan;
    const size_t unit = (size_t)2 << 20;
    const size_t bytes = core_align_up_unchecked(plan->weight_bytes, unit) +
                         core_align_up_unchecked(plan->batch_bytes, unit);
    raffia_status status = bench_device_pool(&bench->device, bytes, &path->pool);
    if (!status)
        status = bench_device_pinned_pool(&bench->device, source_bytes(bench), &plan->options,
                                          &path->pinned);
    void *source;
    if (!status)
        status = raffia_pool_alloc(path->pinned, source_bytes(bench), 0, &source);
    if (status)
        return status;
    path->source = source;
    memcpy(path->source, bench->source, source_bytes(bench));
    return RAFFIA_OK;
}

static raffia_status open_path(struct bench *bench, enum side side)
{
    struct path *path = &bench->paths[side];
    raffia_status status = RAFFIA_OK;
    if (side == POOL)
        status = open_pools(bench, path);
    else
        path->source = bench->source;
    void *weights;
    if (!status)
        status = take(bench, side, bench->plan->weight_bytes, &weights);
    if (status)
        return status;
    path->weights = weights;
    return copy(bench, weights, bench->weights, bench->plan->weight_bytes);
}

static void close_path(struct bench *bench, enum side side)
{
    struct path *path = &bench->paths[side];
    (void)!bench_device_wait(&bench->device);
    if (path->weights)
        (void)!give(bench, side, path->weights, bench->plan->weight_bytes);
    if (path->pinned && path->source)
        (void)!raffia_pool_free(path->pinned, path->source);
    raffia_pool_release(path->pool);
    raffia_pool_release(path->pinned);
    *path = (struct path){0};
}

/* ---- rounds --------------------------------------------------------------------------------- */

static raffia_status compare(const struct bench *bench, size_t step)
{
    if (bench->hashes[REGULAR] == bench->hashes[POOL])
        return cli_interrupt_check();
    return core_error(RAFFIA_ERROR_MISMATCH, "step %zu came out differently in the two memories",
                      step);
}

/* The first step makes the memory too. */
static raffia_status run_first(struct bench *bench, enum side side, bool warm_up)
{
    close_path(bench, side);
    bench_memory_warm(source_bytes(bench), side == POOL);
    double seconds, started = core_clock_seconds();
    raffia_status status = open_path(bench, side);
    double opened = core_clock_seconds();
    if (!status)
        status = run_step(bench, side, 0, &seconds);
    if (!status && !warm_up)
        bench_row_add(bench->first[side], opened - started + seconds);
    return status;
}

static raffia_status run_rounds(struct bench *bench)
{
    raffia_status status = RAFFIA_OK;
    for (unsigned round = 0; !status && round <= bench->plan->options.runs; round++) {
        status = run_first(bench, REGULAR, round == 0);
        if (!status)
            status = run_first(bench, POOL, round == 0);
        if (!status)
            status = compare(bench, 0);
    }
    for (size_t step = 1; !status && step < bench->plan->steps; step++) {
        /* The paths take turns in going first. */
        for (int turn = 0; !status && turn < SIDES; turn++) {
            enum side side = (step + (size_t)turn) % SIDES ? POOL : REGULAR;
            double seconds;
            status = run_step(bench, side, step, &seconds);
            if (!status)
                bench_row_add(bench->steps[side], seconds);
        }
        if (!status)
            status = compare(bench, step);
    }
    return status;
}

static raffia_status make_rows(struct bench *bench)
{
    static const char *const first[SIDES] = {"first.regular", "first.pool"};
    static const char *const steps[SIDES] = {"step.regular", "step.pool"};
    for (int side = 0; side < SIDES; side++) {
        bench->first[side] =
            bench_report_row(bench->report, first[side], 1, bench->plan->options.runs);
        bench->steps[side] =
            bench_report_row(bench->report, steps[side], 1, bench->plan->steps - 1);
        if (!bench->first[side] || !bench->steps[side])
            return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
        bench->steps[side]->bytes_each = bench->plan->batch_bytes;
    }
    return RAFFIA_OK;
}

static raffia_status make_sources(struct bench *bench)
{
    const struct bench_step_plan *plan = bench->plan;
    raffia_status status = bench_memory_map(source_bytes(bench), &bench->source);
    if (!status)
        status = bench_memory_map(plan->weight_bytes, &bench->weights);
    if (!status)
        status = bench_memory_map(plan->batch_bytes, &bench->results);
    if (status)
        return status;
    void *source = bench->source, *weights = bench->weights;
    status = bench_step_fill(source, source_bytes(bench) / sizeof(float), BATCH_SEED);
    if (!status)
        status = bench_step_fill(weights, plan->weight_bytes / sizeof(float), WEIGHT_SEED);
    return status;
}

static raffia_status run(struct bench *bench)
{
    struct bench_report *report = bench->report;
    raffia_status status = bench_kernels_load(&bench->device, &bench->kernels);
    if (!status)
        status = make_sources(bench);
    if (!status)
        status = make_rows(bench);
    if (!status)
        status = run_rounds(bench);
    if (!status)
        status = bench_pool_show(bench->paths[POOL].pool, bench->steps[POOL]);
    if (status)
        return status;
    bench_report_ratio(report, "step.regular_over_pool_first", bench->first[REGULAR],
                       bench->first[POOL], true);
    bench_report_ratio(report, "step.regular_over_pool", bench->steps[REGULAR], bench->steps[POOL],
                       true);
    bench_report_note(report,
                      "regular: the driver's allocator for each batch, copied from pageable "
                      "memory; pool: blocks of the pool, copied from pinned memory");
    bench_report_note(report, "the results of both paths were compared bit by bit after each step, "
                              "outside the clock");
    return RAFFIA_OK;
}

raffia_status bench_step_device_measure(const struct bench_step_plan *plan,
                                        struct bench_report *report)
{
    struct bench bench = {.plan = plan, .report = report};
    raffia_status status = bench_device_open(plan->options.device, &bench.device);
    if (status)
        return status;
    char batch[CORE_SIZE_TEXT_MAX];
    snprintf(report->title, sizeof report->title,
             "%zu steps that move a batch of %s to %.40s (%.40s) and compute there", plan->steps,
             core_format_size(plan->batch_bytes, batch), bench.device.info.name,
             bench.device.info.model);
    status = run(&bench);
    close_path(&bench, REGULAR);
    close_path(&bench, POOL);
    bench_memory_unmap(bench.source, source_bytes(&bench));
    bench_memory_unmap(bench.weights, plan->weight_bytes);
    bench_memory_unmap(bench.results, plan->batch_bytes);
    bench_kernels_unload(&bench.kernels);
    bench_device_close(&bench.device);
    return status;
}
