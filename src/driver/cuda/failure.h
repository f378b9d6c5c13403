/*
 * CUDA's errors as statuses and sentences.
 */
#ifndef DRIVER_CUDA_FAILURE_H
#define DRIVER_CUDA_FAILURE_H

#include "core/error.h"
#include "driver/cuda/library.h"

/*
 * Records "cuda:<index>: <sentence>: <CUDA's name and text>" with CUDA's name as the native error,
 * and returns the status that fits. An error that says the context is lost says so besides.
 */
raffia_status cuda_failed(int index, CUresult result, const char *format, ...) RAFFIA_PRINTF(3, 4)
    __attribute__((cold));
#ifdef __clang_analyzer__ /* see core/error.h */
#define cuda_failed(...) core_failure(cuda_failed(__VA_ARGS__))
#endif

/* Whether every further call in the context will give the same error ("sticky"): what ran on the
 * device did something that cannot be undone. */
bool cuda_is_lost(CUresult result);

raffia_status cuda_status_of(CUresult result);

#endif
