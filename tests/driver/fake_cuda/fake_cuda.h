/*
 * A libcuda.so.1 made of host memory, for tests of the CUDA driver on machines without a GPU.
 *
 * It has the calls that the driver uses, and the rules of the real ones where breaking them would
 * do harm: a handle is mapped and unmapped whole, mapped memory is used only by devices that were
 * given access, streams and events belong to a context, a capture must not be disturbed. A call
 * that breaks one fails as the real one would, and is counted as a misuse besides. Work is done
 * when it is submitted, which is one of the orders that a real device may choose.
 *
 * A test program is linked with it and makes the driver open it by RAFFIA_CUDA_LIBRARY.
 */
#ifndef TESTS_DRIVER_FAKE_CUDA_H
#define TESTS_DRIVER_FAKE_CUDA_H

#include "driver/cuda/cuda_api.h"

#include <stdbool.h>

#define FAKE_CUDA_API __attribute__((visibility("default")))

#define FAKE_CUDA_DEVICES_MAX 4

/* The functions themselves, for tests that play another user of CUDA in the process. */
#define FAKE_DECLARE(symbol, name, version, parameters) FAKE_CUDA_API CUresult symbol parameters;
CUDA_API_FUNCTIONS(FAKE_DECLARE)
CUDA_API_OPTIONAL(FAKE_DECLARE)
CUDA_API_FINDER(FAKE_DECLARE)
#undef FAKE_DECLARE

/* Zero in any field is the default. */
struct fake_cuda_config {
    int devices;          /* 1; -1 = none */
    size_t device_bytes;  /* 1 GiB each */
    size_t granularity;   /* 2 MiB */
    size_t recommended;   /* as granularity */
    int version;          /* 12080 */
    CUresult init_result; /* of cuInit() */
    bool no_virtual_memory, no_fd_export, no_pools;
    bool no_host_ranges; /* how far pinned host memory goes is not told */
};

/* Everything as at the start, with this configuration; NULL is all defaults. Handles are dead. */
FAKE_CUDA_API void fake_cuda_reset(const struct fake_cuda_config *config);

/* Makes the n-th call of a function from now on fail like this, once; n >= 1. By its symbol. */
FAKE_CUDA_API void fake_cuda_fail(const char *symbol, long n, CUresult result);

/* Calls of a function since the last reset; -1 for an unknown symbol. */
FAKE_CUDA_API long fake_cuda_calls(const char *symbol);

/* From now on every call in the device's contexts fails like this. */
FAKE_CUDA_API void fake_cuda_poison(int device, CUresult result);

/* A context that another library made. */
FAKE_CUDA_API CUcontext fake_cuda_foreign_context(int device);

/* Says that a stream is being captured, by a thread that asked for no unsafe calls meanwhile. */
FAKE_CUDA_API void fake_cuda_capture(CUstream stream, bool on);

struct fake_cuda_usage {
    size_t ranges, handles, mappings, blocks, registrations, host_blocks, streams, events, modules;
    size_t pools, pool_blocks;            /* the blocks: live */
    size_t bytes;                         /* of all devices */
    long retained[FAKE_CUDA_DEVICES_MAX]; /* times that a primary context was retained */
    size_t misuses;
    char first_misuse[160];
};

FAKE_CUDA_API void fake_cuda_query(struct fake_cuda_usage *usage);

#endif
