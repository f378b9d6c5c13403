/*
 * Small copies to the device in many sizes and numbers: the driver's two ways, and ours with the
 * threshold set to auto.
 */
#ifndef CLI_BENCH_COPY_SWEEP_H
#define CLI_BENCH_COPY_SWEEP_H

#include "cli/bench_device.h"
#include "cli/bench_report.h"

/* Device and pinned memory that it needs, bytes. */
size_t bench_copy_sweep_bytes(void);

/* Adds rows, and what they say of auto, to the report. The threshold is as before on return. */
raffia_status bench_copy_sweep(struct bench_device *device, void *on_device, void *pinned,
                               unsigned runs, struct bench_report *report);

#endif
