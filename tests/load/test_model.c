/* Asking a model, loaded or only looked at. */
#include "load_fixture.h"
#include "support/cmocka.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct test_directory directory;

static void an_inspected_model_has_everything_but_data(void **state)
{
    (void)state;
    struct model_file_tensor tensors[] = {
        {.name = "z", .dtype = RAFFIA_DTYPE_F16, .rank = 2, .shape = {3, 5}},
        {.name = "a", .dtype = RAFFIA_DTYPE_I64, .rank = 1, .shape = {7}},
        {.name = "m", .dtype = RAFFIA_DTYPE_U8, .rank = 2, .shape = {0, 5}},
    };
    struct test_path path = test_path_in(&directory, "inspected");
    model_file_write(path.text, tensors, 3, 8, 0, 0);
    raffia_model *model;
    assert_ok(raffia_model_inspect(path.text, NULL, &model));
    assert_int_equal(raffia_model_tensor_count(model), 3);
    static const char *const order[] = {"a", "m", "z"};
    for (size_t i = 0; i < 3; i++) {
        const raffia_tensor *tensor = raffia_model_tensor_at(model, i);
        assert_string_equal(tensor->name, order[i]);
        assert_ptr_equal(raffia_model_tensor(model, order[i]), tensor);
        assert_null(tensor->data);
        assert_string_equal(tensor->file, path.text);
    }
    assert_null(raffia_model_tensor_at(model, 3));
    assert_null(raffia_model_tensor(model, "b"));
    assert_null(raffia_model_tensor(model, ""));
    assert_null(raffia_model_tensor(model, NULL));
    const raffia_tensor *z = raffia_model_tensor(model, "z");
    assert_int_equal(z->dtype, RAFFIA_DTYPE_F16);
    assert_int_equal(z->shape[0], 3);
    assert_int_equal(z->shape[1], 5);
    assert_int_equal(z->bytes, 30);
    assert_int_equal(z->file_offset, tensors[0].offset);
    assert_int_equal(raffia_model_bytes(model), 30 + 56);
    assert_int_equal(raffia_model_bytes_needed(model), 256 + 56);
    assert_null(raffia_model_pool(model));
    static const raffia_load_report none;
    assert_memory_equal(raffia_model_report(model), &none, sizeof none);
    raffia_model_release(model);
    raffia_model_release(NULL);
}

static void names_are_found_among_many(void **state)
{
    (void)state;
    enum { COUNT = 5000 };
    struct model_file_tensor *many = calloc(COUNT, sizeof *many);
    assert_non_null(many);
    for (int i = 0; i < COUNT; i++) {
        many[i] = model_file_bytes("", 1);
        snprintf(many[i].name, sizeof many[i].name, "%d", i);
    }
    struct test_path path = test_path_in(&directory, "names");
    model_file_write(path.text, many, COUNT, 8, 0, 0);
    raffia_model *model;
    assert_ok(raffia_model_inspect(path.text, NULL, &model));
    for (int i = 0; i < COUNT; i++) {
        const raffia_tensor *tensor = raffia_model_tensor(model, many[i].name);
        assert_non_null(tensor);
        assert_string_equal(tensor->name, many[i].name);
    }
    assert_null(raffia_model_tensor(model, "5000"));
    raffia_model_release(model);
    free(many);
}

static void metadata_can_be_asked_and_walked(void **state)
{
    (void)state;
    struct test_path path = test_path_in(&directory, "metadata");
    test_safetensors_write(path.text, "{\"__metadata__\":{\"format\":\"pt\",\"a\":\"\"}}", 0);
    raffia_model *model;
    assert_ok(raffia_model_inspect(path.text, NULL, &model));
    assert_string_equal(raffia_model_metadata(model, "format"), "pt");
    assert_string_equal(raffia_model_metadata(model, "a"), "");
    assert_null(raffia_model_metadata(model, "b"));
    assert_null(raffia_model_metadata(model, NULL));
    const char *key, *value;
    assert_true(raffia_model_metadata_at(model, 0, &key, &value));
    assert_string_equal(value, raffia_model_metadata(model, key));
    assert_true(raffia_model_metadata_at(model, 1, &key, &value));
    assert_false(raffia_model_metadata_at(model, 2, &key, &value));
    raffia_model_release(model);
}

static void a_model_without_bytes_can_be_loaded_anywhere(void **state)
{
    (void)state;
    struct test_path path = test_path_in(&directory, "nothing");
    test_safetensors_write(path.text, "{}", 0);
    raffia_model *model;
    assert_ok(raffia_model_load(path.text, NULL, &model));
    assert_int_equal(raffia_model_tensor_count(model), 0);
    assert_null(raffia_model_tensor(model, "a"));
    assert_int_equal(raffia_model_report(model)->windows, 0);
    raffia_model_release(model);
    struct test_memory memory = test_memory_take(1, 4096, 0);
    assert_ok(raffia_model_load(path.text, &LOAD_OPTIONS(.memory = memory.at), &model));
    raffia_model_release(model);
    test_memory_free(&memory);
}

static size_t open_descriptors(void)
{
    size_t count = 0;
    DIR *descriptors = opendir("/proc/self/fd");
    assert_non_null(descriptors);
    while (readdir(descriptors))
        count++;
    closedir(descriptors);
    return count;
}

static void a_model_keeps_no_file_open(void **state)
{
    (void)state;
    struct model_file_tensor tensor = model_file_bytes("t", 100 * KIB);
    struct test_path path = test_path_in(&directory, "closed");
    model_file_write(path.text, &tensor, 1, 4096, 0, 0);
    struct test_memory memory = test_memory_for(path.text, NULL);
    size_t before = open_descriptors();
    raffia_model *inspected, *loaded;
    assert_ok(raffia_model_inspect(path.text, NULL, &inspected));
    assert_ok(raffia_model_load(path.text,
                                &LOAD_OPTIONS(.memory = memory.at, .memory_bytes = memory.bytes,
                                              .reader = RAFFIA_READER_DIRECT),
                                &loaded));
    assert_int_equal(open_descriptors(), before);
    assert_int_equal(remove(path.text), 0);
    model_file_check(raffia_model_tensor(loaded, "t"), tensor.offset, tensor.bytes, 0);
    raffia_model_release(inspected);
    raffia_model_release(loaded);
    test_memory_free(&memory);
}

static void failures_name_the_file(void **state)
{
    (void)state;
    struct model_file_tensor tensor = model_file_bytes("t", 1);
    struct test_path path = test_path_in(&directory, "failures");
    model_file_write(path.text, &tensor, 1, 8, 0, 0);
    raffia_model *model = NULL;
    const char *names[] = {"missing"};
    assert_status(
        RAFFIA_ERROR_NOT_FOUND,
        raffia_model_inspect(path.text, &LOAD_OPTIONS(.names = names, .name_count = 1), &model));
    assert_error_mentions(path.text);
    assert_error_mentions("'missing'");
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, raffia_model_load(NULL, NULL, &model));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, raffia_model_load(path.text, NULL, NULL));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, raffia_model_inspect(path.text, NULL, NULL));
    assert_error_mentions("model_p");
    struct test_path absent = test_path_in(&directory, "absent");
    assert_status(RAFFIA_ERROR_NOT_FOUND, raffia_model_load(absent.text, NULL, &model));
    assert_error_mentions(absent.text);
    assert_null(model);
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
        cmocka_unit_test(an_inspected_model_has_everything_but_data),
        cmocka_unit_test(names_are_found_among_many),
        cmocka_unit_test(metadata_can_be_asked_and_walked),
        cmocka_unit_test(a_model_without_bytes_can_be_loaded_anywhere),
        cmocka_unit_test(a_model_keeps_no_file_open),
        cmocka_unit_test(failures_name_the_file),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
