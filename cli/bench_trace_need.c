/* The smallest pool that serves a whole trace. */
#include "cli/bench_trace.h"
#include "cli/replay_ways.h"
#include "core/checked.h"

#include <math.h>

/* Limits looked at for each size of the peak, and how far upward. */
#define STEPS_A_PEAK 256u
#define PEAKS_MAX    4u

static raffia_status is_served(const struct bench_trace *bench, size_t limit, size_t unit,
                               bool *served_p)
{
    raffia_pool *pool = NULL;
    struct replay_result result;
    raffia_status status = bench_trace_pool(bench, limit, unit, &pool);
    if (status)
        return status;
    const struct replay_way way = replay_way_pool(pool);
    status = replay_run(&way, bench->trace, bench->names, &result);
    raffia_status drained = replay_drain(&way, bench->trace, bench->names);
    raffia_pool_release(pool);
    if (!status)
        *served_p = result.refused == 0;
    return status ? status : drained;
}

/* Rounded up to whole units, at least one. */
static size_t units(size_t bytes, size_t unit)
{
    return core_max((bytes + unit - 1) / unit, 1) * unit;
}

/* Upward and not by halving: with a little more room a pool may well place blocks worse. */
raffia_status bench_trace_need(const struct bench_trace *bench, double *need_p)
{
    const size_t peak = bench->trace->peak_bytes;
    const size_t unit =
        bench->plan->chunk_bytes ? bench->plan->chunk_bytes : bench_trace_page_bytes(bench->plan);
    const size_t first = units(peak, unit), step = units(peak / STEPS_A_PEAK, unit);
    *need_p = NAN;
    for (size_t i = 0; i <= (PEAKS_MAX - 1) * STEPS_A_PEAK; i++) {
        bool served = false;
        raffia_status status = is_served(bench, first + i * step, unit, &served);
        if (status)
            return status;
        if (served) {
            *need_p = (double)(first + i * step) / (double)core_max(peak, 1);
            return RAFFIA_OK;
        }
    }
    return RAFFIA_OK;
}
