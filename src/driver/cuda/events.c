/* Events: marks in streams, that time nothing. */
#include "driver/cuda/context.h"
#include "driver/cuda/failure.h"
#include "driver/cuda/verbs.h"

/* The handle of the contract is CUDA's own under another name. */
static CUevent native(driver_event event)
{
    return (CUevent)(void *)event;
}

raffia_status cuda_event_create(int index, driver_event *event_p)
{
    struct cuda_scope scope;
    raffia_status status = cuda_enter_beside_capture(&scope, index, "event_create");
    if (status)
        return status;
    CUevent event = NULL;
    CUresult result = CUDA_CALL(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
    cuda_leave(&scope);
    if (result)
        return cuda_failed(index, result, "cannot create an event");
    *event_p = (driver_event)(void *)event;
    return RAFFIA_OK;
}

raffia_status cuda_event_destroy(int index, driver_event event)
{
    struct cuda_scope scope;
    raffia_status status = cuda_enter_giving_back(&scope, index, "event_destroy");
    if (status)
        return status;
    CUresult result = CUDA_GIVE_BACK(cuEventDestroy_v2, native(event));
    cuda_leave(&scope);
    return result ? cuda_failed(index, result, "cannot destroy an event") : RAFFIA_OK;
}

raffia_status cuda_event_record(int index, driver_event event, driver_stream stream)
{
    struct cuda_scope scope;
    raffia_status status = cuda_enter(&scope, index, "event_record");
    if (status)
        return status;
    CUresult result = CUDA_CALL(cuEventRecord, native(event), stream);
    cuda_leave(&scope);
    return result ? cuda_failed(index, result, "cannot record an event in the stream %p", stream)
                  : RAFFIA_OK;
}

raffia_status cuda_event_done(int index, driver_event event, bool *done_p)
{
    struct cuda_scope scope;
    raffia_status status = cuda_enter_beside_capture(&scope, index, "event_done");
    if (status)
        return status;
    CUresult result = CUDA_CALL(cuEventQuery, native(event));
    cuda_leave(&scope);
    if (result && result != CUDA_ERROR_NOT_READY)
        return cuda_failed(index, result, "asking whether an event has passed");
    *done_p = result == CUDA_SUCCESS;
    return RAFFIA_OK;
}

raffia_status cuda_event_wait(int index, driver_event event)
{
    struct cuda_scope scope;
    raffia_status status = cuda_enter_beside_capture(&scope, index, "event_wait");
    if (status)
        return status;
    CUresult result = CUDA_CALL(cuEventSynchronize, native(event));
    cuda_leave(&scope);
    return result ? cuda_failed(index, result, "waiting for an event") : RAFFIA_OK;
}

raffia_status cuda_stream_wait_event(int index, driver_stream stream, driver_event event)
{
    struct cuda_scope scope;
    raffia_status status = cuda_enter(&scope, index, "stream_wait_event");
    if (status)
        return status;
    CUresult result = CUDA_CALL(cuStreamWaitEvent, stream, native(event), 0);
    cuda_leave(&scope);
    return result
               ? cuda_failed(index, result, "cannot have the stream %p wait for an event", stream)
               : RAFFIA_OK;
}
