/* Streams, captures, copies and refusals of a real GPU that the suite of all drivers does not ask.
 */
#include "driver/gpu_facts.h"
#include "driver/gpu_test.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define D cuda_driver

/* What only tests need of the library. */
static CUresult (*begin_capture)(CUstream stream, CUstreamCaptureMode mode);
static CUresult (*end_capture)(CUstream stream, void **graph);
static CUresult (*destroy_graph)(void *graph);

static void find(const char *name, void *function_p)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    void *address = library ? dlsym(library, name) : NULL;
    if (!address)
        fail_msg("the library has no %s", name);
    memcpy(function_p, &address, sizeof address);
}

static CUstream begin(void)
{
    CUstream stream;
    find("cuStreamBeginCapture_v2", &begin_capture);
    find("cuStreamEndCapture", &end_capture);
    find("cuGraphDestroy", &destroy_graph);
    assert_cuda(cuda_library.cuStreamCreate(&stream, 0));
    assert_cuda(begin_capture(stream, 0)); /* global: the strictest */
    return stream;
}

static void end(CUstream stream)
{
    void *graph = NULL;
    assert_cuda(end_capture(stream, &graph));
    assert_non_null(graph);
    assert_cuda(destroy_graph(graph));
    assert_ok(D.stream_destroy(0, stream));
}

static void live_a_chunks_life(const struct gpu *gpu)
{
    const struct driver_chunk_spec spec = {.bytes = gpu->granule,
                                           .page_size = gpu->granule,
                                           .kind = RAFFIA_PAGE_DEVICE,
                                           .numa_node = -1,
                                           .threads = 1};
    driver_chunk chunk;
    raffia_fallback_reason reason;
    void *base;
    assert_ok(D.range_reserve(0, gpu->granule, gpu->granule, &base));
    assert_ok(D.chunk_create(0, &spec, &chunk, &reason));
    assert_ok(D.chunk_map(0, chunk, base, &reason));
    assert_ok(D.chunk_unmap(0, chunk, base));
    assert_ok(D.chunk_destroy(0, chunk));
    assert_ok(D.range_release(0, base, gpu->granule));
}

static void a_capture_is_not_disturbed(void **state)
{
    const struct gpu *gpu = *state;
    driver_event event;
    driver_stream other;
    bool capturing = false, done = false;
    void *block, *memory = NULL;
    raffia_device_info info;
    assert_int_equal(posix_memalign(&memory, 4096, MIB), 0);
    CUstream stream = begin();
    assert_ok(D.stream_is_capturing(0, stream, &capturing));
    assert_true(capturing);
    capturing = false;
    assert_ok(D.stream_is_capturing(0, NULL, &capturing));
    assert_true(capturing);
    assert_ok(D.mem_alloc(0, MIB, &block));
    assert_ok(D.fill(0, stream, block, 1, MIB)); /* recorded */
    assert_ok(D.stream_create(0, &other));
    assert_ok(D.event_create(0, &event));
    assert_ok(D.event_record(0, event, other));
    assert_ok(D.event_done(0, event, &done));
    assert_ok(D.event_wait(0, event));
    live_a_chunks_life(gpu);
    assert_ok(D.host_register(0, memory, MIB));
    assert_ok(D.host_unregister(0, memory, MIB));
    assert_ok(D.device_info(0, &info));
    assert_ok(D.context_state(0));
    assert_ok(D.stream_destroy(0, other));
    assert_ok(D.event_destroy(0, event));
    end(stream);
    assert_ok(D.mem_free(0, block, MIB));
    free(memory);
}

/* A failure of this call would spoil the capture, and it is not needed in one. */
static void memory_is_freed_beside_a_capture(void **state)
{
    (void)state;
    void *block;
    assert_ok(D.mem_alloc(0, MIB, &block));
    CUstream stream = begin();
    assert_ok(D.mem_free(0, block, MIB));
    void *graph = NULL;
    assert_cuda(end_capture(stream, &graph));
    assert_cuda(destroy_graph(graph));
    assert_ok(D.stream_destroy(0, stream));
}

/* A captured stream is refused, others are served, and the record stays good. */
static void pools_are_used_beside_a_capture(void **state)
{
    const struct driver_pool_spec spec = {.release_threshold = SIZE_MAX};
    driver_pool pool, second;
    driver_stream other;
    void *none = NULL, *block, *kept;
    (void)state;
    if (D.pool_create(0, &spec, &pool) == RAFFIA_ERROR_UNSUPPORTED)
        skip();
    assert_ok(D.stream_create(0, &other));
    assert_ok(D.pool_alloc(0, pool, other, MIB, &kept));
    CUstream stream = begin();
    assert_status(RAFFIA_ERROR_BUSY, D.pool_alloc(0, pool, stream, MIB, &none));
    assert_status(RAFFIA_ERROR_BUSY, D.pool_alloc(0, pool, NULL, MIB, &none));
    assert_status(RAFFIA_ERROR_BUSY, D.pool_free(0, pool, stream, kept));
    assert_null(none);
    assert_ok(D.pool_alloc(0, pool, other, 8 * MIB, &block));
    assert_ok(D.fill(0, stream, kept, 1, MIB)); /* recorded */
    assert_ok(D.pool_free(0, pool, other, block));
    assert_ok(D.pool_create(0, &spec, &second));
    assert_ok(D.pool_trim(0, second, 0));
    assert_ok(D.pool_destroy(0, second));
    end(stream);
    assert_ok(D.pool_free(0, pool, other, kept));
    assert_ok(D.stream_wait(0, other));
    assert_ok(D.stream_destroy(0, other));
    assert_ok(D.pool_destroy(0, pool));
}

static void batches_arrive(void **state)
{
    enum { PIECES = 300, PIECE = 256 };
    const struct gpu *gpu = *state;
    static unsigned char from[PIECES * PIECE], to[PIECES * PIECE];
    struct driver_copy copies[PIECES];
    void *block, *pinned = NULL;
    assert_int_equal(posix_memalign(&pinned, 4096, sizeof from), 0);
    assert_ok(D.mem_alloc(0, sizeof from, &block));
    assert_ok(D.host_register(0, pinned, sizeof from));
    for (int round = 0; round < 4; round++) {
        unsigned char *source = round & 1 ? pinned : from;
        const driver_stream stream = round & 2 ? (driver_stream)(uintptr_t)2 : gpu->stream;
        for (size_t i = 0; i < sizeof from; i++)
            source[i] = (unsigned char)(i * 31 + (size_t)round);
        for (size_t i = 0; i < PIECES; i++)
            copies[i] = (struct driver_copy){(char *)block + (PIECES - 1 - i) * PIECE,
                                             source + i * PIECE, i == 5 ? 0 : PIECE};
        uint64_t start = gpu_now_ns();
        assert_ok(D.copy_batch(0, stream, copies, PIECES));
        assert_ok(D.stream_wait(0, stream));
        printf("%d copies of %d bytes from %s memory, in a batch: %.0f us\n", PIECES, PIECE,
               round & 1 ? "pinned" : "pageable", (double)(gpu_now_ns() - start) / 1e3);
        assert_ok(D.copy(0, stream, to, block, sizeof to));
        assert_ok(D.stream_wait(0, stream));
        for (size_t i = 0; i < PIECES; i++)
            if (i != 5)
                assert_memory_equal(to + (PIECES - 1 - i) * PIECE, source + i * PIECE, PIECE);
    }
    assert_ok(D.host_unregister(0, pinned, sizeof from));
    assert_ok(D.mem_free(0, block, sizeof from));
    free(pinned);
}

static void an_event_behind_work_is_not_done(void **state)
{
    const struct gpu *gpu = *state;
    driver_event event;
    bool done = true;
    assert_ok(D.event_create(0, &event));
    gpu_spin(gpu, 1);
    assert_ok(D.stream_wait(0, gpu->stream));
    gpu_spin(gpu, 100);
    assert_ok(D.event_record(0, event, gpu->stream));
    assert_ok(D.event_done(0, event, &done));
    assert_false(done);
    assert_ok(D.event_wait(0, event));
    assert_ok(D.event_done(0, event, &done));
    assert_true(done);
    assert_ok(D.event_destroy(0, event));
}

static void what_cannot_be_had_is_refused_and_leaves_nothing(void **state)
{
    const struct gpu *gpu = *state;
    void *block = NULL, *memory = NULL;
    driver_module module;
    driver_chunk chunk = NULL;
    raffia_fallback_reason reason;
    uint64_t handle[DRIVER_HANDLE_WORDS] = {0};
    struct driver_chunk_spec spec = {.bytes = (size_t)1 << 40,
                                     .page_size = gpu->granule,
                                     .kind = RAFFIA_PAGE_DEVICE,
                                     .numa_node = -1,
                                     .threads = 1};
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, D.mem_alloc(0, (size_t)1 << 40, &block));
    printf("%s\n", raffia_last_error());
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, D.chunk_create(0, &spec, &chunk, &reason));
    assert_int_equal(reason, RAFFIA_REASON_MEMORY);
    assert_true(D.module_load(0, ".version 7.0\nnonsense", 20, &module) != RAFFIA_OK);
    printf("%s\n", raffia_last_error());

    spec.bytes = gpu->granule;
    spec.handle = DRIVER_HANDLE_FABRIC;
    raffia_status status = D.chunk_create(0, &spec, &chunk, &reason);
    printf("fabric: %s\n", status ? raffia_last_error() : "works");
    if (!status)
        assert_ok(D.chunk_destroy(0, chunk));
    spec.handle = DRIVER_HANDLE_FD;
    const int other = open("/dev/null", O_RDWR | O_CLOEXEC);
    handle[0] = (uint64_t)other;
    assert_true(D.chunk_import(0, DRIVER_HANDLE_FD, handle, &spec, &chunk) != RAFFIA_OK);
    printf("%s\n", raffia_last_error());
    close(other);

    assert_int_equal(posix_memalign(&memory, 4096, MIB), 0);
    assert_ok(D.host_register(0, memory, MIB));
    assert_status(RAFFIA_ERROR_BUSY, D.host_register(0, memory, MIB));
    assert_ok(D.host_unregister(0, memory, MIB));
    assert_status(RAFFIA_ERROR_BAD_ADDRESS, D.host_unregister(0, memory, MIB));
    free(memory);
    assert_ok(D.context_state(0));
}

/* Microseconds for one call of event_record() in this thread. */
static double time_record(driver_event event, driver_stream stream)
{
    enum { ROUNDS = 20000 };
    uint64_t start = gpu_now_ns();
    for (int i = 0; i < ROUNDS; i++)
        assert_ok(D.event_record(0, event, stream));
    return (double)(gpu_now_ns() - start) / 1e3 / ROUNDS;
}

/* Printed only. */
static void what_a_verb_costs_beside_the_call_itself(void **state)
{
    const struct gpu *gpu = *state;
    driver_event event;
    CUcontext context;
    bool done;
    uint64_t id;
    enum { ROUNDS = 20000 };
    assert_ok(D.event_create(0, &event));
    double current = time_record(event, gpu->stream);
    assert_cuda(cuda_library.cuCtxPopCurrent_v2(&context));
    double elsewhere = time_record(event, gpu->stream);
    assert_cuda(cuda_library.cuCtxPushCurrent_v2(context));
    uint64_t start = gpu_now_ns();
    for (int i = 0; i < ROUNDS; i++)
        assert_cuda(cuda_library.cuEventRecord((CUevent)(void *)event, gpu->stream));
    double native = (double)(gpu_now_ns() - start) / 1e3 / ROUNDS;
    start = gpu_now_ns();
    for (int i = 0; i < ROUNDS; i++)
        assert_ok(D.event_done(0, event, &done));
    double query = (double)(gpu_now_ns() - start) / 1e3 / ROUNDS;
    start = gpu_now_ns();
    for (int i = 0; i < ROUNDS; i++)
        assert_ok(D.stream_id(0, gpu->stream, &id));
    double identify = (double)(gpu_now_ns() - start) / 1e3 / ROUNDS;
    printf("event_record: %.3f us, of it CUDA %.3f; %.3f with the context switched to; "
           "event_done %.3f; stream_id %.3f\n",
           current, native, elsewhere, query, identify);
    assert_ok(D.stream_wait(0, gpu->stream));
    assert_ok(D.event_destroy(0, event));
}

int main(void)
{
    if (!gpu_test_has_device())
        return GPU_TEST_SKIPPED;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_capture_is_not_disturbed),
        cmocka_unit_test(memory_is_freed_beside_a_capture),
        cmocka_unit_test(pools_are_used_beside_a_capture),
        cmocka_unit_test(batches_arrive),
        cmocka_unit_test(an_event_behind_work_is_not_done),
        cmocka_unit_test(what_cannot_be_had_is_refused_and_leaves_nothing),
        cmocka_unit_test(what_a_verb_costs_beside_the_call_itself),
    };
    return cmocka_run_group_tests(tests, gpu_open, gpu_close) ? 1 : 0;
}
