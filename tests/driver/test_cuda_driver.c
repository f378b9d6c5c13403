/* What the CUDA driver does beside passing calls on, over a fake of NVIDIA's library. */
#include "core/fault.h"
#include "driver/cuda_test.h"

#define D cuda_driver

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
    assert_ok(D.mem_free(0, cuda_test_allocate(0, 1), 1)); /* nothing sticks */
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
    assert_null(cuda_test_current());
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
    assert_null(cuda_test_current());
    assert_int_equal(cuCtxPushCurrent_v2(foreign), CUDA_SUCCESS);
    call_everything(0);
    call_everything(1);
    assert_ptr_equal(cuda_test_current(), foreign);
    assert_int_equal(cuCtxPopCurrent_v2(&popped), CUDA_SUCCESS);
    assert_null(cuda_test_current()); /* and nothing else on the stack */
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
        assert_ptr_equal(cuda_test_current(), foreign);
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
    assert_ok(D.mem_free(0, cuda_test_allocate(0, 100), 100));
    assert_int_equal(fake_cuda_calls("cuCtxPushCurrent_v2"), before);
    assert_ptr_equal(cuda_test_current(), primary);
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

int main(void)
{
    const struct fake_cuda_config config = {.devices = 2};
    cuda_test_use_fake(&config);
    const struct CMUnitTest tests[] = {
        CUDA_TEST(each_error_has_its_status_and_its_native_name),
        CUDA_TEST(a_lost_context_is_told_apart),
        CUDA_TEST(a_refused_registration_leaves_nothing_behind),
        CUDA_TEST(the_callers_context_is_put_back),
        CUDA_TEST(it_is_put_back_whatever_failed),
        CUDA_TEST(a_context_that_is_current_costs_no_switch),
        CUDA_TEST(devices_that_do_not_exist_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
