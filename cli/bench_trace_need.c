/* The smallest pool that serves a whole trace. */
#include "cli/bench_trace.h"
#include "cli/interrupt.h"
#include "cli/replay_ways.h"
#include "core/checked.h"
#include "core/error.h"

#include <math.h>

/* Limits looked at for each size of the peak, and how far upward. */
#define STEPS_A_PEAK 256u
#define PEAKS_MAX    4u

static raffia_status is_served(const struct bench_trace *bench, size_t limit, bool *served_p)
{
    raffia_pool *pool = NULL;
    struct replay_result result;
    raffia_status status = bench_trace_pool(bench, limit, &pool);
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

/* Upward and not by halving: with a little more room a pool may well place blocks worse. */
raffia_status bench_trace_need(const struct bench_trace *bench, double *need_p)
{
    const size_t peak = bench->trace->peak_bytes, unit = bench->chunk_bytes;
    const size_t first = core_max(core_align_up_unchecked(peak, unit), unit);
    const size_t step = core_max(core_align_up_unchecked(peak / STEPS_A_PEAK, unit), unit);
    *need_p = NAN;
    for (size_t i = 0; i <= (PEAKS_MAX - 1) * STEPS_A_PEAK; i++) {
        bool served = false;
        if (cli_interrupted())
            return core_error(RAFFIA_ERROR_CANCELLED, "interrupted");
        raffia_status status = is_served(bench, first + i * step, &served);
        if (status)
            return status;
        if (served) {
            *need_p = (double)(first + i * step) / (double)core_max(peak, 1);
            return RAFFIA_OK;
        }
    }
    return RAFFIA_OK;
}
