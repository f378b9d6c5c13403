/* Which tensors and which bytes of them. */
#include "load/catalog.h"
#include "load/plan.h"
#include "load/select.h"
#include "support/cmocka.h"
#include "support/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPTIONS(...)                                                                               \
    ((raffia_load_options){.struct_size = sizeof(raffia_load_options), __VA_ARGS__})

static const uint64_t matrix_shape[] = {4, 6}, packed_shape[] = {4, 3}, empty_shape[] = {0, 7};

/* In order of name, as a catalog has them. */
static struct catalog_tensor tensors[] = {
    {.name = "a[0]",
     .dtype = RAFFIA_DTYPE_F16,
     .rank = 2,
     .shape = matrix_shape,
     .offset = 100,
     .bytes = 48},
    {.name = "a0",
     .dtype = RAFFIA_DTYPE_F32,
     .rank = 2,
     .shape = matrix_shape,
     .offset = 148,
     .bytes = 96},
    {.name = "empty", .dtype = RAFFIA_DTYPE_F32, .rank = 2, .shape = empty_shape, .offset = 244},
    {.name = "layer.1.bias",
     .dtype = RAFFIA_DTYPE_U8,
     .rank = 2,
     .shape = matrix_shape,
     .offset = 244,
     .bytes = 24},
    {.name = "layer.1.weight",
     .dtype = RAFFIA_DTYPE_U8,
     .rank = 2,
     .shape = matrix_shape,
     .offset = 268,
     .bytes = 24},
    {.name = "packed",
     .dtype = RAFFIA_DTYPE_F4,
     .rank = 2,
     .shape = packed_shape,
     .offset = 292,
     .bytes = 6},
    {.name = "scalar", .dtype = RAFFIA_DTYPE_F64, .rank = 0, .offset = 298, .bytes = 8},
};
static struct catalog_file file = {.path = (char[]){"model"}, .bytes = 306};
static const struct catalog catalog = {.files = &file,
                                       .file_count = 1,
                                       .tensors = tensors,
                                       .tensor_count = sizeof tensors / sizeof *tensors};

static void everything_is_taken_when_nothing_is_said(void **state)
{
    (void)state;
    struct load_selection selection;
    assert_ok(load_select(&catalog, &OPTIONS(0), &selection));
    assert_int_equal(selection.count, catalog.tensor_count);
    uint64_t bytes = 0;
    for (size_t i = 0; i < selection.count; i++) {
        assert_ptr_equal(selection.tensors[i].tensor, &tensors[i]);
        assert_ptr_equal(selection.tensors[i].shape, tensors[i].shape);
        bytes += tensors[i].bytes;
    }
    assert_int_equal(selection.bytes, bytes);
    load_selection_free(&selection);
}

static void selects(const char *const *names, size_t count, const char *expected)
{
    struct load_selection selection;
    assert_ok(load_select(&catalog, &OPTIONS(.names = names, .name_count = count), &selection));
    char got[256] = "";
    for (size_t i = 0; i < selection.count; i++) {
        strcat(got, selection.tensors[i].tensor->name);
        strcat(got, " ");
    }
    assert_string_equal(got, expected);
    load_selection_free(&selection);
}

static void names_and_patterns_choose(void **state)
{
    (void)state;
    selects((const char *const[]){"scalar"}, 1, "scalar ");
    selects((const char *const[]){"scalar", "a0", "a0"}, 3, "a0 scalar ");
    selects((const char *const[]){"layer.*.bias", "s*"}, 2, "layer.1.bias scalar ");
    selects((const char *const[]){"*weight", "layer.?.*"}, 2, "layer.1.bias layer.1.weight ");
    /* A name that reads like a pattern is both. */
    selects((const char *const[]){"a[0]"}, 1, "a[0] a0 ");
}

static void a_name_that_matches_nothing_is_an_error(void **state)
{
    (void)state;
    struct load_selection selection;
    const char *missing[] = {"scalar", "layer.1.weigh"}, *pattern[] = {"*.norm"};
    assert_status(RAFFIA_ERROR_NOT_FOUND,
                  load_select(&catalog, &OPTIONS(.names = missing, .name_count = 2), &selection));
    assert_error_mentions("layer.1.weigh");
    assert_status(RAFFIA_ERROR_NOT_FOUND,
                  load_select(&catalog, &OPTIONS(.names = pattern, .name_count = 1), &selection));
    assert_error_mentions("*.norm");
    raffia_tensor_slice slice = {.name = "layer.2.*", .end = 1};
    assert_status(RAFFIA_ERROR_NOT_FOUND,
                  load_select(&catalog, &OPTIONS(.slices = &slice, .slice_count = 1), &selection));
    assert_error_mentions("layer.2.*");
    /* A slice of a tensor that is not loaded is as much of a mistake. */
    const char *other[] = {"scalar"};
    slice.name = "a0";
    assert_status(RAFFIA_ERROR_NOT_FOUND, load_select(&catalog,
                                                      &OPTIONS(.names = other, .name_count = 1,
                                                               .slices = &slice, .slice_count = 1),
                                                      &selection));
}

static void the_first_slice_that_matches_wins(void **state)
{
    (void)state;
    raffia_tensor_slice slices[] = {
        {.name = "layer.*", .dimension = 0, .begin = 1, .end = 3},
        {.name = "layer.1.bias", .dimension = 1, .begin = 0, .end = 1},
    };
    struct load_selection selection;
    assert_ok(load_select(&catalog, &OPTIONS(.slices = slices, .slice_count = 2), &selection));
    const struct load_selected *bias = &selection.tensors[3];
    assert_int_equal(bias->shape[0], 2);
    assert_int_equal(bias->shape[1], 6);
    assert_int_equal(bias->bytes, 12);
    assert_int_equal(bias->file_offset, 244 + 6);
    assert_int_equal(bias->piece_bytes, 12);
    load_selection_free(&selection);
}

static void refuses(raffia_tensor_slice slice, const char *mention)
{
    struct load_selection selection;
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT,
                  load_select(&catalog, &OPTIONS(.slices = &slice, .slice_count = 1), &selection));
    assert_error_mentions(slice.name);
    assert_error_mentions(mention);
}

static void slices_out_of_bounds_are_refused(void **state)
{
    (void)state;
    refuses((raffia_tensor_slice){"a0", 0, 0, 5}, "0..5");
    refuses((raffia_tensor_slice){"a0", 1, 4, 3}, "4..3");
    refuses((raffia_tensor_slice){"a0", 1, UINT64_MAX, UINT64_MAX}, "dimension 1");
    refuses((raffia_tensor_slice){"a0", 2, 0, 1}, "dimension 2");
    refuses((raffia_tensor_slice){"scalar", 0, 0, 1}, "dimension 0");
    refuses((raffia_tensor_slice){"empty", 0, 0, 1}, "0..1");
}

static void slices_of_packed_types_fall_on_whole_bytes(void **state)
{
    (void)state;
    /* Rows of three half-bytes: two rows are three bytes, one row is not whole. */
    refuses((raffia_tensor_slice){"packed", 0, 1, 4}, "whole bytes");
    refuses((raffia_tensor_slice){"packed", 1, 0, 2}, "whole bytes");
    raffia_tensor_slice slice = {"packed", 0, 2, 4};
    struct load_selection selection;
    assert_ok(load_select(&catalog, &OPTIONS(.slices = &slice, .slice_count = 1), &selection));
    assert_int_equal(selection.tensors[5].bytes, 3);
    assert_int_equal(selection.tensors[5].file_offset, 292 + 3);
    load_selection_free(&selection);
}

static void empty_slices_and_slices_of_empty_tensors_have_no_bytes(void **state)
{
    (void)state;
    raffia_tensor_slice slices[] = {{"a0", 1, 3, 3}, {"empty", 1, 2, 5}};
    struct load_selection selection;
    assert_ok(load_select(&catalog, &OPTIONS(.slices = slices, .slice_count = 2), &selection));
    assert_int_equal(selection.tensors[1].bytes, 0);
    assert_int_equal(selection.tensors[1].shape[1], 0);
    assert_int_equal(selection.tensors[2].bytes, 0);
    assert_int_equal(selection.tensors[2].shape[0], 0);
    assert_int_equal(selection.tensors[2].shape[1], 3);
    load_selection_free(&selection);
}

/* The file offset of every byte of a slice, one index after another. */
static size_t naive_offsets(const struct catalog_tensor *tensor, const raffia_tensor_slice *slice,
                            size_t element, uint64_t *offsets)
{
    uint64_t elements = tensor->bytes / element, stride = 1;
    for (unsigned d = slice->dimension + 1; d < tensor->rank; d++)
        stride *= tensor->shape[d];
    size_t count = 0;
    for (uint64_t e = 0; e < elements; e++) {
        uint64_t index = e / stride % tensor->shape[slice->dimension];
        if (index < slice->begin || index >= slice->end)
            continue;
        for (size_t b = 0; b < element; b++)
            offsets[count++] = tensor->offset + e * element + b;
    }
    return count;
}

static void pieces_of_any_slice_are_those_of_the_obvious_loop(void **state)
{
    (void)state;
    enum { ROUNDS = 2000, EXTENT = 7, RANK = 4, BYTES = 8 * EXTENT * EXTENT * EXTENT * EXTENT };
    static uint64_t expected[BYTES];
    struct test_random random = test_random_seeded(__func__);
    static const raffia_dtype types[] = {RAFFIA_DTYPE_U8, RAFFIA_DTYPE_BF16, RAFFIA_DTYPE_F64};
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t shape[RANK], bytes = 0;
        unsigned rank = 1 + (unsigned)test_random_below(&random, RANK);
        raffia_dtype dtype = types[test_random_below(&random, 3)];
        bytes = raffia_dtype_bits(dtype) / 8;
        for (unsigned d = 0; d < rank; d++)
            bytes *= shape[d] = 1 + test_random_below(&random, EXTENT);
        struct catalog_tensor tensor = {.name = "t",
                                        .dtype = dtype,
                                        .rank = rank,
                                        .shape = shape,
                                        .offset = test_random_below(&random, 10000),
                                        .bytes = bytes};
        struct catalog one = {
            .files = &file, .file_count = 1, .tensors = &tensor, .tensor_count = 1};
        raffia_tensor_slice slice = {.name = "t",
                                     .dimension = (unsigned)test_random_below(&random, rank)};
        slice.end = test_random_below(&random, shape[slice.dimension] + 1);
        slice.begin = test_random_below(&random, slice.end + 1);
        struct load_selection selection;
        struct load_plan plan;
        assert_ok(load_select(&one, &OPTIONS(.slices = &slice, .slice_count = 1), &selection));
        assert_ok(load_plan_make(&selection, &plan));
        size_t count = naive_offsets(&tensor, &slice, raffia_dtype_bits(dtype) / 8, expected),
               at = 0;
        assert_int_equal(selection.bytes, count);
        struct load_cursor cursor = {0};
        while (cursor.item < plan.item_count) {
            struct load_piece piece = load_piece_next(&plan, &cursor, UINT64_MAX);
            assert_int_equal(piece.position, at);
            for (uint64_t b = 0; b < piece.bytes; b++)
                assert_int_equal(piece.file_offset + b, expected[at++]);
        }
        assert_int_equal(at, count);
        load_plan_free(&plan);
        load_selection_free(&selection);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_is_taken_when_nothing_is_said),
        cmocka_unit_test(names_and_patterns_choose),
        cmocka_unit_test(a_name_that_matches_nothing_is_an_error),
        cmocka_unit_test(the_first_slice_that_matches_wins),
        cmocka_unit_test(slices_out_of_bounds_are_refused),
        cmocka_unit_test(slices_of_packed_types_fall_on_whole_bytes),
        cmocka_unit_test(empty_slices_and_slices_of_empty_tensors_have_no_bytes),
        cmocka_unit_test(pieces_of_any_slice_are_those_of_the_obvious_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
