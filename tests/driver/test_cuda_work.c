/* Chunks, order, copies and code of the CUDA driver, over a fake of NVIDIA's library. */
#include "driver/cuda_test.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#define D cuda_driver

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

static void a_chunk_is_unmapped_where_it_is_mapped_and_nowhere_else(void **state)
{
    enum { PLACES = 9 };
    (void)state;
    const struct driver_chunk_spec spec = cuda_test_spec(2 * MIB);
    driver_chunk chunk, other;
    raffia_fallback_reason reason;
    void *reserved;
    assert_ok(D.range_reserve(0, (PLACES + 1) * 2 * MIB, 2 * MIB, &reserved));
    char *base = reserved, *last = base + PLACES * 2 * MIB;
    assert_ok(D.chunk_create(0, &spec, &chunk, &reason));
    assert_ok(D.chunk_create(0, &spec, &other, &reason));
    assert_ok(D.chunk_map(0, other, last, &reason));
    assert_status(RAFFIA_ERROR_BAD_ADDRESS, D.chunk_unmap(0, chunk, base));
    for (size_t i = 0; i < PLACES - 1; i++)
        assert_ok(D.chunk_map(0, chunk, base + i * 2 * MIB, &reason));
    assert_status(RAFFIA_ERROR_LIMIT, D.chunk_map(0, chunk, base + 8 * 2 * MIB, &reason));
    assert_int_equal(reason, RAFFIA_REASON_LIMIT);
    assert_status(RAFFIA_ERROR_BAD_ADDRESS, D.chunk_unmap(0, chunk, last)); /* somebody else's */
    assert_int_equal(cuda_test_usage().mappings, PLACES);
    for (size_t i = 0; i < PLACES - 1; i++)
        assert_ok(D.chunk_unmap(0, chunk, base + i * 2 * MIB));
    assert_int_equal(cuda_test_usage().misuses, 0);
    assert_ok(D.chunk_destroy(0, chunk));
    assert_ok(D.chunk_unmap(0, other, last));
    assert_ok(D.chunk_destroy(0, other));
    assert_ok(D.range_release(0, base, (PLACES + 1) * 2 * MIB));
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
    void *block = cuda_test_allocate(0, 4096);
    assert_ok(D.stream_id(0, NULL, &legacy));
    assert_ok(D.stream_id(0, per_thread, &own));
    assert_true(own != legacy);
    assert_ok(D.fill(0, per_thread, block, 1, 4096));
    assert_ok(D.stream_wait(0, per_thread));
    assert_ok(D.mem_free(0, block, 4096));
}

struct asking {
    driver_stream stream;
    uint64_t id;
};

static void *ask_for_id(void *argument)
{
    struct asking *asking = argument;
    assert_ok(D.stream_id(0, asking->stream, &asking->id));
    return NULL;
}

/* They cannot be destroyed. Any other stream is asked each time: its handle may be another's. */
static void the_ids_of_default_streams_are_remembered(void **state)
{
    (void)state;
    driver_stream defaults[3], made;
    uint64_t ids[3], again;
    assert_ok(D.stream_create(0, &made));
    for (uintptr_t i = 0; i < 3; i++) {
        /* NOLINTNEXTLINE(performance-no-int-to-ptr): that is what these handles are */
        defaults[i] = (driver_stream)i;
        assert_ok(D.stream_id(0, defaults[i], &ids[i]));
    }
    assert_true(ids[0] == ids[1] && ids[1] != ids[2]);
    const long calls = fake_cuda_calls("cuStreamGetId");
    for (int i = 0; i < 3; i++) {
        assert_ok(D.stream_id(0, defaults[i], &again));
        assert_int_equal(again, ids[i]);
    }
    assert_int_equal(fake_cuda_calls("cuStreamGetId"), calls);
    for (int i = 0; i < 3; i++)
        assert_ok(D.stream_id(0, made, &again));
    assert_int_equal(fake_cuda_calls("cuStreamGetId"), calls + 3);

    /* Another thread has one of its own. */
    for (int i = 0; i < 3; i += 2) {
        pthread_t thread;
        struct asking asking = {defaults[i], 0};
        assert_int_equal(pthread_create(&thread, NULL, ask_for_id, &asking), 0);
        pthread_join(thread, NULL);
        assert_int_equal(fake_cuda_calls("cuStreamGetId"), calls + 3 + (i == 2));
    }
    assert_ok(D.stream_destroy(0, made));
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
    void *block = cuda_test_allocate(0, 4096);
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
    char *block = cuda_test_allocate(0, PIECES);
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
    uint32_t *block = cuda_test_allocate(0, sizeof *block), value = 77, found = 0;
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

int main(void)
{
    const struct fake_cuda_config config = {.devices = 2};
    cuda_test_use_fake(&config);
    const struct CMUnitTest tests[] = {
        CUDA_TEST(what_failed_to_map_is_not_mapped),
        CUDA_TEST(a_chunk_is_unmapped_where_it_is_mapped_and_nowhere_else),
        CUDA_TEST(memory_that_is_not_there_is_refused_with_the_reason),
        CUDA_TEST(only_what_was_made_for_it_is_exported),
        CUDA_TEST(a_peer_may_use_what_it_was_given),
        CUDA_TEST(an_event_that_has_not_passed_is_not_done),
        CUDA_TEST(the_per_thread_stream_is_a_stream),
        CUDA_TEST(the_ids_of_default_streams_are_remembered),
        CUDA_TEST(a_capture_is_not_disturbed),
        CUDA_TEST(batches_go_in_few_calls),
        CUDA_TEST(code_is_loaded_and_launched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
