/*
 * How a pool's memory was divided while a trace ran, at a bounded number of moments.
 */
#ifndef CLI_TRACE_SERIES_H
#define CLI_TRACE_SERIES_H

#include "cli/trace.h"

#include <raffia/pool.h>

#include <jansson.h>

/* Most moments kept. */
#define TRACE_POINTS_MAX 240u

/* After an op. held + stranded + free + unmapped is the limit of the pool. */
struct trace_point {
    size_t op;        /* counts from 1: so many are done */
    size_t requested; /* what callers asked for */
    size_t held;      /* handed out, rounding included */
    size_t stranded;  /* free, in chunks that are partly in use */
    size_t free;      /* in chunks that a trim would give back */
    size_t unmapped;  /* not mapped, below the limit */
};

struct trace_series {
    size_t chosen[TRACE_POINTS_MAX]; /* the ops to look after, ascending */
    size_t chosen_count;
    struct trace_point points[TRACE_POINTS_MAX];
    size_t count;
};

/* Chooses the moments: the trace is cut into equal stretches, and of each the op is taken after
 * which most is requested; so the peak of the trace is among them. All ops if they are few. */
void trace_series_choose(struct trace_series *series, const struct trace *trace);

/* Adds a point if `op`, counting from 0, is the next one chosen. */
raffia_status trace_series_look(struct trace_series *series, raffia_pool *pool, size_t op);

/* [{"op", "requested_bytes", "held_bytes", ...}, ...]. */
json_t *trace_series_json(const struct trace_series *series);

#endif
