/*
 * What the readers of one load share: the files, the plan, where the bytes go, and the counters.
 */
#ifndef LOAD_SOURCE_H
#define LOAD_SOURCE_H

#include "load/plan.h"

#include <pthread.h>
#include <stdatomic.h>

/* How far direct reading of a file has got. */
enum load_direct_state {
    LOAD_DIRECT_UNTRIED,
    LOAD_DIRECT_OPEN,
    LOAD_DIRECT_REFUSED, /* by the file system, or there is no way to open the file again */
};

struct load_direct_file {
    _Atomic(enum load_direct_state) state;
    int fd;           /* once OPEN; -1 before */
    size_t alignment; /* of memory, offset and length of a direct read */
};

struct load_source {
    const struct catalog *catalog;
    const struct load_plan *plan;
    unsigned char **addresses; /* where each item's first byte goes */
    raffia_reader mode;
    size_t staging_bytes; /* of one reader's buffer: the plan's window_bytes */

    pthread_mutex_t direct_lock; /* held while a file is opened for direct reads */
    struct load_direct_file *direct_files;

    atomic_bool stop; /* readers give up at the next call */

    _Atomic uint64_t activity; /* read calls that brought bytes */
    _Atomic uint64_t bytes_done;
    _Atomic uint64_t bytes_buffered;
    _Atomic uint64_t bytes_direct;
    _Atomic uint64_t bytes_staged;
    _Atomic uint64_t reads;
    _Atomic uint64_t direct_refusals;
    _Atomic size_t staging_used;
};

/* The catalog and plan are borrowed; `addresses` and the rest start empty, for the caller to set.
 */
raffia_status load_source_init(struct load_source *source, const struct catalog *catalog,
                               const struct load_plan *plan);

/* Closes the files opened for direct reads. */
void load_source_close(struct load_source *source);

static inline bool load_stopped(struct load_source *source)
{
    return atomic_load_explicit(&source->stop, memory_order_relaxed);
}

#endif
