/* What policy goes by on a device: settings, and before them the rule for its model. */
#include "policy/parameters.h"
#include "support/cmocka.h"

#include <raffia/config.h>

#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

static const char *const names[] = {"device_parameters", "huge_threshold", "pool_share",
                                    "pool_maximum", "page_size"};

static int forget(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_ok(raffia_config_set(names[i], NULL));
    return 0;
}

static struct policy_parameters of(const raffia_device_info *device)
{
    struct policy_parameters parameters;
    policy_parameters_for(device, &parameters);
    return parameters;
}

static void b3_general_settings_hold_where_no_rule_speaks(void **state)
{
    (void)state;
    const raffia_device_info device = {.name = "cuda:0", .model = "NVIDIA H200"};
    struct policy_parameters parameters = of(&device);
    assert_int_equal(parameters.threshold, 16 * MIB);
    assert_int_equal(parameters.page_size, 2 * MIB);
    assert_float_equal(parameters.pool_share, 0.08, 1e-12);
    assert_int_equal(parameters.pool_maximum, 16 * GIB);
    assert_ok(raffia_config_set("huge_threshold", "4MiB"));
    assert_ok(raffia_config_set("page_size", "1GiB"));
    assert_ok(raffia_config_set("pool_share", "16%"));
    assert_ok(raffia_config_set("pool_maximum", "none"));
    parameters = of(&device);
    assert_int_equal(parameters.threshold, 4 * MIB);
    assert_int_equal(parameters.page_size, GIB);
    assert_float_equal(parameters.pool_share, 0.16, 1e-12);
    assert_int_equal(parameters.pool_maximum, RAFFIA_NONE);
}

static void b3_a_rule_for_the_model_goes_before_them_one_by_one(void **state)
{
    (void)state;
    const raffia_device_info nvidia = {.model = "NVIDIA H200"}, amd = {.model = "AMD Instinct"};
    assert_ok(raffia_config_set("pool_share", "4%"));
    assert_ok(raffia_config_set("device_parameters",
                                "NVIDIA H200:share=10%,maximum=32GiB;AMD*:threshold=8MiB"));
    struct policy_parameters parameters = of(&nvidia);
    assert_int_equal(parameters.threshold, 16 * MIB);
    assert_float_equal(parameters.pool_share, 0.1, 1e-12);
    assert_int_equal(parameters.pool_maximum, 32 * GIB);
    parameters = of(&amd);
    assert_int_equal(parameters.threshold, 8 * MIB);
    assert_float_equal(parameters.pool_share, 0.04, 1e-12);
    assert_int_equal(parameters.pool_maximum, 16 * GIB);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(b3_general_settings_hold_where_no_rule_speaks, forget),
        cmocka_unit_test_teardown(b3_a_rule_for_the_model_goes_before_them_one_by_one, forget),
    };
    return cmocka_run_group_tests_name("policy parameters", tests, NULL, NULL);
}
