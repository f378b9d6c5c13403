/*
 * The same work on several threads, joined before the call returns.
 */
#ifndef CORE_PARALLEL_H
#define CORE_PARALLEL_H

#include <raffia/status.h>

/* Most threads that anybody may ask for. */
#define CORE_THREADS_MAX 1024u

/* CPUs this process may run on; at least 1. */
unsigned core_cpu_count(void);

/* `asked` threads, or the setting `threads`, or one for each CPU; from 1 to 16 unless asked for. */
unsigned core_thread_count(unsigned asked);

/* One share of the work; `index` counts from 0 to `count` - 1. */
typedef raffia_status (*core_parallel_work)(void *context, unsigned index, unsigned count);

/*
 * Calls work(context, 0..count-1, count), each on a thread of its own but the first, which runs in
 * the calling thread. Where a thread cannot be started its share runs in the calling thread too, so
 * this fails only if the work does: returns the failure of the lowest index, with its sentence.
 */
raffia_status core_parallel(unsigned count, core_parallel_work work, void *context);

#endif
