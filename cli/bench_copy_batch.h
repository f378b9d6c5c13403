/*
 * Batches of small copies: one by one, by the driver's batched copy, and by Raffia.
 */
#ifndef CLI_BENCH_COPY_BATCH_H
#define CLI_BENCH_COPY_BATCH_H

#include "cli/bench_device.h"
#include "cli/bench_report.h"

/* Device and pinned memory that it needs, bytes. */
size_t bench_copy_batch_bytes(void);

/* Adds rows, ratios and the thresholds advised to the report. The memory is at least as large as
 * said above. */
raffia_status bench_copy_batch(struct bench_device *device, void *on_device, void *pinned,
                               unsigned runs, struct bench_report *report);

#endif
