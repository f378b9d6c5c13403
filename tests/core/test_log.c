/* Log levels and where the lines go. */
#include "core/error.h"
#include "core/log.h"
#include "support/cmocka.h"
#include "support/log_capture.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The level that a fresh process has with this RAFFIA_LOG. Must be asked before this process has
 * read its own. */
static int level_in_fresh_process(const char *setting)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (setting)
            setenv("RAFFIA_LOG", setting, 1);
        else
            unsetenv("RAFFIA_LOG");
        log_capture_start();
        int level = (int)raffia_log_get_level();
        _exit(level + 10 * (int)log_capture_count());
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* Must be the first test. */
static void the_first_level_is_that_of_the_environment(void **state)
{
    (void)state;
    assert_int_equal(level_in_fresh_process(NULL), RAFFIA_LOG_WARN);
    assert_int_equal(level_in_fresh_process("off"), RAFFIA_LOG_OFF);
    assert_int_equal(level_in_fresh_process("debug"), RAFFIA_LOG_DEBUG);
    /* A bad one is the default, with one warning. */
    assert_int_equal(level_in_fresh_process("loud"), RAFFIA_LOG_WARN + 10);
}

static void log_each_level(void)
{
    core_log_error("error %d", 1);
    core_log_warn("warn");
    core_log_info("info");
    core_log_debug("debug");
}

static void lines_up_to_the_level_are_written(void **state)
{
    (void)state;
    static const char *const lines[] = {"error 1", "warn", "info", "debug"};
    for (int level = RAFFIA_LOG_OFF; level <= RAFFIA_LOG_DEBUG; level++) {
        raffia_log_set_level((raffia_log_level)level);
        assert_int_equal(raffia_log_get_level(), level);
        log_capture_start();
        log_each_level();
        log_capture_stop();
        assert_int_equal(log_capture_count(), level);
        for (int i = 0; i < level; i++) {
            assert_string_equal(log_capture_line((size_t)i), lines[i]);
            assert_int_equal(log_capture_level((size_t)i), i + 1);
        }
    }
}

static void levels_beyond_the_ends_are_the_ends(void **state)
{
    (void)state;
    raffia_log_set_level((raffia_log_level)100);
    assert_int_equal(raffia_log_get_level(), RAFFIA_LOG_DEBUG);
    raffia_log_set_level((raffia_log_level)-1);
    assert_int_equal(raffia_log_get_level(), RAFFIA_LOG_OFF);
}

static int count_call(int *calls)
{
    return ++*calls;
}

static void lines_not_written_cost_no_arguments(void **state)
{
    (void)state;
    int calls = 0;
    raffia_log_set_level(RAFFIA_LOG_WARN);
    log_capture_start();
    core_log_info("%d", count_call(&calls));
    assert_int_equal(calls, 0);
    core_log_warn("%d", count_call(&calls));
    log_capture_stop();
    assert_int_equal(calls, 1);
}

static void long_lines_are_cut(void **state)
{
    (void)state;
    char text[4000];
    memset(text, 'y', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    raffia_log_set_level(RAFFIA_LOG_WARN);
    log_capture_start();
    core_log_warn("%s", text);
    log_capture_stop();
    assert_int_equal(strlen(log_capture_line(0)), 1023);
}

static void without_a_sink_lines_go_to_standard_error(void **state)
{
    (void)state;
    raffia_log_set_level(RAFFIA_LOG_WARN);
    int pipe_ends[2];
    assert_int_equal(pipe(pipe_ends), 0);
    fflush(stderr);
    int kept = dup(STDERR_FILENO);
    assert_true(kept >= 0);
    dup2(pipe_ends[1], STDERR_FILENO);
    core_log_warn("to %s", "everybody");
    fflush(stderr);
    dup2(kept, STDERR_FILENO);
    close(kept);
    close(pipe_ends[1]);
    char text[128] = "";
    assert_true(read(pipe_ends[0], text, sizeof text - 1) > 0);
    close(pipe_ends[0]);
    assert_string_equal(text, "raffia: warn: to everybody\n");
}

static void count_line(void *context, raffia_log_level level, const char *message)
{
    (void)level;
    (void)message;
    atomic_fetch_add((atomic_int *)context, 1);
}

static void lines_that_are_held_come_when_the_last_hold_ends(void **state)
{
    (void)state;
    atomic_int count = 0;
    raffia_log_set_level(RAFFIA_LOG_WARN);
    raffia_log_set_sink(count_line, &count);
    core_log_hold();
    core_log_warn("one");
    core_log_hold();
    core_log_warn("two");
    core_log_let_go();
    assert_int_equal(atomic_load(&count), 0);
    core_log_let_go();
    assert_int_equal(atomic_load(&count), 2);
    core_log_warn("three");
    assert_int_equal(atomic_load(&count), 3);
    raffia_log_set_sink(NULL, NULL);
}

enum { LOGGERS = 4, LINES = 500 };

static void *log_lines(void *unused)
{
    for (int i = 0; i < LINES; i++)
        core_log_warn("line %d", i);
    return unused;
}

static void several_threads_log_while_the_sink_changes(void **state)
{
    (void)state;
    pthread_t threads[LOGGERS];
    atomic_int counts[2] = {0};
    raffia_log_set_level(RAFFIA_LOG_WARN);
    raffia_log_set_sink(count_line, &counts[0]);
    for (int i = 0; i < LOGGERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, log_lines, NULL), 0);
    for (int i = 0; i < 100; i++) {
        raffia_log_set_sink(count_line, &counts[i % 2]);
        raffia_log_set_level(i % 2 ? RAFFIA_LOG_WARN : RAFFIA_LOG_DEBUG);
    }
    for (int i = 0; i < LOGGERS; i++)
        pthread_join(threads[i], NULL);
    raffia_log_set_sink(NULL, NULL);
    /* No line was lost and none came twice. */
    assert_int_equal(atomic_load(&counts[0]) + atomic_load(&counts[1]), LOGGERS * LINES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_level_is_that_of_the_environment),
        cmocka_unit_test(lines_up_to_the_level_are_written),
        cmocka_unit_test(levels_beyond_the_ends_are_the_ends),
        cmocka_unit_test(lines_not_written_cost_no_arguments),
        cmocka_unit_test(long_lines_are_cut),
        cmocka_unit_test(without_a_sink_lines_go_to_standard_error),
        cmocka_unit_test(lines_that_are_held_come_when_the_last_hold_ends),
        cmocka_unit_test(several_threads_log_while_the_sink_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
