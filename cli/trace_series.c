#include "cli/trace_series.h"

#include "cli/json.h"
#include "core/checked.h"

void trace_series_choose(struct trace_series *series, const struct trace *trace)
{
    const size_t stretches = core_min(trace->count, TRACE_POINTS_MAX);
    uint64_t live = 0;
    size_t op = 0;
    *series = (struct trace_series){0};
    for (size_t i = 0; i < stretches; i++) {
        /* In two parts, so that the product cannot wrap. */
        const size_t end =
            trace->count / stretches * (i + 1) + trace->count % stretches * (i + 1) / stretches;
        uint64_t most = 0;
        size_t fullest = op;
        for (; op < end; op++) {
            live = trace->ops[op].frees ? live - trace->ops[op].bytes : live + trace->ops[op].bytes;
            if (live > most) {
                most = live;
                fullest = op;
            }
        }
        series->chosen[series->chosen_count++] = fullest;
    }
}

raffia_status trace_series_look(struct trace_series *series, raffia_pool *pool, size_t op)
{
    if (series->count == series->chosen_count || series->chosen[series->count] != op)
        return RAFFIA_OK;
    raffia_pool_stats stats;
    raffia_status status = raffia_pool_query(pool, &stats);
    if (status)
        return status;
    /* Idle chunks are free as a whole, and blocks and free space fill what is mapped; but this must
     * hold for a pool in any state. */
    const size_t idle = core_min(stats.idle_bytes, stats.free_bytes);
    series->points[series->count++] = (struct trace_point){
        .op = op + 1,
        .requested = stats.requested_bytes,
        .held = stats.in_use_bytes,
        .stranded = stats.free_bytes - idle,
        .free = idle,
        .unmapped = stats.maximum_bytes - core_min(stats.reserved_bytes, stats.maximum_bytes),
    };
    return RAFFIA_OK;
}

json_t *trace_series_json(const struct trace_series *series)
{
    json_t *points = json_array();
    for (size_t i = 0; i < series->count; i++) {
        const struct trace_point *point = &series->points[i];
        json_t *object = json_object();
        cli_json_count(object, "op", point->op);
        cli_json_count(object, "requested_bytes", point->requested);
        cli_json_count(object, "held_bytes", point->held);
        cli_json_count(object, "stranded_bytes", point->stranded);
        cli_json_count(object, "free_bytes", point->free);
        cli_json_count(object, "unmapped_bytes", point->unmapped);
        cli_json_append(points, object);
    }
    return points;
}
