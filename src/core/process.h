/*
 * Telling a forked child from its parent.
 */
#ifndef CORE_PROCESS_H
#define CORE_PROCESS_H

#include <stdatomic.h>

/* 0 until the first call, so that the fast path needs no second look to see that it may be taken;
 * it stays 0 where the C library cannot call us back. */
extern atomic_ulong core_fork_count;

/* The slow part of core_fork_generation(). */
unsigned long core_fork_generation_first(void) __attribute__((cold));

/*
 * A number that another process of the same line of descent never sees: it changes in the child of
 * a fork(). An object keeps the number of its birth; if it differs later, the object was inherited.
 * Costs one relaxed load, and never gives 0. A child made by clone(2) or vfork(2) directly, around
 * the C library, keeps its parent's number.
 */
static inline unsigned long core_fork_generation(void)
{
    unsigned long now = atomic_load_explicit(&core_fork_count, memory_order_relaxed);
    return now ? now : core_fork_generation_first();
}

/*
 * The lock of the process's few tables: settings, the log's sink, fallbacks. A leaf that is held
 * for some instructions only; under it nothing is called that may lock, but for libraries' own
 * locks that no fork() waits for. A fork() waits for this one: otherwise a child could inherit it,
 * or those, from a thread that it does not have, and hang at its next call.
 */
void core_process_lock(void);
void core_process_unlock(void);

#endif
