/*
 * Keeps what the library logs, so that a test can look at it. One at a time; for any thread.
 */
#ifndef SUPPORT_LOG_CAPTURE_H
#define SUPPORT_LOG_CAPTURE_H

#include <raffia/log.h>

enum { LOG_CAPTURE_LINES = 64, LOG_CAPTURE_LINE_BYTES = 1200 };

/* Starts, or starts anew. */
void log_capture_start(void);

/* Ends: the log goes to standard error again. What was kept stays. */
void log_capture_stop(void);

/* Lines logged since the start, kept or not. */
size_t log_capture_count(void);

/* The i-th of the lines kept (the first LOG_CAPTURE_LINES) and its level. "" beyond the last. */
const char *log_capture_line(size_t i);
raffia_log_level log_capture_level(size_t i);

#endif
