/*
 * The kernels of the device benchmarks: as PTX for a GPU (kernels/bench.ptx), as C functions for
 * the simulated device.
 */
#ifndef CLI_BENCH_KERNELS_H
#define CLI_BENCH_KERNELS_H

#include "cli/bench_device.h"

struct bench_kernels {
    struct bench_device *device;
    driver_module module;
    driver_function chase, sweep;
};

/* UNSUPPORTED where the device's driver runs no code, or none that is at hand. */
raffia_status bench_kernels_load(struct bench_device *device, struct bench_kernels *kernels);
void bench_kernels_unload(struct bench_kernels *kernels);

/* Follows a ring of offsets (cli/tlb_probe.h) through device memory at `base`, and stores the last
 * of them in the 8 bytes of device memory at `out`. Submitted to the device's stream. */
raffia_status bench_kernels_chase(const struct bench_kernels *kernels, const void *base,
                                  uint64_t start, uint64_t steps, void *out);

/* One sweep of `raffia bench step` over a batch of floats: batch[i] += 1/2 weights[i + start]. */
raffia_status bench_kernels_sweep(const struct bench_kernels *kernels, float *batch, uint64_t count,
                                  const float *weights, uint64_t weight_count, uint64_t start);

#endif
