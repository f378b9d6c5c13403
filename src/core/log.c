#include "core/log.h"

#include "core/error.h"
#include "core/memory.h"
#include "core/process.h"
#include "core/settings.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define LINE_MAX_BYTES 1024

atomic_int core_log_level_in_force = CORE_LOG_UNREAD;

/* The sink and its context change together, under the lock of the process. */
static raffia_log_sink user_sink;
static void *user_context;

static const char *level_name(raffia_log_level level)
{
    static const char *const names[] = {"off", "error", "warn", "info", "debug"};
    return names[level];
}

raffia_log_level raffia_log_get_level(void)
{
    int level = atomic_load_explicit(&core_log_level_in_force, memory_order_relaxed);
    if (level != CORE_LOG_UNREAD)
        return (raffia_log_level)level;
    /* Until the setting is read, what reading it logs (a bad value) goes out as a warning. */
    int unread = CORE_LOG_UNREAD;
    if (atomic_compare_exchange_strong(&core_log_level_in_force, &unread, RAFFIA_LOG_WARN)) {
        int from_setting = (int)core_setting_choice(CORE_SETTING_LOG);
        int warn = RAFFIA_LOG_WARN;
        atomic_compare_exchange_strong(&core_log_level_in_force, &warn, from_setting);
    }
    return (raffia_log_level)atomic_load(&core_log_level_in_force);
}

void raffia_log_set_level(raffia_log_level level)
{
    int bounded = (int)level;
    if (bounded > RAFFIA_LOG_DEBUG)
        bounded = RAFFIA_LOG_DEBUG;
    if (bounded < RAFFIA_LOG_OFF)
        bounded = RAFFIA_LOG_OFF;
    atomic_store(&core_log_level_in_force, bounded);
}

void raffia_log_set_sink(raffia_log_sink sink, void *context)
{
    core_process_lock();
    user_sink = sink;
    user_context = context;
    core_process_unlock();
}

/* What a thread holds back. */
struct held_line {
    struct held_line *next;
    raffia_log_level level;
    char text[];
};

static _Thread_local unsigned holds;
static _Thread_local struct held_line *first_held, *last_held;
static _Thread_local unsigned lost_lines;

static void hold_back(raffia_log_level level, const char *text)
{
    struct core_error_record before;
    const size_t bytes = strlen(text) + 1;
    core_error_save(&before);
    struct held_line *line = core_malloc(sizeof *line + bytes);
    core_error_restore(&before);
    if (!line) {
        lost_lines++;
        return;
    }
    line->next = NULL;
    line->level = level;
    memcpy(line->text, text, bytes);
    if (last_held)
        last_held->next = line;
    else
        first_held = line;
    last_held = line;
}

static void say(raffia_log_level level, const char *line)
{
    core_process_lock();
    raffia_log_sink sink = user_sink;
    void *context = user_context;
    core_process_unlock();
    if (sink)
        sink(context, level, line);
    else
        fprintf(stderr, "raffia: %s: %s\n", level_name(level), line);
}

void core_log_hold(void)
{
    holds++;
}

/* A sink may call the library, and come here again. */
static void say_held(void)
{
    const unsigned lost = lost_lines;
    lost_lines = 0;
    while (first_held) {
        struct held_line *line = first_held;
        first_held = line->next;
        if (!first_held)
            last_held = NULL;
        say(line->level, line->text);
        core_free(line);
    }
    if (lost)
        core_log_warn("%u messages were lost for want of memory", lost);
}

void core_log_let_go(void)
{
    if (--holds == 0 && (first_held || lost_lines))
        say_held();
}

void core_log_write(raffia_log_level level, const char *format, ...)
{
    char line[LINE_MAX_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (holds)
        hold_back(level, line);
    else
        say(level, line);
}
