/* The arithmetic of a step. */
#include "cli/step_work.h"
#include "support/cmocka.h"

#include <string.h>

#define BATCH   1000
#define WEIGHTS 300

static float weights[WEIGHTS], batch[BATCH], twin[BATCH + 1];

static void numbers_depend_on_place_and_seed_alone(void **state)
{
    step_fill(batch, BATCH, 7);
    step_fill(twin + 1, BATCH, 7);
    assert_memory_equal(batch, twin + 1, sizeof batch);
    step_fill(twin, BATCH, 8);
    assert_memory_not_equal(batch, twin, sizeof batch);
    for (int i = 0; i < BATCH; i++)
        assert_true(batch[i] >= 0 && batch[i] < 1);
    (void)state;
}

static void a_sweep_goes_round_the_weights_from_where_it_starts(void **state)
{
    step_fill(weights, WEIGHTS, 1);
    step_fill(batch, BATCH, 2);
    memcpy(twin, batch, sizeof batch);
    step_sweep(batch, BATCH, weights, WEIGHTS, 7 * WEIGHTS + 250, 0.5f);
    for (int i = 0; i < BATCH; i++) {
        float wanted = twin[i] + 0.5f * weights[(i + 250) % WEIGHTS];
        float difference = batch[i] - wanted;
        assert_true(difference < 1e-6f && difference > -1e-6f);
    }
    (void)state;
}

static void a_gather_is_the_same_wherever_the_weights_lie(void **state)
{
    step_fill(weights, WEIGHTS, 1);
    memcpy(twin + 1, weights, sizeof weights);
    float one = step_gather(weights, WEIGHTS, 10001, 3);
    float other = step_gather(twin + 1, WEIGHTS, 10001, 3);
    assert_memory_equal(&one, &other, sizeof one);
    /* The weights' mean is about a half. */
    assert_true(one > 4000 && one < 6000);
    float seeded = step_gather(weights, WEIGHTS, 10001, 4);
    assert_memory_not_equal(&one, &seeded, sizeof one);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_depend_on_place_and_seed_alone),
        cmocka_unit_test(a_sweep_goes_round_the_weights_from_where_it_starts),
        cmocka_unit_test(a_gather_is_the_same_wherever_the_weights_lie),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
