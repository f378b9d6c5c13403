/*
 * Streams. The handles are CUDA's own, so a caller may hand in any stream of the device's primary
 * context: NULL is the legacy default stream, 2 the per-thread one, as in CUDA's headers.
 *
 * Streams made here do not wait for the legacy default stream, nor it for them: what a framework
 * does there must not hold up a load.
 */
#include "driver/cuda/context.h"
#include "driver/cuda/failure.h"
#include "driver/cuda/verbs.h"

#include <stdatomic.h>

raffia_status cuda_stream_create(int index, driver_stream *stream_p)
{
    struct cuda_scope scope;
    raffia_status status = cuda_enter_beside_capture(&scope, index, "stream_create");
    if (status)
        return status;
    CUstream stream = NULL;
    CUresult result = CUDA_CALL(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    cuda_leave(&scope);
    if (result)
        return cuda_failed(index, result, "cannot create a stream");
    *stream_p = stream;
    return RAFFIA_OK;
}

raffia_status cuda_stream_destroy(int index, driver_stream stream)
{
    struct cuda_scope scope;
    raffia_status status = cuda_enter_giving_back(&scope, index, "stream_destroy");
    if (status)
        return status;
    CUresult result = CUDA_GIVE_BACK(cuStreamDestroy_v2, stream);
    cuda_leave(&scope);
    return result ? cuda_failed(index, result, "cannot destroy the stream %p", stream) : RAFFIA_OK;
}

/* The handles that stand for a stream of the current context rather than name one: NULL, 1, 2. */
static bool is_special(driver_stream stream)
{
    return (uintptr_t)stream <= 2;
}

/* Ids of special streams, plus 1; 0 is not known yet. The legacy stream lives as long as its
 * context, which is never given back; and the per-thread one as long as the thread, which remembers
 * the one of the device that it used last. */
static atomic_ullong legacy_ids[CUDA_DEVICES_MAX];
static _Thread_local struct {
    unsigned long long id;
    int index;
} own_stream;

static bool is_per_thread(driver_stream stream)
{
    return (uintptr_t)stream == 2;
}

static unsigned long long recall_id(int index, driver_stream stream)
{
    if (!is_per_thread(stream))
        return atomic_load_explicit(&legacy_ids[index], memory_order_relaxed);
    return own_stream.index == index ? own_stream.id : 0;
}

static void remember_id(int index, driver_stream stream, unsigned long long id)
{
    if (is_per_thread(stream)) {
        own_stream.id = id + 1;
        own_stream.index = index;
    } else if (is_special(stream)) {
        atomic_store_explicit(&legacy_ids[index], id + 1, memory_order_relaxed);
    }
}

/* Asked for each block that changes hands in a stream's order, so the short way first: a stream
 * that somebody made knows its context, and none need be current; those of the context are always
 * the same. */
static bool find_id_shortly(int index, driver_stream stream, uint64_t *id_p)
{
    unsigned long long id = 0;
    if (!cuda_is_open(index))
        return false;
    if (is_special(stream)) {
        const unsigned long long known = recall_id(index, stream);
        *id_p = known - 1;
        return known;
    }
    if (CUDA_CALL(cuStreamGetId, stream, &id))
        return false;
    *id_p = id;
    return true;
}

raffia_status cuda_stream_id(int index, driver_stream stream, uint64_t *id_p)
{
    struct cuda_scope scope;
    uint64_t known;
    if (find_id_shortly(index, stream, &known)) {
        *id_p = known;
        return RAFFIA_OK;
    }
    raffia_status status = cuda_enter(&scope, index, "stream_id");
    if (status)
        return status;
    unsigned long long id = 0;
    CUresult result = CUDA_CALL(cuStreamGetId, stream, &id);
    cuda_leave(&scope);
    if (result)
        return cuda_failed(index, result, "%p is no stream of the device", stream);
    remember_id(index, stream, id);
    *id_p = id;
    return RAFFIA_OK;
}

enum driver_default_stream cuda_default_stream(int index)
{
    const bool usable = !cuda_is_forked() && cuda_library_presence() == CUDA_READY && index >= 0 &&
                        index < cuda_library.device_count;
    return usable ? DRIVER_DEFAULT_STREAM_LEGACY : DRIVER_DEFAULT_STREAM_NONE;
}

static bool find_capture_shortly(int index, driver_stream stream, bool *capturing_p)
{
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    if (is_special(stream) || !cuda_is_open(index) ||
        CUDA_CALL(cuStreamIsCapturing, stream, &capture))
        return false;
    *capturing_p = capture != CU_STREAM_CAPTURE_STATUS_NONE;
    return true;
}

/* The legacy default stream cannot be recorded, but while another that waits for it is, its use
 * would spoil the record: it is to be left alone just the same. */
raffia_status cuda_stream_is_capturing(int index, driver_stream stream, bool *capturing_p)
{
    struct cuda_scope scope;
    if (find_capture_shortly(index, stream, capturing_p))
        return RAFFIA_OK;
    raffia_status status = cuda_enter(&scope, index, "stream_is_capturing");
    if (status)
        return status;
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    CUresult result = CUDA_CALL(cuStreamIsCapturing, stream, &capture);
    cuda_leave(&scope);
    if (result && result != CUDA_ERROR_STREAM_CAPTURE_IMPLICIT)
        return cuda_failed(index, result, "cannot ask whether the stream %p is captured", stream);
    *capturing_p =
        result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT || capture != CU_STREAM_CAPTURE_STATUS_NONE;
    return RAFFIA_OK;
}

/* Nothing is kept for a stream. */
raffia_status cuda_stream_retire(int index, driver_stream stream)
{
    (void)stream;
    return cuda_check(index, "stream_retire");
}

raffia_status cuda_stream_wait(int index, driver_stream stream)
{
    struct cuda_scope scope;
    raffia_status status = cuda_enter(&scope, index, "stream_wait");
    if (status)
        return status;
    CUresult result = CUDA_CALL(cuStreamSynchronize, stream);
    cuda_leave(&scope);
    return result ? cuda_failed(index, result, "waiting for the stream %p", stream) : RAFFIA_OK;
}

/* Where a stream is being captured CUDA refuses, which is BUSY. */
raffia_status cuda_device_wait(int index)
{
    struct cuda_scope scope;
    raffia_status status = cuda_enter_beside_capture(&scope, index, "device_wait");
    if (status)
        return status;
    CUresult result = CUDA_CALL(cuCtxSynchronize);
    cuda_leave(&scope);
    return result ? cuda_failed(index, result, "waiting for all streams of the device") : RAFFIA_OK;
}
