#include "driver/cuda/failure.h"

#include <stdarg.h>
#include <stdio.h>

#undef cuda_failed /* the analyser's version is for callers */

#define SENTENCE_MAX 512

bool cuda_is_lost(CUresult result)
{
    switch (result) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
        return true;
    default:
        return false;
    }
}

raffia_status cuda_status_of(CUresult result)
{
    switch (result) {
    case CUDA_SUCCESS:
        return RAFFIA_OK;
    case CUDA_ERROR_INVALID_VALUE:
    case CUDA_ERROR_INVALID_HANDLE:
    case CUDA_ERROR_INVALID_IMAGE:
    case CUDA_ERROR_INVALID_PTX:
        return RAFFIA_ERROR_INVALID_ARGUMENT;
    case CUDA_ERROR_OUT_OF_MEMORY:
        return RAFFIA_ERROR_OUT_OF_MEMORY;
    case CUDA_ERROR_NO_DEVICE:
    case CUDA_ERROR_INVALID_DEVICE:
    case CUDA_ERROR_NOT_FOUND:
        return RAFFIA_ERROR_NOT_FOUND;
    case CUDA_ERROR_NOT_SUPPORTED:
    case CUDA_ERROR_PEER_ACCESS_UNSUPPORTED:
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
        return RAFFIA_ERROR_UNSUPPORTED;
    case CUDA_ERROR_NOT_PERMITTED:
        return RAFFIA_ERROR_PERMISSION;
    case CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED:
        return RAFFIA_ERROR_BAD_ADDRESS;
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
    case CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED:
        return RAFFIA_ERROR_BUSY;
    default:
        /* Everything about a capture: the stream is in other hands for the moment. */
        if (result >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED &&
            result <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD)
            return RAFFIA_ERROR_BUSY;
        return RAFFIA_ERROR_DRIVER;
    }
}

raffia_status cuda_failed(int index, CUresult result, const char *format, ...)
{
    char sentence[SENTENCE_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    const char *name = NULL, *text = NULL;
    if (cuda_library.cuGetErrorName(result, &name) || !name)
        name = "CUDA_ERROR";
    if (cuda_library.cuGetErrorString(result, &text) || !text)
        text = "the driver has no text for it";
    return core_error_native(cuda_status_of(result), name, "cuda:%d: %s: %s (%d, %s)%s", index,
                             sentence, name, result, text,
                             cuda_is_lost(result)
                                 ? "; the device's context is lost to this process: what it held "
                                   "is gone, and only a new process can use the device"
                                 : "");
}
