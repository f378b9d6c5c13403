#include "cli/progress.h"

#include "cli/format.h"
#include "core/clock.h"

#include <stdio.h>
#include <unistd.h>

#define BAR_CELLS             32
#define SECONDS_BETWEEN_DRAWS 0.1

void cli_progress_start(struct cli_progress *progress, const char *label, uint64_t total)
{
    *progress = (struct cli_progress){
        .label = label,
        .total = total,
        .started = core_clock_seconds(),
        .visible = isatty(STDERR_FILENO) == 1,
    };
}

static void draw(const struct cli_progress *progress, uint64_t done, double seconds)
{
    double share = progress->total ? (double)done / (double)progress->total : 1;
    int full = (int)(share * BAR_CELLS);
    char bar[BAR_CELLS + 1];
    for (int i = 0; i < BAR_CELLS; i++)
        bar[i] = i < full ? '#' : '.';
    bar[BAR_CELLS] = '\0';
    char rate[CLI_FORMAT_MAX];
    fprintf(stderr, "\r%s [%s] %3.0f%% %s\033[K", progress->label, bar, share * 100,
            cli_format_rate((double)done, seconds, rate));
    fflush(stderr);
}

void cli_progress_update(struct cli_progress *progress, uint64_t done)
{
    if (!progress->visible)
        return;
    double now = core_clock_seconds();
    if (now - progress->drawn < SECONDS_BETWEEN_DRAWS && done < progress->total)
        return;
    progress->drawn = now;
    draw(progress, done, now - progress->started);
}

void cli_progress_end(struct cli_progress *progress)
{
    if (progress->drawn > 0) {
        fprintf(stderr, "\r\033[K");
        fflush(stderr);
    }
    progress->visible = false;
    progress->drawn = 0;
}
