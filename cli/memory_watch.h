/*
 * How much memory this process takes at most while something runs: a thread that looks every
 * millisecond. It takes time itself, so nothing is timed beside it.
 */
#ifndef CLI_MEMORY_WATCH_H
#define CLI_MEMORY_WATCH_H

#include <raffia/base.h>
#include <raffia/status.h>

#include <pthread.h>
#include <stdatomic.h>

struct memory_watch {
    pthread_t thread;
    atomic_bool stop;
    uint64_t start_bytes;
    uint64_t peak_bytes; /* of the thread, until it was joined */
};

raffia_status memory_watch_start(struct memory_watch *watch);

/* Bytes of memory above the start, in small and huge pages, files that are mapped left out. */
uint64_t memory_watch_stop(struct memory_watch *watch);

#endif
