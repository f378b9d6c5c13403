/* Random steps against the model, without and with failing host memory. */
#include "core/fault.h"
#include "core/memory.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/space_model.h"

#include <string.h>

#define STEPS         4000
#define COMPARE_EVERY 50
#define REGIME_STEPS  400
#define LARGE_ADDS    16

static const size_t granules[] = {256, 4096, (size_t)2 << 20};

/* Which verbs are likely. Regimes alternate, so that the space fills up, churns and drains. */
static const unsigned char weights[][SPACE_MODEL_VERBS] = {
    {6, 1, 40, 10, 2, 8, 4, 2, 2, 2},
    {3, 3, 20, 20, 3, 20, 6, 3, 3, 3},
    {2, 8, 6, 40, 3, 8, 4, 2, 2, 2},
};

static enum space_model_verb choose_verb(struct test_random *random, const unsigned char *weight)
{
    size_t total = 0;
    for (int verb = 0; verb < SPACE_MODEL_VERBS; verb++)
        total += weight[verb];
    size_t left = test_random_below(random, total);
    int verb = 0;
    for (; left >= weight[verb]; verb++)
        left -= weight[verb];
    return (enum space_model_verb)verb;
}

static struct space_model_step choose_step(struct test_random *random, const unsigned char *weight)
{
    struct space_model_step step = {
        .verb = choose_verb(random, weight),
        .a = (uint32_t)test_random_next(random),
        .b = (uint32_t)test_random_next(random),
        .c = (uint32_t)test_random_next(random),
    };
    return step;
}

struct outcome {
    size_t ok[SPACE_MODEL_VERBS], out_of_memory, out_of_host_memory;
    uint32_t most_blocks;
};

static void note(struct outcome *outcome, const struct space_model *model,
                 enum space_model_verb verb, raffia_status status)
{
    outcome->ok[verb] += status == RAFFIA_OK;
    outcome->out_of_memory += status == RAFFIA_ERROR_OUT_OF_MEMORY;
    outcome->out_of_host_memory += status == RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    if (space_model_blocks(model) > outcome->most_blocks)
        outcome->most_blocks = space_model_blocks(model);
}

static struct outcome run(struct test_random *random, size_t granule, uint32_t length, bool faults)
{
    struct outcome outcome = {0};
    struct space_model *model = space_model_create(granule, length);
    assert_non_null(model);
    space_model_allow_faults(model, faults);
    for (int i = 0; i < LARGE_ADDS; i++) {
        struct space_model_step step = choose_step(random, weights[0]);
        step.verb = SPACE_MODEL_ADD;
        step.c = 0; /* a valid part of any length */
        space_model_run(model, &step);
    }
    raffia_status status = RAFFIA_OK;
    for (size_t i = 0; i < STEPS; i++) {
        struct space_model_step step =
            choose_step(random, weights[i / REGIME_STEPS % (sizeof weights / sizeof *weights)]);
        /* Each growth fails when it is first tried, and may succeed when it is tried again. */
        if (faults && status != RAFFIA_ERROR_OUT_OF_HOST_MEMORY)
            core_fault_arm(1);
        status = space_model_run(model, &step);
        core_fault_disarm();
        note(&outcome, model, step.verb, status);
        if (i % COMPARE_EVERY == 0)
            space_model_compare(model);
    }
    space_model_free_all(model);
    space_model_compare(model);
    space_model_destroy(model);
    assert_int_equal(core_memory_live(), 0);
    return outcome;
}

static void a_space_agrees_with_its_model(void **state)
{
    (void)state;
    struct test_random random = test_random_seeded("a_space_agrees_with_its_model");
    for (size_t i = 0; i < sizeof granules / sizeof *granules; i++) {
        struct outcome outcome = run(&random, granules[i], 700, false);
        /* A test that tries nothing proves nothing. */
        for (int verb = 0; verb < SPACE_MODEL_VERBS; verb++)
            if (verb != SPACE_MODEL_FREE_STALE)
                assert_true(outcome.ok[verb] > 0);
        assert_true(outcome.out_of_memory > 0);
        assert_true(outcome.most_blocks > 20);
        assert_int_equal(outcome.out_of_host_memory, 0);
    }
}

static void a_small_space_agrees_with_its_model(void **state)
{
    (void)state;
    struct test_random random = test_random_seeded("a_small_space_agrees_with_its_model");
    for (uint32_t length = 1; length < 12; length++)
        run(&random, granules[length % 3], length, false);
}

static void failing_host_memory_changes_nothing(void **state)
{
    (void)state;
    struct test_random random = test_random_seeded("failing_host_memory_changes_nothing");
    size_t refused = 0;
    for (size_t i = 0; i < sizeof granules / sizeof *granules; i++)
        refused += run(&random, granules[i], 700, true).out_of_host_memory;
    assert_true(refused > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_space_agrees_with_its_model),
        cmocka_unit_test(a_small_space_agrees_with_its_model),
        cmocka_unit_test(failing_host_memory_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
