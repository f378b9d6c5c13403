/* Settings: default < environment < raffia_config_set(). */
#include "core/error.h"
#include "core/settings.h"
#include "support/cmocka.h"
#include "support/log_capture.h"

#include <raffia/log.h>
#include <raffia/pages.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static void assert_text(const char *name, const char *expected)
{
    char text[64] = "";
    assert_ok(raffia_config_get(name, text, sizeof text));
    assert_string_equal(text, expected);
}

static int forget_everything(void **state)
{
    (void)state;
    size_t count;
    const raffia_setting *settings = raffia_config_settings(&count);
    for (size_t i = 0; i < count; i++) {
        unsetenv(settings[i].environment);
        assert_ok(raffia_config_set(settings[i].name, NULL));
    }
    log_capture_stop();
    return 0;
}

static void the_table_is_complete_and_its_defaults_parse(void **state)
{
    (void)state;
    size_t count = 0;
    const raffia_setting *settings = raffia_config_settings(&count);
    assert_int_equal(count, CORE_SETTING_COUNT);
    for (size_t i = 0; i < count; i++) {
        assert_text(settings[i].name, settings[i].fallback);
        assert_ok(raffia_config_set(settings[i].name, settings[i].fallback));
        assert_int_equal(strncmp(settings[i].environment, "RAFFIA_", 7), 0);
        assert_true(strlen(settings[i].help) > 0);
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(settings[i].name, settings[j].name);
            assert_string_not_equal(settings[i].environment, settings[j].environment);
        }
    }
}

static void defaults_are_those_of_the_table(void **state)
{
    (void)state;
    assert_int_equal(core_setting_choice(CORE_SETTING_PAGES), RAFFIA_PAGES_OFF);
    assert_int_equal(core_setting_size(CORE_SETTING_PAGE_SIZE), 2 << 20);
    assert_int_equal(core_setting_choice(CORE_SETTING_LOG), RAFFIA_LOG_WARN);
    assert_int_equal(core_setting_choice(CORE_SETTING_DRIVER), CORE_DRIVER_AUTO);
    assert_float_equal(core_setting_share(CORE_SETTING_POOL_SHARE), 0.08, 1e-12);
    assert_int_equal(core_setting_size(CORE_SETTING_POOL_MAXIMUM), (size_t)16 << 30);
    assert_int_equal(core_setting_count(CORE_SETTING_THREADS), 0);
    assert_int_equal(core_setting_size(CORE_SETTING_LOAD_BUDGET), 64 << 20);
    for (int i = 0; i < CORE_SETTING_COUNT; i++)
        assert_false(core_setting_given((enum core_setting)i));
}

static void the_environment_beats_the_default(void **state)
{
    (void)state;
    setenv("RAFFIA_PAGES", "try", 1);
    setenv("RAFFIA_POOL_SHARE", "12.5%", 1);
    setenv("RAFFIA_POOL_MAXIMUM", "3GiB", 1);
    setenv("RAFFIA_THREADS", "5", 1);
    assert_int_equal(core_setting_choice(CORE_SETTING_PAGES), RAFFIA_PAGES_TRY);
    assert_float_equal(core_setting_share(CORE_SETTING_POOL_SHARE), 0.125, 1e-12);
    assert_int_equal(core_setting_size(CORE_SETTING_POOL_MAXIMUM), (size_t)3 << 30);
    assert_int_equal(core_setting_count(CORE_SETTING_THREADS), 5);
    assert_true(core_setting_given(CORE_SETTING_THREADS));
    assert_text("threads", "5");
    setenv("RAFFIA_THREADS", "", 1); /* as good as not set */
    assert_false(core_setting_given(CORE_SETTING_THREADS));
    assert_text("threads", "0");
}

static void a_config_call_beats_the_environment_until_it_is_taken_back(void **state)
{
    (void)state;
    setenv("RAFFIA_DRIVER", "sim", 1);
    assert_ok(raffia_config_set("driver", "host"));
    assert_int_equal(core_setting_choice(CORE_SETTING_DRIVER), CORE_DRIVER_HOST);
    assert_true(core_setting_given(CORE_SETTING_DRIVER));
    assert_text("driver", "host");
    assert_ok(raffia_config_set("driver", NULL));
    assert_int_equal(core_setting_choice(CORE_SETTING_DRIVER), CORE_DRIVER_SIM);
    assert_text("driver", "sim");
    unsetenv("RAFFIA_DRIVER");
    assert_int_equal(core_setting_choice(CORE_SETTING_DRIVER), CORE_DRIVER_AUTO);
}

static void a_bad_config_call_changes_nothing(void **state)
{
    (void)state;
    assert_ok(raffia_config_set("threads", "7"));
    static const char *const bad[][2] = {
        {"threads", "1025"},    {"threads", "-1"},
        {"threads", "many"},    {"threads", ""},
        {"pages", "yes"},       {"pages", "ON"},
        {"pool_share", "17%"},  {"pool_share", "8"},
        {"page_size", "2 MiB"}, {"driver", "opencl"},
        {"log", "loud"},        {"page_size", "3MiB"},
        {"page_size", "0"},     {"page_size", "2KiB"},
        {"page_size", "none"},  {"load_budget", "65535"},
        {"pool_maximum", "0"},  {"pool_maximum", "4095"},
        {"pool_share", "101%"}, {"device_parameters", "x:maximum=0"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, raffia_config_set(bad[i][0], bad[i][1]));
        assert_error_mentions(bad[i][0]);
    }
    assert_int_equal(core_setting_count(CORE_SETTING_THREADS), 7);
    assert_false(core_setting_given(CORE_SETTING_PAGES));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, raffia_config_set("pages", "yes"));
    assert_error_mentions("off, try, on");
}

static void a_value_too_long_to_keep_is_refused(void **state)
{
    (void)state;
    char zeros[1100];
    memset(zeros, '0', sizeof zeros - 1);
    zeros[sizeof zeros - 1] = '\0';
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, raffia_config_set("threads", zeros));
    assert_error_mentions("longer than");
    assert_false(core_setting_given(CORE_SETTING_THREADS));
}

static void unknown_names_are_refused(void **state)
{
    (void)state;
    char text[64] = "untouched";
    static const char *const unknown[] = {"", "Pages", "RAFFIA_PAGES", "pages ", NULL};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        assert_status(RAFFIA_ERROR_NOT_FOUND, raffia_config_set(unknown[i], "on"));
        assert_status(RAFFIA_ERROR_NOT_FOUND, raffia_config_get(unknown[i], text, sizeof text));
    }
    assert_string_equal(text, "untouched");
}

static void a_buffer_too_small_is_left_alone(void **state)
{
    (void)state;
    char text[8] = "before";
    assert_status(RAFFIA_ERROR_LIMIT, raffia_config_get("page_size", text, 4)); /* "2MiB" */
    assert_error_mentions("5 bytes");
    assert_string_equal(text, "before");
    assert_status(RAFFIA_ERROR_LIMIT, raffia_config_get("page_size", NULL, 0));
    assert_ok(raffia_config_get("page_size", text, 5));
    assert_string_equal(text, "2MiB");
}

static void a_long_value_leaves_room_for_the_reason(void **state)
{
    (void)state;
    char text[5000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, raffia_config_set("pages", text));
    assert_error_mentions("is none of off, try, on");
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, raffia_config_set("load_budget", text));
    assert_error_mentions("write it like 64MiB");
}

static void the_warning_says_which_pages_are_used_then(void **state)
{
    (void)state;
    setenv("RAFFIA_PAGES", "ON", 1);
    log_capture_start();
    assert_false(core_setting_given(CORE_SETTING_PAGES));
    log_capture_stop();
    assert_int_equal(log_capture_count(), 1);
    assert_non_null(strstr(log_capture_line(0), "try where a pool is made on purpose, off elsewh"));
    unsetenv("RAFFIA_PAGES");
}

static void a_bad_value_in_the_environment_is_warned_of_once(void **state)
{
    (void)state;
    setenv("RAFFIA_LOAD_BUDGET", "lots", 1);
    core_error(RAFFIA_ERROR_BUSY, "an earlier failure");
    log_capture_start();
    assert_int_equal(core_setting_size(CORE_SETTING_LOAD_BUDGET), 64 << 20);
    assert_int_equal(core_setting_size(CORE_SETTING_LOAD_BUDGET), 64 << 20);
    assert_false(core_setting_given(CORE_SETTING_LOAD_BUDGET));
    assert_text("load_budget", "64MiB");
    assert_int_equal(log_capture_count(), 1);
    assert_int_equal(log_capture_level(0), RAFFIA_LOG_WARN);
    assert_non_null(strstr(log_capture_line(0), "RAFFIA_LOAD_BUDGET"));
    assert_non_null(strstr(log_capture_line(0), "'lots'"));
    assert_non_null(strstr(log_capture_line(0), "using 64MiB"));
    /* Reading a setting succeeded: it is nobody's last failure. */
    assert_string_equal(raffia_last_error(), "an earlier failure");
    /* And a good value is taken as soon as there is one. */
    setenv("RAFFIA_LOAD_BUDGET", "1MiB", 1);
    assert_int_equal(core_setting_size(CORE_SETTING_LOAD_BUDGET), 1 << 20);
}

static void a_value_out_of_range_is_as_bad_as_one_that_does_not_parse(void **state)
{
    (void)state;
    setenv("RAFFIA_PAGE_SIZE", "3MiB", 1);
    setenv("RAFFIA_LOAD_BUDGET", "1", 1);
    log_capture_start(); /* keeps the warnings off the screen */
    assert_int_equal(core_setting_size(CORE_SETTING_PAGE_SIZE), 2 << 20);
    assert_int_equal(core_setting_size(CORE_SETTING_LOAD_BUDGET), 64 << 20);
    assert_false(core_setting_given(CORE_SETTING_PAGE_SIZE));
    assert_false(core_setting_given(CORE_SETTING_LOAD_BUDGET));
}

static void asking_for_the_text_warns_too(void **state)
{
    (void)state;
    setenv("RAFFIA_POOL_SHARE", "99%", 1);
    log_capture_start();
    assert_text("pool_share", "8%");
    assert_text("pool_share", "8%");
    assert_float_equal(core_setting_share(CORE_SETTING_POOL_SHARE), 0.08, 1e-12);
    assert_int_equal(log_capture_count(), 1);
    assert_non_null(strstr(log_capture_line(0), "16%"));
}

static void a_quiet_log_hears_no_warning(void **state)
{
    (void)state;
    setenv("RAFFIA_PAGE_SIZE", "huge", 1);
    assert_ok(raffia_config_set("log", "error"));
    log_capture_start();
    assert_int_equal(core_setting_size(CORE_SETTING_PAGE_SIZE), 2 << 20);
    assert_int_equal(log_capture_count(), 0);
}

static void the_log_setting_is_the_log_level(void **state)
{
    (void)state;
    static const char *const names[] = {"off", "error", "warn", "info", "debug"};
    for (int level = RAFFIA_LOG_OFF; level <= RAFFIA_LOG_DEBUG; level++) {
        assert_ok(raffia_config_set("log", names[level]));
        assert_int_equal(raffia_log_get_level(), level);
    }
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, raffia_config_set("log", "loud"));
    assert_int_equal(raffia_log_get_level(), RAFFIA_LOG_DEBUG);
    assert_ok(raffia_config_set("log", NULL));
    assert_int_equal(raffia_log_get_level(), RAFFIA_LOG_WARN);
    setenv("RAFFIA_LOG", "info", 1);
    assert_ok(raffia_config_set("log", NULL));
    assert_int_equal(raffia_log_get_level(), RAFFIA_LOG_INFO);
}

/* A sink that asks for settings must not find them locked. */
static void ask_back(void *context, raffia_log_level level, const char *message)
{
    (void)level;
    (void)message;
    char text[64];
    *(size_t *)context +=
        raffia_config_get("threads", text, sizeof text) == RAFFIA_OK && strcmp(text, "0") == 0;
}

static void a_sink_may_ask_for_the_setting_it_is_warned_of(void **state)
{
    (void)state;
    size_t answers = 0;
    setenv("RAFFIA_THREADS", "-3", 1);
    raffia_log_set_sink(ask_back, &answers);
    assert_int_equal(core_setting_count(CORE_SETTING_THREADS), 0);
    raffia_log_set_sink(NULL, NULL);
    assert_int_equal(answers, 1);
}

static void *set_and_read(void *failures_p)
{
    size_t *failures = failures_p;
    char text[64];
    for (int i = 0; i < 200; i++) {
        bool on = i % 2;
        if (raffia_config_set("pages", on ? "on" : "try") ||
            raffia_config_get("pages", text, sizeof text))
            ++*failures;
        /* Text and value belong together, whoever wrote them. */
        if (strcmp(text, "on") != 0 && strcmp(text, "try") != 0)
            ++*failures;
        unsigned mode = core_setting_choice(CORE_SETTING_PAGES);
        if (mode != RAFFIA_PAGES_ON && mode != RAFFIA_PAGES_TRY)
            ++*failures;
    }
    return NULL;
}

static void settings_may_be_changed_by_several_threads(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    size_t failures[THREADS] = {0};
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, set_and_read, &failures[i]), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(failures[i], 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, forget_everything, forget_everything)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_table_is_complete_and_its_defaults_parse),
        TEST(defaults_are_those_of_the_table),
        TEST(the_environment_beats_the_default),
        TEST(a_config_call_beats_the_environment_until_it_is_taken_back),
        TEST(a_bad_config_call_changes_nothing),
        TEST(a_value_too_long_to_keep_is_refused),
        TEST(unknown_names_are_refused),
        TEST(a_buffer_too_small_is_left_alone),
        TEST(a_long_value_leaves_room_for_the_reason),
        TEST(the_warning_says_which_pages_are_used_then),
        TEST(a_bad_value_in_the_environment_is_warned_of_once),
        TEST(asking_for_the_text_warns_too),
        TEST(a_quiet_log_hears_no_warning),
        TEST(a_value_out_of_range_is_as_bad_as_one_that_does_not_parse),
        TEST(the_log_setting_is_the_log_level),
        TEST(a_sink_may_ask_for_the_setting_it_is_warned_of),
        TEST(settings_may_be_changed_by_several_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
