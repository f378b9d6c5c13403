#include "support/log_capture.h"

#include <stdio.h>

static void keep(void *context, raffia_log_level level, const char *message)
{
    (void)level;
    struct log_capture *capture = context;
    capture->count++;
    snprintf(capture->last, sizeof capture->last, "%s", message);
}

void log_capture_begin(struct log_capture *capture, raffia_log_level level)
{
    *capture = (struct log_capture){.old_level = raffia_log_get_level()};
    raffia_log_set_level(level);
    raffia_log_set_sink(keep, capture);
}

void log_capture_end(struct log_capture *capture)
{
    raffia_log_set_sink(NULL, NULL);
    raffia_log_set_level(capture->old_level);
}
