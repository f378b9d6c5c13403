/* The small lock. */
#include "core/clock.h"
#include "core/fault.h"
#include "core/lock.h"
#include "core/process.h"
#include "support/cmocka.h"

#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 20000 };

/* A sleeper that nobody wakes would hang the test. */
#define HANG_SECONDS 120

static void a_lock_is_held_by_one(void **state)
{
    (void)state;
    struct core_lock lock = {0};
    assert_true(core_lock_try(&lock));
    assert_false(core_lock_try(&lock));
    core_lock_leave(&lock);
    core_lock_take(&lock);
    assert_false(core_lock_try(&lock));
    core_lock_leave(&lock);
    assert_true(core_lock_try(&lock));
    core_lock_leave(&lock);
    assert_int_equal(atomic_load(&lock.state), CORE_LOCK_FREE);
}

struct shared {
    struct core_lock lock;
    long number; /* plain on purpose: the lock is what keeps it whole */
    atomic_bool taken;
};

static void *count_up(void *context)
{
    struct shared *shared = context;
    for (int i = 0; i < ROUNDS; i++) {
        core_lock_take(&shared->lock);
        const long seen = shared->number;
        if (i % 100 == 0)
            sched_yield(); /* so that others find it held */
        shared->number = seen + 1;
        core_lock_leave(&shared->lock);
    }
    return NULL;
}

static void what_a_lock_guards_stays_whole(void **state)
{
    (void)state;
    struct shared shared = {0};
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count_up, &shared), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(shared.number, (long)THREADS * ROUNDS);
    assert_int_equal(atomic_load(&shared.lock.state), CORE_LOCK_FREE);
}

/* ---- one that has it again and again --------------------------------------------------------- */

enum { TAKES = 50, ROUNDS_A_TAKE = 200, HOGGED_NS = 200000, BETWEEN_NS = 50000 };

struct hog {
    struct core_lock lock;
    atomic_bool stop;
    atomic_long rounds;
};

static void work_for(uint64_t ns)
{
    const uint64_t until = core_clock_ns() + ns;
    while (core_clock_ns() < until)
        ;
}

/* Works for long under the lock, and next to nothing in between. */
static void *hog_it(void *context)
{
    struct hog *hog = context;
    while (!atomic_load(&hog->stop)) {
        core_lock_take(&hog->lock);
        work_for(HOGGED_NS);
        core_lock_leave(&hog->lock);
        atomic_fetch_add(&hog->rounds, 1);
    }
    return NULL;
}

/* On one CPU the kernel sees to it that both have their turn. */
static void put_on_cpus(cpu_set_t *allowed, pthread_t one, pthread_t other)
{
    pthread_t threads[] = {one, other};
    int next = 0;
    for (size_t cpu = 0; cpu < CPU_SETSIZE && next < 2; cpu++) {
        cpu_set_t only;
        if (!CPU_ISSET(cpu, allowed))
            continue;
        CPU_ZERO(&only);
        CPU_SET(cpu, &only);
        assert_int_equal(pthread_setaffinity_np(threads[next++], sizeof only, &only), 0);
    }
}

/* Left to chance the other gets it once in a thousand rounds. */
static void nobody_starves(void **state)
{
    (void)state;
    struct hog hog = {.stop = false};
    pthread_t thread;
    cpu_set_t allowed;
    assert_int_equal(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    if (CPU_COUNT(&allowed) < 2)
        skip();
    alarm(HANG_SECONDS);
    assert_int_equal(pthread_create(&thread, NULL, hog_it, &hog), 0);
    put_on_cpus(&allowed, pthread_self(), thread);
    while (!atomic_load(&hog.rounds))
        sched_yield();
    long waited = 0; /* rounds, in all takes together */
    for (int i = 0; i < TAKES; i++) {
        const long before = atomic_load(&hog.rounds);
        core_lock_take(&hog.lock);
        waited += atomic_load(&hog.rounds) - before;
        core_lock_leave(&hog.lock);
        work_for(BETWEEN_NS); /* the other has it again */
    }
    atomic_store(&hog.stop, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    print_message("%d takes waited for %ld rounds of another\n", TAKES, waited);
    assert_int_equal(pthread_setaffinity_np(pthread_self(), sizeof allowed, &allowed), 0);
    alarm(0);
    assert_true(waited < (long)TAKES * ROUNDS_A_TAKE);
}

static void *take_once(void *context)
{
    struct shared *shared = context;
    core_lock_take(&shared->lock);
    atomic_store(&shared->taken, true);
    core_lock_leave(&shared->lock);
    return NULL;
}

/* The first lock of a process is taken without an atomic instruction. */
static void a_thread_created_under_the_lock_waits_and_is_woken(void **state)
{
    (void)state;
    struct shared shared = {0};
    pthread_t thread;
    core_lock_take(&shared.lock);
    assert_int_equal(pthread_create(&thread, NULL, take_once, &shared), 0);
    while (!atomic_load(core_lock_sleepers_for(&shared.lock)))
        sched_yield();
    assert_false(atomic_load(&shared.taken));
    core_lock_leave(&shared.lock);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(atomic_load(&shared.taken));
}

static atomic_bool is_cancelled;

static void *stay_away(void *context)
{
    while (!atomic_load(&is_cancelled))
        sched_yield();
    core_lock_stay_away();
    return context;
}

/* A thread that ended in there would keep what it holds. */
static void nobody_is_cancelled_while_it_stays_away(void **state)
{
    (void)state;
    pthread_t thread;
    void *result = NULL;
    atomic_store(&is_cancelled, false);
    assert_int_equal(pthread_create(&thread, NULL, stay_away, &result), 0);
    assert_int_equal(pthread_cancel(thread), 0);
    atomic_store(&is_cancelled, true);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, &result);
}

static void nap(long nanoseconds)
{
    const struct timespec time = {.tv_nsec = nanoseconds};
    nanosleep(&time, NULL);
}

enum { SLEEPER_ROUNDS = 400 };

static void *hold_long(void *context)
{
    struct shared *shared = context;
    for (int i = 0; i < SLEEPER_ROUNDS; i++) {
        core_lock_take(&shared->lock);
        const long seen = shared->number;
        nap(20000); /* the others give up looking, and sleep */
        shared->number = seen + 1;
        core_lock_leave(&shared->lock);
    }
    return NULL;
}

static void whoever_sleeps_is_woken(void **state)
{
    (void)state;
    struct shared shared = {0};
    pthread_t threads[THREADS];
    alarm(HANG_SECONDS);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, hold_long, &shared), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    alarm(0);
    assert_int_equal(shared.number, (long)THREADS * SLEEPER_ROUNDS);
    assert_int_equal(atomic_load(core_lock_sleepers_for(&shared.lock)), 0);
}

/* Starts a thread that wants the lock, which is held, and waits until it sleeps. */
static void start_sleeper(struct shared *shared, pthread_t *thread)
{
    assert_int_equal(pthread_create(thread, NULL, take_once, shared), 0);
    while (!atomic_load(core_lock_sleepers_for(&shared->lock)))
        sched_yield();
}

static void a_kernel_without_membarrier_costs_time_only(void **state)
{
    (void)state;
    struct shared shared = {0};
    pthread_t thread;
    alarm(HANG_SECONDS);
    core_lock_take(&shared.lock);
    core_fault_arm(1);
    start_sleeper(&shared, &thread);
    nap(1000000);
    assert_non_null(core_fault_disarm());
    assert_false(atomic_load(&shared.taken));
    /* The lock is left behind the sleeper's back, as it looks to one that missed its waking. */
    atomic_store(&shared.lock.state, CORE_LOCK_FREE);
    assert_int_equal(pthread_join(thread, NULL), 0);
    alarm(0);
    assert_true(atomic_load(&shared.taken));
}

static void a_forked_child_has_none_of_its_parents_sleepers(void **state)
{
    (void)state;
    struct shared shared = {0};
    pthread_t thread;
    (void)core_fork_generation(); /* forks are watched from now on */
    core_lock_take(&shared.lock);
    start_sleeper(&shared, &thread);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit((int)atomic_load(core_lock_sleepers_for(&shared.lock)));
    int outcome;
    assert_int_equal(waitpid(child, &outcome, 0), child);
    assert_int_equal(outcome, 0);
    core_lock_leave(&shared.lock);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* First: it starts the first thread. */
        cmocka_unit_test(a_thread_created_under_the_lock_waits_and_is_woken),
        cmocka_unit_test(a_lock_is_held_by_one),
        cmocka_unit_test(what_a_lock_guards_stays_whole),
        cmocka_unit_test(nobody_starves),
        cmocka_unit_test(nobody_is_cancelled_while_it_stays_away),
        cmocka_unit_test(whoever_sleeps_is_woken),
        cmocka_unit_test(a_kernel_without_membarrier_costs_time_only),
        cmocka_unit_test(a_forked_child_has_none_of_its_parents_sleepers),
    };
    return cmocka_run_group_tests_name("lock", tests, NULL, NULL);
}
