#include "device_fixture.h"

#include "support/cmocka.h"

#include <raffia/log.h>

#include <stdlib.h>
#include <string.h>

struct test_directory directory;
struct test_path path;
struct model_file_tensor tensors[TENSORS] = {
    {.name = "a", .dtype = RAFFIA_DTYPE_U8, .rank = 1, .shape = {1024 * 1024 + 256}},
    {.name = "b", .dtype = RAFFIA_DTYPE_U8, .rank = 2, .shape = {100, 700}},
    {.name = "c", .dtype = RAFFIA_DTYPE_U8, .rank = 1, .shape = {3}},
    {.name = "d", .dtype = RAFFIA_DTYPE_U8, .rank = 1, .shape = {0}},
    {.name = "e", .dtype = RAFFIA_DTYPE_U8, .rank = 1, .shape = {300 * 1024}},
};

void check_tensor(const raffia_model *model, const char *name, uint64_t offset, size_t bytes)
{
    const raffia_tensor *tensor = raffia_model_tensor(model, name);
    assert_non_null(tensor);
    assert_int_equal(tensor->bytes, bytes);
    if (bytes)
        assert_int_equal((uintptr_t)tensor->data % RAFFIA_TENSOR_ALIGNMENT, 0);
    unsigned char *copy = malloc(bytes + 1);
    assert_non_null(copy);
    copy[bytes] = 0x77;
    assert_ok(raffia_model_read(model, tensor, 0, copy, bytes));
    assert_int_equal(copy[bytes], 0x77);
    for (size_t i = 0; i < bytes; i++)
        if (copy[i] != model_file_byte(offset + i, 0))
            fail_msg("tensor '%s': byte %zu of %zu is wrong", name, i, bytes);
    free(copy);
}

void check_all(const raffia_model *model)
{
    for (int i = 0; i < TENSORS; i++)
        check_tensor(model, tensors[i].name, tensors[i].offset, tensors[i].bytes);
}

const raffia_load_report *load_and_check(const raffia_load_options *options, raffia_model **model_p)
{
    assert_ok(raffia_model_load(path.text, options, model_p));
    check_all(*model_p);
    const raffia_load_report *report = raffia_model_report(*model_p);
    assert_non_null(report->pinned);
    assert_true(report->bytes_copied >= report->bytes_total);
    assert_int_equal(report->bytes_buffered + report->bytes_direct, report->bytes_total);
    assert_int_equal(report->staging_bytes, report->slots * report->slot_bytes);
    return report;
}

void expect_failure(raffia_status expected, raffia_load_options options, const char *mention)
{
    raffia_model *model = NULL;
    assert_status(expected, raffia_model_load(path.text, &options, &model));
    assert_error_mentions(mention);
    assert_null(model);
    struct sim_usage usage;
    sim_query(0, &usage);
    assert_int_equal(usage.queued, 0);
    assert_int_equal(usage.chunks + usage.blocks, 0);
    assert_int_equal(usage.misuses, 0);
}

int make_directory(void **state)
{
    (void)state;
    raffia_log_set_level(RAFFIA_LOG_OFF);
    test_directory_make(&directory);
    path = test_path_in(&directory, "model.safetensors");
    model_file_write(path.text, tensors, TENSORS, DATA_OFFSET, 0, 0);
    return 0;
}

int remove_directory(void **state)
{
    (void)state;
    test_directory_remove(&directory);
    return 0;
}

int hide_memory(void **state)
{
    (void)state;
    sim_reset();
    for (int i = 0; i < 2; i++)
        assert_ok(sim_configure(i, &(struct sim_config){.cpu_inaccessible = true}));
    return 0;
}

int left_idle(void **state)
{
    (void)state;
    raffia_load_release_staging();
    bool idle = sim_is_idle();
    sim_reset();
    return idle ? 0 : -1;
}

int left_anyhow(void **state)
{
    (void)state;
    raffia_load_release_staging();
    sim_reset();
    return 0;
}
