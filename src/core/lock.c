/* Waiting for a small lock. */
#include "core/lock.h"

#include "core/fault.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Looks worth taking before going to sleep: the work under such a lock is shorter than the way into
 * the kernel and back. */
#define LOOKS_BEFORE_SLEEP 100

/* How long a waking may be missed where there is no membarrier(2). */
#define UNFENCED_SLEEP_NS 200000

/* A thread that takes a lock again at once, after long work under it, has it back before any
 * sleeper is up. Who was woken so often is starving, and whoever leaves the lock then stays away
 * for a moment, which is several times as long as waking takes. */
#define WAKINGS_IN_VAIN 8u
#define AWAY_NS         100000

atomic_uint core_lock_sleepers[CORE_LOCK_PLACES];
static atomic_uint starving[CORE_LOCK_PLACES]; /* those of the sleepers that are */

static void pause_briefly(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static bool membarrier(int command)
{
    if (core_fault("membarrier")) {
        errno = ENOSYS;
        return false;
    }
    return syscall(SYS_membarrier, command, 0, 0) == 0;
}

void core_lock_prepare(void)
{
    const int saved = errno;
    (void)membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
    errno = saved;
}

void core_lock_forget_sleepers(void)
{
    for (int i = 0; i < CORE_LOCK_PLACES; i++) {
        atomic_store_explicit(&core_lock_sleepers[i], 0, memory_order_relaxed);
        atomic_store_explicit(&starving[i], 0, memory_order_relaxed);
    }
}

/* A fence in every thread of the process. EPERM: it has not been prepared for, here or in the
 * process that this one was forked from. */
static bool fence_everybody(void)
{
    if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED))
        return true;
    return errno == EPERM && membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) &&
           membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}

/* Returns at once if the lock is not HELD any more. True if somebody who left it woke us; the call
 * cannot fail in a way that matters more, since whoever returns from it looks again. */
static bool sleep_while_held(struct core_lock *lock, const struct timespec *at_most)
{
    return syscall(SYS_futex, &lock->state, FUTEX_WAIT_PRIVATE, CORE_LOCK_HELD, at_most, NULL, 0) ==
           0;
}

/* The lock was left already, and only its address is used: its memory may be gone. A waking that
 * reaches somebody else there is one that they have to live with anyway (futex(2)). */
void core_lock_wake(struct core_lock *lock)
{
    const int saved = errno;
    (void)syscall(SYS_futex, &lock->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    errno = saved;
}

bool core_lock_starves(const struct core_lock *lock)
{
    return atomic_load_explicit(&starving[core_lock_place(lock)], memory_order_relaxed);
}

/* Not by nanosleep(3), in which a thread can be cancelled: by way of leaving a lock every call of
 * the library would end there, with whatever it holds. */
void core_lock_stay_away(void)
{
    const int saved = errno;
    const struct timespec away = {.tv_nsec = AWAY_NS};
    (void)syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &away, NULL);
    errno = saved;
}

void core_lock_let_others(struct core_lock *lock)
{
    core_lock_wake(lock);
    if (core_lock_starves(lock))
        core_lock_stay_away();
}

static bool take_soon(struct core_lock *lock)
{
    for (int i = 0; i < LOOKS_BEFORE_SLEEP; i++) {
        if (atomic_load_explicit(&lock->state, memory_order_relaxed) == CORE_LOCK_FREE &&
            core_lock_try(lock))
            return true;
        pause_briefly();
    }
    return false;
}

void core_lock_wait(struct core_lock *lock)
{
    if (take_soon(lock))
        return;
    atomic_uint *sleepers = core_lock_sleepers_for(lock);
    const int saved = errno;
    const struct timespec unfenced = {.tv_nsec = UNFENCED_SLEEP_NS};
    atomic_fetch_add_explicit(sleepers, 1, memory_order_seq_cst);
    const struct timespec *at_most = fence_everybody() ? NULL : &unfenced;
    atomic_uint *starved = &starving[core_lock_place(lock)];
    unsigned in_vain = 0;
    while (!core_lock_try(lock))
        if (sleep_while_held(lock, at_most) && ++in_vain == WAKINGS_IN_VAIN)
            atomic_fetch_add_explicit(starved, 1, memory_order_relaxed);
    if (in_vain >= WAKINGS_IN_VAIN)
        atomic_fetch_sub_explicit(starved, 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(sleepers, 1, memory_order_relaxed);
    errno = saved;
}
