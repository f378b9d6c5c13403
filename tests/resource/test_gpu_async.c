/* The resource over the driver's own pool, on a real GPU. */
#include "driver/gpu_test.h"
#include "support/cmocka.h"

#include <raffia/resources.h>

#include <stdlib.h>
#include <string.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define PIB ((size_t)1 << 50)

static raffia_resource *make(size_t initial, size_t threshold)
{
    raffia_resource *resource = NULL;
    raffia_status status = raffia_async_resource_create(
        &(raffia_async_resource_options){.struct_size = sizeof(raffia_async_resource_options),
                                         .device = "cuda:0",
                                         .initial_bytes = initial,
                                         .release_threshold = threshold},
        &resource);
    if (status == RAFFIA_ERROR_UNSUPPORTED)
        skip();
    assert_ok(status);
    return resource;
}

static void blocks_hold_what_their_streams_wrote(void **state)
{
    enum { ROUNDS = 200, BYTES = 300 * 1024 };
    (void)state;
    raffia_resource *resource = make(8 * MIB, 0);
    const raffia_resource_ref ref = raffia_ref(resource);
    unsigned char *seen = malloc(BYTES);
    driver_stream streams[2];
    assert_non_null(seen);
    for (int i = 0; i < 2; i++)
        assert_ok(cuda_driver.stream_create(0, &streams[i]));
    for (int round = 1; round <= ROUNDS; round++) {
        driver_stream stream = streams[round % 2];
        void *first, *second;
        assert_ok(raffia_allocate(ref, stream, BYTES, 0, &first));
        assert_ok(cuda_driver.fill(0, stream, first, 0xee, BYTES));
        assert_ok(raffia_deallocate(ref, stream, first, BYTES, 0));
        assert_ok(raffia_allocate(ref, stream, BYTES, 4096, &second));
        assert_int_equal((uintptr_t)second % 4096, 0);
        assert_ok(cuda_driver.fill(0, stream, second, (unsigned char)round, BYTES));
        assert_ok(cuda_driver.copy(0, stream, seen, second, BYTES));
        assert_ok(cuda_driver.stream_wait(0, stream));
        for (size_t i = 0; i < BYTES; i += 4093)
            assert_int_equal(seen[i], (unsigned char)round);
        assert_ok(raffia_deallocate(ref, stream, second, BYTES, 4096));
    }
    for (int i = 0; i < 2; i++)
        assert_ok(cuda_driver.stream_destroy(0, streams[i]));
    assert_ok(raffia_async_resource_trim(ref, 0));
    raffia_resource_release(resource);
    free(seen);
}

static void what_cannot_be_had_is_refused(void **state)
{
    (void)state;
    raffia_resource *resource = make(0, MIB);
    const raffia_resource_ref ref = raffia_ref(resource);
    void *none = NULL, *block;
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, raffia_allocate(ref, NULL, PIB, 0, &none));
    assert_null(none);
    assert_ok(raffia_allocate(ref, NULL, KIB, 0, &block));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, raffia_deallocate(ref, NULL, block, MIB, 0));
    raffia_resource_release(resource);
    assert_ok(raffia_deallocate(ref, NULL, block, KIB, 0));
    assert_ok(cuda_driver.context_state(0));
}

int main(void)
{
    if (!gpu_test_has_device())
        return GPU_TEST_SKIPPED;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_hold_what_their_streams_wrote),
        cmocka_unit_test(what_cannot_be_had_is_refused),
    };
    return cmocka_run_group_tests_name("the driver's own pool on a GPU", tests, NULL, NULL);
}
