/*
 * A small lock for work of some instructions, where taking a pthread mutex would cost as much as
 * the work: taking it when nobody holds it is one atomic instruction, and while the process has a
 * single thread not even that; leaving it is a plain store and a plain load. Who has to wait sleeps
 * in the kernel.
 *
 * It is not fair: whoever comes by takes it before those who sleep. But none sleeps for ever while
 * one thread has it again and again (lock.c).
 *
 * It is not recursive, has no owner and nothing to destroy. Nothing that can block is done while it
 * is held. A forked child must not touch a lock that another thread of its parent may have held.
 *
 * Why nobody sleeps for ever. Whoever leaves stores FREE and then looks whether anybody sleeps; who
 * is about to sleep counts itself among the sleepers and then looks whether the lock is FREE. If
 * each saw its own store before the other's, both would miss: a processor may hold a store back
 * while it goes on to load. A fence on both sides would forbid it, and the one in leaving would be
 * paid each time. Instead the one that sleeps has the kernel put a fence into every thread of the
 * process (membarrier(2), PRIVATE_EXPEDITED). For each thread that leaves the fence falls
 *  - before its load: the load sees the sleeper, who is woken; or
 *  - after its load, and so after its store: the sleeper sees FREE, or what came after it.
 * Who took the lock after it was FREE has to leave it too, and the same holds for that thread. The
 * compiler is told to keep the two in order, which costs nothing. A sleeper stays counted until it
 * has the lock, so that one fence is enough for all its sleeps. Between the look and the sleep the
 * kernel compares once more, in one step with a waking.
 *
 * Where the kernel refuses membarrier(2) a sleeper looks again every so often (lock.c): a waking
 * that was missed then costs that time, and nothing else.
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
};

/* All zero is a lock that nobody holds. */
struct core_lock {
    atomic_uint state;
};

/* How many sleep, or are about to, for any of the locks that share the place. They are counted
 * apart from the locks: once a lock is FREE the next to take it may free the memory it lies in, so
 * that whoever has left it must not look there again. Locks that share a place wake each other's
 * sleepers in vain at times, and those who leave one stay away for who starves at another. */
#define CORE_LOCK_PLACES 64
extern atomic_uint core_lock_sleepers[CORE_LOCK_PLACES];

static inline size_t core_lock_place(const struct core_lock *lock)
{
    return (uintptr_t)lock / 64 % CORE_LOCK_PLACES;
}

static inline atomic_uint *core_lock_sleepers_for(const struct core_lock *lock)
{
    return &core_lock_sleepers[core_lock_place(lock)];
}

/* The slow parts. */
void core_lock_wait(struct core_lock *lock) __attribute__((cold));
void core_lock_wake(struct core_lock *lock) __attribute__((cold));
void core_lock_let_others(struct core_lock *lock) __attribute__((cold));

/* Prepares the kernel for sleepers. Worth doing before there are many threads, when it costs next
 * to nothing; otherwise the first one to sleep does it, which takes some milliseconds. */
void core_lock_prepare(void);

/* In a forked child, which has none of its parent's sleepers. */
void core_lock_forget_sleepers(void);

/* Takes the lock if nobody holds it. */
static inline bool core_lock_try(struct core_lock *lock)
{
    unsigned expected = CORE_LOCK_FREE;
    return atomic_compare_exchange_strong_explicit(&lock->state, &expected, CORE_LOCK_HELD,
                                                   memory_order_acquire, memory_order_relaxed);
}

/* The same at less cost while the process has a single thread. Whoever is told that the lock is
 * held, and has made use of knowing it, goes on with core_lock_wait(). */
static inline bool core_lock_take_free(struct core_lock *lock)
{
    if (__libc_single_threaded &&
        atomic_load_explicit(&lock->state, memory_order_relaxed) == CORE_LOCK_FREE) {
        atomic_store_explicit(&lock->state, CORE_LOCK_HELD, memory_order_relaxed);
        return true;
    }
    return core_lock_try(lock);
}

static inline void core_lock_take(struct core_lock *lock)
{
    if (!core_lock_take_free(lock))
        core_lock_wait(lock);
}

/* Whether somebody sleeps, asked after the lock is FREE. The signal fence is one for the compiler
 * alone. */
static inline bool core_lock_free_it(struct core_lock *lock)
{
    atomic_store_explicit(&lock->state, CORE_LOCK_FREE, memory_order_release);
    atomic_signal_fence(memory_order_seq_cst);
    return __builtin_expect(
        atomic_load_explicit(core_lock_sleepers_for(lock), memory_order_relaxed) != 0, 0);
}

/* No other small lock may be held: where somebody starves the caller sleeps for a moment. */
static inline void core_lock_leave(struct core_lock *lock)
{
    if (core_lock_free_it(lock))
        core_lock_let_others(lock);
}

/* For one that is left while others are held. Nobody stays away for its sleepers but by
 * core_lock_stay_away(), when all are left. */
static inline void core_lock_leave_inner(struct core_lock *lock)
{
    if (core_lock_free_it(lock))
        core_lock_wake(lock);
}

/* Whether somebody was woken often for this lock, or one that shares its place, and in vain. */
bool core_lock_starves(const struct core_lock *lock);

/* Sleeps for a moment, in which those who starve are up. */
void core_lock_stay_away(void);

#endif
