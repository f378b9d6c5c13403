/* Waiting for a small lock. */
#include "core/lock.h"

#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Looks worth taking before going to sleep: the work under such a lock is shorter than the way into
 * the kernel and back. */
#define LOOKS_BEFORE_SLEEP 100

static void pause_briefly(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Returns at once if the lock is not WANTED any more. Neither call can fail in a way that matters:
 * whoever returns from a wait looks again. */
static void sleep_while_wanted(struct core_lock *lock)
{
    (void)syscall(SYS_futex, &lock->state, FUTEX_WAIT_PRIVATE, CORE_LOCK_WANTED, NULL, NULL, 0);
}

void core_lock_wake(struct core_lock *lock)
{
    (void)syscall(SYS_futex, &lock->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Whoever has slept takes the lock as WANTED: it cannot know whether others still sleep. */
void core_lock_wait(struct core_lock *lock)
{
    for (int i = 0; i < LOOKS_BEFORE_SLEEP; i++) {
        if (atomic_load_explicit(&lock->state, memory_order_relaxed) == CORE_LOCK_FREE &&
            core_lock_try(lock))
            return;
        pause_briefly();
    }
    while (atomic_exchange_explicit(&lock->state, CORE_LOCK_WANTED, memory_order_acquire) !=
           CORE_LOCK_FREE)
        sleep_while_wanted(lock);
}
