/* Default sizes: the arithmetic of SPEC B4 and B12. */
#include "policy/sizing.h"
#include "support/cmocka.h"

#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

static void the_default_pool_is_a_share_capped_and_limited_by_what_is_free(void **state)
{
    (void)state;
    raffia_device_info device = {.total_bytes = 100 * GIB, .free_bytes = 90 * GIB};
    assert_int_equal(policy_default_pool_bytes(&device, 0.08, 16 * GIB, 2 * MIB), 8 * GIB);
    assert_int_equal(policy_default_pool_bytes(&device, 0.16, 16 * GIB, 2 * MIB), 16 * GIB);
    device.total_bytes = 1000 * GIB;
    assert_int_equal(policy_default_pool_bytes(&device, 0.08, 16 * GIB, 2 * MIB), 16 * GIB);
    device.free_bytes = 3 * GIB + 1;
    assert_int_equal(policy_default_pool_bytes(&device, 0.08, 16 * GIB, 2 * MIB), 3 * GIB);
    device.free_bytes = 0;
    assert_int_equal(policy_default_pool_bytes(&device, 0.08, 16 * GIB, 2 * MIB), 2 * MIB);
}

static void models_get_a_fifth_more_at_rest_and_three_tenths_when_rotating(void **state)
{
    (void)state;
    size_t bytes = 0;
    assert_true(policy_resident_model_bytes(10 * GIB, 2 * MIB, &bytes));
    assert_int_equal(bytes, 12 * GIB);
    assert_true(policy_rotating_models_bytes(10 * GIB, 2 * MIB, &bytes));
    assert_int_equal(bytes, 13 * GIB);
    assert_true(policy_resident_model_bytes(1, 2 * MIB, &bytes));
    assert_int_equal(bytes, 2 * MIB);
    assert_true(policy_resident_model_bytes(0, 2 * MIB, &bytes));
    assert_int_equal(bytes, 0);
    bytes = 4711;
    assert_false(policy_resident_model_bytes(SIZE_MAX / 2, 2 * MIB, &bytes));
    assert_false(policy_rotating_models_bytes(SIZE_MAX, 2 * MIB, &bytes));
    assert_int_equal(bytes, 4711);
}

static void chunks_are_bounded_and_whole_pages(void **state)
{
    (void)state;
    assert_int_equal(policy_chunk_bytes(0, 2 * MIB), 256 * MIB);
    assert_int_equal(policy_chunk_bytes(1, 2 * MIB), 2 * MIB);
    assert_int_equal(policy_chunk_bytes(5 * MIB, 2 * MIB), 6 * MIB);
    assert_int_equal(policy_chunk_bytes(5 * GIB, 2 * MIB), 256 * MIB);
    assert_int_equal(policy_chunk_bytes(5 * GIB, GIB), GIB);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_default_pool_is_a_share_capped_and_limited_by_what_is_free),
        cmocka_unit_test(models_get_a_fifth_more_at_rest_and_three_tenths_when_rotating),
        cmocka_unit_test(chunks_are_bounded_and_whole_pages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
