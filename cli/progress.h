/*
 * A progress bar on standard error, drawn only if that is a terminal.
 */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct cli_progress {
    const char *label;
    uint64_t total;
    double started;
    double drawn; /* when the bar was drawn last; 0 = not yet */
    bool visible;
};

/* The label is kept, not copied. */
void cli_progress_start(struct cli_progress *progress, const char *label, uint64_t total);

/* Cheap: draws about ten times a second. */
void cli_progress_update(struct cli_progress *progress, uint64_t done);

/* Wipes the bar. To be called before anything else is printed. */
void cli_progress_end(struct cli_progress *progress);

#endif
