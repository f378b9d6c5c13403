/* The text of the setting `device_parameters`. */
#include "core/device_rules.h"
#include "core/settings.h"
#include "support/cmocka.h"
#include "support/log_capture.h"

#include <stdlib.h>
#include <string.h>

#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

static const char rules[] =
    "NVIDIA H200:threshold=32MiB,share=10%,maximum=32GiB;NVIDIA *:share=5%;AMD*:threshold=none";

static struct core_device_rule rule_for(const char *text, const char *model)
{
    struct core_device_rule rule;
    assert_ok(core_device_rules_find(text, model, &rule));
    return rule;
}

static void b3_the_first_rule_that_matches_the_model_counts(void **state)
{
    (void)state;
    struct core_device_rule rule = rule_for(rules, "NVIDIA H200");
    assert_true(rule.has_threshold && rule.has_share && rule.has_maximum);
    assert_int_equal(rule.threshold, 32 * MIB);
    assert_float_equal(rule.share, 0.1, 1e-12);
    assert_int_equal(rule.maximum, 32 * GIB);
    rule = rule_for(rules, "NVIDIA H100");
    assert_false(rule.has_threshold || rule.has_maximum);
    assert_float_equal(rule.share, 0.05, 1e-12);
    rule = rule_for(rules, "AMD Instinct");
    assert_int_equal(rule.threshold, RAFFIA_NONE);
    assert_false(rule.has_share);
    rule = rule_for(rules, "some other");
    assert_false(rule.has_threshold || rule.has_share || rule.has_maximum);
    rule = rule_for("", "NVIDIA H200");
    assert_false(rule.has_threshold || rule.has_share || rule.has_maximum);
    /* A pattern may have ':' in it. */
    assert_true(rule_for("GPU [[:digit:]]:share=1%", "GPU 7").has_share);
    assert_false(rule_for("GPU [[:digit:]]:share=1%", "GPU x").has_share);
}

static void text_that_is_not_all_rules_is_bad_for_every_model(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "x",
        ":share=1%",
        "x:",
        "x:share",
        "x:share=",
        "x:share=8",
        "x:share=17%",
        "x:share=1%,",
        "x:,share=1%",
        "x:share=1%;",
        ";x:share=1%",
        "x:share=1%;;y:share=1%",
        "x:share=1%,share=2%",
        "x:size=1MiB",
        "x:threshold=1 MiB",
        "x:threshold=-1",
        " x:share=1%",
        "x :share=1%",
        "x: share=1%",
        "x:share=1% ",
        "x:maximum=99999999999999999999",
        "x:share=1%;y",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct core_device_rule rule = {.threshold = 4711};
        if (core_device_rules_find(bad[i], "x", &rule) != RAFFIA_ERROR_INVALID_ARGUMENT)
            fail_msg("'%s' was accepted", bad[i]);
        assert_int_equal(rule.threshold, 4711);
    }
    char large[400];
    memset(large, 'x', sizeof large - 1);
    memcpy(large + 300, ":share=1%", 10);
    struct core_device_rule rule;
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, core_device_rules_find(large, "x", &rule));
}

static int forget(void **state)
{
    (void)state;
    unsetenv("RAFFIA_DEVICE_PARAMETERS");
    return raffia_config_set("device_parameters", NULL);
}

static void b3_a_bad_setting_is_warned_of_once_and_the_defaults_used(void **state)
{
    (void)state;
    struct core_device_rule rule;
    setenv("RAFFIA_DEVICE_PARAMETERS", "AMD*:threshold=lots", 1);
    log_capture_start();
    for (int i = 0; i < 3; i++)
        core_setting_device_rule("AMD Instinct", &rule);
    log_capture_stop();
    assert_int_equal(log_capture_count(), 1);
    assert_non_null(strstr(log_capture_line(0), "RAFFIA_DEVICE_PARAMETERS"));
    assert_non_null(strstr(log_capture_line(0), "lots"));
    assert_false(rule.has_threshold);
    setenv("RAFFIA_DEVICE_PARAMETERS", "AMD*:threshold=8MiB", 1);
    core_setting_device_rule("AMD Instinct", &rule);
    assert_int_equal(rule.threshold, 8 * MIB);
    assert_ok(raffia_config_set("device_parameters", rules));
    core_setting_device_rule("AMD Instinct", &rule);
    assert_int_equal(rule.threshold, RAFFIA_NONE);
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, raffia_config_set("device_parameters", "AMD"));
    core_setting_device_rule("AMD Instinct", &rule);
    assert_int_equal(rule.threshold, RAFFIA_NONE);
}

static void rules_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    static char large[2000];
    large[0] = '\0';
    while (strlen(large) < 1100)
        strcat(large, *large ? ";x:share=1%" : "x:share=1%");
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, raffia_config_set("device_parameters", large));
    assert_error_mentions("longer than");
}

static void each_change_of_a_setting_is_a_new_version(void **state)
{
    (void)state;
    const unsigned long before = core_settings_version();
    assert_ok(raffia_config_set("threads", "3"));
    assert_true(core_settings_version() > before);
    const unsigned long then = core_settings_version();
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, raffia_config_set("threads", "x"));
    assert_int_equal(core_settings_version(), then);
    assert_ok(raffia_config_set("threads", NULL));
    assert_true(core_settings_version() > then);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(b3_the_first_rule_that_matches_the_model_counts),
        cmocka_unit_test(text_that_is_not_all_rules_is_bad_for_every_model),
        cmocka_unit_test_teardown(b3_a_bad_setting_is_warned_of_once_and_the_defaults_used, forget),
        cmocka_unit_test_teardown(rules_that_do_not_fit_are_refused, forget),
        cmocka_unit_test(each_change_of_a_setting_is_a_new_version),
    };
    return cmocka_run_group_tests_name("device rules", tests, NULL, NULL);
}
