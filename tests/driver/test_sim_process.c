/* The simulated device: asked-for failures, lost contexts, slow calls, forks, and many threads. */
#include "core/clock.h"
#include "core/fault.h"
#include "driver/sim_test.h"
#include "support/random.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct driver *const d = &sim_driver;

static void the_next_call_fails_as_asked(void **state)
{
    (void)state;
    struct driver_chunk_spec spec = sim_test_device_spec(2 * MIB);
    driver_chunk chunk = NULL;
    raffia_fallback_reason reason = RAFFIA_REASON_NONE;
    sim_fail_next("chunk_create", RAFFIA_ERROR_PERMISSION, RAFFIA_REASON_CGROUP);
    assert_status(RAFFIA_ERROR_PERMISSION, d->chunk_create(0, &spec, &chunk, &reason));
    assert_int_equal(reason, RAFFIA_REASON_CGROUP);
    assert_string_equal(raffia_last_native_error(), "SIM_INJECTED");
    assert_error_mentions("chunk_create");
    assert_null(chunk);
    chunk = sim_test_create(0, &spec);
    /* Verbs that give back can be failed this way, and only this way. */
    sim_fail_next("chunk_destroy", RAFFIA_ERROR_DRIVER, RAFFIA_REASON_NONE);
    assert_status(RAFFIA_ERROR_DRIVER, d->chunk_destroy(0, chunk));
    core_fault_arm(1);
    assert_ok(d->chunk_destroy(0, chunk));
    assert_null(core_fault_disarm());
}

static void fault_points_bear_the_names_of_verbs(void **state)
{
    (void)state;
    void *base = NULL;
    core_fault_arm(1);
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, d->range_reserve(0, 4096, 4096, &base));
    assert_string_equal(core_fault_disarm(), "sim.range_reserve");
    assert_null(base);
    char byte = 0;
    core_fault_arm(1);
    assert_status(RAFFIA_ERROR_DRIVER, d->fill(0, NULL, &byte, 0, 1));
    assert_string_equal(core_fault_disarm(), "sim.fill");
}

static void a_poisoned_device_stays_lost(void **state)
{
    (void)state;
    driver_stream stream;
    driver_event event;
    char byte = 0;
    bool done;
    assert_ok(d->stream_create(0, &stream));
    assert_ok(d->event_create(0, &event));
    assert_ok(sim_stream_hold(0, stream));
    assert_ok(d->fill(0, stream, &byte, 1, 1));
    assert_ok(d->event_record(0, event, stream));
    assert_ok(d->context_state(0));
    sim_poison(0);
    assert_status(RAFFIA_ERROR_DRIVER, d->context_state(0));
    assert_string_equal(raffia_last_native_error(), "SIM_POISONED");
    assert_status(RAFFIA_ERROR_DRIVER, d->event_done(0, event, &done));
    assert_status(RAFFIA_ERROR_DRIVER, d->event_wait(0, event));
    assert_status(RAFFIA_ERROR_DRIVER, d->stream_wait(0, stream));
    assert_status(RAFFIA_ERROR_DRIVER, d->stream_destroy(0, stream));
    assert_ok(d->context_state(1));
    sim_reset();
    assert_int_equal(byte, 0);
    assert_ok(d->context_state(0));
}

struct waiter {
    driver_stream stream;
    raffia_status status;
};

static void *wait_in_thread(void *argument)
{
    struct waiter *waiter = argument;
    waiter->status = d->stream_wait(0, waiter->stream);
    return NULL;
}

static void poison_wakes_those_who_wait(void **state)
{
    (void)state;
    struct waiter waiter = {0};
    assert_ok(d->stream_create(0, &waiter.stream));
    assert_ok(sim_stream_hold(0, waiter.stream));
    assert_ok(sim_stream_delay(0, waiter.stream, 1));
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, wait_in_thread, &waiter), 0);
    while (sim_calls("stream_wait") == 0)
        usleep(100);
    usleep(1000);
    sim_poison(0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(waiter.status, RAFFIA_ERROR_DRIVER);
}

static void calls_take_as_long_as_asked(void **state)
{
    (void)state;
    const struct sim_config config = {.alloc_us = 3000, .unmap_us = 3000};
    assert_ok(sim_configure(0, &config));
    void *base;
    uint64_t start = core_clock_ns();
    assert_ok(d->range_reserve(0, 4096, 4096, &base));
    assert_ok(d->range_release(0, base, 4096));
    /* A lower bound only: how much longer is the machine's affair. */
    assert_true(core_clock_ns() - start >= 6000000);
}

/* In a child no cmocka: its report is the parent's. Returns the number of the check that failed. */
static int look_from_child(driver_chunk chunk)
{
    raffia_device_info info;
    int count;
    struct driver_chunk_spec spec = sim_test_device_spec(2 * MIB);
    raffia_fallback_reason reason = RAFFIA_REASON_COUNT;
    if (d->context_state(0) != RAFFIA_ERROR_FORKED || d->devices(&count) != RAFFIA_ERROR_FORKED ||
        d->device_info(0, &info) != RAFFIA_ERROR_FORKED)
        return 1;
    if (d->chunk_destroy(0, chunk) != RAFFIA_ERROR_FORKED ||
        d->chunk_create(0, &spec, &chunk, &reason) != RAFFIA_ERROR_FORKED ||
        reason != RAFFIA_REASON_NONE)
        return 2;
    if (d->stream_wait(0, NULL) != RAFFIA_ERROR_FORKED ||
        d->default_stream(0) != DRIVER_DEFAULT_STREAM_NONE)
        return 3;
    return 0;
}

static int run_in_child(int (*look)(driver_chunk), driver_chunk chunk)
{
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(look(chunk));
    int how = 0;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how));
    return WEXITSTATUS(how);
}

static atomic_bool keep_busy;

/* Keeps the device's lock taken for as much of the time as it can. */
static void *be_busy(void *unused)
{
    (void)unused;
    raffia_device_info info;
    while (keep_busy)
        if (d->device_info(0, &info))
            break;
    return NULL;
}

static void a_forked_child_is_refused_whoever_holds_the_lock(void **state)
{
    (void)state;
    struct driver_chunk_spec spec = sim_test_device_spec(2 * MIB);
    driver_chunk chunk = sim_test_create(0, &spec);
    pthread_t thread;
    keep_busy = true;
    assert_int_equal(pthread_create(&thread, NULL, be_busy, NULL), 0);
    for (int i = 0; i < 20; i++)
        assert_int_equal(run_in_child(look_from_child, chunk), 0);
    keep_busy = false;
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_ok(d->chunk_destroy(0, chunk));
}

static uint64_t exported[DRIVER_HANDLE_WORDS];

static int import_in_child(driver_chunk unused)
{
    (void)unused;
    sim_reset(); /* makes the child an owner of devices of its own */
    struct driver_chunk_spec spec = sim_test_device_spec(2 * MIB);
    spec.handle = DRIVER_HANDLE_FD;
    driver_chunk chunk;
    void *base;
    raffia_fallback_reason reason;
    if (d->chunk_import(0, DRIVER_HANDLE_FD, exported, &spec, &chunk) ||
        d->range_reserve(0, 2 * MIB, 2 * MIB, &base) || d->chunk_map(0, chunk, base, &reason))
        return 1;
    if (strcmp(base, "from the parent"))
        return 2;
    strcpy(base, "from the child");
    if (d->chunk_unmap(0, chunk, base) || d->chunk_destroy(0, chunk) ||
        d->range_release(0, base, 2 * MIB) || !sim_is_idle())
        return 3;
    return 0;
}

static void an_exported_chunk_crosses_a_fork(void **state)
{
    (void)state;
    char *base = sim_test_reserve(0, 2 * MIB);
    struct driver_chunk_spec spec = sim_test_device_spec(2 * MIB);
    spec.handle = DRIVER_HANDLE_FD;
    driver_chunk chunk = sim_test_create(0, &spec);
    sim_test_map(0, chunk, base);
    strcpy(base, "from the parent");
    assert_ok(d->chunk_export(0, chunk, DRIVER_HANDLE_FD, exported));
    assert_int_equal(run_in_child(import_in_child, chunk), 0);
    assert_string_equal(base, "from the child");
    driver_chunk wrong = NULL;
    spec.bytes = 4 * MIB;
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT,
                  d->chunk_import(0, DRIVER_HANDLE_FD, exported, &spec, &wrong));
    assert_null(wrong);
    assert_int_equal(close((int)exported[0]), 0);
    assert_ok(d->chunk_unmap(0, chunk, base));
    assert_ok(d->chunk_destroy(0, chunk));
    assert_ok(d->range_release(0, base, 2 * MIB));
}

enum { THREADS = 4, ROUNDS = 150 };

struct worker {
    struct test_random random;
    unsigned char value;
    int failures;
};

/* Each thread has its own stream, memory and event: nobody may see another's bytes. */
static bool work_once(struct worker *worker, driver_stream stream, driver_event event)
{
    size_t bytes = SIM_BASE_PAGE * (1 + test_random_below(&worker->random, 8));
    struct driver_chunk_spec spec = sim_test_spec(RAFFIA_PAGE_REGULAR, SIM_BASE_PAGE, bytes);
    spec.remappable = test_random_below(&worker->random, 2);
    void *base, *block;
    driver_chunk chunk;
    raffia_fallback_reason reason;
    if (d->range_reserve(0, bytes, SIM_BASE_PAGE, &base) ||
        d->chunk_create(0, &spec, &chunk, &reason) || d->chunk_map(0, chunk, base, &reason) ||
        d->mem_alloc(0, bytes, &block))
        return false;
    if (d->fill(0, stream, base, worker->value, bytes) || d->copy(0, stream, block, base, bytes) ||
        d->event_record(0, event, stream))
        return false;
    if (test_random_below(&worker->random, 2) ? d->event_wait(0, event) : d->stream_wait(0, stream))
        return false;
    const unsigned char *got = block;
    bool right = got[0] == worker->value && got[bytes - 1] == worker->value;
    return !d->chunk_unmap(0, chunk, base) && !d->chunk_destroy(0, chunk) &&
           !d->range_release(0, base, bytes) && !d->mem_free(0, block, bytes) && right;
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    driver_stream stream;
    driver_event event;
    if (d->stream_create(0, &stream) || d->event_create(0, &event)) {
        worker->failures++;
        return NULL;
    }
    for (int i = 0; i < ROUNDS && !worker->failures; i++)
        worker->failures += !work_once(worker, stream, event);
    worker->failures += d->event_destroy(0, event) || d->stream_destroy(0, stream);
    return NULL;
}

static void threads_do_not_disturb_each_other(void **state)
{
    (void)state;
    struct test_random random = test_random_seeded("threads_do_not_disturb_each_other");
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){{test_random_next(&random)}, (unsigned char)(i + 1), 0};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(workers[i].failures, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SIM_TEST(the_next_call_fails_as_asked),
        SIM_TEST(fault_points_bear_the_names_of_verbs),
        SIM_TEST_OF_MISUSE(a_poisoned_device_stays_lost),
        SIM_TEST_OF_MISUSE(poison_wakes_those_who_wait),
        SIM_TEST(calls_take_as_long_as_asked),
        SIM_TEST(a_forked_child_is_refused_whoever_holds_the_lock),
        SIM_TEST(an_exported_chunk_crosses_a_fork),
        SIM_TEST(threads_do_not_disturb_each_other),
    };
    return cmocka_run_group_tests_name("sim process", tests, NULL, NULL);
}
