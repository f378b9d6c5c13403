/*
 * raffia bench load --device: a model from the page cache and from the disk into a device's memory.
 */
#ifndef CLI_BENCH_LOAD_DEVICE_H
#define CLI_BENCH_LOAD_DEVICE_H

#include "cli/bench_options.h"
#include "cli/bench_report.h"

/* Measures; `report` is empty. */
raffia_status bench_load_device_measure(const char *path, const struct bench_options *plan,
                                        struct bench_report *report);

#endif
