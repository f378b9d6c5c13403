/* What the library logs, kept for a test to look at instead of going to standard error. */
#ifndef SUPPORT_LOG_CAPTURE_H
#define SUPPORT_LOG_CAPTURE_H

#include <raffia/log.h>

struct log_capture {
    unsigned count;  /* messages since it began */
    char last[1024]; /* the last of them */
    raffia_log_level old_level;
};

/* One at a time, and for tests that log from one thread. */
void log_capture_begin(struct log_capture *capture, raffia_log_level level);
void log_capture_end(struct log_capture *capture);

#endif
