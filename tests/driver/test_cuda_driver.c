/* What the CUDA driver does beside passing calls on, over a fake of NVIDIA's library. */
#include "core/fault.h"
#include "driver/cuda_test.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define D cuda_driver

static CUcontext current(void)
{
    CUcontext context;
    assert_int_equal(cuCtxGetCurrent(&context), CUDA_SUCCESS);
    return context;
}

static void *allocate(int device, size_t bytes)
{
    void *block = NULL;
    assert_ok(D.mem_alloc(device, bytes, &block));
    return block;
}

/* ---- failures ---------------------------------------------------------------------------------*/

static void each_error_has_its_status_and_its_native_name(void **state)
{
    (void)state;
    static const struct {
        CUresult result;
        raffia_status status;
        const char *name;
    } rows[] = {
        {CUDA_ERROR_INVALID_VALUE, RAFFIA_ERROR_INVALID_ARGUMENT, "CUDA_ERROR_INVALID_VALUE"},
        {CUDA_ERROR_OUT_OF_MEMORY, RAFFIA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
        {CUDA_ERROR_DEINITIALIZED, RAFFIA_ERROR_DRIVER, "CUDA_ERROR_DEINITIALIZED"},
        {CUDA_ERROR_DEVICE_UNAVAILABLE, RAFFIA_ERROR_BUSY, "CUDA_ERROR_DEVICE_UNAVAILABLE"},
        {CUDA_ERROR_NO_BINARY_FOR_GPU, RAFFIA_ERROR_UNSUPPORTED, "CUDA_ERROR_NO_BINARY_FOR_GPU"},
        {CUDA_ERROR_NOT_FOUND, RAFFIA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND"},
        {CUDA_ERROR_NOT_PERMITTED, RAFFIA_ERROR_PERMISSION, "CUDA_ERROR_NOT_PERMITTED"},
        {CUDA_ERROR_NOT_SUPPORTED, RAFFIA_ERROR_UNSUPPORTED, "CUDA_ERROR_NOT_SUPPORTED"},
        {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, RAFFIA_ERROR_BUSY,
         "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
        {CUDA_ERROR_ILLEGAL_ADDRESS, RAFFIA_ERROR_DRIVER, "CUDA_ERROR_ILLEGAL_ADDRESS"},
        {CUDA_ERROR_UNKNOWN, RAFFIA_ERROR_DRIVER, "CUDA_ERROR_UNKNOWN"},
        {12345, RAFFIA_ERROR_DRIVER, "CUDA_ERROR"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        void *block = NULL;
        fake_cuda_fail("cuMemAlloc_v2", 1, rows[i].result);
        assert_status(rows[i].status, D.mem_alloc(0, 4096, &block));
        assert_string_equal(raffia_last_native_error(), rows[i].name);
        assert_error_mentions("cuda:0: cannot allocate 4096 bytes");
        assert_null(block);
    }
    assert_ok(D.mem_free(0, allocate(0, 1), 1)); /* nothing sticks */
}

static void a_lost_context_is_told_apart(void **state)
{
    (void)state;
    assert_ok(D.context_state(0));
    fake_cuda_poison(0, CUDA_ERROR_ILLEGAL_ADDRESS);
    void *block;
    assert_status(RAFFIA_ERROR_DRIVER, D.mem_alloc(0, 4096, &block));
    assert_error_mentions("context is lost");
    assert_status(RAFFIA_ERROR_DRIVER, D.context_state(0));
    assert_error_mentions("only a new process");
    assert_string_equal(raffia_last_native_error(), "CUDA_ERROR_ILLEGAL_ADDRESS");
    assert_null(current());
    assert_ok(D.context_state(1)); /* the other device lives */
    fake_cuda_fail("cuMemAlloc_v2", 1, CUDA_ERROR_UNKNOWN);
    assert_status(RAFFIA_ERROR_DRIVER, D.mem_alloc(1, 4096, &block));
    assert_null(strstr(raffia_last_error(), "lost"));
}

static void a_refused_registration_leaves_nothing_behind(void **state)
{
    (void)state;
    static char memory[8192];
    fake_cuda_fail("cuMemHostRegister_v2", 1, CUDA_ERROR_OUT_OF_MEMORY);
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, D.host_register(0, memory, sizeof memory));
    assert_error_mentions("ulimit -l");
    assert_ok(D.host_register(0, memory, sizeof memory));
    assert_status(RAFFIA_ERROR_BUSY, D.host_register(0, memory + 4096, 4096));
    assert_ok(D.host_unregister(0, memory, sizeof memory));
    assert_status(RAFFIA_ERROR_BAD_ADDRESS, D.host_unregister(0, memory, sizeof memory));
}

/* ---- contexts ---------------------------------------------------------------------------------*/

/* Every verb once, whatever it answers. */
static void call_everything(int device)
{
    static char memory[4096];
    const struct driver_chunk_spec spec = cuda_test_spec(2 * MIB);
    raffia_fallback_reason reason;
    raffia_device_info info;
    struct driver_page_evidence evidence;
    uint64_t handle[DRIVER_HANDLE_WORDS], id;
    driver_chunk chunk, imported;
    driver_stream stream;
    driver_event event;
    driver_module module;
    driver_function function;
    void *base, *block;
    bool answer;
    const struct driver_launch launch = {{1, 1, 1}, {1, 1, 1}, 0, NULL};
    (void)D.device_info(device, &info);
    (void)D.context_state(device);
    if (!D.range_reserve(device, 4 * MIB, 2 * MIB, &base)) {
        if (!D.chunk_create(device, &spec, &chunk, &reason)) {
            if (!D.chunk_map(device, chunk, base, &reason)) {
                (void)D.set_access(device, base, 2 * MIB, 1 - device, true);
                (void)D.page_size_of(device, base, 2 * MIB, RAFFIA_PAGE_DEVICE, 2 * MIB, &evidence);
                (void)D.fill(device, NULL, base, 1, 4096);
                (void)D.chunk_unmap(device, chunk, base);
            }
            (void)D.chunk_export(device, chunk, DRIVER_HANDLE_FD, handle);
            (void)D.chunk_destroy(device, chunk);
        }
        (void)D.range_release(device, base, 4 * MIB);
    }
    handle[0] = 1u << 20;
    (void)D.chunk_import(device, DRIVER_HANDLE_FD, handle, &spec, &imported);
    if (!D.host_register(device, memory, sizeof memory))
        (void)D.host_unregister(device, memory, sizeof memory);
    if (!D.mem_alloc(device, 4096, &block)) {
        const struct driver_copy copies[] = {{block, memory, 10}, {memory + 20, block, 10}};
        (void)D.copy(device, NULL, block, memory, 100);
        (void)D.copy_batch(device, NULL, copies, 2);
        (void)D.mem_free(device, block, 4096);
    }
    if (!D.stream_create(device, &stream)) {
        (void)D.stream_id(device, stream, &id);
        (void)D.stream_is_capturing(device, stream, &answer);
        if (!D.event_create(device, &event)) {
            (void)D.event_record(device, event, stream);
            (void)D.event_done(device, event, &answer);
            (void)D.event_wait(device, event);
            (void)D.stream_wait_event(device, stream, event);
            (void)D.event_destroy(device, event);
        }
        (void)D.stream_wait(device, stream);
        (void)D.stream_retire(device, stream);
        (void)D.stream_destroy(device, stream);
    }
    if (!D.module_load(device, "kernels", 7, &module)) {
        if (!D.module_function(device, module, "nothing", &function))
            (void)D.launch(device, NULL, function, &launch);
        (void)D.module_unload(device, module);
    }
}

static void the_callers_context_is_put_back(void **state)
{
    (void)state;
    CUcontext foreign = fake_cuda_foreign_context(0), popped;
    call_everything(0);
    assert_null(current());
    assert_int_equal(cuCtxPushCurrent_v2(foreign), CUDA_SUCCESS);
    call_everything(0);
    call_everything(1);
    assert_ptr_equal(current(), foreign);
    assert_int_equal(cuCtxPopCurrent_v2(&popped), CUDA_SUCCESS);
    assert_null(current()); /* and nothing else on the stack */
}

static void it_is_put_back_whatever_failed(void **state)
{
    (void)state;
    CUcontext foreign = fake_cuda_foreign_context(1), popped;
    CUstreamCaptureMode mode = 0;
    assert_int_equal(cuCtxPushCurrent_v2(foreign), CUDA_SUCCESS);
    long n = 1;
    for (bool failed = true; failed; n++) {
        assert_true(n < 1000);
        core_fault_arm(n);
        call_everything(0);
        failed = core_fault_disarm() != NULL;
        assert_ptr_equal(current(), foreign);
        assert_int_equal(cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
        assert_int_equal(mode, 0);
        if (!cuda_test_is_idle())
            fail_msg("left behind or misused at call %ld: %s", n, cuda_test_usage().first_misuse);
    }
    assert_true(n > 50);
    assert_int_equal(cuCtxPopCurrent_v2(&popped), CUDA_SUCCESS);
}

static void a_context_that_is_current_costs_no_switch(void **state)
{
    (void)state;
    CUcontext primary, popped;
    assert_ok(D.context_state(0));
    assert_int_equal(cuDevicePrimaryCtxRetain(&primary, 0), CUDA_SUCCESS);
    assert_int_equal(cuCtxPushCurrent_v2(primary), CUDA_SUCCESS);
    const long before = fake_cuda_calls("cuCtxPushCurrent_v2");
    assert_ok(D.mem_free(0, allocate(0, 100), 100));
    assert_int_equal(fake_cuda_calls("cuCtxPushCurrent_v2"), before);
    assert_ptr_equal(current(), primary);
    assert_int_equal(cuCtxPopCurrent_v2(&popped), CUDA_SUCCESS);
}

static void devices_that_do_not_exist_are_refused(void **state)
{
    (void)state;
    raffia_device_info info;
    void *block;
    int count = 0;
    assert_ok(D.devices(&count));
    assert_int_equal(count, 2);
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, D.device_info(2, &info));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, D.mem_alloc(-1, 1, &block));
    assert_error_mentions("only 2");
    assert_int_equal(D.default_stream(2), DRIVER_DEFAULT_STREAM_NONE);
    assert_int_equal(D.default_stream(1), DRIVER_DEFAULT_STREAM_LEGACY);
}

/* ---- chunks -----------------------------------------------------------------------------------*/

static void what_failed_to_map_is_not_mapped(void **state)
{
    (void)state;
    const struct driver_chunk_spec spec = cuda_test_spec(4 * MIB);
    driver_chunk chunk;
    raffia_fallback_reason reason;
    void *base;
    assert_ok(D.range_reserve(0, 4 * MIB, 2 * MIB, &base));
    assert_ok(D.chunk_create(0, &spec, &chunk, &reason));
    fake_cuda_fail("cuMemSetAccess", 1, CUDA_ERROR_OUT_OF_MEMORY);
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, D.chunk_map(0, chunk, base, &reason));
    assert_int_equal(reason, RAFFIA_REASON_MEMORY);
    assert_int_equal(cuda_test_usage().mappings, 0);
    fake_cuda_fail("cuMemMap", 1, CUDA_ERROR_INVALID_VALUE);
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, D.chunk_map(0, chunk, base, &reason));
    assert_int_equal(reason, RAFFIA_REASON_NONE);
    assert_ok(D.chunk_map(0, chunk, base, &reason));
    assert_status(RAFFIA_ERROR_BUSY, D.chunk_destroy(0, chunk));
    assert_error_mentions("still mapped at 1 place");
    fake_cuda_fail("cuMemUnmap", 1, CUDA_ERROR_UNKNOWN);
    assert_status(RAFFIA_ERROR_DRIVER, D.chunk_unmap(0, chunk, base));
    assert_ok(D.chunk_unmap(0, chunk, base));
    fake_cuda_fail("cuMemRelease", 1, CUDA_ERROR_UNKNOWN);
    assert_status(RAFFIA_ERROR_DRIVER, D.chunk_destroy(0, chunk));
    assert_ok(D.chunk_destroy(0, chunk));
    assert_ok(D.range_release(0, base, 4 * MIB));
}

static void memory_that_is_not_there_is_refused_with_the_reason(void **state)
{
    (void)state;
    struct driver_chunk_spec spec = cuda_test_spec((size_t)2 << 30);
    driver_chunk chunk = NULL;
    raffia_fallback_reason reason;
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, D.chunk_create(0, &spec, &chunk, &reason));
    assert_int_equal(reason, RAFFIA_REASON_MEMORY);
    spec = cuda_test_spec(2 * MIB);
    spec.kind = RAFFIA_PAGE_HUGETLB;
    assert_status(RAFFIA_ERROR_UNSUPPORTED, D.chunk_create(0, &spec, &chunk, &reason));
    assert_int_equal(reason, RAFFIA_REASON_UNSUPPORTED);
    spec = cuda_test_spec(2 * MIB);
    fake_cuda_fail("cuMemCreate", 1, CUDA_ERROR_NOT_PERMITTED);
    assert_status(RAFFIA_ERROR_PERMISSION, D.chunk_create(0, &spec, &chunk, &reason));
    assert_int_equal(reason, RAFFIA_REASON_PERMISSION);
    assert_null(chunk);
}

static void only_what_was_made_for_it_is_exported(void **state)
{
    (void)state;
    struct driver_chunk_spec spec = cuda_test_spec(2 * MIB), larger = cuda_test_spec(4 * MIB);
    uint64_t handle[DRIVER_HANDLE_WORDS] = {0};
    driver_chunk chunk, imported = NULL;
    raffia_fallback_reason reason;
    void *base;
    assert_ok(D.chunk_create(0, &spec, &chunk, &reason));
    assert_status(RAFFIA_ERROR_UNSUPPORTED, D.chunk_export(0, chunk, DRIVER_HANDLE_FD, handle));
    assert_ok(D.chunk_destroy(0, chunk));
    spec.handle = DRIVER_HANDLE_FABRIC;
    assert_status(RAFFIA_ERROR_UNSUPPORTED, D.chunk_create(0, &spec, &chunk, &reason));
    assert_error_mentions("IMEX");

    spec.handle = DRIVER_HANDLE_FD;
    assert_ok(D.chunk_create(0, &spec, &chunk, &reason));
    assert_status(RAFFIA_ERROR_UNSUPPORTED, D.chunk_export(0, chunk, DRIVER_HANDLE_FABRIC, handle));
    assert_ok(D.chunk_export(0, chunk, DRIVER_HANDLE_FD, handle));
    /* A wrong size is found out when it would be mapped. */
    assert_ok(D.chunk_import(0, DRIVER_HANDLE_FD, handle, &larger, &imported));
    assert_ok(D.range_reserve(0, 4 * MIB, 2 * MIB, &base));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, D.chunk_map(0, imported, base, &reason));
    assert_ok(D.range_release(0, base, 4 * MIB));
    assert_ok(D.chunk_destroy(0, imported));
    close((int)handle[0]);
    assert_ok(D.chunk_destroy(0, chunk));

    int other = open("/dev/null", O_RDONLY | O_CLOEXEC);
    handle[0] = (uint64_t)other;
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT,
                  D.chunk_import(0, DRIVER_HANDLE_FD, handle, &spec, &imported));
    close(other);
    handle[0] = UINT64_MAX;
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT,
                  D.chunk_import(0, DRIVER_HANDLE_FD, handle, &spec, &imported));
    assert_status(RAFFIA_ERROR_UNSUPPORTED,
                  D.chunk_import(0, DRIVER_HANDLE_FABRIC, handle, &spec, &imported));
}

static void a_peer_may_use_what_it_was_given(void **state)
{
    (void)state;
    const struct driver_chunk_spec spec = cuda_test_spec(2 * MIB);
    driver_chunk chunks[2];
    raffia_fallback_reason reason;
    void *reserved;
    assert_ok(D.range_reserve(0, 4 * MIB, 2 * MIB, &reserved));
    char *base = reserved;
    for (size_t i = 0; i < 2; i++) {
        assert_ok(D.chunk_create(0, &spec, &chunks[i], &reason));
        assert_ok(D.chunk_map(0, chunks[i], base + i * 2 * MIB, &reason));
    }
    assert_status(RAFFIA_ERROR_UNSUPPORTED, D.set_access(0, base, 4 * MIB, 0, true));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, D.set_access(0, base, 4 * MIB, 7, true));
    assert_ok(D.set_access(0, base, 4 * MIB, 1, true)); /* one call for both chunks */
    assert_int_equal(fake_cuda_calls("cuMemSetAccess"), 3);
    assert_ok(D.fill(1, NULL, base, 9, 4 * MIB));
    assert_ok(D.set_access(0, base, 4 * MIB, 1, false));
    assert_int_equal(cuda_test_usage().misuses, 0);
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, D.fill(1, NULL, base, 9, 1));
    for (size_t i = 0; i < 2; i++) {
        assert_ok(D.chunk_unmap(0, chunks[i], base + i * 2 * MIB));
        assert_ok(D.chunk_destroy(0, chunks[i]));
    }
    assert_ok(D.range_release(0, base, 4 * MIB));
}

/* ---- order ------------------------------------------------------------------------------------*/

static void an_event_that_has_not_passed_is_not_done(void **state)
{
    (void)state;
    driver_event event;
    bool done = true;
    assert_ok(D.event_create(0, &event));
    assert_ok(D.event_record(0, event, NULL));
    fake_cuda_fail("cuEventQuery", 1, CUDA_ERROR_NOT_READY);
    assert_ok(D.event_done(0, event, &done));
    assert_false(done);
    assert_ok(D.event_done(0, event, &done));
    assert_true(done);
    assert_ok(D.event_destroy(0, event));
}

static void the_per_thread_stream_is_a_stream(void **state)
{
    (void)state;
    const driver_stream per_thread = (driver_stream)(uintptr_t)2;
    uint64_t legacy, own;
    void *block = allocate(0, 4096);
    assert_ok(D.stream_id(0, NULL, &legacy));
    assert_ok(D.stream_id(0, per_thread, &own));
    assert_true(own != legacy);
    assert_ok(D.fill(0, per_thread, block, 1, 4096));
    assert_ok(D.stream_wait(0, per_thread));
    assert_ok(D.mem_free(0, block, 4096));
}

static void a_capture_is_not_disturbed(void **state)
{
    (void)state;
    driver_stream stream;
    driver_event event;
    bool capturing = false, done;
    static char memory[4096];
    assert_ok(D.stream_create(0, &stream));
    assert_ok(D.event_create(0, &event));
    fake_cuda_capture(stream, true);
    assert_ok(D.stream_is_capturing(0, stream, &capturing));
    assert_true(capturing);
    capturing = false;
    assert_ok(D.stream_is_capturing(0, NULL, &capturing)); /* its use would spoil the capture */
    assert_true(capturing);
    void *block = allocate(0, 4096);
    const struct driver_copy copies[] = {{block, memory, 10}, {(char *)block + 20, memory, 10}};
    assert_ok(D.copy_batch(0, stream, copies, 2)); /* one after the other: batches are refused */
    assert_int_equal(fake_cuda_calls("cuMemcpyBatchAsync"), 0);
    assert_ok(D.event_done(0, event, &done));
    assert_ok(D.event_wait(0, event));
    assert_ok(D.mem_free(0, block, 4096));
    fake_cuda_capture(stream, false);
    assert_ok(D.stream_is_capturing(0, stream, &capturing));
    assert_false(capturing);
    assert_ok(D.event_destroy(0, event));
    assert_ok(D.stream_destroy(0, stream));
}

/* ---- copies and code --------------------------------------------------------------------------*/

static void batches_go_in_few_calls(void **state)
{
    enum { PIECES = 300 };
    (void)state;
    struct driver_copy copies[PIECES];
    static unsigned char from[PIECES], to[PIECES];
    char *block = allocate(0, PIECES);
    driver_stream stream;
    assert_ok(D.stream_create(0, &stream));
    for (size_t i = 0; i < PIECES; i++) {
        from[i] = (unsigned char)(i + 1);
        copies[i] = (struct driver_copy){block + (PIECES - 1 - i), from + i, i % 7 ? 1 : 0};
    }
    assert_ok(D.fill(0, stream, block, 0, PIECES));
    assert_ok(D.copy_batch(0, stream, copies, PIECES));
    assert_int_equal(fake_cuda_calls("cuMemcpyBatchAsync"), 3);
    assert_ok(D.copy(0, stream, to, block, PIECES));
    assert_ok(D.stream_wait(0, stream));
    for (size_t i = 0; i < PIECES; i++)
        assert_int_equal(to[PIECES - 1 - i], i % 7 ? from[i] : 0);
    assert_ok(D.copy_batch(0, NULL, copies, 10)); /* the legacy stream takes no batch */
    assert_int_equal(fake_cuda_calls("cuMemcpyBatchAsync"), 3);
    fake_cuda_fail("cuMemcpyBatchAsync", 2, CUDA_ERROR_UNKNOWN);
    assert_status(RAFFIA_ERROR_DRIVER, D.copy_batch(0, stream, copies, PIECES));
    assert_error_mentions("some may have been submitted");
    assert_ok(D.stream_destroy(0, stream));
    assert_ok(D.mem_free(0, block, PIECES));
}

static void code_is_loaded_and_launched(void **state)
{
    (void)state;
    driver_module module = NULL;
    driver_function function;
    uint32_t *block = allocate(0, sizeof *block), value = 77, found = 0;
    /* Not ended by a NUL, as a file's content is not. */
    static const char image[7] = {'k', 'e', 'r', 'n', 'e', 'l', 's'};
    assert_ok(D.module_load(0, image, sizeof image, &module));
    assert_status(RAFFIA_ERROR_NOT_FOUND, D.module_function(0, module, "other", &function));
    assert_error_mentions("'other'");
    assert_ok(D.module_function(0, module, "store", &function));
    void *arguments[] = {&block, &value};
    struct driver_launch launch = {{1, 1, 1}, {1, 1, 1}, 0, arguments};
    assert_ok(D.launch(0, NULL, function, &launch));
    assert_ok(D.copy(0, NULL, &found, block, sizeof found));
    assert_int_equal(found, 77);
    launch.block[1] = 0;
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, D.launch(0, NULL, function, &launch));
    launch.shared_bytes = (size_t)1 << 33;
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, D.launch(0, NULL, function, &launch));
    assert_ok(D.module_unload(0, module));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, D.module_load(0, "nonsense", 8, &module));
    assert_error_mentions("line 1: no such word");
    assert_null(strstr(raffia_last_error(), "line 2"));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, D.module_load(0, image, 0, &module));
    assert_ok(D.mem_free(0, block, sizeof *block));
}

static int fresh(void **state)
{
    (void)state;
    const struct fake_cuda_config config = {.devices = 2};
    fake_cuda_reset(&config);
    return 0;
}

static int nothing_is_left(void **state)
{
    (void)state;
    struct fake_cuda_usage usage = cuda_test_usage();
    usage.misuses = 0; /* judged in the tests: some misuse on purpose */
    if (usage.ranges + usage.handles + usage.mappings + usage.blocks + usage.registrations +
        usage.host_blocks + usage.streams + usage.events + usage.modules)
        return -1;
    return current() ? -1 : 0;
}

int main(void)
{
    const struct fake_cuda_config config = {.devices = 2};
    cuda_test_use_fake(&config);
#define TEST(function) cmocka_unit_test_setup_teardown(function, fresh, nothing_is_left)
    const struct CMUnitTest tests[] = {
        TEST(each_error_has_its_status_and_its_native_name),
        TEST(a_lost_context_is_told_apart),
        TEST(a_refused_registration_leaves_nothing_behind),
        TEST(the_callers_context_is_put_back),
        TEST(it_is_put_back_whatever_failed),
        TEST(a_context_that_is_current_costs_no_switch),
        TEST(devices_that_do_not_exist_are_refused),
        TEST(what_failed_to_map_is_not_mapped),
        TEST(memory_that_is_not_there_is_refused_with_the_reason),
        TEST(only_what_was_made_for_it_is_exported),
        TEST(a_peer_may_use_what_it_was_given),
        TEST(an_event_that_has_not_passed_is_not_done),
        TEST(the_per_thread_stream_is_a_stream),
        TEST(a_capture_is_not_disturbed),
        TEST(batches_go_in_few_calls),
        TEST(code_is_loaded_and_launched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
