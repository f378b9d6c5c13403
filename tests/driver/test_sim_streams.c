/* The simulated device: order of work, and memory taken away before the work got there. */
#include "driver/sim_test.h"

#include <stdlib.h>
#include <unistd.h>

static const struct driver *const d = &sim_driver;

#define BYTES ((size_t)64 * 1024)

static driver_stream new_stream(void)
{
    driver_stream stream = NULL;
    assert_ok(d->stream_create(0, &stream));
    return stream;
}

static unsigned char *new_block(void)
{
    void *block = NULL;
    assert_ok(d->mem_alloc(0, BYTES, &block));
    return block;
}

static driver_event new_event(void)
{
    driver_event event = NULL;
    assert_ok(d->event_create(0, &event));
    return event;
}

static bool is_done(driver_event event)
{
    bool done = false;
    assert_ok(d->event_done(0, event, &done));
    return done;
}

static size_t pending(driver_stream stream)
{
    size_t count = 4711;
    assert_ok(sim_stream_pending(0, stream, &count));
    return count;
}

static void a_held_stream_waits_for_its_test(void **state)
{
    (void)state;
    driver_stream stream = new_stream();
    driver_event event = new_event();
    unsigned char *a = new_block();
    a[0] = 0;
    assert_ok(sim_stream_hold(0, stream));
    assert_ok(d->fill(0, stream, a, 9, BYTES));
    assert_ok(d->event_record(0, event, stream));
    usleep(2000);
    assert_int_equal(pending(stream), 2);
    assert_false(is_done(event));
    assert_int_equal(a[0], 0);
    assert_ok(sim_stream_resume(0, stream));
    assert_ok(d->event_wait(0, event));
    assert_int_equal(a[BYTES - 1], 9);
    assert_ok(d->stream_wait(0, stream));
    assert_int_equal(pending(stream), 0);
    assert_ok(d->event_destroy(0, event));
    assert_ok(d->stream_destroy(0, stream));
    assert_ok(d->mem_free(0, a, BYTES));
}

static void an_event_stands_for_its_last_recording(void **state)
{
    (void)state;
    driver_stream quick = new_stream(), held = new_stream();
    driver_event event = new_event();
    assert_ok(sim_stream_hold(0, held));
    assert_ok(d->event_record(0, event, held));
    assert_ok(d->stream_wait_event(0, quick, event)); /* for the recording on the held stream */
    assert_ok(d->event_record(0, event, quick));
    usleep(2000);
    assert_false(is_done(event));
    assert_ok(sim_stream_resume(0, held));
    assert_ok(d->event_wait(0, event));
    /* The other way round: done early although an older recording is not. */
    assert_ok(sim_stream_hold(0, held));
    assert_ok(d->event_record(0, event, held));
    assert_ok(d->event_record(0, event, quick));
    assert_ok(d->event_wait(0, event));
    assert_int_equal(pending(held), 1);
    assert_ok(sim_stream_resume(0, held));
    assert_ok(d->stream_destroy(0, quick));
    assert_ok(d->stream_destroy(0, held));
    assert_ok(d->event_destroy(0, event));
}

static void the_default_stream_waits_for_all_and_all_for_it(void **state)
{
    (void)state;
    driver_stream held = new_stream(), other = new_stream();
    unsigned char *a = new_block();
    assert_int_equal(d->default_stream(0), DRIVER_DEFAULT_STREAM_LEGACY);
    assert_ok(sim_stream_hold(0, held));
    assert_ok(d->fill(0, held, a, 1, BYTES));
    assert_ok(d->fill(0, NULL, a, 2, BYTES));
    assert_ok(d->fill(0, other, a, 3, BYTES / 2));
    usleep(2000);
    assert_int_equal(pending(NULL), 1);
    assert_int_equal(pending(other), 1);
    assert_ok(sim_stream_resume(0, held));
    assert_ok(d->stream_wait(0, other));
    assert_int_equal(a[0], 3);
    assert_int_equal(a[BYTES - 1], 2);
    /* Waiting for it is waiting for everything submitted. */
    assert_ok(sim_stream_delay(0, other, 3000));
    assert_ok(d->fill(0, other, a, 4, BYTES));
    assert_ok(d->stream_wait(0, NULL));
    assert_int_equal(a[0], 4);
    assert_ok(d->stream_destroy(0, held));
    assert_ok(d->stream_destroy(0, other));
    assert_ok(d->mem_free(0, a, BYTES));
}

static void a_new_stream_gets_the_handle_of_a_dead_one_but_not_its_id(void **state)
{
    (void)state;
    driver_stream first = new_stream(), second = new_stream();
    uint64_t old_id, new_id;
    assert_ok(d->stream_id(0, first, &old_id));
    assert_ok(d->stream_destroy(0, first));
    driver_stream third = new_stream();
    assert_ptr_equal(third, first);
    assert_ok(d->stream_id(0, third, &new_id));
    assert_true(new_id != old_id);
    assert_ok(d->stream_destroy(0, second));
    assert_ok(d->stream_destroy(0, third));
}

static void work_outlives_the_handle_of_its_stream(void **state)
{
    (void)state;
    driver_stream gate = new_stream(), stream = new_stream();
    driver_event opened = new_event(), event = new_event();
    unsigned char *a = new_block();
    assert_ok(sim_stream_hold(0, gate));
    assert_ok(d->event_record(0, opened, gate));
    assert_ok(d->stream_wait_event(0, stream, opened));
    assert_ok(d->fill(0, stream, a, 6, BYTES));
    assert_ok(d->event_record(0, event, stream));
    assert_ok(d->stream_destroy(0, stream));
    assert_false(is_done(event));
    struct sim_usage usage;
    sim_query(0, &usage);
    assert_int_equal(usage.streams, 1);
    assert_int_equal(usage.queued, 4);
    assert_ok(sim_stream_resume(0, gate));
    assert_ok(d->event_wait(0, event));
    assert_int_equal(a[0], 6);
    assert_ok(d->stream_wait(0, NULL));
    assert_ok(d->stream_destroy(0, gate));
    assert_ok(d->event_destroy(0, opened));
    assert_ok(d->event_destroy(0, event));
    assert_ok(d->mem_free(0, a, BYTES));
    /* The worker of the destroyed stream may be on its way out still. */
    for (int i = 0; i < 1000 && !sim_is_idle(); i++)
        usleep(1000);
}

static void memory_must_not_go_before_the_stream_got_there(void **state)
{
    (void)state;
    static char registered[4096];
    driver_stream stream = new_stream();
    unsigned char *a = new_block(), *b = new_block();
    char *base = sim_test_reserve(0, 4 * MIB);
    struct driver_chunk_spec spec = sim_test_device_spec(2 * MIB);
    driver_chunk chunk = sim_test_create(0, &spec), idle = sim_test_create(0, &spec);
    sim_test_map(0, chunk, base);
    sim_test_map(0, idle, base + 2 * MIB);
    assert_ok(d->host_register(0, registered, sizeof registered));
    assert_ok(sim_stream_hold(0, stream));
    assert_ok(d->copy(0, stream, base + MIB, a, 100));
    assert_ok(d->copy(0, stream, registered, base, 100));
    assert_misuse(d->mem_free(0, a, BYTES), "got there");
    assert_misuse(d->chunk_unmap(0, chunk, base), "got there");
    assert_misuse(d->host_unregister(0, registered, sizeof registered), "got there");
    assert_ok(d->mem_free(0, b, BYTES));
    assert_ok(d->chunk_unmap(0, idle, base + 2 * MIB));
    assert_ok(sim_stream_resume(0, stream));
    assert_ok(d->stream_wait(0, stream));
    assert_ok(d->mem_free(0, a, BYTES));
    assert_ok(d->chunk_unmap(0, chunk, base));
    assert_ok(d->host_unregister(0, registered, sizeof registered));
    struct sim_usage usage;
    sim_query(0, &usage);
    assert_int_equal(usage.misuses, 3);
}

static void a_captured_stream_records_instead_of_running(void **state)
{
    (void)state;
    driver_stream stream = new_stream();
    driver_event event = new_event();
    unsigned char *a = new_block();
    bool capturing = false;
    a[0] = 0;
    assert_ok(sim_stream_capture_begin(0, stream));
    assert_ok(d->stream_is_capturing(0, stream, &capturing));
    assert_true(capturing);
    assert_ok(d->fill(0, stream, a, 7, BYTES));
    assert_int_equal(pending(stream), 0);
    assert_ok(sim_stream_capture_end(0, stream, false));
    assert_ok(d->stream_wait(0, stream));
    assert_int_equal(a[0], 0);

    assert_ok(sim_stream_capture_begin(0, stream));
    assert_ok(d->fill(0, stream, a, 8, BYTES));
    assert_ok(d->event_record(0, event, stream));
    assert_ok(sim_stream_capture_end(0, stream, true));
    assert_ok(d->event_wait(0, event));
    assert_int_equal(a[BYTES - 1], 8);
    assert_ok(d->stream_is_capturing(0, stream, &capturing));
    assert_false(capturing);
    assert_ok(d->stream_destroy(0, stream));
    assert_ok(d->event_destroy(0, event));
    assert_ok(d->mem_free(0, a, BYTES));
}

static void captures_are_watched(void **state)
{
    (void)state;
    driver_stream stream = new_stream();
    driver_event event = new_event();
    unsigned char *a = new_block();
    bool done;
    assert_misuse(sim_stream_capture_end(0, stream, true), "has none");
    assert_ok(sim_stream_capture_begin(0, stream));
    assert_misuse(sim_stream_capture_begin(0, stream), "is capturing");
    assert_misuse(d->stream_wait(0, stream), "capturing");
    assert_ok(d->event_record(0, event, stream));
    assert_misuse(d->event_done(0, event, &done), "captured");
    assert_misuse(d->event_wait(0, event), "captured");
    assert_misuse(d->stream_wait_event(0, NULL, event), "captured");
    assert_ok(d->fill(0, stream, a, 8, BYTES));
    assert_ok(d->mem_free(0, a, BYTES)); /* a record holds nothing */
    assert_misuse(sim_stream_capture_end(0, stream, true), "freed");
}

static void dead_and_retired_streams_are_watched(void **state)
{
    (void)state;
    driver_stream stream = new_stream(), retired = new_stream();
    driver_event event = new_event(), dead = new_event();
    unsigned char *a = new_block();
    uint64_t id;
    bool answer;
    assert_ok(d->stream_destroy(0, stream));
    assert_misuse(d->stream_destroy(0, stream), "destroyed");
    assert_misuse(d->stream_destroy(0, NULL), "default stream");
    assert_misuse(d->stream_wait(0, stream), "destroyed");
    assert_misuse(d->stream_id(0, stream, &id), "destroyed");
    assert_misuse(d->fill(0, stream, a, 0, 1), "destroyed");
    assert_misuse(d->event_record(0, event, stream), "destroyed");
    assert_misuse(d->fill(1, retired, a, 0, 1), "destroyed"); /* another device's */
    assert_ok(d->stream_retire(0, retired));
    assert_ok(d->stream_wait(0, retired));
    assert_misuse(d->fill(0, retired, a, 0, 1), "retired");
    assert_misuse(d->event_record(0, event, retired), "retired");
    assert_misuse(d->stream_wait_event(0, retired, event), "retired");
    assert_ok(d->event_destroy(0, dead));
    assert_misuse(d->event_destroy(0, dead), "destroyed");
    assert_misuse(d->event_record(0, dead, NULL), "destroyed");
    assert_misuse(d->event_done(0, dead, &answer), "destroyed");
    assert_misuse(d->event_wait(0, dead), "destroyed");
    assert_misuse(d->stream_wait_event(0, NULL, dead), "destroyed");
}

/* Adds its second parameter, a number, to an element of its first, an array on the device. */
static void add_kernel(void **arguments, unsigned index)
{
    uint64_t *const *array = arguments[0];
    const uint64_t *addend = arguments[1];
    (*array)[index] += *addend;
}

static const struct sim_kernel kernels[] = {{"add", add_kernel, 2}};

static void kernels_run_in_the_order_of_their_stream(void **state)
{
    enum { THREADS = 2 * 3 * 4 };
    (void)state;
    driver_module module;
    driver_function add, none = NULL;
    driver_stream stream = new_stream();
    assert_ok(d->module_load(0, kernels, sizeof kernels, &module));
    assert_ok(d->module_function(0, module, "add", &add));
    assert_status(RAFFIA_ERROR_NOT_FOUND, d->module_function(0, module, "sub", &none));
    assert_null(none);
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, d->module_load(0, kernels, 3, &module));
    void *block;
    assert_ok(d->mem_alloc(0, THREADS * sizeof(uint64_t), &block));
    uint64_t *array = block;
    assert_ok(sim_stream_hold(0, stream));
    assert_ok(d->fill(0, stream, array, 0, THREADS * sizeof *array));
    for (uint64_t addend = 1; addend <= 3; addend++) {
        /* Both are copied by the launch. */
        uint64_t *pointer = array, number = addend;
        void *arguments[] = {&pointer, &number};
        const struct driver_launch launch = {{2, 1, 1}, {3, 4, 1}, 0, arguments};
        assert_ok(d->launch(0, stream, add, &launch));
        number = 1000;
        pointer = NULL;
    }
    assert_ok(sim_stream_resume(0, stream));
    assert_ok(d->stream_wait(0, stream));
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(array[i], 1 + 2 + 3);
    assert_ok(d->module_unload(0, module));
    assert_ok(d->mem_free(0, block, THREADS * sizeof(uint64_t)));
    assert_ok(d->stream_destroy(0, stream));
}

static void launches_are_watched(void **state)
{
    (void)state;
    driver_module module;
    driver_function add;
    driver_stream stream = new_stream();
    unsigned char *a = new_block();
    uint64_t *pointer = (uint64_t *)(void *)a, number = 1;
    void *arguments[] = {&pointer, &number};
    struct driver_launch launch = {{1, 1, 1}, {1, 1, 1}, 0, arguments};
    assert_ok(d->module_load(0, kernels, sizeof kernels, &module));
    assert_ok(d->module_function(0, module, "add", &add));
    assert_ok(sim_stream_hold(0, stream));
    assert_ok(d->launch(0, stream, add, &launch));
    assert_misuse(d->module_unload(0, module), "still queued");
    assert_misuse(d->mem_free(0, a, BYTES), "got there");
    assert_ok(sim_stream_resume(0, stream));
    assert_ok(d->stream_wait(0, stream));
    assert_ok(d->mem_free(0, a, BYTES));
    assert_misuse(d->launch(0, stream, add, &launch), "freed");
    launch.grid[1] = 0;
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, d->launch(0, stream, add, &launch));
    launch = (struct driver_launch){{1u << 31, 1u << 31, 1u << 31}, {1, 1, 1}, 0, arguments};
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, d->launch(0, stream, add, &launch));
    assert_ok(d->module_unload(0, module));
    assert_misuse(d->launch(0, stream, add, &launch), "not a function");
    assert_misuse(d->module_unload(0, module), "not a module");
}

static void streams_have_a_bound(void **state)
{
    (void)state;
    driver_stream streams[SIM_STREAMS_MAX], more = NULL;
    for (int i = 0; i < SIM_STREAMS_MAX; i++)
        streams[i] = new_stream();
    assert_status(RAFFIA_ERROR_LIMIT, d->stream_create(0, &more));
    assert_null(more);
    for (int i = 0; i < SIM_STREAMS_MAX; i++)
        assert_ok(d->stream_destroy(0, streams[i]));
}

static void a_reset_drops_work_that_would_never_run(void **state)
{
    (void)state;
    driver_stream stream = new_stream();
    driver_event event = new_event();
    unsigned char *a = new_block();
    assert_ok(sim_stream_hold(0, stream));
    assert_ok(d->fill(0, stream, a, 1, BYTES));
    assert_ok(d->event_record(0, event, stream));
    assert_ok(d->fill(0, NULL, a, 1, BYTES));
    assert_ok(sim_stream_capture_begin(0, NULL));
    assert_ok(d->fill(0, NULL, a, 1, BYTES));
    sim_reset();
    assert_true(sim_is_idle());
}

/* No handle names a destroyed stream, and its work goes on. */
static void the_device_is_idle_when_destroyed_streams_are(void **state)
{
    (void)state;
    driver_stream dying = new_stream(), keeper = new_stream();
    driver_event gate = new_event();
    unsigned char *a = new_block();
    assert_ok(sim_stream_delay(0, keeper, 3000));
    assert_ok(d->event_record(0, gate, keeper));
    assert_ok(d->stream_wait_event(0, dying, gate));
    assert_ok(d->fill(0, dying, a, 5, BYTES));
    assert_ok(d->stream_destroy(0, dying));
    assert_ok(d->device_wait(0));
    assert_int_equal(a[BYTES - 1], 5);
    assert_ok(sim_stream_capture_begin(0, keeper));
    assert_status(RAFFIA_ERROR_BUSY, d->device_wait(0));
    assert_ok(sim_stream_capture_end(0, keeper, false));
    assert_ok(d->device_wait(0));
    assert_ok(d->event_destroy(0, gate));
    assert_ok(d->stream_destroy(0, keeper));
    assert_ok(d->mem_free(0, a, BYTES));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SIM_TEST(a_held_stream_waits_for_its_test),
        SIM_TEST(an_event_stands_for_its_last_recording),
        SIM_TEST(the_default_stream_waits_for_all_and_all_for_it),
        SIM_TEST(a_new_stream_gets_the_handle_of_a_dead_one_but_not_its_id),
        SIM_TEST(work_outlives_the_handle_of_its_stream),
        SIM_TEST(the_device_is_idle_when_destroyed_streams_are),
        SIM_TEST_OF_MISUSE(memory_must_not_go_before_the_stream_got_there),
        SIM_TEST(a_captured_stream_records_instead_of_running),
        SIM_TEST_OF_MISUSE(captures_are_watched),
        SIM_TEST_OF_MISUSE(dead_and_retired_streams_are_watched),
        SIM_TEST(kernels_run_in_the_order_of_their_stream),
        SIM_TEST_OF_MISUSE(launches_are_watched),
        SIM_TEST(streams_have_a_bound),
        SIM_TEST(a_reset_drops_work_that_would_never_run),
    };
    return cmocka_run_group_tests_name("sim streams", tests, NULL, NULL);
}
