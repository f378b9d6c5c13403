#include "cli/replay.h"

#include "cli/interrupt.h"
#include "core/checked.h"
#include "core/clock.h"
#include "core/memory.h"

/* Clock readings that are timed together. */
#define CLOCK_READINGS 10000u

uint64_t *replay_names_new(const struct trace *trace)
{
    return core_calloc((size_t)trace->blocks + 1, sizeof(uint64_t));
}

/* Between two looks at the interrupt flag; so many that looking takes no time. */
#define OPS_A_LOOK ((size_t)1 << 12)

/* One op. A free of what was refused is no call, and is not counted. */
static inline raffia_status step(const struct replay_way *way, const struct trace_op *op,
                                 uint64_t *names, struct replay_result *result)
{
    raffia_status status;
    if (op->frees) {
        uint64_t name = names[op->block];
        if (!name)
            return RAFFIA_OK;
        names[op->block] = 0;
        status = way->give(way->context, name, op->bytes);
    } else {
        status = way->take(way->context, op->bytes, &names[op->block]);
        if (status == RAFFIA_ERROR_OUT_OF_MEMORY) {
            names[op->block] = 0;
            result->refused++;
            result->refused_bytes += op->bytes;
            status = RAFFIA_OK;
        }
    }
    result->done++;
    return status;
}

raffia_status replay_run(const struct replay_way *way, const struct trace *trace, uint64_t *names,
                         struct replay_result *result)
{
    struct replay_result counts = {0};
    raffia_status status = RAFFIA_OK;
    const struct trace_op *op = trace->ops, *end = op + trace->count;
    uint64_t started = core_clock_ns();
    while (!status && op < end) {
        const size_t left = (size_t)(end - op);
        const struct trace_op *stop = op + core_min(left, OPS_A_LOOK);
        for (; !status && op < stop; op++)
            status = step(way, op, names, &counts);
        if (!status)
            status = cli_interrupt_check();
    }
    counts.seconds = (double)(core_clock_ns() - started) * 1e-9;
    if (!status)
        *result = counts;
    return status;
}

raffia_status replay_run_each(const struct replay_way *way, const struct trace *trace,
                              uint64_t *names, struct replay_each *each,
                              struct replay_result *result)
{
    struct replay_result counts = {0};
    each->takes = each->gives = 0;
    for (size_t i = 0; i < trace->count; i++) {
        const struct trace_op *op = &trace->ops[i];
        uint64_t done = counts.done, started = core_clock_ns();
        raffia_status status = step(way, op, names, &counts);
        double seconds = (double)(core_clock_ns() - started) * 1e-9;
        if (status)
            return status;
        if (counts.done > done) {
            counts.seconds += seconds;
            if (op->frees)
                each->give_seconds[each->gives++] = seconds;
            else
                each->take_seconds[each->takes++] = seconds;
        }
        status = each->observe ? each->observe(each->observe_context, i) : RAFFIA_OK;
        if (!status)
            status = cli_interrupt_check();
        if (status)
            return status;
    }
    *result = counts;
    return RAFFIA_OK;
}

raffia_status replay_drain(const struct replay_way *way, const struct trace *trace, uint64_t *names)
{
    raffia_status first = RAFFIA_OK;
    for (size_t i = 0; i < trace->count; i++) {
        const struct trace_op *op = &trace->ops[i];
        if (op->frees || !names[op->block])
            continue;
        raffia_status status = way->give(way->context, names[op->block], op->bytes);
        names[op->block] = 0;
        first = first ? first : status;
    }
    return first;
}

double replay_clock_seconds(void)
{
    uint64_t started = core_clock_ns(), ended = started;
    for (unsigned i = 0; i < CLOCK_READINGS; i++)
        ended = core_clock_ns();
    return (double)(ended - started) * 1e-9 / CLOCK_READINGS;
}
