/*
 * The end of every benchmark's command: measure, print, say what failed.
 */
#ifndef CLI_BENCH_RUN_H
#define CLI_BENCH_RUN_H

#include "cli/bench_report.h"

/* Fills in an empty report. */
typedef raffia_status (*bench_measure)(const void *plan, struct bench_report *report);

/* Measures and prints; returns an exit code. */
int bench_run(bench_measure measure, const void *plan, bool json);

#endif
