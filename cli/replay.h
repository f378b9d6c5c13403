/*
 * Runs a trace through an allocator and takes the time.
 *
 * Nothing here touches the memory handed out. What is refused stays refused: its free is passed
 * over.
 */
#ifndef CLI_REPLAY_H
#define CLI_REPLAY_H

#include "cli/trace.h"

/* An allocator under test. Both are plain calls through a pointer, for every allocator alike. */
struct replay_way {
    /* Gives a block a name that is not 0: its address, or a handle. OUT_OF_MEMORY refuses; anything
     * else ends the run. */
    raffia_status (*take)(void *context, uint64_t bytes, uint64_t *name_p);
    raffia_status (*give)(void *context, uint64_t name, uint64_t bytes);
    void *context;
};

struct replay_result {
    double seconds;         /* between the first call and the return of the last */
    uint64_t done;          /* calls made, refused ones included */
    uint64_t refused;       /* allocations */
    uint64_t refused_bytes; /* their sizes */
};

/* Called after an op was done, with the clock stopped. */
typedef raffia_status (*replay_observer)(void *context, size_t op);

/* Where a run leaves the time of each of its calls; the clock is then read before and after each,
 * and that is in them. */
struct replay_each {
    double *take_seconds;    /* trace->blocks of them */
    double *give_seconds;    /* trace->count - trace->blocks */
    size_t takes, gives;     /* written */
    replay_observer observe; /* may be NULL */
    void *observe_context;
};

/* A table of names, one for each block of the trace, all 0; NULL for want of memory. For
 * core_free(). */
uint64_t *replay_names_new(const struct trace *trace);

/* Replays once, reading the clock only at both ends. Afterwards the names say what is live. */
raffia_status replay_run(const struct replay_way *way, const struct trace *trace, uint64_t *names,
                         struct replay_result *result);

/* Replays once, timing each call. */
raffia_status replay_run_each(const struct replay_way *way, const struct trace *trace,
                              uint64_t *names, struct replay_each *each,
                              struct replay_result *result);

/* Frees what is live, so that the names are all 0 again. */
raffia_status replay_drain(const struct replay_way *way, const struct trace *trace,
                           uint64_t *names);

/* Seconds that one reading of the clock takes. */
double replay_clock_seconds(void);

#endif
