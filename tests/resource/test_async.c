/*
 * SPEC A10 and A11: the resource over the driver's own pool, on a simulated device, where order is
 * checked, and on the CUDA driver over a fake of NVIDIA's library.
 */
#include "core/fault.h"
#include "driver/cuda_test.h"
#include "driver/sim/sim.h"
#include "life/child.h"
#include "support/fault_loop.h"
#include "support/log_capture.h"
#include "support/random.h"

#include <raffia/current_resource.h>
#include <raffia/resources.h>

#include <pthread.h>

#define GIB ((size_t)1 << 30)

static raffia_resource *make(const char *device, size_t initial, size_t threshold)
{
    raffia_resource *resource = NULL;
    assert_ok(raffia_async_resource_create(
        &(raffia_async_resource_options){.struct_size = sizeof(raffia_async_resource_options),
                                         .device = device,
                                         .initial_bytes = initial,
                                         .release_threshold = threshold},
        &resource));
    return resource;
}

static raffia_status try_make(const char *device, size_t initial, size_t threshold)
{
    raffia_resource *none = NULL;
    raffia_status status = raffia_async_resource_create(
        &(raffia_async_resource_options){.struct_size = sizeof(raffia_async_resource_options),
                                         .device = device,
                                         .initial_bytes = initial,
                                         .release_threshold = threshold},
        &none);
    assert_null(none);
    return status;
}

static void *get(raffia_resource *resource, raffia_stream stream, size_t bytes)
{
    void *block = NULL;
    assert_ok(raffia_allocate(raffia_ref(resource), stream, bytes, 0, &block));
    return block;
}

static void drop(raffia_resource *resource, raffia_stream stream, void *block, size_t bytes)
{
    assert_ok(raffia_deallocate(raffia_ref(resource), stream, block, bytes, 0));
}

static struct sim_usage usage(void)
{
    struct sim_usage found;
    sim_query(0, &found);
    return found;
}

static driver_stream make_stream(void)
{
    driver_stream stream = NULL;
    assert_ok(sim_driver.stream_create(0, &stream));
    return stream;
}

static int fresh(void **state)
{
    const struct fake_cuda_config config = {.devices = 2};
    (void)state;
    sim_reset();
    fake_cuda_reset(&config);
    return 0;
}

static int left_nothing(void **state)
{
    (void)state;
    const bool idle = sim_is_idle() && cuda_test_is_idle();
    if (!idle)
        print_error("left behind or misused: %s%s\n", usage().first_misuse,
                    cuda_test_usage().first_misuse);
    sim_reset();
    return idle ? 0 : -1;
}

/* ---- order ----------------------------------------------------------------------------------- */

static void a11_a_free_waits_for_nothing_and_its_memory_stays_in_order(void **state)
{
    (void)state;
    raffia_resource *resource = make("sim:0", 0, 0);
    driver_stream a = make_stream(), b = make_stream();
    void *block = get(resource, a, 64 * KIB);
    assert_ok(sim_driver.stream_wait(0, a));
    assert_ok(sim_stream_hold(0, a));
    assert_ok(sim_driver.fill(0, a, block, 1, 64 * KIB));
    drop(resource, a, block, 64 * KIB); /* the stream is held: who waited would wait for ever */
    void *others = get(resource, b, 64 * KIB), *again = get(resource, a, 64 * KIB);
    assert_ptr_not_equal(others, block);
    assert_ptr_equal(again, block);
    drop(resource, a, again, 64 * KIB);
    assert_ok(sim_stream_resume(0, a));
    assert_ok(sim_driver.stream_wait(0, a));
    void *third = get(resource, b, 64 * KIB);
    assert_ptr_equal(third, block);
    drop(resource, b, third, 64 * KIB);
    drop(resource, b, others, 64 * KIB);
    assert_ok(sim_driver.stream_destroy(0, a));
    assert_ok(sim_driver.stream_destroy(0, b));
    raffia_resource_release(resource);
}

static void a11_a_stream_may_go_with_frees_under_way(void **state)
{
    (void)state;
    raffia_resource *resource = make("sim:0", 0, 0);
    driver_stream held = make_stream();
    for (int i = 0; i < 4; i++) {
        driver_stream stream = make_stream();
        driver_event event;
        assert_ok(sim_driver.event_create(0, &event));
        void *block = get(resource, stream, MIB);
        assert_ok(sim_stream_hold(0, held));
        assert_ok(sim_driver.event_record(0, event, held));
        assert_ok(sim_driver.stream_wait_event(0, stream, event));
        assert_ok(sim_driver.event_destroy(0, event));
        assert_ok(sim_driver.fill(0, stream, block, 1, MIB));
        drop(resource, stream, block, MIB);
        assert_ok(raffia_stream_retire("sim:0", stream));
        assert_ok(sim_driver.stream_destroy(0, stream));
        void *other = get(resource, held, MIB);
        assert_ptr_not_equal(other, block);
        assert_ok(sim_stream_resume(0, held));
        drop(resource, held, other, MIB);
        assert_ok(sim_driver.device_wait(0));
    }
    /* The resource goes while a free is under way. */
    void *block = get(resource, held, 2 * MIB);
    assert_ok(sim_stream_hold(0, held));
    assert_ok(sim_driver.fill(0, held, block, 1, MIB));
    drop(resource, held, block, 2 * MIB);
    raffia_resource_release(resource);
    assert_int_equal(usage().pools, 0);
    assert_int_equal(usage().pool_bytes, 2 * MIB);
    assert_ok(sim_stream_resume(0, held));
    assert_ok(sim_driver.stream_wait(0, held));
    assert_int_equal(usage().pool_bytes, 0);
    assert_ok(sim_driver.stream_destroy(0, held));
}

static void a11_a_capture_is_refused_and_the_block_stays(void **state)
{
    (void)state;
    raffia_resource *resource = make("sim:0", 0, 0);
    driver_stream stream = make_stream();
    void *none = NULL, *block = get(resource, stream, MIB);
    size_t bytes = 0;
    assert_ok(sim_stream_capture_begin(0, stream));
    assert_status(RAFFIA_ERROR_BUSY, raffia_allocate(raffia_ref(resource), stream, 1, 0, &none));
    assert_error_mentions("captured");
    assert_status(RAFFIA_ERROR_BUSY,
                  raffia_deallocate(raffia_ref(resource), stream, block, MIB, 0));
    assert_null(none);
    assert_ok(raffia_resource_usable_size(raffia_ref(resource), block, &bytes));
    assert_int_equal(bytes, MIB);
    assert_ok(sim_stream_capture_end(0, stream, false));
    drop(resource, stream, block, MIB);
    assert_ok(sim_driver.stream_wait(0, stream));
    assert_ok(sim_driver.stream_destroy(0, stream));
    raffia_resource_release(resource);
}

static void a4_what_the_driver_refuses_to_free_is_live(void **state)
{
    (void)state;
    raffia_resource *resource = make("sim:0", 0, 0);
    const raffia_resource_ref ref = raffia_ref(resource);
    raffia_block found;
    void *block = get(resource, NULL, MIB);
    sim_fail_next("pool_free", RAFFIA_ERROR_DRIVER, RAFFIA_REASON_NONE);
    assert_status(RAFFIA_ERROR_DRIVER, raffia_deallocate(ref, NULL, block, MIB, 0));
    assert_ok(raffia_resource_find(ref, (char *)block + 5, &found));
    raffia_resource_release(resource);
    assert_int_equal(usage().pools, 1); /* for its block */
    assert_ok(raffia_deallocate(ref, NULL, block, MIB, 0));
    assert_int_equal(usage().pools, 0);
}

/* A driver's pool with a live block in it cannot be destroyed. */
static void a4_first_bytes_that_are_not_freed_at_once_leave_nothing(void **state)
{
    (void)state;
    log_capture_start();
    sim_fail_next("pool_free", RAFFIA_ERROR_DRIVER, RAFFIA_REASON_NONE);
    assert_status(RAFFIA_ERROR_DRIVER, try_make("sim:0", MIB, 0));
    assert_error_mentions("the first 1048576 bytes of a driver's pool");
    assert_error_mentions("pool_free");
    assert_int_equal(usage().pools, 0);
    assert_int_equal(usage().pool_bytes, 0);
    fake_cuda_fail("cuMemFreeAsync", 1, CUDA_ERROR_NOT_PERMITTED);
    assert_status(RAFFIA_ERROR_PERMISSION, try_make("cuda:0", MIB, 0));
    assert_int_equal(cuda_test_usage().pools, 0);
    assert_int_equal(log_capture_count(), 0);
    log_capture_stop();
}

static void a4_first_bytes_that_are_never_freed_are_told(void **state)
{
    (void)state;
    log_capture_start();
    fake_cuda_fail("cuMemFreeAsync", 1, CUDA_ERROR_NOT_PERMITTED);
    fake_cuda_fail("cuStreamIsCapturing", 3, CUDA_ERROR_UNKNOWN); /* of the second try to free */
    assert_status(RAFFIA_ERROR_PERMISSION, try_make("cuda:0", MIB, 0));
    assert_error_mentions("NOT_PERMITTED"); /* what was refused first */
    assert_int_equal(log_capture_count(), 1);
    assert_non_null(strstr(log_capture_line(0), "1048576 bytes at "));
    assert_non_null(strstr(log_capture_line(0), "a pool of the driver of cuda:0: "));
    log_capture_stop();
    assert_int_equal(cuda_test_usage().misuses, 0);
    assert_int_equal(cuda_test_usage().streams, 0);
    assert_int_equal(fake_cuda_calls("cuMemPoolDestroy"), 0); /* a block is in it */
    fake_cuda_reset(NULL);
}

static void a4_a_block_that_cannot_be_recorded_and_not_freed_is_told(void **state)
{
    (void)state;
    raffia_resource *resource = make("sim:0", 0, 0);
    log_capture_start();
    for (long n = 1; sim_calls("pool_free") == 0; n++) {
        void *none = NULL;
        sim_fail_next("pool_free", RAFFIA_ERROR_DRIVER, RAFFIA_REASON_NONE);
        core_fault_arm(n);
        const raffia_status status = raffia_allocate(raffia_ref(resource), NULL, MIB, 0, &none);
        core_fault_disarm();
        assert_true(status != RAFFIA_OK && !none);
    }
    assert_non_null(strstr(log_capture_line(0), "1048576 bytes at "));
    raffia_resource_release(resource);
    assert_int_equal(log_capture_count(), 1);
    log_capture_stop();
    assert_int_equal(sim_calls("pool_destroy"), 0); /* a block is in it */
    assert_int_equal(usage().misuses, 0);
    sim_reset();
}

static void a4_wrong_frees_never_reach_the_driver(void **state)
{
    (void)state;
    raffia_resource *resource = make("sim:0", 0, 0), *twin = make("sim:0", 0, 0);
    const raffia_resource_ref ref = raffia_ref(resource);
    char *block = get(resource, NULL, 4 * KIB);
    static char foreign[KIB];
    assert_false(raffia_resource_is_equal(ref, raffia_ref(twin))); /* each has its own pool */
    assert_status(RAFFIA_ERROR_BAD_ADDRESS,
                  raffia_deallocate(raffia_ref(twin), NULL, block, 4 * KIB, 0));
    assert_status(RAFFIA_ERROR_BAD_ADDRESS, raffia_deallocate(ref, NULL, block + 256, KIB, 0));
    assert_status(RAFFIA_ERROR_BAD_ADDRESS, raffia_deallocate(ref, NULL, foreign, KIB, 0));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, raffia_deallocate(ref, NULL, block, KIB, 0));
    assert_error_mentions("stays as it is");
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT,
                  raffia_deallocate(ref, NULL, block, 4 * KIB, 4096));
    drop(resource, NULL, block, 4 * KIB);
    assert_status(RAFFIA_ERROR_BAD_ADDRESS, raffia_deallocate(ref, NULL, block, 4 * KIB, 0));
    assert_int_equal(sim_calls("pool_free"), 1);
    raffia_resource_release(resource);
    raffia_resource_release(twin);
}

/* ---- options --------------------------------------------------------------------------------- */

static void a10_the_first_bytes_are_there_and_the_threshold_holds(void **state)
{
    (void)state;
    char text[RAFFIA_RESOURCE_TEXT_MAX];
    raffia_resource *all = make("sim:0", 0, 0);
    assert_int_equal(usage().pool_bytes, 0);
    drop(all, NULL, get(all, NULL, 3 * MIB), 3 * MIB);
    assert_ok(sim_driver.stream_wait(0, NULL));
    assert_int_equal(usage().pool_bytes, 3 * MIB);
    raffia_resource_describe(raffia_ref(all), text, sizeof text);
    assert_non_null(strstr(text, "sim:0"));
    raffia_resource_release(all);
    assert_int_equal(usage().pool_bytes, 0);

    raffia_resource *some = make("sim:0", 2 * MIB, 2 * MIB);
    assert_int_equal(usage().pool_bytes, 2 * MIB);
    assert_int_equal(usage().streams, 0);
    raffia_resource_describe(raffia_ref(some), text, sizeof text);
    assert_non_null(strstr(text, "2 MiB"));
    void *blocks[] = {get(some, NULL, MIB), get(some, NULL, MIB), get(some, NULL, 4 * MIB)};
    assert_int_equal(usage().pool_bytes, 6 * MIB);
    for (int i = 0; i < 3; i++)
        drop(some, NULL, blocks[i], i < 2 ? MIB : 4 * MIB);
    assert_ok(sim_driver.stream_wait(0, NULL));
    assert_true(usage().pool_bytes <= 2 * MIB);
    raffia_resource_release(some);

    raffia_resource *none = make("sim:0", RAFFIA_NONE, RAFFIA_NONE);
    assert_int_equal(usage().pool_bytes, 0);
    drop(none, NULL, get(none, NULL, MIB), MIB);
    assert_ok(sim_driver.stream_wait(0, NULL));
    assert_int_equal(usage().pool_bytes, 0);
    raffia_resource_release(none);
}

static void a10_sizes_that_cannot_be_are_refused(void **state)
{
    (void)state;
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, try_make("sim:0", 2 * MIB, MIB));
    assert_error_mentions("initial_bytes is 2 MiB and release_threshold 1 MiB");
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, try_make("sim:0", 1, RAFFIA_NONE));
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, try_make("sim:0", 2 * GIB, 0));
    assert_error_mentions("the first");
    assert_status(RAFFIA_ERROR_NOT_FOUND, try_make("sim:7", 0, 0));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, raffia_async_resource_create(NULL, NULL));
    raffia_resource *none = NULL;
    assert_status(
        RAFFIA_ERROR_INVALID_ARGUMENT,
        raffia_async_resource_create(&(raffia_async_resource_options){.device = "sim:0"}, &none));
    assert_error_mentions("raffia_async_resource_options");
    assert_null(none);
}

static void a10_a_device_without_pools_says_what_to_use(void **state)
{
    (void)state;
    assert_ok(sim_configure(1, &(struct sim_config){.synchronous = true}));
    const char *const devices[] = {"host", "sim:1", "pinned:sim:0"};
    for (size_t i = 0; i < 3; i++) {
        assert_status(RAFFIA_ERROR_UNSUPPORTED, try_make(devices[i], 0, 0));
        assert_error_mentions(devices[i]);
        assert_error_mentions("raffia_pool_resource_create");
    }
}

static void a10_what_is_kept_can_be_given_back(void **state)
{
    (void)state;
    raffia_resource *resource = make("sim:0", 0, 0), *other;
    void *block = get(resource, NULL, MIB);
    drop(resource, NULL, get(resource, NULL, 4 * MIB), 4 * MIB);
    assert_ok(sim_driver.stream_wait(0, NULL));
    assert_ok(raffia_async_resource_trim(raffia_ref(resource), 8 * MIB));
    assert_int_equal(usage().pool_bytes, 5 * MIB);
    assert_ok(raffia_async_resource_trim(raffia_ref(resource), 0));
    assert_int_equal(usage().pool_bytes, MIB);
    drop(resource, NULL, block, MIB);
    raffia_resource_release(resource);
    assert_ok(raffia_device_resource_create(NULL, &other));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, raffia_async_resource_trim(raffia_ref(other), 0));
    raffia_resource_release(other);
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT,
                  raffia_async_resource_trim((raffia_resource_ref){NULL, NULL}, 0));
}

static void idle_huge_pages_are_given_up_before_a_request_is_refused(void **state)
{
    (void)state;
    assert_ok(sim_configure(0, &(struct sim_config){.capacity_bytes = 16 * MIB}));
    raffia_pool *pool;
    assert_ok(raffia_pool_create(&(raffia_pool_options){.struct_size = sizeof(raffia_pool_options),
                                                        .device = "sim:0",
                                                        .initial_bytes = 12 * MIB,
                                                        .maximum_bytes = 12 * MIB,
                                                        .chunk_bytes = 2 * MIB},
                                 &pool));
    raffia_resource *resource = make("sim:0", 6 * MIB, 0); /* for the first bytes, too */
    void *block = get(resource, NULL, 10 * MIB), *none = NULL;
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY,
                  raffia_allocate(raffia_ref(resource), NULL, 10 * MIB, 0, &none));
    assert_error_mentions("no 10 MiB of stream-ordered memory");
    drop(resource, NULL, block, 10 * MIB);
    raffia_resource_release(resource);
    raffia_pool_release(pool);
}

/* ---- failures, forks, threads ---------------------------------------------------------------- */

static raffia_status live(void *context)
{
    const char *device = context;
    raffia_resource *resource;
    raffia_status status = raffia_async_resource_create(
        &(raffia_async_resource_options){.struct_size = sizeof(raffia_async_resource_options),
                                         .device = device,
                                         .initial_bytes = MIB,
                                         .release_threshold = 2 * MIB},
        &resource);
    if (status)
        return status;
    const raffia_resource_ref ref = raffia_ref(resource);
    void *blocks[20] = {NULL};
    for (size_t i = 0; i < 20 && !status; i++)
        status = raffia_allocate(ref, NULL, (i + 1) * 5000, i % 2 ? 4096 : 0, &blocks[i]);
    raffia_resource_release(resource);
    for (size_t i = 0; i < 20 && blocks[i]; i++)
        assert_ok(raffia_deallocate(ref, NULL, blocks[i], (i + 1) * 5000, i % 2 ? 4096 : 0));
    return status;
}

static void a4_any_call_may_fail_and_nothing_is_lost(void **state)
{
    static char sim[] = "sim:0", cuda[] = "cuda:0";
    (void)state;
    log_capture_start();
    assert_true(fault_loop(live, sim, 3000) > 20);
    assert_true(fault_loop(live, cuda, 3000) > 20);
    log_capture_stop();
}

struct inherited {
    raffia_resource *resource;
    void *block;
};

static int be_a_child(void *context)
{
    const struct inherited *inherited = context;
    const raffia_resource_ref ref = raffia_ref(inherited->resource);
    char text[RAFFIA_RESOURCE_TEXT_MAX];
    void *none = NULL;
    raffia_block found;
    size_t bytes;
    EXPECT(raffia_allocate(ref, NULL, KIB, 0, &none) == RAFFIA_ERROR_FORKED && !none);
    EXPECT(raffia_deallocate(ref, NULL, inherited->block, MIB, 0) == RAFFIA_OK);
    EXPECT(raffia_resource_find(ref, inherited->block, &found) == RAFFIA_ERROR_FORKED);
    EXPECT(raffia_resource_usable_size(ref, inherited->block, &bytes) == RAFFIA_ERROR_FORKED);
    EXPECT(raffia_async_resource_trim(ref, 0) == RAFFIA_ERROR_FORKED);
    raffia_resource_describe(ref, text, sizeof text);
    raffia_resource_release(inherited->resource);
    EXPECT(raffia_async_resource_create(
               &(raffia_async_resource_options){
                   .struct_size = sizeof(raffia_async_resource_options), .device = "cuda:0"},
               &(raffia_resource *){NULL}) == RAFFIA_ERROR_FORKED);
    return 0;
}

static void a_child_neither_uses_nor_ends_its_parents(void **state)
{
    const char *const devices[] = {"sim:0", "cuda:0"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct inherited inherited = {.resource = make(devices[i], 0, 0)};
        inherited.block = get(inherited.resource, NULL, MIB);
        assert_int_equal(child_run(be_a_child, &inherited), 0);
        drop(inherited.resource, NULL, inherited.block, MIB);
        raffia_resource_release(inherited.resource);
    }
}

static void a_lost_context_is_told(void **state)
{
    (void)state;
    raffia_resource *resource = make("cuda:0", 0, 0);
    const raffia_resource_ref ref = raffia_ref(resource);
    void *none = NULL, *block = get(resource, NULL, MIB);
    fake_cuda_poison(0, CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_status(RAFFIA_ERROR_DRIVER, raffia_allocate(ref, NULL, 1, 0, &none));
    assert_error_mentions("is lost to this process");
    assert_status(RAFFIA_ERROR_DRIVER, raffia_deallocate(ref, NULL, block, MIB, 0));
    raffia_resource_release(resource);
    fake_cuda_poison(0, CUDA_SUCCESS); /* as no real one heals: the block was live all the time */
    assert_ok(raffia_deallocate(ref, NULL, block, MIB, 0));
    assert_int_equal(cuda_test_usage().pools, 0);

    log_capture_start();
    resource = make("sim:1", 0, 0);
    sim_poison(1);
    raffia_resource_release(resource);
    assert_int_equal(log_capture_count(), 1);
    assert_non_null(strstr(log_capture_line(0), "a pool of the driver of sim:1 is lost"));
    log_capture_stop();
    sim_reset();
}

struct worker {
    raffia_resource *resource;
    driver_stream stream;
    struct test_random random;
};

static void *work(void *argument)
{
    enum { HELD = 8, STEPS = 400 };
    struct worker *worker = argument;
    void *held[HELD] = {NULL};
    size_t bytes[HELD] = {0};
    for (int i = 0; i < STEPS; i++) {
        const size_t k = test_random_below(&worker->random, HELD);
        const raffia_resource_ref ref = raffia_ref(worker->resource);
        if (held[k]) {
            if (raffia_deallocate(ref, worker->stream, held[k], bytes[k], 0))
                return "a free failed";
            held[k] = NULL;
        } else {
            bytes[k] = test_random_size(&worker->random, 256 * KIB);
            if (raffia_allocate(ref, worker->stream, bytes[k], 0, &held[k]) ||
                sim_driver.fill(0, worker->stream, held[k], (unsigned char)i, bytes[k]))
                return "an allocation failed";
        }
    }
    for (size_t k = 0; k < HELD; k++)
        if (raffia_deallocate(raffia_ref(worker->resource), worker->stream, held[k], bytes[k], 0))
            return "a free at the end failed";
    return NULL;
}

static void a11_threads_use_it_on_streams_of_their_own(void **state)
{
    enum { THREADS = 4 };
    (void)state;
    struct test_random random = test_random_seeded("a11_threads_use_it");
    raffia_resource *resource = make("sim:0", 8 * MIB, 0);
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){resource, make_stream(), {test_random_next(&random)}};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        if (wrong)
            fail_msg("%s: %s", (char *)wrong, usage().first_misuse);
        assert_ok(sim_driver.stream_wait(0, workers[i].stream));
        assert_ok(sim_driver.stream_destroy(0, workers[i].stream));
    }
    raffia_resource_release(resource);
}

/* ---- over CUDA ------------------------------------------------------------------------------- */

static void a10_on_cuda_it_is_a_pool_of_cudas(void **state)
{
    (void)state;
    raffia_resource *resource = make("cuda:1", 4 * MIB, 8 * MIB);
    assert_int_equal(fake_cuda_calls("cuMemAlloc_v2"), 0);
    assert_int_equal(cuda_test_usage().bytes, 4 * MIB);
    assert_int_equal(raffia_resource_properties_of(raffia_ref(resource)), RAFFIA_DEVICE_ACCESSIBLE);
    driver_stream stream;
    assert_ok(cuda_driver.stream_create(1, &stream));
    void *block = NULL;
    assert_ok(raffia_allocate(raffia_ref(resource), stream, 3 * MIB, 64 * KIB, &block));
    assert_int_equal((uintptr_t)block % (64 * KIB), 0);
    assert_ok(cuda_driver.fill(1, stream, block, 1, 3 * MIB));
    assert_ok(raffia_deallocate(raffia_ref(resource), stream, block, 3 * MIB, 64 * KIB));
    assert_int_equal(fake_cuda_calls("cuStreamSynchronize"), 1); /* of the first bytes */
    fake_cuda_capture(stream, true);
    assert_status(RAFFIA_ERROR_BUSY,
                  raffia_allocate(raffia_ref(resource), stream, 1, 0, &(void *){NULL}));
    fake_cuda_capture(stream, false);
    assert_ok(cuda_driver.stream_destroy(1, stream));
    raffia_resource_release(resource);
    assert_int_equal(cuda_test_usage().pools, 0);

    fake_cuda_reset(&(struct fake_cuda_config){.no_pools = true});
    assert_status(RAFFIA_ERROR_UNSUPPORTED, try_make("cuda:0", 0, 0));
    assert_error_mentions("cuda:0");
    assert_error_mentions("raffia_pool_resource_create");
}

int main(void)
{
    const struct fake_cuda_config config = {.devices = 2};
    cuda_test_use_fake(&config);
#define TEST(function) cmocka_unit_test_setup_teardown(function, fresh, left_nothing)
    const struct CMUnitTest tests[] = {
        TEST(a11_a_free_waits_for_nothing_and_its_memory_stays_in_order),
        TEST(a11_a_stream_may_go_with_frees_under_way),
        TEST(a11_a_capture_is_refused_and_the_block_stays),
        TEST(a4_what_the_driver_refuses_to_free_is_live),
        TEST(a4_first_bytes_that_are_not_freed_at_once_leave_nothing),
        TEST(a4_first_bytes_that_are_never_freed_are_told),
        TEST(a4_a_block_that_cannot_be_recorded_and_not_freed_is_told),
        TEST(a4_wrong_frees_never_reach_the_driver),
        TEST(a10_the_first_bytes_are_there_and_the_threshold_holds),
        TEST(a10_sizes_that_cannot_be_are_refused),
        TEST(a10_a_device_without_pools_says_what_to_use),
        TEST(a10_what_is_kept_can_be_given_back),
        TEST(idle_huge_pages_are_given_up_before_a_request_is_refused),
        TEST(a4_any_call_may_fail_and_nothing_is_lost),
        TEST(a_child_neither_uses_nor_ends_its_parents),
        TEST(a_lost_context_is_told),
        TEST(a11_threads_use_it_on_streams_of_their_own),
        TEST(a10_on_cuda_it_is_a_pool_of_cudas),
    };
    return cmocka_run_group_tests_name("the driver's own pool", tests, NULL, NULL);
}
