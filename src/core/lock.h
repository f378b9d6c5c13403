/*
 * A small lock for work of some instructions, where taking a pthread mutex would cost as much as
 * the work: taking it when nobody holds it is one instruction, and while the process has a single
 * thread not even an atomic one. Who has to wait sleeps in the kernel.
 *
 * It is not recursive, has no owner and nothing to destroy. Nothing that can block is done while it
 * is held. A forked child must not touch a lock that another thread of its parent may have held.
 */
#ifndef CORE_LOCK_H
#define CORE_LOCK_H

#include <raffia/base.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/single_threaded.h>

enum {
    CORE_LOCK_FREE = 0,
    CORE_LOCK_HELD,
    CORE_LOCK_WANTED, /* held, and somebody may sleep until it is not */
};

/* All zero is a lock that nobody holds. */
struct core_lock {
    atomic_uint state;
};

/* The slow parts. */
void core_lock_wait(struct core_lock *lock) __attribute__((cold));
void core_lock_wake(struct core_lock *lock) __attribute__((cold));

/* Takes the lock if nobody holds it. */
static inline bool core_lock_try(struct core_lock *lock)
{
    unsigned expected = CORE_LOCK_FREE;
    return atomic_compare_exchange_strong_explicit(&lock->state, &expected, CORE_LOCK_HELD,
                                                   memory_order_acquire, memory_order_relaxed);
}

static inline void core_lock_take(struct core_lock *lock)
{
    if (__libc_single_threaded &&
        atomic_load_explicit(&lock->state, memory_order_relaxed) == CORE_LOCK_FREE)
        atomic_store_explicit(&lock->state, CORE_LOCK_HELD, memory_order_relaxed);
    else if (!core_lock_try(lock))
        core_lock_wait(lock);
}

/* A thread that was created while the lock was held may wait for it, so this asks anew whether
 * there are others. */
static inline void core_lock_leave(struct core_lock *lock)
{
    if (__libc_single_threaded)
        atomic_store_explicit(&lock->state, CORE_LOCK_FREE, memory_order_relaxed);
    else if (atomic_exchange_explicit(&lock->state, CORE_LOCK_FREE, memory_order_release) ==
             CORE_LOCK_WANTED)
        core_lock_wake(lock);
}

#endif
