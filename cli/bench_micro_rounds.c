/* The rounds of raffia bench micro. */
#include "cli/bench_micro.h"
#include "cli/bench_sim.h"
#include "cli/replay_ways.h"
#include "core/memory.h"

#include <stdio.h>
#include <sys/single_threaded.h>

/* Blocks are multiples of this, in the pool and in the index. */
#define GRANULE_BYTES 256u

#define ADAPTIVE_CHUNK_BYTES ((size_t)256 << 20)

enum way {
    WAY_FLOOR,
    WAY_SPACE,
    WAY_POOL,
    WAY_ADAPTIVE,
    WAY_COUNT,
};

static const char *const way_names[WAY_COUNT] = {"floor", "space", "pool", "adaptive"};

/* One load and what is measured of it. */
struct micro {
    const struct bench_micro_plan *plan;
    struct bench_report *report;
    const struct workload *workload;
    struct trace traces[WORKLOAD_THREADS_MAX];
    unsigned trace_count;
    uint64_t *names; /* of traces[0], where there is one thread */
    struct bench_row *rows[WAY_COUNT];
    uint64_t refused_bytes[WAY_COUNT]; /* of the last pass; every pass is the same for one thread */
};

/* What one way works on, made anew for each pass. */
struct ground {
    raffia_pool *pool;
    struct space *space;
};

/* A fixed pool has nothing to learn for. */
static raffia_status make_pool(bool adaptive, raffia_pool **pool_p)
{
    const raffia_pool_options options = {
        .struct_size = sizeof options,
        .device = BENCH_SIM_DEVICE,
        .name = "micro",
        .pages = RAFFIA_PAGES_ON,
        .initial_bytes = WORKLOAD_RANGE_BYTES,
        .maximum_bytes = WORKLOAD_RANGE_BYTES,
        .chunk_bytes = adaptive ? ADAPTIVE_CHUNK_BYTES : WORKLOAD_RANGE_BYTES,
        .granule = GRANULE_BYTES,
        .flags = adaptive ? RAFFIA_POOL_ADAPTIVE : RAFFIA_POOL_FIXED,
        .threads = 1,
    };
    return raffia_pool_create(&options, pool_p);
}

static raffia_status make_space(struct space **space_p)
{
    const struct space_options options = {
        .range_bytes = WORKLOAD_RANGE_BYTES, .granule = GRANULE_BYTES, .slabs = true};
    raffia_status status = space_create(&options, space_p);
    return status ? status : space_add(*space_p, 0, WORKLOAD_RANGE_BYTES);
}

static raffia_status open_ground(enum way way, struct ground *ground, struct replay_way *replay)
{
    raffia_status status = RAFFIA_OK;
    *ground = (struct ground){0};
    if (way == WAY_POOL || way == WAY_ADAPTIVE)
        status = make_pool(way == WAY_ADAPTIVE, &ground->pool);
    else if (way == WAY_SPACE)
        status = make_space(&ground->space);
    *replay = ground->pool       ? replay_way_pool(ground->pool)
              : way == WAY_SPACE ? replay_way_space(ground->space)
                                 : replay_way_floor();
    return status;
}

static void close_ground(const struct ground *ground)
{
    raffia_pool_release(ground->pool);
    space_destroy(ground->space);
}

static raffia_status run_alone(struct micro *micro, const struct replay_way *replay,
                               struct micro_threads_result *sum)
{
    struct replay_result result;
    raffia_status status = replay_run(replay, &micro->traces[0], micro->names, &result);
    raffia_status drained = replay_drain(replay, &micro->traces[0], micro->names);
    if (status)
        return status;
    *sum = (struct micro_threads_result){result.seconds, result.done, result.refused_bytes};
    return drained;
}

static raffia_status pass(struct micro *micro, enum way way, bool warm_up)
{
    struct ground ground;
    struct replay_way replay;
    struct micro_threads_result sum = {0};
    raffia_status status = open_ground(way, &ground, &replay);
    if (!status)
        status = micro->workload->threads
                     ? micro_threads_run(&replay, micro->traces, micro->trace_count, &sum)
                     : run_alone(micro, &replay, &sum);
    close_ground(&ground);
    if (status)
        return status;
    micro->refused_bytes[way] = sum.refused_bytes;
    if (!warm_up)
        bench_row_add(micro->rows[way], sum.seconds / (double)sum.done);
    return RAFFIA_OK;
}

static raffia_status rounds(struct micro *micro)
{
    for (unsigned round = 0; round <= micro->plan->runs; round++)
        for (int way = 0; way < WAY_COUNT; way++) {
            if (!micro->rows[way])
                continue;
            raffia_status status = pass(micro, (enum way)way, round == 0);
            if (status)
                return status;
        }
    return RAFFIA_OK;
}

static raffia_status prepare(struct micro *micro)
{
    const struct workload *workload = micro->workload;
    const unsigned threads = workload->threads ? workload->threads : 1;
    for (; micro->trace_count < threads; micro->trace_count++) {
        raffia_status status =
            workload_make(workload, micro->trace_count, &micro->traces[micro->trace_count]);
        if (status)
            return status;
    }
    if (!workload->threads && !(micro->names = replay_names_new(&micro->traces[0])))
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    for (int way = 0; way < WAY_COUNT; way++) {
        char name[BENCH_NAME_MAX];
        if ((way == WAY_SPACE && workload->threads) ||
            (way == WAY_ADAPTIVE && !micro->plan->adaptive))
            continue;
        snprintf(name, sizeof name, "%s.%s", workload->name, way_names[way]);
        micro->rows[way] = bench_report_row(micro->report, name, threads, micro->plan->runs);
        if (!micro->rows[way])
            return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    }
    return RAFFIA_OK;
}

static void add_value(struct micro *micro, const char *way, const char *unit, double value)
{
    char name[BENCH_NAME_MAX];
    snprintf(name, sizeof name, "micro.%s_%s_%s", micro->workload->name, way, unit);
    bench_report_value(micro->report, name, value);
}

static void add_values(struct micro *micro)
{
    uint64_t asked = 0;
    for (unsigned i = 0; i < micro->trace_count; i++)
        asked += micro->traces[i].asked_bytes;
    for (int way = WAY_COUNT - 1; way >= 0; way--) {
        if (!micro->rows[way])
            continue;
        add_value(micro, way_names[way], "ns", bench_row_median(micro->rows[way]) * 1e9);
        if (way == WAY_FLOOR)
            continue;
        const double refused = (double)micro->refused_bytes[way];
        add_value(micro, way_names[way], "refused_bytes", refused);
        add_value(micro, way_names[way], "refused_share", refused / (double)asked);
    }
}

static raffia_status measure_load(struct micro *micro)
{
    raffia_status status = micro->workload->threads ? micro_threads_begin() : RAFFIA_OK;
    if (!status && !micro->workload->threads && !__libc_single_threaded)
        bench_report_note(micro->report,
                          "%s ran in a process that has had threads: its locks were atomic",
                          micro->workload->name);
    if (!status)
        status = prepare(micro);
    if (!status)
        status = rounds(micro);
    if (!status)
        add_values(micro);
    core_free(micro->names);
    for (unsigned i = 0; i < micro->trace_count; i++)
        trace_clear(&micro->traces[i]);
    return status;
}

static bool chosen(const struct bench_micro_plan *plan, size_t load)
{
    bool any = false;
    for (size_t i = 0; i < BENCH_MICRO_LOADS_MAX; i++)
        any = any || plan->chosen[i];
    return !any || plan->chosen[load];
}

raffia_status bench_micro_measure(const struct bench_micro_plan *plan, struct bench_report *report)
{
    snprintf(report->title, sizeof report->title,
             "Generated loads on a pool and on its index of free space, 16 GiB, untouched");
    raffia_status status = bench_sim_prepare(2 * WORKLOAD_RANGE_BYTES, 0);
    for (size_t i = 0; !status && i < workload_count; i++) {
        struct micro micro = {.plan = plan, .report = report, .workload = &workloads[i]};
        if (chosen(plan, i))
            status = measure_load(&micro);
    }
    bench_report_note(report, "LOAD.floor is contained in the other rows of its load");
    return status;
}
