/* The small lock. */
#include "core/lock.h"
#include "support/cmocka.h"

#include <pthread.h>
#include <sched.h>

enum { THREADS = 4, ROUNDS = 20000 };

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
    while (atomic_load(&shared.lock.state) != CORE_LOCK_WANTED)
        sched_yield();
    assert_false(atomic_load(&shared.taken));
    core_lock_leave(&shared.lock);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(atomic_load(&shared.taken));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* First: it starts the first thread. */
        cmocka_unit_test(a_thread_created_under_the_lock_waits_and_is_woken),
        cmocka_unit_test(a_lock_is_held_by_one),
        cmocka_unit_test(what_a_lock_guards_stays_whole),
    };
    return cmocka_run_group_tests_name("lock", tests, NULL, NULL);
}
