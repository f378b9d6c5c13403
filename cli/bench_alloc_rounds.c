#include "cli/bench_alloc_rounds.h"

#include "cli/bench_alloc.h"
#include "cli/bench_memory.h"
#include "cli/bench_pool.h"
#include "cli/interrupt.h"
#include "core/checked.h"
#include "core/error.h"
#include "core/parallel.h"
#include "core/text.h"

#include <stdio.h>

#define POOL_BYTES_MAX  ((size_t)2 << 30)
#define POOL_SHARE      4 /* the pool takes a quarter of the free memory */
#define FIRST_BYTES_MAX ((size_t)1 << 30)

static raffia_status choose_sizes(struct bench_alloc *bench)
{
    const struct bench_alloc_plan *plan = bench->plan;
    raffia_status status = RAFFIA_OK;
    bench->pool_bytes = plan->pool_bytes;
    if (!plan->pool_bytes)
        status = bench_memory_choose(POOL_BYTES_MAX, POOL_SHARE, &bench->pool_bytes);
    if (status)
        return status;
    if (!plan->pool_bytes && plan->first_bytes > bench->pool_bytes)
        bench->pool_bytes = plan->first_bytes;
    bench->first_bytes =
        plan->first_bytes ? plan->first_bytes : core_min(FIRST_BYTES_MAX, bench->pool_bytes);
    if (bench->first_bytes > bench->pool_bytes)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "the pool of %zu bytes (--pool) has no room for the allocation of %zu "
                          "(--first)",
                          bench->pool_bytes, bench->first_bytes);
    return bench_memory_check(bench->pool_bytes, "the benchmark", "--pool, --first");
}

static raffia_status run_round(struct bench_alloc *bench, bool warm_up)
{
    raffia_pool *pool;
    raffia_status status = bench_alloc_first_round(bench, warm_up);
    if (!status)
        status = cli_interrupt_check();
    if (!status)
        status = bench_alloc_build(bench, warm_up, &pool);
    if (status)
        return status;
    status = bench_alloc_standing_round(bench, pool, warm_up);
    if (!status)
        status = bench_alloc_direct_round(bench, pool, warm_up);
    raffia_pool_release(pool);
    if (!status)
        status = cli_interrupt_check();
    if (!status)
        status = bench_alloc_pair_round(bench, warm_up);
    if (!status)
        status = cli_interrupt_check();
    return status;
}

static raffia_status run(struct bench_alloc *bench)
{
    raffia_status status = bench_alloc_first_rows(bench);
    if (!status)
        status = bench_alloc_pair_rows(bench);
    /* The first round warms up and is dropped. */
    for (unsigned round = 0; !status && round <= bench->plan->options.runs; round++)
        status = run_round(bench, round == 0);
    if (status)
        return status;
    bench_alloc_first_add(bench);
    bench_alloc_pair_add(bench);
    bench_pool_note(bench->report, bench->build_pool);
    return RAFFIA_OK;
}

raffia_status bench_alloc_measure(const struct bench_alloc_plan *plan, struct bench_report *report)
{
    struct bench_alloc bench = {
        .plan = plan,
        .report = report,
        .threads = core_thread_count(plan->options.threads),
    };
    raffia_status status = choose_sizes(&bench);
    if (status)
        return status;
    char pool[CORE_SIZE_TEXT_MAX], first[CORE_SIZE_TEXT_MAX];
    snprintf(report->title, sizeof report->title,
             "Getting memory: a pool of %s, one allocation of %s, %zu pairs of allocation and free",
             core_format_size(bench.pool_bytes, pool), core_format_size(bench.first_bytes, first),
             plan->pairs);
    return run(&bench);
}
