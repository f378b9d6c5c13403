/* Every byte of a model arrives, whatever the reader, the threads and the destination. */
#include "load_fixture.h"
#include "support/cmocka.h"

#include <raffia/pool.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static struct test_directory directory;

static struct model_file_tensor tensors[] = {
    {.name = "empty", .dtype = RAFFIA_DTYPE_F32, .rank = 2, .shape = {3, 0}},
    {.name = "one", .dtype = RAFFIA_DTYPE_U8, .rank = 1, .shape = {1}},
    {.name = "below_page", .dtype = RAFFIA_DTYPE_U8, .rank = 1, .shape = {4095}},
    {.name = "page", .dtype = RAFFIA_DTYPE_F32, .rank = 2, .shape = {32, 32}},
    {.name = "above_page", .dtype = RAFFIA_DTYPE_U8, .rank = 1, .shape = {4097}},
    {.name = "below_huge", .dtype = RAFFIA_DTYPE_U8, .rank = 1, .shape = {2 * 1024 * 1024 - 1}},
    {.name = "scalar", .dtype = RAFFIA_DTYPE_F64, .rank = 0},
    {.name = "huge", .dtype = RAFFIA_DTYPE_BF16, .rank = 3, .shape = {8, 128, 1024}},
    {.name = "above_huge", .dtype = RAFFIA_DTYPE_U8, .rank = 1, .shape = {2 * 1024 * 1024 + 1}},
    {.name = "packed", .dtype = RAFFIA_DTYPE_F4, .rank = 2, .shape = {3, 6}},
};
#define TENSORS (sizeof tensors / sizeof *tensors)

static void check_model(const raffia_model *model)
{
    assert_int_equal(raffia_model_tensor_count(model), TENSORS);
    uint64_t bytes = 0;
    for (size_t i = 0; i < TENSORS; i++) {
        const raffia_tensor *tensor = raffia_model_tensor(model, tensors[i].name);
        model_file_check(tensor, tensors[i].offset, tensors[i].bytes, 0);
        assert_int_equal(tensor->dtype, tensors[i].dtype);
        assert_int_equal(tensor->rank, tensors[i].rank);
        for (unsigned d = 0; d < tensor->rank; d++)
            assert_int_equal(tensor->shape[d], tensors[i].shape[d]);
        assert_int_equal(tensor->file_offset, tensors[i].offset);
        bytes += tensors[i].bytes;
    }
    const raffia_load_report *report = raffia_model_report(model);
    assert_int_equal(raffia_model_bytes(model), bytes);
    assert_int_equal(report->bytes_total, bytes);
    assert_int_equal(report->bytes_buffered + report->bytes_direct, bytes);
    assert_true(report->bytes_staged <= report->bytes_direct);
    assert_true(report->reads >= report->windows);
    assert_int_equal(report->tensors, TENSORS);
    assert_int_equal(report->files, 1);
    assert_true(report->memory_bytes >= bytes);
}

enum destination {
    OWN_POOL,
    POOL,
    SCATTERED_POOL,
    RESOURCE,
    MEMORY,
    UNALIGNED_MEMORY,
    DESTINATIONS
};

/* A pool without room for the model in one piece, but for each tensor. */
static raffia_pool *scattered_pool(size_t needed, void **blocker_p)
{
    size_t most = needed / 10 * 9 / 4096 * 4096;
    raffia_pool *pool;
    void *first;
    assert_ok(raffia_pool_create(&(raffia_pool_options){.struct_size = sizeof(raffia_pool_options),
                                                        .device = "host",
                                                        .pages = RAFFIA_PAGES_OFF,
                                                        .initial_bytes = 2 * most,
                                                        .chunk_bytes = 2 * most,
                                                        .flags = RAFFIA_POOL_FIXED},
                                 &pool));
    assert_ok(raffia_pool_alloc(pool, most, 0, &first));
    assert_ok(raffia_pool_alloc(pool, 256, 0, blocker_p));
    assert_ok(raffia_pool_free(pool, first));
    return pool;
}

static size_t live_blocks(raffia_pool *pool)
{
    raffia_pool_stats stats;
    assert_ok(raffia_pool_query(pool, &stats));
    return stats.live_blocks;
}

static void load_into_pool(const char *path, raffia_load_options options, size_t needed,
                           bool scattered)
{
    raffia_pool *pool;
    raffia_model *model;
    void *blocker = NULL;
    if (scattered)
        pool = scattered_pool(needed, &blocker);
    else
        assert_ok(
            raffia_pool_create(&(raffia_pool_options){.struct_size = sizeof(raffia_pool_options),
                                                      .device = "host",
                                                      .pages = RAFFIA_PAGES_OFF,
                                                      .initial_bytes = needed + 8192},
                               &pool));
    options.pool = pool;
    assert_ok(raffia_model_load(path, &options, &model));
    check_model(model);
    assert_ptr_equal(raffia_model_pool(model), pool);
    assert_int_equal(live_blocks(pool), scattered ? TENSORS - 1 + 1 : 1);
    assert_true(raffia_model_report(model)->pages.total_bytes > 0);
    raffia_model_release(model);
    assert_int_equal(live_blocks(pool), scattered);
    assert_ok(raffia_pool_free(pool, blocker));
    assert_ok(raffia_pool_check(pool));
    raffia_pool_release(pool);
}

static void load_into(const char *path, raffia_load_options options, enum destination destination)
{
    struct test_resource resource = {.properties = RAFFIA_HOST_ACCESSIBLE};
    struct test_memory memory = test_memory_for(path, &options);
    raffia_model *model;
    if (destination == POOL || destination == SCATTERED_POOL) {
        load_into_pool(path, options, memory.bytes, destination == SCATTERED_POOL);
        test_memory_free(&memory);
        return;
    }
    if (destination == UNALIGNED_MEMORY) {
        size_t bytes = memory.bytes;
        test_memory_free(&memory);
        memory = test_memory_take(bytes, 4096, RAFFIA_TENSOR_ALIGNMENT);
    }
    if (destination == MEMORY || destination == UNALIGNED_MEMORY) {
        options.memory = memory.at;
        options.memory_bytes = memory.bytes;
    } else if (destination == RESOURCE) {
        options.resource = test_resource_ref(&resource);
    } else {
        options.device = "host";
        options.pages = RAFFIA_PAGES_OFF;
    }
    assert_ok(raffia_model_load(path, &options, &model));
    check_model(model);
    assert_int_equal(raffia_model_pool(model) != NULL, destination == OWN_POOL);
    assert_int_equal(resource.live, destination == RESOURCE ? memory.bytes : 0);
    raffia_model_release(model);
    assert_int_equal(resource.live, 0);
    test_memory_free(&memory);
}

/* The data begin where O_DIRECT likes it, at some multiple of 8, or at an odd offset. */
static const struct {
    const char *name;
    size_t alignment, shift;
} layouts[] = {{"page", 4096, 0}, {"eight", 8, 0}, {"odd", 8, 3}};

static void every_byte_arrives(void **state)
{
    (void)state;
    static const raffia_reader readers[] = {RAFFIA_READER_AUTO, RAFFIA_READER_BUFFERED,
                                            RAFFIA_READER_DIRECT};
    for (size_t layout = 0; layout < 3; layout++) {
        struct test_path path = test_path_in(&directory, layouts[layout].name);
        model_file_write(path.text, tensors, TENSORS, layouts[layout].alignment,
                         layouts[layout].shift, 0);
        for (size_t reader = 0; reader < 3; reader++)
            for (unsigned threads = 1; threads <= 3; threads += 2)
                for (int destination = 0; destination < DESTINATIONS; destination++)
                    load_into(path.text,
                              LOAD_OPTIONS(.reader = readers[reader], .threads = threads,
                                           .window_bytes = threads == 1 ? 64 * KIB : 0),
                              (enum destination)destination);
    }
}

static void direct_reads_go_into_place_where_the_layout_allows(void **state)
{
    (void)state;
    struct test_path path = test_path_in(&directory, "place");
    model_file_write(path.text, tensors, TENSORS, 4096, 0, 0);
    if (!test_direct_works(path.text))
        skip();
    raffia_model *model;
    assert_ok(raffia_model_load(path.text,
                                &LOAD_OPTIONS(.device = "host", .pages = RAFFIA_PAGES_OFF,
                                              .reader = RAFFIA_READER_DIRECT, .threads = 1),
                                &model));
    const raffia_load_report *report = raffia_model_report(model);
    assert_int_equal(report->bytes_direct, report->bytes_total);
    assert_true(report->bytes_staged > 0);
    assert_int_equal(report->staging_bytes, 4 * MIB);
    raffia_model_release(model);

    struct model_file_tensor large = model_file_bytes("large", 8 * MIB);
    model_file_write(path.text, &large, 1, 4096, 0, 0);
    assert_ok(raffia_model_load(
        path.text,
        &LOAD_OPTIONS(.device = "host", .pages = RAFFIA_PAGES_OFF, .reader = RAFFIA_READER_DIRECT),
        &model));
    report = raffia_model_report(model);
    assert_int_equal(report->bytes_direct, large.bytes);
    assert_int_equal(report->bytes_staged, 4096 /* the last, short cut */);
    raffia_model_release(model);
}

static void cold_files_are_read_directly_and_hot_ones_through_the_cache(void **state)
{
    (void)state;
    struct test_path path = test_path_in(&directory, "temperature");
    model_file_write(path.text, tensors, TENSORS, 4096, 0, 0);
    raffia_load_options options = LOAD_OPTIONS(.device = "host", .pages = RAFFIA_PAGES_OFF);
    raffia_model *model;
    assert_ok(raffia_model_load(path.text, &options, &model));
    const raffia_load_report *report = raffia_model_report(model);
    assert_int_equal(report->bytes_buffered, report->bytes_total);
    assert_int_equal(report->staging_bytes, 0);
    raffia_model_release(model);
    if (!test_direct_works(path.text) || !model_file_chill(path.text)) {
        print_message("no O_DIRECT, or the page cache cannot be emptied here\n");
        skip();
    }
    assert_ok(raffia_model_load(path.text, &options, &model));
    check_model(model);
    report = raffia_model_report(model);
    /* Opening has brought the header's neighbourhood into the cache again. */
    assert_true(report->bytes_direct > report->bytes_total / 2);
    raffia_model_release(model);
}

static void many_small_tensors_take_few_reads(void **state)
{
    (void)state;
    enum { COUNT = 20000 };
    struct model_file_tensor *many = calloc(COUNT, sizeof *many);
    assert_non_null(many);
    for (int i = 0; i < COUNT; i++) {
        many[i] = model_file_bytes("", 64);
        snprintf(many[i].name, sizeof many[i].name, "layer.%d.weight", i);
    }
    struct test_path path = test_path_in(&directory, "many");
    model_file_write(path.text, many, COUNT, 8, 0, 0);
    static const raffia_reader readers[] = {RAFFIA_READER_BUFFERED, RAFFIA_READER_DIRECT};
    for (size_t reader = 0; reader < 2; reader++) {
        raffia_model *model;
        assert_ok(raffia_model_load(
            path.text,
            &LOAD_OPTIONS(.device = "host", .pages = RAFFIA_PAGES_OFF, .reader = readers[reader]),
            &model));
        for (int i = 0; i < COUNT; i++)
            model_file_check(raffia_model_tensor(model, many[i].name), many[i].offset, 64, 0);
        assert_true(raffia_model_report(model)->reads < 40);
        raffia_model_release(model);
    }
    free(many);
}

static void shards_are_read_as_one_model(void **state)
{
    (void)state;
    struct model_file_tensor first[] = {model_file_bytes("a", 5000),
                                        model_file_bytes("c", 3 * MIB)};
    struct model_file_tensor second[] = {model_file_bytes("b", 100 * KIB),
                                         model_file_bytes("d", 1)};
    struct test_path index = test_path_in(&directory, "model.safetensors.index.json");
    static const char weights[] =
        "{\"weight_map\":{\"a\":\"one.safetensors\",\"b\":\"two.safetensors\","
        "\"c\":\"one.safetensors\",\"d\":\"two.safetensors\"}}";
    model_file_write(test_path_in(&directory, "one.safetensors").text, first, 2, 4096, 0, 1);
    model_file_write(test_path_in(&directory, "two.safetensors").text, second, 2, 8, 0, 2);
    test_file_write(index.text, weights, sizeof weights - 1);
    raffia_model *model;
    assert_ok(raffia_model_load(
        index.text, &LOAD_OPTIONS(.device = "host", .pages = RAFFIA_PAGES_OFF, .threads = 2),
        &model));
    assert_int_equal(raffia_model_report(model)->files, 2);
    for (int i = 0; i < 2; i++) {
        model_file_check(raffia_model_tensor(model, first[i].name), first[i].offset, first[i].bytes,
                         1);
        model_file_check(raffia_model_tensor(model, second[i].name), second[i].offset,
                         second[i].bytes, 2);
    }
    raffia_model_release(model);
}

/* One byte of a slice of the U8 tensor of shape [5, 7, 300], by index. */
static unsigned char byte_of(const struct model_file_tensor *tensor, uint64_t i, uint64_t j,
                             uint64_t k)
{
    return model_file_byte(tensor->offset + (i * tensor->shape[1] + j) * tensor->shape[2] + k, 0);
}

static void check_slice(const raffia_tensor *slice, const struct model_file_tensor *tensor,
                        unsigned dimension, uint64_t begin)
{
    const unsigned char *data = slice->data;
    uint64_t from[3] = {0};
    from[dimension] = begin;
    for (uint64_t i = 0; i < slice->shape[0]; i++)
        for (uint64_t j = 0; j < slice->shape[1]; j++)
            for (uint64_t k = 0; k < slice->shape[2]; k++)
                assert_int_equal(*data++, byte_of(tensor, from[0] + i, from[1] + j, from[2] + k));
    assert_int_equal(data - (const unsigned char *)slice->data, slice->bytes);
}

static void slices_read_their_own_bytes_only(void **state)
{
    (void)state;
    struct model_file_tensor cube[] = {
        model_file_bytes("before", 333),
        {.name = "cube", .dtype = RAFFIA_DTYPE_U8, .rank = 3, .shape = {5, 70, 3000}},
    };
    struct test_path path = test_path_in(&directory, "cube");
    model_file_write(path.text, cube, 2, 8, 0, 0);
    static const raffia_reader readers[] = {RAFFIA_READER_BUFFERED, RAFFIA_READER_DIRECT};
    static const uint64_t ends[] = {3, 11, 2000};
    for (unsigned run = 0; run < 6; run++) {
        unsigned dimension = run % 3;
        raffia_tensor_slice slice = {
            .name = "cube", .dimension = dimension, .begin = 1, .end = ends[dimension]};
        raffia_model *model;
        assert_ok(raffia_model_load(path.text,
                                    &LOAD_OPTIONS(.device = "host", .pages = RAFFIA_PAGES_OFF,
                                                  .slices = &slice, .slice_count = 1,
                                                  .reader = readers[run / 3]),
                                    &model));
        const raffia_tensor *got = raffia_model_tensor(model, "cube");
        assert_int_equal(got->shape[dimension], ends[dimension] - 1);
        check_slice(got, &cube[1], dimension, 1);
        assert_int_equal(raffia_model_report(model)->bytes_total, got->bytes + 333);
        raffia_model_release(model);
    }
}

static void checksums_are_of_the_bytes_in_memory(void **state)
{
    (void)state;
    struct test_path path = test_path_in(&directory, "checksum");
    model_file_write(path.text, tensors, TENSORS, 8, 0, 0);
    raffia_model *model;
    assert_ok(raffia_model_load(path.text,
                                &LOAD_OPTIONS(.device = "host", .pages = RAFFIA_PAGES_OFF,
                                              .checksum = RAFFIA_CHECKSUM_XXH3, .threads = 3),
                                &model));
    for (size_t i = 0; i < TENSORS; i++) {
        const raffia_tensor *tensor = raffia_model_tensor_at(model, i);
        assert_int_equal(tensor->checksum, XXH3_64bits(tensor->data, tensor->bytes));
        assert_int_not_equal(tensor->checksum, 0);
    }
    raffia_model_release(model);
    assert_ok(raffia_model_load(
        path.text, &LOAD_OPTIONS(.device = "host", .pages = RAFFIA_PAGES_OFF), &model));
    assert_int_equal(raffia_model_tensor_at(model, 0)->checksum, 0);
    raffia_model_release(model);
}

static void staging_stays_within_the_budget(void **state)
{
    (void)state;
    struct test_path path = test_path_in(&directory, "budget");
    model_file_write(path.text, tensors, TENSORS, 8, 0, 0);
    if (!test_direct_works(path.text))
        skip();
    static const size_t budgets[] = {64 * KIB, 200 * KIB, MIB, 3 * MIB};
    for (size_t i = 0; i < sizeof budgets / sizeof *budgets; i++) {
        raffia_model *model;
        assert_ok(raffia_model_load(path.text,
                                    &LOAD_OPTIONS(.device = "host", .pages = RAFFIA_PAGES_OFF,
                                                  .reader = RAFFIA_READER_DIRECT, .threads = 4,
                                                  .budget_bytes = budgets[i]),
                                    &model));
        check_model(model);
        assert_in_range(raffia_model_report(model)->staging_bytes, 64 * KIB, budgets[i]);
        raffia_model_release(model);
    }
}

static int make_directory(void **state)
{
    (void)state;
    test_directory_make(&directory);
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
        cmocka_unit_test(every_byte_arrives),
        cmocka_unit_test(direct_reads_go_into_place_where_the_layout_allows),
        cmocka_unit_test(cold_files_are_read_directly_and_hot_ones_through_the_cache),
        cmocka_unit_test(many_small_tensors_take_few_reads),
        cmocka_unit_test(shards_are_read_as_one_model),
        cmocka_unit_test(slices_read_their_own_bytes_only),
        cmocka_unit_test(checksums_are_of_the_bytes_in_memory),
        cmocka_unit_test(staging_stays_within_the_budget),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
