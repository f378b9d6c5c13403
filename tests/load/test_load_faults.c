/* Every call a load makes is made to fail once: it falls back or fails whole, and leaves nothing.
 */
#include "load_fixture.h"
#include "support/cmocka.h"
#include "support/fault_loop.h"

#include <raffia/log.h>
#include <raffia/pool.h>

#define CALLS_MAX 5000

static struct test_directory directory;
static struct test_path path;
static struct model_file_tensor tensors[] = {
    {.name = "a", .dtype = RAFFIA_DTYPE_U8, .rank = 1, .shape = {300 * 1024 + 5}},
    {.name = "b", .dtype = RAFFIA_DTYPE_U8, .rank = 2, .shape = {100, 700}},
    {.name = "c", .dtype = RAFFIA_DTYPE_U8, .rank = 1, .shape = {3}},
};

static raffia_status inspect(void *context)
{
    raffia_model *model;
    raffia_status status = raffia_model_inspect(path.text, context, &model);
    if (status)
        return status;
    assert_non_null(raffia_model_tensor(model, "a"));
    raffia_model_release(model);
    return RAFFIA_OK;
}

static raffia_status load(void *context)
{
    raffia_model *model;
    raffia_status status = raffia_model_load(path.text, context, &model);
    if (status)
        return status;
    model_file_check(raffia_model_tensor(model, "a"), tensors[0].offset, tensors[0].bytes, 0);
    model_file_check(raffia_model_tensor(model, "c"), tensors[2].offset, tensors[2].bytes, 0);
    raffia_model_release(model);
    return RAFFIA_OK;
}

static void an_inspection_survives_every_failure(void **state)
{
    (void)state;
    raffia_tensor_slice slice = {.name = "b", .dimension = 1, .begin = 3, .end = 400};
    raffia_load_options options = LOAD_OPTIONS(.slices = &slice, .slice_count = 1);
    assert_true(fault_loop(inspect, &options, CALLS_MAX) > 5);
}

static void a_load_into_memory_survives_every_failure(void **state)
{
    (void)state;
    struct test_memory memory = test_memory_for(path.text, NULL);
    static const raffia_reader readers[] = {RAFFIA_READER_AUTO, RAFFIA_READER_BUFFERED,
                                            RAFFIA_READER_DIRECT};
    for (size_t i = 0; i < 3; i++) {
        raffia_load_options options =
            LOAD_OPTIONS(.memory = memory.at, .memory_bytes = memory.bytes, .threads = 2,
                         .window_bytes = 64 * KIB, .reader = readers[i],
                         .checksum = RAFFIA_CHECKSUM_XXH3);
        assert_true(fault_loop(load, &options, CALLS_MAX) > 10);
    }
    test_memory_free(&memory);
}

static void a_load_into_a_pool_of_its_own_survives_every_failure(void **state)
{
    (void)state;
    raffia_load_options options = LOAD_OPTIONS(.device = "host", .pages = RAFFIA_PAGES_OFF,
                                               .threads = 2, .reader = RAFFIA_READER_BUFFERED);
    assert_true(fault_loop(load, &options, CALLS_MAX) > 10);
}

static void a_load_into_blocks_of_a_pool_survives_every_failure(void **state)
{
    (void)state;
    raffia_pool *pool;
    void *blocks[3];
    assert_ok(raffia_pool_create(&(raffia_pool_options){.struct_size = sizeof(raffia_pool_options),
                                                        .device = "host",
                                                        .pages = RAFFIA_PAGES_OFF,
                                                        .initial_bytes = 800 * KIB,
                                                        .chunk_bytes = 800 * KIB,
                                                        .flags = RAFFIA_POOL_FIXED},
                                 &pool));
    /* Room of 360 KiB before a block in the middle and 400 KiB behind it: no 440 KiB in one piece.
     */
    assert_ok(raffia_pool_alloc(pool, 360 * KIB, 0, &blocks[0]));
    assert_ok(raffia_pool_alloc(pool, 40 * KIB, 0, &blocks[1]));
    assert_ok(raffia_pool_alloc(pool, 400 * KIB, 0, &blocks[2]));
    for (int i = 0; i < 3; i += 2)
        assert_ok(raffia_pool_free(pool, blocks[i]));
    raffia_load_options options = LOAD_OPTIONS(.pool = pool, .threads = 2);
    struct test_memory memory = test_memory_for(path.text, NULL);
    assert_true(memory.bytes > 360 * KIB);
    test_memory_free(&memory);
    assert_true(fault_loop(load, &options, CALLS_MAX) > 10);
    assert_ok(raffia_pool_check(pool));
    assert_ok(raffia_pool_free(pool, blocks[1]));
    raffia_pool_release(pool);
}

static int make_directory(void **state)
{
    (void)state;
    raffia_log_set_level(RAFFIA_LOG_OFF);
    test_directory_make(&directory);
    path = test_path_in(&directory, "model.safetensors");
    model_file_write(path.text, tensors, 3, 4096, 0, 0);
    return 0;
}

static int remove_directory(void **state)
{
    (void)state;
    test_directory_remove(&directory);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_inspection_survives_every_failure),
        cmocka_unit_test(a_load_into_memory_survives_every_failure),
        cmocka_unit_test(a_load_into_a_pool_of_its_own_survives_every_failure),
        cmocka_unit_test(a_load_into_blocks_of_a_pool_survives_every_failure),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
