/*
 * What the tests of facts about a real GPU share: the library's own functions beside the driver's
 * table, a kernel that keeps the device busy, and a clock.
 */
#ifndef TESTS_DRIVER_GPU_FACTS_H
#define TESTS_DRIVER_GPU_FACTS_H

#include "driver/cuda/context.h"
#include "driver/cuda/cuda_driver.h"
#include "support/cmocka.h"

#define MIB ((size_t)1 << 20)

/* The context of cuda:0 is current in this thread from open to close. */
struct gpu {
    struct cuda_scope scope;
    size_t granule;
    driver_module module;
    driver_function spin; /* runs for so many nanoseconds, its one argument (64 bits) */
    driver_stream stream;
};

int gpu_open(void **state);
int gpu_close(void **state);

/* Keeps the device busy for so long, from now on. */
void gpu_spin(const struct gpu *gpu, unsigned milliseconds);

/* Whether the kernel is still running. */
bool gpu_is_busy(const struct gpu *gpu);

uint64_t gpu_now_ns(void);

CUmemGenericAllocationHandle gpu_create(const struct gpu *gpu, size_t bytes);
CUdeviceptr gpu_reserve(size_t bytes);
void gpu_release(CUdeviceptr base, size_t bytes);
CUresult gpu_set_access(const struct gpu *gpu, CUdeviceptr at, size_t bytes, int flags);

#define assert_cuda(call)                                                                          \
    do {                                                                                           \
        CUresult result_of_call = (call);                                                          \
        if (result_of_call)                                                                        \
            fail_msg("%s: CUDA error %d", #call, result_of_call);                                  \
    } while (0)

/* The figures rest on this: a driver that differs is no failure of ours, but must be seen. */
#define assert_refused(call)                                                                       \
    do {                                                                                           \
        if (!(call))                                                                               \
            fail_msg("this driver (CUDA %d) does what was refused up to now: %s",                  \
                     cuda_library.version, #call);                                                 \
    } while (0)

#endif
