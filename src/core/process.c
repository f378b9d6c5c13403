#include "core/process.h"

#include "core/fault.h"
#include "core/lock.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

atomic_ulong core_fork_count;

static pthread_once_t watch_once = PTHREAD_ONCE_INIT;

static pthread_mutex_t process_lock = PTHREAD_MUTEX_INITIALIZER;

static void lock_before_fork(void)
{
    pthread_mutex_lock(&process_lock);
}

static void unlock_in_parent(void)
{
    pthread_mutex_unlock(&process_lock);
}

/* The child has one thread when this runs. A second registration is impossible, so the number rises
 * by one for each fork. */
static void enter_child(void)
{
    atomic_fetch_add_explicit(&core_fork_count, 1, memory_order_relaxed);
    core_lock_forget_sleepers();
    pthread_mutex_unlock(&process_lock);
}

static void watch_forks(void)
{
    int error = core_fault("pthread_atfork")
                    ? ENOMEM
                    : pthread_atfork(lock_before_fork, unlock_in_parent, enter_child);
    if (!error)
        atomic_store_explicit(&core_fork_count, 1, memory_order_relaxed);
}

unsigned long core_fork_generation_first(void)
{
    pthread_once(&watch_once, watch_forks);
    unsigned long now = atomic_load_explicit(&core_fork_count, memory_order_relaxed);
    /* Without a callback the process number does the same, at the price of a system call. */
    return now ? now : (unsigned long)getpid();
}

void core_process_lock(void)
{
    pthread_once(&watch_once, watch_forks);
    pthread_mutex_lock(&process_lock);
}

void core_process_unlock(void)
{
    pthread_mutex_unlock(&process_lock);
}
