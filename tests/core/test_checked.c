/* Size arithmetic at its ends, and the clock. */
#include "core/checked.h"
#include "core/clock.h"
#include "support/cmocka.h"
#include "support/random.h"

#include <string.h>

static void sums_do_not_wrap(void **state)
{
    (void)state;
    size_t sum = 4711;
    assert_true(core_add(1, 2, &sum));
    assert_int_equal(sum, 3);
    assert_true(core_add(SIZE_MAX, 0, &sum));
    assert_true(sum == SIZE_MAX);
    sum = 4711;
    assert_false(core_add(SIZE_MAX, 1, &sum));
    assert_false(core_add(SIZE_MAX / 2 + 1, SIZE_MAX / 2 + 1, &sum));
    assert_int_equal(sum, 4711);
    sum = 5; /* the result may be an operand */
    assert_true(core_add(sum, sum, &sum));
    assert_int_equal(sum, 10);
}

static void products_do_not_wrap(void **state)
{
    (void)state;
    size_t product = 4711;
    assert_true(core_multiply(6, 7, &product));
    assert_int_equal(product, 42);
    assert_true(core_multiply(SIZE_MAX, 1, &product));
    assert_true(product == SIZE_MAX);
    assert_true(core_multiply(SIZE_MAX, 0, &product));
    assert_int_equal(product, 0);
    product = 4711;
    assert_false(core_multiply(SIZE_MAX, 2, &product));
    assert_false(core_multiply((size_t)1 << 32, (size_t)1 << 32, &product));
    assert_int_equal(product, 4711);
}

static void powers_of_two_are_known(void **state)
{
    (void)state;
    assert_false(core_is_power_of_two(0));
    for (unsigned shift = 0; shift < 64; shift++) {
        assert_true(core_is_power_of_two((size_t)1 << shift));
        if (shift > 1)
            assert_false(core_is_power_of_two(((size_t)1 << shift) - 1));
        if (shift > 0)
            assert_false(core_is_power_of_two(((size_t)1 << shift) + 1));
    }
    assert_false(core_is_power_of_two(SIZE_MAX));
}

static void alignment_agrees_with_division(void **state)
{
    (void)state;
    struct test_random random = test_random_seeded("alignment_agrees_with_division");
    for (int i = 0; i < 2000; i++) {
        size_t unit = (size_t)1 << test_random_below(&random, 30);
        size_t value = test_random_size(&random, (size_t)1 << 60), up = 0;
        assert_int_equal(core_is_aligned(value, unit), value % unit == 0);
        assert_int_equal(core_align_down(value, unit), value / unit * unit);
        assert_true(core_align_up(value, unit, &up));
        assert_int_equal(up, (value + unit - 1) / unit * unit);
        assert_int_equal(core_align_up_unchecked(value, unit), up);
    }
}

static void aligning_up_does_not_wrap(void **state)
{
    (void)state;
    size_t aligned = 4711;
    assert_false(core_align_up(SIZE_MAX, 2, &aligned));
    assert_false(core_align_up(SIZE_MAX - 4094, 4096, &aligned));
    assert_int_equal(aligned, 4711);
    assert_true(core_align_up(SIZE_MAX - 4095, 4096, &aligned));
    assert_true(aligned == SIZE_MAX - 4095);
    assert_true(core_align_up(SIZE_MAX, 1, &aligned));
    assert_true(aligned == SIZE_MAX);
    assert_true(core_align_up(0, (size_t)1 << 63, &aligned));
    assert_int_equal(aligned, 0);
    assert_true(core_align_up(1, (size_t)1 << 63, &aligned));
    assert_true(aligned == (size_t)1 << 63);
    assert_false(core_align_up(((size_t)1 << 63) + 1, (size_t)1 << 63, &aligned));
}

static void the_smaller_and_the_larger(void **state)
{
    (void)state;
    assert_int_equal(core_min(1, 2), 1);
    assert_int_equal(core_min(2, 1), 1);
    assert_int_equal(core_max(1, 2), 2);
    assert_int_equal(core_max(SIZE_MAX, 0), SIZE_MAX);
}

static void time_does_not_go_back(void **state)
{
    (void)state;
    uint64_t before = core_clock_ns();
    double seconds = core_clock_seconds();
    uint64_t after = core_clock_ns();
    assert_true(before > 0 && after >= before);
    assert_true(seconds >= (double)before * 0.999e-9 && seconds <= (double)after * 1.001e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_do_not_wrap),
        cmocka_unit_test(products_do_not_wrap),
        cmocka_unit_test(powers_of_two_are_known),
        cmocka_unit_test(alignment_agrees_with_division),
        cmocka_unit_test(aligning_up_does_not_wrap),
        cmocka_unit_test(the_smaller_and_the_larger),
        cmocka_unit_test(time_does_not_go_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
