/*
 * What the waiting caller of a load looks after: progress, cancellation and stalls.
 */
#ifndef LOAD_WATCH_H
#define LOAD_WATCH_H

#include "load/source.h"

struct load_watch {
    const raffia_load_options *options;
    struct load_source *source;
    uint64_t bytes_total;
    double started;        /* core_clock_seconds() */
    uint64_t report_at_ns; /* when progress is due */
    uint64_t activity;     /* as last seen */
    uint64_t activity_ns;  /* when it last changed */
};

void load_watch_start(struct load_watch *watch, const raffia_load_options *options,
                      struct load_source *source, uint64_t bytes_total, double started);

/* How long the caller may sleep before it must look again. */
uint64_t load_watch_pause_ns(const struct load_watch *watch);

/* Reports progress if it is due, or in any case if `finally`. CANCELLED if the caller wants no
 * more. */
raffia_status load_watch_look(struct load_watch *watch, bool finally);

/* Whether no byte has come for the time allowed. */
bool load_watch_stalled(struct load_watch *watch);

/* Whether the cancel flag is set. */
bool load_watch_flag_set(const raffia_load_options *options);

/* CANCELLED if it is: the step that `before` names is then not taken. */
raffia_status load_watch_ask(const raffia_load_options *options, const char *before);

#endif
