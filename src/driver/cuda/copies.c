/* Copies and fills. Which side an address is on, CUDA sees from the address. */
#include "core/checked.h"
#include "driver/cuda/context.h"
#include "driver/cuda/failure.h"
#include "driver/cuda/verbs.h"

#define STREAM_LEGACY ((driver_stream)(uintptr_t)1) /* NULL, said in so many words */

/* One call of the batched copy takes so many; the lists for it are on the stack. */
#define BATCH_MAX 128

static CUresult copy(driver_stream stream, void *destination, const void *source, size_t bytes)
{
    if (!bytes)
        return CUDA_SUCCESS;
    return CUDA_CALL(cuMemcpyAsync, (uintptr_t)destination, (uintptr_t)source, bytes, stream);
}

raffia_status cuda_copy(int index, driver_stream stream, void *destination, const void *source,
                        size_t bytes)
{
    struct cuda_scope scope;
    raffia_status status = cuda_enter(&scope, index, "copy");
    if (status)
        return status;
    CUresult result = copy(stream, destination, source, bytes);
    cuda_leave(&scope);
    return result ? cuda_failed(index, result, "cannot copy %zu bytes from %p to %p", bytes, source,
                                destination)
                  : RAFFIA_OK;
}

/* The batched copy takes neither the legacy default stream nor one that is being captured. */
static bool takes_batches(driver_stream stream)
{
    CUstreamCaptureStatus capture;
    return cuda_library.cuMemcpyBatchAsync && stream && stream != STREAM_LEGACY &&
           cuda_library.cuStreamIsCapturing(stream, &capture) == CUDA_SUCCESS &&
           capture == CU_STREAM_CAPTURE_STATUS_NONE;
}

/* Submits up to BATCH_MAX copies from the list on; returns how many it looked at. */
static size_t submit_batch(driver_stream stream, const struct driver_copy *copies, size_t count,
                           CUresult *result_p)
{
    CUdeviceptr to[BATCH_MAX], from[BATCH_MAX];
    size_t bytes[BATCH_MAX], used = 0, first = 0, failed = 0;
    CUmemcpyAttributes attributes = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
    count = core_min(count, BATCH_MAX);
    for (size_t i = 0; i < count; i++) {
        if (!copies[i].bytes)
            continue; /* the call refuses empty ones */
        to[used] = (uintptr_t)copies[i].destination;
        from[used] = (uintptr_t)copies[i].source;
        bytes[used++] = copies[i].bytes;
    }
    *result_p = used ? CUDA_CALL(cuMemcpyBatchAsync, to, from, bytes, used, &attributes, &first, 1,
                                 &failed, stream)
                     : CUDA_SUCCESS;
    return count;
}

static CUresult copy_all(driver_stream stream, const struct driver_copy *copies, size_t count)
{
    CUresult result = CUDA_SUCCESS;
    if (count > 1 && takes_batches(stream)) {
        for (size_t done = 0; done < count && !result;)
            done += submit_batch(stream, copies + done, count - done, &result);
        return result;
    }
    for (size_t i = 0; i < count && !result; i++)
        result = copy(stream, copies[i].destination, copies[i].source, copies[i].bytes);
    return result;
}

raffia_status cuda_copy_batch(int index, driver_stream stream, const struct driver_copy *copies,
                              size_t count)
{
    struct cuda_scope scope;
    raffia_status status = cuda_enter(&scope, index, "copy_batch");
    if (status)
        return status;
    CUresult result = copy_all(stream, copies, count);
    cuda_leave(&scope);
    return result ? cuda_failed(index, result,
                                "cannot make a batch of %zu copies; some may have been submitted",
                                count)
                  : RAFFIA_OK;
}

raffia_status cuda_fill(int index, driver_stream stream, void *destination, unsigned char value,
                        size_t bytes)
{
    struct cuda_scope scope;
    raffia_status status = cuda_enter(&scope, index, "fill");
    if (status)
        return status;
    CUresult result = CUDA_SUCCESS;
    if (bytes)
        result = CUDA_CALL(cuMemsetD8Async, (uintptr_t)destination, value, bytes, stream);
    cuda_leave(&scope);
    return result ? cuda_failed(index, result, "cannot fill %zu bytes at %p", bytes, destination)
                  : RAFFIA_OK;
}
