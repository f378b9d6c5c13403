#include "support/log_capture.h"

#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static size_t count;
static raffia_log_level level_to_restore;
static bool restores_level;
static struct {
    raffia_log_level level;
    char text[LOG_CAPTURE_LINE_BYTES];
} lines[LOG_CAPTURE_LINES];

static void keep(void *context, raffia_log_level level, const char *message)
{
    (void)context;
    pthread_mutex_lock(&lock);
    if (count < LOG_CAPTURE_LINES) {
        lines[count].level = level;
        snprintf(lines[count].text, LOG_CAPTURE_LINE_BYTES, "%s", message);
    }
    count++;
    pthread_mutex_unlock(&lock);
}

void log_capture_start(void)
{
    pthread_mutex_lock(&lock);
    count = 0;
    pthread_mutex_unlock(&lock);
    raffia_log_set_sink(keep, NULL);
}

void log_capture_start_at(raffia_log_level level)
{
    level_to_restore = raffia_log_get_level();
    restores_level = true;
    raffia_log_set_level(level);
    log_capture_start();
}

void log_capture_stop(void)
{
    raffia_log_set_sink(NULL, NULL);
    if (restores_level)
        raffia_log_set_level(level_to_restore);
    restores_level = false;
}

size_t log_capture_count(void)
{
    pthread_mutex_lock(&lock);
    size_t now = count;
    pthread_mutex_unlock(&lock);
    return now;
}

static bool kept(size_t i)
{
    return i < LOG_CAPTURE_LINES && i < log_capture_count();
}

const char *log_capture_line(size_t i)
{
    return kept(i) ? lines[i].text : "";
}

raffia_log_level log_capture_level(size_t i)
{
    return kept(i) ? lines[i].level : RAFFIA_LOG_OFF;
}

const char *log_capture_last(void)
{
    size_t logged = log_capture_count();
    return logged > 0 ? log_capture_line(logged - 1) : "";
}
