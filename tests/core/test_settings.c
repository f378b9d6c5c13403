#include "core/error.h"
#include "core/log.h"
#include "core/settings.h"
#include "support/cmocka.h"

#include <raffia/pages.h>
#include <raffia/version.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the log said last, and how often it spoke. */
static char last_message[1024];
static int messages;

static void listen(void *context, raffia_log_level level, const char *message)
{
    *(raffia_log_level *)context = level;
    snprintf(last_message, sizeof last_message, "%s", message);
    messages++;
}

static raffia_log_level last_level;

static int quiet(void **state)
{
    (void)state;
    raffia_log_set_sink(listen, &last_level);
    messages = 0;
    return 0;
}

static void expect(const char *name, const char *text)
{
    char value[64];
    assert_ok(raffia_config_get(name, value, sizeof value));
    assert_string_equal(value, text);
}

static void settings_beat_environment_beats_default(void **state)
{
    (void)state;
    expect("load_budget", "64MiB");
    assert_false(core_setting_given(CORE_SETTING_LOAD_BUDGET));
    assert_int_equal(core_setting_size(CORE_SETTING_LOAD_BUDGET), 64 << 20);
    setenv("RAFFIA_LOAD_BUDGET", "32MiB", 1);
    assert_int_equal(core_setting_size(CORE_SETTING_LOAD_BUDGET), 32 << 20);
    assert_true(core_setting_given(CORE_SETTING_LOAD_BUDGET));
    assert_ok(raffia_config_set("load_budget", "1MiB"));
    assert_int_equal(core_setting_size(CORE_SETTING_LOAD_BUDGET), 1 << 20);
    expect("load_budget", "1MiB");
    assert_ok(raffia_config_set("load_budget", NULL));
    expect("load_budget", "32MiB");
    unsetenv("RAFFIA_LOAD_BUDGET");
    expect("load_budget", "64MiB");
}

static void a_bad_value_in_the_environment_is_warned_of_once(void **state)
{
    (void)state;
    core_error(RAFFIA_ERROR_BUSY, "before");
    setenv("RAFFIA_POOL_SHARE", "17%", 1);
    assert_float_equal(core_setting_share(CORE_SETTING_POOL_SHARE), 0.08, 1e-9);
    assert_float_equal(core_setting_share(CORE_SETTING_POOL_SHARE), 0.08, 1e-9);
    expect("pool_share", "8%");
    assert_int_equal(messages, 1);
    assert_int_equal(last_level, RAFFIA_LOG_WARN);
    assert_non_null(strstr(last_message, "RAFFIA_POOL_SHARE"));
    assert_non_null(strstr(last_message, "16%"));
    assert_string_equal(raffia_last_error(), "before");
    unsetenv("RAFFIA_POOL_SHARE");

    setenv("RAFFIA_DRIVER", "quantum", 1);
    expect("driver", "auto");
    assert_int_equal(messages, 2);
    assert_string_equal(raffia_last_error(), "before");
    unsetenv("RAFFIA_DRIVER");

    setenv("RAFFIA_THREADS", "", 1);
    assert_int_equal(core_setting_count(CORE_SETTING_THREADS), 0);
    assert_int_equal(messages, 2);
    unsetenv("RAFFIA_THREADS");
}

static void a_bad_value_of_the_program_is_refused(void **state)
{
    (void)state;
    assert_status(RAFFIA_ERROR_NOT_FOUND, raffia_config_set("paegs", "on"));
    assert_status(RAFFIA_ERROR_NOT_FOUND, raffia_config_set(NULL, "on"));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, raffia_config_set("pages", "maybe"));
    assert_error_mentions("off, try, on");
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, raffia_config_set("threads", "1025"));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, raffia_config_set("pool_share", "16.5%"));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT,
                  raffia_config_set("load_budget", "00000000000000000000000000000000000000000000000"
                                                   "00000000000000000000000000001MiB"));
    expect("pages", "off");
    char small[3];
    assert_status(RAFFIA_ERROR_LIMIT, raffia_config_get("pages", small, sizeof small));
    assert_status(RAFFIA_ERROR_NOT_FOUND, raffia_config_get("paegs", small, sizeof small));
    assert_int_equal(messages, 0);
}

static void every_setting_can_be_read_and_set_to_its_default(void **state)
{
    (void)state;
    size_t count = 0;
    const raffia_setting *settings = raffia_config_settings(&count);
    assert_int_equal(count, CORE_SETTING_COUNT);
    for (size_t i = 0; i < count; i++) {
        char variable[64] = "RAFFIA_";
        for (size_t c = 0; settings[i].name[c]; c++) {
            char upper = settings[i].name[c];
            variable[7 + c] = (char)(upper >= 'a' && upper <= 'z' ? upper - 'a' + 'A' : upper);
        }
        assert_string_equal(settings[i].environment, variable);
        assert_true(strlen(settings[i].help) > 0);
        expect(settings[i].name, settings[i].fallback);
        assert_ok(raffia_config_set(settings[i].name, settings[i].fallback));
        assert_ok(raffia_config_set(settings[i].name, NULL));
    }
}

static void the_pages_mode_in_force_is_a_setting(void **state)
{
    (void)state;
    assert_int_equal(raffia_pages_mode_in_force(), RAFFIA_PAGES_OFF);
    assert_ok(raffia_config_set("pages", "try"));
    assert_int_equal(raffia_pages_mode_in_force(), RAFFIA_PAGES_TRY);
    assert_ok(raffia_config_set("pages", NULL));
}

static void only_messages_up_to_the_level_are_written(void **state)
{
    (void)state;
    assert_int_equal(raffia_log_get_level(), RAFFIA_LOG_WARN);
    core_log_info("not written");
    core_log_debug("not written");
    assert_int_equal(messages, 0);
    core_log_error("%d", 1);
    core_log_warn("%d", 2);
    assert_int_equal(messages, 2);
    assert_ok(raffia_config_set("log", "debug"));
    core_log_debug("%d", 3);
    assert_string_equal(last_message, "3");
    raffia_log_set_level((raffia_log_level)77);
    assert_int_equal(raffia_log_get_level(), RAFFIA_LOG_DEBUG);
    raffia_log_set_level((raffia_log_level)-1);
    assert_int_equal(raffia_log_get_level(), RAFFIA_LOG_OFF);
    core_log_error("not written");
    assert_int_equal(messages, 3);
    assert_ok(raffia_config_set("log", NULL));
    assert_int_equal(raffia_log_get_level(), RAFFIA_LOG_WARN);
}

static void without_a_sink_messages_go_to_standard_error(void **state)
{
    (void)state;
    char text[128] = "";
    FILE *old = stderr, *file = fmemopen(text, sizeof text, "w");
    assert_non_null(file);
    raffia_log_set_sink(NULL, NULL);
    stderr = file;
    core_log_warn("hear %s", "me");
    stderr = old;
    fclose(file);
    assert_string_equal(text, "raffia: warn: hear me\n");
}

static void the_library_and_its_headers_are_of_one_version(void **state)
{
    (void)state;
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", RAFFIA_VERSION_MAJOR, RAFFIA_VERSION_MINOR,
             RAFFIA_VERSION_PATCH);
    assert_string_equal(raffia_version_text(), text);
    assert_int_equal(raffia_version(), RAFFIA_VERSION);
}

int main(void)
{
    size_t count = 0;
    const raffia_setting *settings = raffia_config_settings(&count);
    for (size_t i = 0; i < count; i++)
        unsetenv(settings[i].environment);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(settings_beat_environment_beats_default, quiet),
        cmocka_unit_test_setup(a_bad_value_in_the_environment_is_warned_of_once, quiet),
        cmocka_unit_test_setup(a_bad_value_of_the_program_is_refused, quiet),
        cmocka_unit_test_setup(every_setting_can_be_read_and_set_to_its_default, quiet),
        cmocka_unit_test_setup(the_pages_mode_in_force_is_a_setting, quiet),
        cmocka_unit_test_setup(only_messages_up_to_the_level_are_written, quiet),
        cmocka_unit_test_setup(without_a_sink_messages_go_to_standard_error, quiet),
        cmocka_unit_test(the_library_and_its_headers_are_of_one_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
