/*
 * Keeps what the library logs, so that a test can look at it. One at a time; for any thread.
 */
#ifndef SUPPORT_LOG_CAPTURE_H
#define SUPPORT_LOG_CAPTURE_H

#include <raffia/log.h>

enum { LOG_CAPTURE_LINES = 64, LOG_CAPTURE_LINE_BYTES = 1200 };

/* Starts, or starts anew, at the log level in force. */
void log_capture_start(void);

/* The same at another level, until log_capture_stop(). */
void log_capture_start_at(raffia_log_level level);

/* Ends: the log goes to standard error again, at the level it had. What was kept stays. */
void log_capture_stop(void);

/* Lines logged since the start, kept or not. */
size_t log_capture_count(void);

/* The i-th of the lines kept (the first LOG_CAPTURE_LINES) and its level. "" beyond the last. */
const char *log_capture_line(size_t i);
raffia_log_level log_capture_level(size_t i);

/* The last line kept, "" if there is none. */
const char *log_capture_last(void);

#endif
