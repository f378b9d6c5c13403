#include "cli/bench_step_rounds.h"

#include "cli/bench_memory.h"
#include "cli/bench_pool.h"
#include "cli/interrupt.h"
#include "cli/step_work.h"
#include "core/checked.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/parallel.h"
#include "core/text.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

/* One gathered weight for so many bytes of weights: a million for 256 MiB. */
#define BYTES_A_GATHER 256u

/* Numbers that are filled in between two looks at the interrupt flag. */
#define FILLED_A_LOOK ((size_t)4 << 20)

#define SWEEP_FACTOR 0.5f

/* Memory of one path: weights that stay, and in the regular path nothing else. */
struct path {
    float *weights;
    raffia_pool *pool; /* of the pool: where weights and batches come from */
};

struct bench {
    const struct bench_step_plan *plan;
    struct bench_report *report;
    unsigned threads;
    unsigned char *source; /* batches, and STEP_SHIFTS_BYTES more */
    struct path paths[STEP_SIDES];
    uint64_t hashes[STEP_SIDES]; /* of the last step's results */
    struct step_rows rows;
};

raffia_status bench_step_rows(struct bench_report *report, const struct bench_step_plan *plan,
                              unsigned pool_threads, struct step_rows *rows)
{
    static const char *const first[STEP_SIDES] = {"first.regular", "first.pool"};
    static const char *const steps[STEP_SIDES] = {"step.regular", "step.pool"};
    for (int side = 0; side < STEP_SIDES; side++) {
        const unsigned threads = side == STEP_POOL ? pool_threads : 1;
        rows->first[side] = bench_report_row(report, first[side], threads, plan->options.runs);
        if (!rows->first[side])
            return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
        rows->steps[side] = bench_report_row(report, steps[side], 1, plan->steps - 1);
        if (!rows->steps[side])
            return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    }
    return RAFFIA_OK;
}

raffia_status bench_step_compare(const uint64_t hashes[static STEP_SIDES], size_t step)
{
    if (hashes[STEP_REGULAR] == hashes[STEP_POOL])
        return cli_interrupt_check();
    return core_error(RAFFIA_ERROR_MISMATCH, "step %zu came out differently in the two memories",
                      step);
}

void bench_step_add_results(struct bench_report *report, const struct step_rows *rows, bool known)
{
    bench_report_ratio(report, "step.regular_over_pool_first", rows->first[STEP_REGULAR],
                       rows->first[STEP_POOL], known);
    bench_report_ratio(report, "step.regular_over_pool", rows->steps[STEP_REGULAR],
                       rows->steps[STEP_POOL], known);
    bench_report_note(report, "the results of both paths were compared bit by bit after each step, "
                              "outside the clock");
}

/* Memory for a batch, as the path gets it. */
static raffia_status take_batch(const struct bench *bench, enum step_side side, void **batch_p)
{
    size_t bytes = bench->plan->batch_bytes;
    if (side == STEP_POOL)
        return raffia_pool_alloc(bench->paths[side].pool, bytes, 0, batch_p);
    unsigned char *memory;
    raffia_status status = bench_memory_map(bytes, &memory);
    if (!status)
        *batch_p = memory;
    return status;
}

static raffia_status give_batch(const struct bench *bench, enum step_side side, void *batch)
{
    if (side == STEP_POOL)
        return raffia_pool_free(bench->paths[side].pool, batch);
    bench_memory_unmap(batch, bench->plan->batch_bytes);
    return RAFFIA_OK;
}

raffia_status bench_step_fill(float *numbers, size_t count, uint32_t seed)
{
    raffia_status status = RAFFIA_OK;
    for (size_t done = 0; !status && done < count; done += FILLED_A_LOOK) {
        step_fill(numbers + done, core_min(count - done, FILLED_A_LOOK), seed + (uint32_t)done);
        status = cli_interrupt_check();
    }
    return status;
}

/* One step: memory for the batch, the batch moved there, the arithmetic, the memory given back. */
static raffia_status run_step(struct bench *bench, enum step_side side, size_t step,
                              double *seconds_p)
{
    const struct bench_step_plan *plan = bench->plan;
    const float *weights = bench->paths[side].weights;
    size_t weight_count = plan->weight_bytes / sizeof *weights;
    void *batch;
    double started = core_clock_seconds();
    raffia_status status = take_batch(bench, side, &batch);
    if (status)
        return status;
    memcpy(batch, bench->source + step * STEP_SHIFT_BYTES % STEP_SHIFTS_BYTES, plan->batch_bytes);
    step_sweep(batch, plan->batch_bytes / sizeof *weights, weights, weight_count,
               step * plan->batch_bytes / sizeof *weights, SWEEP_FACTOR);
    float sum = step_gather(weights, weight_count, plan->weight_bytes / BYTES_A_GATHER, step);
    double computed = core_clock_seconds();
    bench->hashes[side] = XXH3_64bits_withSeed(batch, plan->batch_bytes, step);
    bench->hashes[side] ^= XXH3_64bits(&sum, sizeof sum);
    double giving = core_clock_seconds();
    status = give_batch(bench, side, batch);
    *seconds_p = computed - started + (core_clock_seconds() - giving);
    return status;
}

/* Each of the two blocks is rounded up to whole pages; both are far from wrapping. */
static size_t pool_bytes(const struct bench_step_plan *plan)
{
    const size_t page = plan->options.page_size ? plan->options.page_size : (size_t)2 << 20;
    return core_align_up_unchecked(plan->weight_bytes, page) +
           core_align_up_unchecked(plan->batch_bytes, page);
}

/* Gets the memory that stays, and fills the weights. */
static raffia_status open_path(struct bench *bench, enum step_side side)
{
    const struct bench_step_plan *plan = bench->plan;
    struct path *path = &bench->paths[side];
    void *weights = NULL;
    raffia_status status;
    if (side == STEP_POOL) {
        status = bench_pool_make(pool_bytes(plan), bench->threads, &plan->options, &path->pool);
        if (!status)
            status = raffia_pool_alloc(path->pool, plan->weight_bytes, 0, &weights);
    } else {
        unsigned char *memory;
        status = bench_memory_map(plan->weight_bytes, &memory);
        if (!status)
            weights = memory;
    }
    if (status)
        return status;
    path->weights = weights;
    return bench_step_fill(path->weights, plan->weight_bytes / sizeof *path->weights,
                           STEP_WEIGHT_SEED);
}

static void close_path(struct bench *bench, enum step_side side)
{
    struct path *path = &bench->paths[side];
    if (side == STEP_REGULAR)
        bench_memory_unmap((unsigned char *)path->weights, bench->plan->weight_bytes);
    else if (path->weights)
        (void)!raffia_pool_free(path->pool, path->weights);
    raffia_pool_release(path->pool);
    *path = (struct path){0};
}

/* The first step makes the memory too. */
static raffia_status run_first(struct bench *bench, enum step_side side, bool warm_up)
{
    bench_memory_warm(bench->plan->weight_bytes + bench->plan->batch_bytes, side == STEP_POOL);
    double seconds, started = core_clock_seconds();
    raffia_status status = open_path(bench, side);
    double opened = core_clock_seconds();
    if (!status)
        status = run_step(bench, side, 0, &seconds);
    if (status)
        return status;
    if (!warm_up)
        bench_row_add(bench->rows.first[side], opened - started + seconds);
    return RAFFIA_OK;
}

static raffia_status run_firsts(struct bench *bench)
{
    for (unsigned round = 0; round <= bench->plan->options.runs; round++) {
        close_path(bench, STEP_REGULAR);
        close_path(bench, STEP_POOL);
        raffia_status status = run_first(bench, STEP_REGULAR, round == 0);
        if (!status)
            status = run_first(bench, STEP_POOL, round == 0);
        if (!status)
            status = bench_step_compare(bench->hashes, 0);
        if (status)
            return status;
    }
    return RAFFIA_OK;
}

/* The paths take turns in going first. */
static raffia_status run_steps(struct bench *bench)
{
    for (size_t step = 1; step < bench->plan->steps; step++) {
        for (int turn = 0; turn < STEP_SIDES; turn++) {
            enum step_side side = (step + (size_t)turn) % STEP_SIDES ? STEP_POOL : STEP_REGULAR;
            double seconds;
            raffia_status status = run_step(bench, side, step, &seconds);
            if (status)
                return status;
            bench_row_add(bench->rows.steps[side], seconds);
        }
        raffia_status status = bench_step_compare(bench->hashes, step);
        if (status)
            return status;
    }
    return RAFFIA_OK;
}

static raffia_status add_results(struct bench *bench)
{
    struct bench_report *report = bench->report;
    raffia_status status =
        bench_pool_show(bench->paths[STEP_POOL].pool, bench->rows.first[STEP_POOL]);
    if (!status)
        status = bench_pool_show(bench->paths[STEP_POOL].pool, bench->rows.steps[STEP_POOL]);
    if (status)
        return status;
    bench_step_add_results(report, &bench->rows, bench_row_is_huge(bench->rows.first[STEP_POOL]));
    bench_pool_note(report, bench->rows.first[STEP_POOL]);
    return RAFFIA_OK;
}

/* The pool, the weights and a batch of the regular path, and the source of the batches. */
static raffia_status check_memory(const struct bench_step_plan *plan)
{
    const size_t need =
        pool_bytes(plan) + plan->weight_bytes + 2 * plan->batch_bytes + STEP_SHIFTS_BYTES;
    return bench_memory_check(need, "the benchmark", "--batch, --weights");
}

static raffia_status run(struct bench *bench)
{
    size_t bytes = bench->plan->batch_bytes + STEP_SHIFTS_BYTES;
    raffia_status status = bench_memory_map(bytes, &bench->source);
    if (status)
        return status;
    void *numbers = bench->source;
    status = bench_step_fill(numbers, bytes / sizeof(float), STEP_BATCH_SEED);
    if (!status)
        status = bench_step_rows(bench->report, bench->plan, bench->threads, &bench->rows);
    if (!status)
        status = run_firsts(bench);
    if (!status)
        status = run_steps(bench);
    if (!status)
        status = add_results(bench);
    close_path(bench, STEP_REGULAR);
    close_path(bench, STEP_POOL);
    bench_memory_unmap(bench->source, bytes);
    return status;
}

raffia_status bench_step_measure(const struct bench_step_plan *plan, struct bench_report *report)
{
    struct bench bench = {
        .plan = plan,
        .report = report,
        .threads = core_thread_count(plan->options.threads),
    };
    raffia_status status = check_memory(plan);
    if (status)
        return status;
    char batch[CORE_SIZE_TEXT_MAX], weights[CORE_SIZE_TEXT_MAX];
    snprintf(report->title, sizeof report->title,
             "%zu steps that move a batch of %s and compute with %s of weights", plan->steps,
             core_format_size(plan->batch_bytes, batch),
             core_format_size(plan->weight_bytes, weights));
    return run(&bench);
}
