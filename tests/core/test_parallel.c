/* The same work on several threads. */
#include "core/error.h"
#include "core/fault.h"
#include "core/memory.h"
#include "core/parallel.h"
#include "support/cmocka.h"
#include "support/fault_loop.h"

#include <raffia/config.h>

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { SHARES_MAX = 32 };

struct job {
    atomic_int done[SHARES_MAX]; /* how often each share was done */
    atomic_uint count;           /* as the shares were told */
    atomic_int in_caller;        /* shares done in the thread that waits */
    pthread_t caller;
    unsigned failing; /* a bit for each share that fails */
};

static raffia_status do_share(void *context, unsigned index, unsigned count)
{
    struct job *job = context;
    atomic_fetch_add(&job->done[index], 1);
    atomic_store(&job->count, count);
    if (pthread_equal(pthread_self(), job->caller))
        atomic_fetch_add(&job->in_caller, 1);
    if (job->failing >> index & 1)
        return core_error(RAFFIA_ERROR_IO, "share %u failed", index);
    return RAFFIA_OK;
}

static void all_done_once(struct job *job, unsigned count)
{
    assert_int_equal(atomic_load(&job->count), count);
    for (unsigned i = 0; i < SHARES_MAX; i++)
        assert_int_equal(atomic_load(&job->done[i]), i < count);
}

static void every_share_is_done_once(void **state)
{
    (void)state;
    static const unsigned counts[] = {1, 2, 3, 8, SHARES_MAX};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        struct job job = {.caller = pthread_self()};
        assert_ok(core_parallel(counts[i], do_share, &job));
        all_done_once(&job, counts[i]);
        assert_int_equal(atomic_load(&job.in_caller), 1);
    }
}

static void no_threads_are_one(void **state)
{
    (void)state;
    struct job job = {.caller = pthread_self()};
    assert_ok(core_parallel(0, do_share, &job));
    all_done_once(&job, 1);
}

static void the_lowest_failure_is_reported_with_its_sentence(void **state)
{
    (void)state;
    static const struct {
        unsigned failing;
        const char *sentence;
    } rows[] = {
        {1u << 5, "share 5 failed"},
        {1u << 5 | 1u << 3 | 1u << 7, "share 3 failed"},
        {0xff, "share 0 failed"},
        {1u << 0, "share 0 failed"},
        {1u << 7 | 1u << 1, "share 1 failed"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct job job = {.caller = pthread_self(), .failing = rows[i].failing};
        core_error(RAFFIA_ERROR_BUSY, "before");
        assert_status(RAFFIA_ERROR_IO, core_parallel(8, do_share, &job));
        assert_string_equal(raffia_last_error(), rows[i].sentence);
        assert_int_equal(raffia_last_status(), RAFFIA_ERROR_IO);
        all_done_once(&job, 8); /* a failure stops nobody */
    }
}

static void a_single_share_reports_its_failure(void **state)
{
    (void)state;
    struct job job = {.caller = pthread_self(), .failing = 1};
    assert_status(RAFFIA_ERROR_IO, core_parallel(1, do_share, &job));
    assert_string_equal(raffia_last_error(), "share 0 failed");
}

static void a_thread_that_cannot_start_leaves_its_share_to_the_caller(void **state)
{
    (void)state;
    struct job job = {.caller = pthread_self()};
    core_fault_arm(3); /* the array, then two threads: the second is not to be had */
    assert_ok(core_parallel(4, do_share, &job));
    assert_string_equal(core_fault_disarm(), "pthread_create");
    all_done_once(&job, 4);
    assert_int_equal(atomic_load(&job.in_caller), 2);
}

static void without_host_memory_the_caller_does_it_all(void **state)
{
    (void)state;
    struct job job = {.caller = pthread_self()};
    core_fault_arm(1);
    assert_ok(core_parallel(4, do_share, &job));
    assert_string_equal(core_fault_disarm(), "calloc");
    all_done_once(&job, 1); /* one share: all of the work */
    assert_int_equal(atomic_load(&job.in_caller), 1);
}

static raffia_status scenario(void *context)
{
    (void)context;
    struct job job = {.caller = pthread_self()};
    raffia_status status = core_parallel(4, do_share, &job);
    assert_int_equal(status, RAFFIA_OK); /* whatever fails, the work is done */
    return status;
}

static void nothing_is_lost_when_threads_fail(void **state)
{
    (void)state;
    assert_int_equal(fault_loop(scenario, NULL, 100), 4);
}

static void thread_counts_follow_what_was_asked(void **state)
{
    (void)state;
    assert_true(core_cpu_count() >= 1);
    assert_int_equal(core_thread_count(3), 3);
    assert_int_equal(core_thread_count(100), 100);
    unsigned by_default = core_thread_count(0);
    assert_true(by_default >= 1 && by_default <= 16 && by_default <= core_cpu_count());
    assert_ok(raffia_config_set("threads", "23"));
    assert_int_equal(core_thread_count(0), 23);
    assert_int_equal(core_thread_count(2), 2);
    assert_ok(raffia_config_set("threads", NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_share_is_done_once),
        cmocka_unit_test(no_threads_are_one),
        cmocka_unit_test(the_lowest_failure_is_reported_with_its_sentence),
        cmocka_unit_test(a_single_share_reports_its_failure),
        cmocka_unit_test(a_thread_that_cannot_start_leaves_its_share_to_the_caller),
        cmocka_unit_test(without_host_memory_the_caller_does_it_all),
        cmocka_unit_test(nothing_is_lost_when_threads_fail),
        cmocka_unit_test(thread_counts_follow_what_was_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
