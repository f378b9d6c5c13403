/* The shape of made models: near the size asked for, whatever that is. */
#include "cli/model_shape.h"
#include "support/cmocka.h"
#include "support/fault_loop.h"
#include "support/random.h"

#include <string.h>

static void assert_shape_fits(uint64_t bytes, raffia_dtype dtype, unsigned element)
{
    struct model_shape shape;
    assert_ok(model_shape_make(bytes, dtype, &shape));
    uint64_t sum = 0;
    for (size_t i = 0; i < shape.count; i++) {
        const struct model_tensor *tensor = &shape.tensors[i];
        uint64_t elements = tensor->shape[0] * (tensor->rank == 2 ? tensor->shape[1] : 1);
        assert_true(elements > 0);
        assert_true(tensor->bytes == elements * element);
        sum += tensor->bytes;
    }
    assert_true(sum == shape.bytes);
    assert_true(shape.bytes <= bytes);
    /* Whole elements, so up to one of them is lost before the rows are counted. */
    assert_true(bytes - shape.bytes < 2 * shape.hidden * element + element);
    model_shape_free(&shape);
}

static void any_size_is_met_within_two_rows(void **state)
{
    struct test_random random = test_random_seeded("any_size_is_met_within_two_rows");
    for (int i = 0; i < 300; i++) {
        uint64_t bytes = MODEL_SHAPE_BYTES_MIN + test_random_size(&random, (size_t)64 << 30);
        assert_shape_fits(bytes, RAFFIA_DTYPE_BF16, 2);
        assert_shape_fits(bytes, RAFFIA_DTYPE_F64, 8);
        assert_shape_fits(bytes, RAFFIA_DTYPE_U8, 1);
    }
    assert_shape_fits(MODEL_SHAPE_BYTES_MIN, RAFFIA_DTYPE_C64, 8);
    assert_shape_fits(MODEL_SHAPE_BYTES_MAX, RAFFIA_DTYPE_U8, 1);
    (void)state;
}

static void names_are_those_of_a_language_model(void **state)
{
    struct model_shape shape;
    assert_ok(model_shape_make((size_t)1 << 30, RAFFIA_DTYPE_BF16, &shape));
    assert_string_equal(shape.tensors[0].name, "model.embed_tokens.weight");
    assert_string_equal(shape.tensors[2].name, "model.layers.0.self_attn.q_proj.weight");
    assert_string_equal(shape.tensors[shape.count - 1].name, "lm_head.weight");
    assert_int_equal(shape.count, shape.layers * 9 + 3);
    model_shape_free(&shape);
    (void)state;
}

static raffia_status make_and_free(void *context)
{
    struct model_shape shape;
    raffia_status status = model_shape_make(MODEL_SHAPE_BYTES_MIN, RAFFIA_DTYPE_BF16, &shape);
    if (!status)
        model_shape_free(&shape);
    (void)context;
    return status;
}

static void want_of_memory_leaves_nothing(void **state)
{
    assert_true(fault_loop(make_and_free, NULL, 1000) > 3);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_size_is_met_within_two_rows),
        cmocka_unit_test(names_are_those_of_a_language_model),
        cmocka_unit_test(want_of_memory_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
