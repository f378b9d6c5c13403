#include "cli/bench_step_device.h"

#include "cli/bench_kernels.h"
#include "cli/bench_memory.h"
#include "cli/bench_pool.h"
#include "cli/step_work.h"
#include "core/checked.h"
#include "core/clock.h"
#include "core/text.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

/* Memory of one path. */
struct path {
    float *weights;             /* on the device */
    unsigned char *source;      /* batches, in host memory: pageable, or pinned for the pool */
    raffia_pool *pool, *pinned; /* of the pool alone */
};

struct bench {
    const struct bench_step_plan *plan;
    struct bench_report *report;
    struct bench_device device;
    struct bench_kernels kernels;
    unsigned char *source;  /* in pageable memory */
    unsigned char *weights; /* the same */
    unsigned char *results; /* room for a batch, to compare */
    struct path paths[STEP_SIDES];
    uint64_t hashes[STEP_SIDES];
    struct step_rows rows;
};

static size_t source_bytes(const struct bench *bench)
{
    return bench->plan->batch_bytes + STEP_SHIFTS_BYTES;
}

static raffia_status take(const struct bench *bench, enum step_side side, size_t bytes,
                          void **block_p)
{
    const struct driver_device *on = &bench->device.device;
    if (side == STEP_POOL)
        return raffia_pool_alloc_on(bench->paths[STEP_POOL].pool, bench->device.stream, bytes, 0,
                                    block_p);
    return on->driver->mem_alloc(on->index, bytes, block_p);
}

static raffia_status give(const struct bench *bench, enum step_side side, void *block, size_t bytes)
{
    const struct driver_device *on = &bench->device.device;
    if (side == STEP_POOL)
        return raffia_pool_free_on(bench->paths[STEP_POOL].pool, bench->device.stream, block);
    return on->driver->mem_free(on->index, block, bytes);
}

static raffia_status copy(const struct bench *bench, void *to, const void *from, size_t bytes)
{
    const struct driver_device *on = &bench->device.device;
    return on->driver->copy(on->index, bench->device.stream, to, from, bytes);
}

/* Outside the clock: what the step computed, as a number. */
static raffia_status take_hash(struct bench *bench, enum step_side side, const void *batch)
{
    const size_t bytes = bench->plan->batch_bytes;
    raffia_status status = copy(bench, bench->results, batch, bytes);
    raffia_status waited = bench_device_wait(&bench->device);
    bench->hashes[side] = XXH3_64bits(bench->results, bytes);
    return status ? status : waited;
}

/* Memory for the batch, the batch moved there, the arithmetic, the memory given back. */
static raffia_status run_step(struct bench *bench, enum step_side side, size_t step,
                              double *seconds_p)
{
    const struct bench_step_plan *plan = bench->plan;
    const uint64_t count = plan->batch_bytes / sizeof(float);
    const unsigned char *from =
        bench->paths[side].source + step * STEP_SHIFT_BYTES % STEP_SHIFTS_BYTES;
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

static raffia_status open_path(struct bench *bench, enum step_side side)
{
    struct path *path = &bench->paths[side];
    raffia_status status = RAFFIA_OK;
    if (side == STEP_POOL)
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

static void close_path(struct bench *bench, enum step_side side)
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

/* The first step makes the memory too. */
static raffia_status run_first(struct bench *bench, enum step_side side, bool warm_up)
{
    close_path(bench, side);
    bench_memory_warm(source_bytes(bench), side == STEP_POOL);
    double seconds, started = core_clock_seconds();
    raffia_status status = open_path(bench, side);
    double opened = core_clock_seconds();
    if (!status)
        status = run_step(bench, side, 0, &seconds);
    if (!status && !warm_up)
        bench_row_add(bench->rows.first[side], opened - started + seconds);
    return status;
}

static raffia_status run_rounds(struct bench *bench)
{
    raffia_status status = RAFFIA_OK;
    for (unsigned round = 0; !status && round <= bench->plan->options.runs; round++) {
        status = run_first(bench, STEP_REGULAR, round == 0);
        if (!status)
            status = run_first(bench, STEP_POOL, round == 0);
        if (!status)
            status = bench_step_compare(bench->hashes, 0);
    }
    for (size_t step = 1; !status && step < bench->plan->steps; step++) {
        /* The paths take turns in going first. */
        for (int turn = 0; !status && turn < STEP_SIDES; turn++) {
            enum step_side side = (step + (size_t)turn) % STEP_SIDES ? STEP_POOL : STEP_REGULAR;
            double seconds;
            status = run_step(bench, side, step, &seconds);
            if (!status)
                bench_row_add(bench->rows.steps[side], seconds);
        }
        if (!status)
            status = bench_step_compare(bench->hashes, step);
    }
    return status;
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
    status = bench_step_fill(source, source_bytes(bench) / sizeof(float), STEP_BATCH_SEED);
    if (!status)
        status = bench_step_fill(weights, plan->weight_bytes / sizeof(float), STEP_WEIGHT_SEED);
    return status;
}

static raffia_status run(struct bench *bench)
{
    struct bench_report *report = bench->report;
    raffia_status status = bench_kernels_load(&bench->device, &bench->kernels);
    if (!status)
        status = make_sources(bench);
    if (!status)
        status = bench_step_rows(bench->report, bench->plan, 1, &bench->rows);
    if (!status)
        status = run_rounds(bench);
    if (!status)
        status = bench_pool_show(bench->paths[STEP_POOL].pool, bench->rows.steps[STEP_POOL]);
    if (status)
        return status;
    for (int side = 0; side < STEP_SIDES; side++)
        bench->rows.steps[side]->bytes_each = bench->plan->batch_bytes;
    bench_step_add_results(report, &bench->rows, true);
    bench_report_note(report,
                      "regular: the driver's allocator for each batch, copied from pageable "
                      "memory; pool: blocks of the pool, copied from pinned memory");
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
    close_path(&bench, STEP_REGULAR);
    close_path(&bench, STEP_POOL);
    bench_memory_unmap(bench.source, source_bytes(&bench));
    bench_memory_unmap(bench.weights, plan->weight_bytes);
    bench_memory_unmap(bench.results, plan->batch_bytes);
    bench_kernels_unload(&bench.kernels);
    bench_device_close(&bench.device);
    return status;
}
