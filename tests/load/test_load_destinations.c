/* Memory that does not do, and what is left of it after a failure. */
#include "core/sys.h"
#include "load_fixture.h"
#include "support/cmocka.h"

#include <raffia/log.h>
#include <raffia/pool.h>

#include <errno.h>
#include <string.h>

#define DATA_OFFSET 4096

static struct test_directory directory;
static struct test_path path;
static struct model_file_tensor tensors[] = {
    {.name = "a", .dtype = RAFFIA_DTYPE_U8, .rank = 1, .shape = {1024 * 1024}},
    {.name = "b", .dtype = RAFFIA_DTYPE_U8, .rank = 1, .shape = {1024 * 1024}},
};

static void refuses(raffia_status expected, raffia_load_options options, const char *mention)
{
    raffia_model *model = NULL;
    assert_status(expected, raffia_model_load(path.text, &options, &model));
    assert_error_mentions(mention);
    assert_null(model);
}

static void memory_must_be_aligned_and_large_enough(void **state)
{
    (void)state;
    struct test_memory memory = test_memory_for(path.text, NULL);
    refuses(RAFFIA_ERROR_INVALID_ARGUMENT,
            LOAD_OPTIONS(.memory = memory.at + 64, .memory_bytes = memory.bytes),
            "multiple of 256");
    refuses(RAFFIA_ERROR_INVALID_ARGUMENT,
            LOAD_OPTIONS(.memory = memory.at, .memory_bytes = memory.bytes - 1), "needs");
    raffia_model *model;
    memory.at[memory.bytes] = 0xab;
    assert_ok(raffia_model_load(
        path.text, &LOAD_OPTIONS(.memory = memory.at, .memory_bytes = memory.bytes), &model));
    assert_int_equal(memory.at[memory.bytes], 0xab);
    for (int i = 0; i < 2; i++)
        model_file_check(raffia_model_tensor(model, tensors[i].name), tensors[i].offset,
                         tensors[i].bytes, 0);
    raffia_model_release(model);
    test_memory_free(&memory);
}

static void a_selection_needs_less_memory(void **state)
{
    (void)state;
    const char *names[] = {"b"};
    raffia_load_options options = LOAD_OPTIONS(.names = names, .name_count = 1);
    struct test_memory memory = test_memory_for(path.text, &options);
    assert_int_equal(memory.bytes, MIB);
    raffia_model *model;
    options.memory = memory.at;
    options.memory_bytes = memory.bytes;
    assert_ok(raffia_model_load(path.text, &options, &model));
    assert_null(raffia_model_tensor(model, "a"));
    model_file_check(raffia_model_tensor(model, "b"), tensors[1].offset, tensors[1].bytes, 0);
    raffia_model_release(model);
    test_memory_free(&memory);
}

static void resources_must_be_whole_and_host_accessible(void **state)
{
    (void)state;
    struct test_resource resource = {.properties = RAFFIA_DEVICE_ACCESSIBLE};
    raffia_resource_ref ref = test_resource_ref(&resource);
    refuses(RAFFIA_ERROR_UNSUPPORTED, LOAD_OPTIONS(.resource = ref), "host-accessible");
    raffia_resource_ops broken = *ref.ops;
    broken.deallocate = NULL;
    refuses(RAFFIA_ERROR_INVALID_ARGUMENT, LOAD_OPTIONS(.resource = {&broken, &resource}), "table");
    broken = *ref.ops;
    broken.struct_size = 8;
    refuses(RAFFIA_ERROR_INVALID_ARGUMENT, LOAD_OPTIONS(.resource = {&broken, &resource}),
            "struct_size is 8");
    resource.properties = RAFFIA_HOST_ACCESSIBLE;
    resource.failure = RAFFIA_ERROR_OUT_OF_MEMORY;
    refuses(RAFFIA_ERROR_OUT_OF_MEMORY, LOAD_OPTIONS(.resource = ref), "resource");
}

static void a_resource_may_know_no_page_alignment(void **state)
{
    (void)state;
    struct test_resource resource = {.properties = RAFFIA_HOST_ACCESSIBLE, .alignment_max = 256};
    raffia_model *model;
    assert_ok(raffia_model_load(path.text, &LOAD_OPTIONS(.resource = test_resource_ref(&resource)),
                                &model));
    assert_true(resource.live > 0);
    raffia_model_release(model);
    assert_int_equal(resource.live, 0);
}

static void a3_a_pair_of_resources_is_taken_and_the_model_keeps_it(void **state)
{
    (void)state;
    struct test_resource resource = {.properties = RAFFIA_HOST_ACCESSIBLE};
    struct test_resource unused = {.properties = RAFFIA_HOST_ACCESSIBLE,
                                   .failure = RAFFIA_ERROR_OUT_OF_MEMORY};
    const raffia_resource_ref ref = test_resource_ref(&resource);
    raffia_resource *output;
    raffia_model *model;
    assert_ok(raffia_resource_create(ref.ops, ref.context, &output));
    const raffia_load_options options =
        LOAD_OPTIONS(.resources = RAFFIA_MEMORY_RESOURCES(output, test_resource_ref(&unused)));
    assert_ok(raffia_model_load(path.text, &options, &model));
    raffia_resource_release(output);
    assert_true(resource.live > 0);
    raffia_model_release(model);
    assert_int_equal(resource.live, 0);
    refuses(RAFFIA_ERROR_INVALID_ARGUMENT, LOAD_OPTIONS(.resource = ref, .resources = {ref, ref}),
            "exclude");
    refuses(RAFFIA_ERROR_INVALID_ARGUMENT, LOAD_OPTIONS(.resources = {.temporary = ref}),
            "no output");
}

static raffia_pool *make_pool(size_t bytes)
{
    raffia_pool *pool;
    assert_ok(raffia_pool_create(&(raffia_pool_options){.struct_size = sizeof(raffia_pool_options),
                                                        .device = "host",
                                                        .pages = RAFFIA_PAGES_OFF,
                                                        .initial_bytes = bytes,
                                                        .flags = RAFFIA_POOL_FIXED},
                                 &pool));
    return pool;
}

static size_t live_blocks(raffia_pool *pool)
{
    raffia_pool_stats stats;
    assert_ok(raffia_pool_query(pool, &stats));
    return stats.live_blocks;
}

static void a_pool_too_small_is_left_as_it_was(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool(MIB + 512 * KIB);
    refuses(RAFFIA_ERROR_OUT_OF_MEMORY, LOAD_OPTIONS(.pool = pool), "tensor 'b'");
    assert_int_equal(live_blocks(pool), 0);
    assert_ok(raffia_pool_check(pool));
    raffia_pool_release(pool);
}

static void a_model_keeps_its_pool(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool(4 * MIB);
    raffia_model *model;
    assert_ok(raffia_model_load(path.text, &LOAD_OPTIONS(.pool = pool), &model));
    raffia_pool_release(pool);
    for (int i = 0; i < 2; i++)
        model_file_check(raffia_model_tensor(model, tensors[i].name), tensors[i].offset,
                         tensors[i].bytes, 0);
    raffia_model_release(model);
}

static void pool_and_memory_exclude_each_other(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool(4 * MIB);
    struct test_memory memory = test_memory_for(path.text, NULL);
    refuses(RAFFIA_ERROR_INVALID_ARGUMENT,
            LOAD_OPTIONS(.pool = pool, .memory = memory.at, .memory_bytes = memory.bytes),
            "exclude");
    test_memory_free(&memory);
    raffia_pool_release(pool);
}

static void a_pool_of_its_own_is_reported(void **state)
{
    (void)state;
    raffia_model *model;
    raffia_log_set_level(RAFFIA_LOG_ERROR); /* huge pages may well be missing here */
    raffia_status status = raffia_model_load(
        path.text, &LOAD_OPTIONS(.device = "host", .pages = RAFFIA_PAGES_TRY), &model);
    raffia_log_set_level(RAFFIA_LOG_WARN);
    assert_ok(status);
    const raffia_load_report *report = raffia_model_report(model);
    raffia_pool_stats stats;
    assert_ok(raffia_pool_query(raffia_model_pool(model), &stats));
    assert_int_equal(stats.live_blocks, 1);
    assert_true(stats.in_use_bytes >= 2 * MIB);
    assert_true(stats.maximum_bytes >= 2 * MIB + 2 * MIB / 5);
    assert_true(report->pages.total_bytes >= 2 * MIB);
    assert_int_equal(report->pages.got_kind, stats.pages.got_kind);
    assert_int_not_equal(report->pages.asked_kind, RAFFIA_PAGE_REGULAR);
    for (int i = 0; i < 2; i++)
        model_file_check(raffia_model_tensor(model, tensors[i].name), tensors[i].offset,
                         tensors[i].bytes, 0);
    raffia_model_release(model);
}

static void memory_of_a_device_the_cpu_can_write_to_will_do(void **state)
{
    (void)state;
    raffia_model *model;
    assert_ok(raffia_model_load(path.text, &LOAD_OPTIONS(.device = "sim:0"), &model));
    for (int i = 0; i < 2; i++)
        model_file_check(raffia_model_tensor(model, tensors[i].name), tensors[i].offset,
                         tensors[i].bytes, 0);
    raffia_model_release(model);
    refuses(RAFFIA_ERROR_NOT_FOUND, LOAD_OPTIONS(.device = "nonsense:0"), "nonsense");
}

static int fail_late(int fd, off_t offset, size_t *bytes)
{
    (void)fd;
    (void)bytes;
    return offset >= DATA_OFFSET + (off_t)MIB ? EIO : 0;
}

static void failed_loads_give_everything_back(void **state)
{
    (void)state;
    struct test_resource resource = {.properties = RAFFIA_HOST_ACCESSIBLE};
    raffia_pool *pool = make_pool(4 * MIB);
    sys_set_read_hook(fail_late);
    refuses(RAFFIA_ERROR_IO, LOAD_OPTIONS(.pool = pool, .window_bytes = 64 * KIB), "cannot read");
    refuses(RAFFIA_ERROR_IO,
            LOAD_OPTIONS(.resource = test_resource_ref(&resource), .window_bytes = 64 * KIB),
            "cannot read");
    refuses(RAFFIA_ERROR_IO,
            LOAD_OPTIONS(.device = "host", .pages = RAFFIA_PAGES_OFF, .window_bytes = 64 * KIB),
            "cannot read");
    sys_set_read_hook(NULL);
    assert_string_equal(raffia_last_native_error(), "EIO");
    assert_int_equal(live_blocks(pool), 0);
    assert_int_equal(resource.live, 0);
    raffia_pool_release(pool);
}

static int make_directory(void **state)
{
    (void)state;
    test_directory_make(&directory);
    path = test_path_in(&directory, "model.safetensors");
    model_file_write(path.text, tensors, 2, DATA_OFFSET, 0, 0);
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
        cmocka_unit_test(memory_must_be_aligned_and_large_enough),
        cmocka_unit_test(a_selection_needs_less_memory),
        cmocka_unit_test(resources_must_be_whole_and_host_accessible),
        cmocka_unit_test(a_resource_may_know_no_page_alignment),
        cmocka_unit_test(a3_a_pair_of_resources_is_taken_and_the_model_keeps_it),
        cmocka_unit_test(a_pool_too_small_is_left_as_it_was),
        cmocka_unit_test(a_model_keeps_its_pool),
        cmocka_unit_test(a_pool_of_its_own_is_reported),
        cmocka_unit_test(memory_of_a_device_the_cpu_can_write_to_will_do),
        cmocka_unit_test(pool_and_memory_exclude_each_other),
        cmocka_unit_test(failed_loads_give_everything_back),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
