/* Loads into memory that the CPU cannot touch: every byte gets to its place. */
#include "device_fixture.h"
#include "support/cmocka.h"

#include <raffia/pool.h>
#include <raffia/resources.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SMALL_TENSORS = 700 };

static void every_way_of_reading_fills_the_device(void **state)
{
    (void)state;
    static const size_t budgets[] = {64 * KIB, 128 * KIB, 300 * KIB, 4 * MIB, 0};
    for (int reader = RAFFIA_READER_AUTO; reader <= RAFFIA_READER_DIRECT; reader++)
        for (unsigned threads = 1; threads <= 5; threads += 2)
            for (size_t i = 0; i < 5; i++) {
                raffia_model *model;
                const raffia_load_report *report =
                    load_and_check(&LOAD_OPTIONS(.device = "sim:0", .reader = (raffia_reader)reader,
                                                 .threads = threads, .budget_bytes = budgets[i],
                                                 .window_bytes = i % 2 ? 64 * KIB : 0),
                                   &model);
                assert_true(report->staging_bytes <= (budgets[i] ? budgets[i] : 64 * MIB));
                if (reader == RAFFIA_READER_DIRECT && test_direct_works(path.text))
                    assert_int_equal(report->bytes_direct, report->bytes_total);
                raffia_model_release(model);
            }
}

/* Tensors side by side, in the file as in memory, are one copy a slot. */
static void what_lies_together_is_copied_together(void **state)
{
    (void)state;
    struct test_path many = test_path_in(&directory, "many.safetensors");
    static struct model_file_tensor list[SMALL_TENSORS];
    for (int aligned = 0; aligned < 2; aligned++) {
        for (int i = 0; i < SMALL_TENSORS; i++) {
            char name[32];
            snprintf(name, sizeof name, "t%04d", i);
            list[i] = model_file_bytes(name, aligned ? 1024 : (size_t)(i * 13 % 1500 + 1));
        }
        model_file_write(many.text, list, SMALL_TENSORS, 4096, aligned ? 0 : 8, 0);
        raffia_model *model;
        assert_ok(raffia_model_load(
            many.text, &LOAD_OPTIONS(.device = "sim:0", .budget_bytes = 256 * KIB, .threads = 3),
            &model));
        for (int i = 0; i < SMALL_TENSORS; i++)
            check_tensor(model, list[i].name, list[i].offset, list[i].bytes);
        const raffia_load_report *report = raffia_model_report(model);
        if (aligned)
            assert_int_equal(report->copies, report->windows);
        else
            assert_true(report->copies <= SMALL_TENSORS + report->windows);
        raffia_model_release(model);
    }
}

static void slices_and_selections_get_there_too(void **state)
{
    (void)state;
    raffia_model *model;
    raffia_tensor_slice slice = {.name = "b", .dimension = 1, .begin = 3, .end = 400};
    const char *names[] = {"b", "c"};
    assert_ok(raffia_model_load(path.text,
                                &LOAD_OPTIONS(.device = "sim:0", .slices = &slice, .slice_count = 1,
                                              .names = names, .name_count = 2),
                                &model));
    const raffia_tensor *tensor = raffia_model_tensor(model, "b");
    assert_int_equal(tensor->bytes, 100 * 397);
    unsigned char row[397];
    for (size_t i = 0; i < 100; i++) {
        assert_ok(raffia_model_read(model, tensor, i * 397, row, 397));
        for (size_t k = 0; k < 397; k++)
            assert_int_equal(row[k], model_file_byte(tensors[1].offset + i * 700 + 3 + k, 0));
    }
    check_tensor(model, "c", tensors[2].offset, tensors[2].bytes);
    raffia_model_release(model);
}

static raffia_pool *make_pool(size_t bytes)
{
    raffia_pool *pool;
    assert_ok(raffia_pool_create(&(raffia_pool_options){.struct_size = sizeof(raffia_pool_options),
                                                        .device = "sim:0",
                                                        .initial_bytes = bytes,
                                                        .flags = RAFFIA_POOL_FIXED},
                                 &pool));
    return pool;
}

static void a_pool_of_the_caller_on_a_device_will_do(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool(4 * MIB);
    raffia_model *model;
    load_and_check(&LOAD_OPTIONS(.pool = pool), &model);
    raffia_model_release(model);
    /* No room in one piece: a block for each tensor, and nothing between them is written. */
    void *blocks[3];
    assert_ok(raffia_pool_alloc(pool, 1200 * KIB, 0, &blocks[0]));
    assert_ok(raffia_pool_alloc(pool, 1100 * KIB, 0, &blocks[1]));
    assert_ok(raffia_pool_alloc(pool, 1200 * KIB, 0, &blocks[2]));
    memset(sim_view(blocks[1]), 0x5c, 1100 * KIB);
    assert_ok(raffia_pool_free(pool, blocks[0]));
    assert_ok(raffia_pool_free(pool, blocks[2]));
    load_and_check(&LOAD_OPTIONS(.pool = pool, .threads = 3), &model);
    const unsigned char *untouched = sim_view(blocks[1]);
    for (size_t i = 0; i < 1100 * KIB; i++)
        assert_int_equal(untouched[i], 0x5c);
    raffia_model_release(model);
    assert_ok(raffia_pool_free(pool, blocks[1]));
    assert_ok(raffia_pool_check(pool));
    raffia_pool_release(pool);
}

/* A resource of device memory, as floor 5 will have them. */
static raffia_status resource_allocate(void *context, raffia_stream stream, size_t bytes,
                                       size_t alignment, void **address_p)
{
    (void)stream, (void)context;
    return alignment > 256 ? RAFFIA_ERROR_UNSUPPORTED : sim_driver.mem_alloc(0, bytes, address_p);
}

static raffia_status resource_deallocate(void *context, raffia_stream stream, void *address,
                                         size_t bytes, size_t alignment)
{
    (void)stream, (void)context, (void)alignment;
    return sim_driver.mem_free(0, address, bytes);
}

static unsigned resource_properties(void *context)
{
    (void)context;
    return RAFFIA_DEVICE_ACCESSIBLE;
}

static bool resource_is_equal(void *context, void *other)
{
    return context == other;
}

static void a_resource_of_device_memory_will_do(void **state)
{
    (void)state;
    static const raffia_resource_ops ops = {.struct_size = sizeof ops,
                                            .allocate = resource_allocate,
                                            .deallocate = resource_deallocate,
                                            .properties = resource_properties,
                                            .is_equal = resource_is_equal};
    raffia_model *model;
    load_and_check(&LOAD_OPTIONS(.device = "sim:0", .resource = {&ops, NULL}), &model);
    raffia_model_release(model);
    assert_status(RAFFIA_ERROR_UNSUPPORTED,
                  raffia_model_load(path.text,
                                    &LOAD_OPTIONS(.device = "host", .resource = {&ops, NULL}),
                                    &model));
    assert_error_mentions("device 'host'");
}

static void *resume_soon(void *argument)
{
    usleep(20000);
    assert_ok(sim_stream_resume(0, NULL));
    return argument;
}

/* The block's last user may be at work on the default stream when the resource hands it out, and
 * the CPU, which may write to this memory, would not notice. */
static void a11_a_load_begins_behind_what_its_block_was_used_for(void **state)
{
    (void)state;
    const raffia_pool_options options = {.struct_size = sizeof options,
                                         .device = "sim:0",
                                         .initial_bytes = 64 * MIB,
                                         .maximum_bytes = 64 * MIB};
    raffia_pool *pool;
    raffia_resource *resource;
    raffia_model *model;
    pthread_t thread;
    void *block;
    assert_ok(sim_configure(0, &(struct sim_config){.cpu_inaccessible = false}));
    assert_ok(raffia_pool_create(&options, &pool));
    assert_ok(raffia_pool_resource_from_pool(pool, &resource));
    assert_ok(raffia_model_inspect(path.text, NULL, &model));
    const size_t needed = raffia_model_bytes_needed(model);
    raffia_model_release(model);
    assert_ok(raffia_pool_alloc_on(pool, NULL, needed, 4096, &block));
    assert_ok(sim_stream_hold(0, NULL));
    assert_ok(sim_driver.fill(0, NULL, block, 0xAA, needed));
    assert_ok(raffia_pool_free_on(pool, NULL, block));
    assert_int_equal(pthread_create(&thread, NULL, resume_soon, NULL), 0);
    assert_ok(raffia_model_load(
        path.text, &LOAD_OPTIONS(.device = "sim:0", .resource = raffia_ref(resource)), &model));
    pthread_join(thread, NULL);
    assert_ok(sim_driver.stream_wait(0, NULL));
    check_all(model);
    raffia_model_release(model);
    raffia_resource_release(resource);
    raffia_pool_release(pool);
}

static void checksums_are_those_of_the_same_model_on_the_host(void **state)
{
    (void)state;
    raffia_model *here, *there;
    assert_ok(raffia_model_load(
        path.text, &LOAD_OPTIONS(.device = "host", .checksum = RAFFIA_CHECKSUM_XXH3), &here));
    load_and_check(&LOAD_OPTIONS(.device = "sim:0", .checksum = RAFFIA_CHECKSUM_XXH3, .threads = 3,
                                 .budget_bytes = 256 * KIB),
                   &there);
    for (size_t i = 0; i < TENSORS; i++)
        assert_int_equal(raffia_model_tensor_at(here, i)->checksum,
                         raffia_model_tensor_at(there, i)->checksum);
    raffia_model_release(here);
    raffia_model_release(there);
}

static void a_device_without_streams_is_filled(void **state)
{
    (void)state;
    assert_ok(
        sim_configure(0, &(struct sim_config){.cpu_inaccessible = true, .synchronous = true}));
    raffia_model *model;
    load_and_check(&LOAD_OPTIONS(.device = "sim:0", .threads = 3, .budget_bytes = 256 * KIB),
                   &model);
    raffia_model_release(model);
}

static unsigned reports;

static bool note_progress(void *context, const raffia_load_progress *progress)
{
    uint64_t *last = context;
    assert_true(progress->bytes_done >= *last && progress->bytes_done <= progress->bytes_total);
    *last = progress->bytes_done;
    reports++;
    return true;
}

static void progress_ends_at_the_whole(void **state)
{
    (void)state;
    uint64_t last = 0;
    raffia_model *model;
    load_and_check(&LOAD_OPTIONS(.device = "sim:0", .progress = note_progress,
                                 .progress_context = &last, .budget_bytes = 256 * KIB),
                   &model);
    assert_true(reports > 0);
    assert_int_equal(last, raffia_model_report(model)->bytes_total);
    raffia_model_release(model);
}

/* The CPU can touch it: files are read straight into place. */
static void pinned_memory_is_a_destination_as_any_of_the_host(void **state)
{
    (void)state;
    raffia_model *model;
    assert_ok(raffia_model_load(path.text, &LOAD_OPTIONS(.device = "pinned:sim:0"), &model));
    const raffia_load_report *report = raffia_model_report(model);
    assert_null(report->pinned);
    assert_int_equal(report->copies, 0);
    for (int i = 0; i < TENSORS; i++)
        model_file_check(raffia_model_tensor(model, tensors[i].name), tensors[i].offset,
                         tensors[i].bytes, 0);
    raffia_pinned_usage usage;
    assert_ok(raffia_device_query_pinned("sim:0", &usage));
    assert_true(usage.registered_bytes >= report->memory_bytes);
    raffia_model_release(model);
}

static void reading_back_refuses_what_is_not_there(void **state)
{
    (void)state;
    raffia_model *model;
    unsigned char bytes[8];
    load_and_check(&LOAD_OPTIONS(.device = "sim:0"), &model);
    const raffia_tensor *tensor = raffia_model_tensor(model, "c");
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, raffia_model_read(model, tensor, 1, bytes, 3));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT,
                  raffia_model_read(model, tensor, 4, bytes, SIZE_MAX - 1));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, raffia_model_read(model, tensor, 0, NULL, 1));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, raffia_model_read(NULL, tensor, 0, bytes, 1));
    assert_ok(raffia_model_read(model, tensor, 3, NULL, 0));
    raffia_model_release(model);
    assert_ok(raffia_model_inspect(path.text, NULL, &model));
    tensor = raffia_model_tensor(model, "c");
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, raffia_model_read(model, tensor, 0, bytes, 1));
    assert_error_mentions("inspected");
    raffia_model_release(model);
    assert_ok(raffia_model_load(path.text, &LOAD_OPTIONS(.device = "host"), &model));
    tensor = raffia_model_tensor(model, "c");
    assert_ok(raffia_model_read(model, tensor, 1, bytes, 2));
    assert_int_equal(bytes[1], model_file_byte(tensors[2].offset + 2, 0));
    raffia_model_release(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_way_of_reading_fills_the_device),
        TEST(what_lies_together_is_copied_together),
        TEST(slices_and_selections_get_there_too),
        TEST(a_pool_of_the_caller_on_a_device_will_do),
        TEST(a_resource_of_device_memory_will_do),
        TEST(a11_a_load_begins_behind_what_its_block_was_used_for),
        TEST(checksums_are_those_of_the_same_model_on_the_host),
        TEST(a_device_without_streams_is_filled),
        TEST(progress_ends_at_the_whole),
        TEST(pinned_memory_is_a_destination_as_any_of_the_host),
        TEST(reading_back_refuses_what_is_not_there),
    };
    return cmocka_run_group_tests_name("loads into a device", tests, make_directory,
                                       remove_directory);
}
