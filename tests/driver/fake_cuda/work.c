/* The fake's streams, events, copies and kernels. Work is done when it is submitted. */
#include "fake.h"

#include <stdlib.h>
#include <string.h>

struct CUstream_st {
    CUcontext context;
    unsigned long long id;
    bool capturing;
};

struct CUevent_st {
    CUcontext context;
};

struct CUmod_st {
    CUcontext context;
};

struct CUfunc_st {
    int unused;
};

/* The kernels there are: "store" writes a number, "nothing" does nothing; "raffia_copy" is ours. */
static struct CUfunc_st store, nothing, gather;

static struct fake_set streams, events, modules;
static unsigned long long last_id = 2; /* 1 and 2: the default streams */
static size_t captures;                /* streams being captured; the legacy one then is, too */

/* NULL, and the two names for default streams. */
static bool is_default(CUstream stream)
{
    return (uintptr_t)stream <= 2;
}

static CUresult check_stream(CUstream stream, const char *call)
{
    if (!fake_current_context())
        return fake_misuse(CUDA_ERROR_INVALID_CONTEXT, "%s without a context", call);
    if (is_default(stream))
        return CUDA_SUCCESS;
    if (!fake_set_has(&streams, stream))
        return fake_misuse(CUDA_ERROR_INVALID_HANDLE, "%s on a stream that is gone", call);
    if (stream->context != fake_current_context())
        return fake_misuse(CUDA_ERROR_INVALID_HANDLE, "%s in a wrong context", call);
    return CUDA_SUCCESS;
}

/* What is asked of a stream that somebody made needs no context. */
static CUresult check_named(CUstream stream, const char *call)
{
    return is_default(stream) || !fake_set_has(&streams, stream) ? check_stream(stream, call)
                                                                 : CUDA_SUCCESS;
}

static CUresult check_event(CUevent event, const char *call)
{
    if (fake_set_has(&events, event) && event->context == fake_current_context())
        return CUDA_SUCCESS;
    return fake_misuse(CUDA_ERROR_INVALID_HANDLE, "%s of no event of the context", call);
}

static CUresult create_stream(CUstream *stream, unsigned flags)
{
    CUresult result = check_stream(NULL, "cuStreamCreate");
    if (result || flags != CU_STREAM_NON_BLOCKING)
        return result ? result : CUDA_ERROR_INVALID_VALUE;
    CUstream new = calloc(1, sizeof *new);
    new->context = fake_current_context();
    new->id = ++last_id;
    fake_set_add(&streams, new);
    *stream = new;
    return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream *stream, unsigned flags)
{
    FAKE_CALL(cuStreamCreate, create_stream(stream, flags));
}

static CUresult destroy_stream(CUstream stream)
{
    CUresult result =
        is_default(stream) ? CUDA_ERROR_INVALID_HANDLE : check_stream(stream, "cuStreamDestroy");
    if (result)
        return result;
    fake_set_remove(&streams, stream);
    free(stream);
    return CUDA_SUCCESS;
}

CUresult cuStreamDestroy_v2(CUstream stream)
{
    FAKE_CALL(cuStreamDestroy_v2, destroy_stream(stream));
}

static CUresult stream_id(CUstream stream, unsigned long long *id)
{
    CUresult result = check_named(stream, "cuStreamGetId");
    if (!result)
        *id = !is_default(stream) ? stream->id : (uintptr_t)stream == 2 ? 2 : 1;
    return result;
}

#ifndef FAKE_CUDA_ANCIENT
CUresult cuStreamGetId(CUstream stream, unsigned long long *id)
{
    FAKE_CALL(cuStreamGetId, stream_id(stream, id));
}
#else
CUresult fake_unused_stream_id(CUstream stream, unsigned long long *id);
CUresult fake_unused_stream_id(CUstream stream, unsigned long long *id)
{
    return stream_id(stream, id);
}
#endif

bool fake_is_capturing(void)
{
    return captures > 0;
}

void fake_cuda_capture(CUstream stream, bool on)
{
    if (!is_default(stream))
        stream->capturing = on;
    captures += on ? 1 : (size_t)-1;
}

static CUresult capture_status(CUstream stream, CUstreamCaptureStatus *status)
{
    CUresult result = check_named(stream, "cuStreamIsCapturing");
    if (result)
        return result;
    if (is_default(stream) && captures)
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    *status = !is_default(stream) && stream->capturing;
    return CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
    FAKE_CALL(cuStreamIsCapturing, capture_status(stream, status));
}

CUresult fake_check_uncaptured(CUstream stream, const char *call)
{
    CUresult result = check_stream(stream, call);
    if (!result && (is_default(stream) ? captures > 0 : stream->capturing))
        return fake_misuse(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "%s was captured", call);
    return result;
}

/* What waits when it is done. */
static CUresult waited(CUresult result)
{
    if (!result)
        fake_pools_settle();
    return result;
}

CUresult cuStreamSynchronize(CUstream stream)
{
    FAKE_CALL(cuStreamSynchronize, waited(check_stream(stream, "cuStreamSynchronize")));
}

/* Work is done when it is submitted, so there is nothing to wait for. */
static CUresult check_quiet(void)
{
    if (fake_is_capturing())
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    return fake_current_device() < 0
               ? fake_misuse(CUDA_ERROR_INVALID_CONTEXT, "synchronised without a context")
               : CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(void)
{
    FAKE_CALL(cuCtxSynchronize, waited(check_quiet()));
}

static CUresult check_both(CUstream stream, CUevent event, const char *call)
{
    CUresult result = check_stream(stream, call);
    return result ? result : check_event(event, call);
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
    FAKE_CALL(cuStreamWaitEvent,
              flags ? CUDA_ERROR_INVALID_VALUE : check_both(stream, event, "cuStreamWaitEvent"));
}

static CUresult create_event(CUevent *event, unsigned flags)
{
    CUresult result = check_stream(NULL, "cuEventCreate");
    if (result || flags != CU_EVENT_DISABLE_TIMING)
        return result ? result : CUDA_ERROR_INVALID_VALUE;
    CUevent new = calloc(1, sizeof *new);
    new->context = fake_current_context();
    fake_set_add(&events, new);
    *event = new;
    return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent *event, unsigned flags)
{
    FAKE_CALL(cuEventCreate, create_event(event, flags));
}

static CUresult destroy_event(CUevent event)
{
    CUresult result = check_event(event, "cuEventDestroy");
    if (result)
        return result;
    fake_set_remove(&events, event);
    free(event);
    return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent event)
{
    FAKE_CALL(cuEventDestroy_v2, destroy_event(event));
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
    FAKE_CALL(cuEventRecord, check_both(stream, event, "cuEventRecord"));
}

static CUresult look_at(CUevent event, const char *call)
{
    CUresult result = check_event(event, call);
    return result ? result : fake_check_capture(call);
}

CUresult cuEventQuery(CUevent event)
{
    FAKE_CALL(cuEventQuery, look_at(event, "cuEventQuery"));
}

CUresult cuEventSynchronize(CUevent event)
{
    FAKE_CALL(cuEventSynchronize, waited(look_at(event, "cuEventSynchronize")));
}

static CUresult copy(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    CUresult result = check_stream(stream, "cuMemcpyAsync");
    if (!result)
        result = fake_check_memory(to, bytes, true);
    if (!result)
        result = fake_check_memory(from, bytes, false);
    if (!result)
        memmove((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
    return result;
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    FAKE_CALL(cuMemcpyAsync, copy(to, from, bytes, stream));
}

#ifndef FAKE_CUDA_OLD
static CUresult copy_batch(const CUdeviceptr *to, const CUdeviceptr *from, const size_t *bytes,
                           size_t count, const CUmemcpyAttributes *attributes, CUstream stream)
{
    if ((uintptr_t)stream <= 1)
        return fake_misuse(CUDA_ERROR_INVALID_VALUE, "a batch of copies on the legacy stream");
    if (!is_default(stream) && stream->capturing)
        return fake_misuse(CUDA_ERROR_INVALID_VALUE, "a batch of copies in a capture");
    if (!count || attributes->srcAccessOrder != CU_MEMCPY_SRC_ACCESS_ORDER_STREAM)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < count && !result; i++)
        result = bytes[i] ? copy(to[i], from[i], bytes[i], stream)
                          : fake_misuse(CUDA_ERROR_INVALID_VALUE, "an empty copy in a batch");
    return result;
}

CUresult cuMemcpyBatchAsync(CUdeviceptr *to, CUdeviceptr *from, size_t *bytes, size_t count,
                            CUmemcpyAttributes *attributes, size_t *attribute_starts,
                            size_t attribute_count, size_t *failed, CUstream stream)
{
    (void)attribute_starts, (void)attribute_count, (void)failed;
    FAKE_CALL(cuMemcpyBatchAsync, copy_batch(to, from, bytes, count, attributes, stream));
}
#endif

static CUresult fill(CUdeviceptr to, unsigned char value, size_t count, CUstream stream)
{
    CUresult result = check_stream(stream, "cuMemsetD8Async");
    if (!result)
        result = fake_check_memory(to, count, true);
    if (!result)
        memset((void *)(uintptr_t)to, value, count);
    return result;
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream)
{
    FAKE_CALL(cuMemsetD8Async, fill(to, value, count, stream));
}

static CUresult load(CUmodule *module, const char *image, unsigned count,
                     const CUjit_option *options, void **values)
{
    if (!strncmp(image, "kernels", 8) || strstr(image, ".entry raffia_copy(")) {
        CUmodule new = calloc(1, sizeof *new);
        new->context = fake_current_context();
        fake_set_add(&modules, new);
        *module = new;
        return CUDA_SUCCESS;
    }
    for (unsigned i = 0; i < count; i++)
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER)
            strcpy(values[i], "line 1: no such word\nline 2");
    return CUDA_ERROR_INVALID_PTX;
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count,
                            CUjit_option *options, void **values)
{
    FAKE_CALL(cuModuleLoadDataEx, load(module, image, count, options, values));
}

static CUresult unload(CUmodule module)
{
    if (!fake_set_has(&modules, module))
        return fake_misuse(CUDA_ERROR_INVALID_HANDLE, "unloaded what is no module");
    fake_set_remove(&modules, module);
    free(module);
    return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule module)
{
    FAKE_CALL(cuModuleUnload, unload(module));
}

static CUresult find_function(CUfunction *function, CUmodule module, const char *name)
{
    if (!fake_set_has(&modules, module))
        return fake_misuse(CUDA_ERROR_INVALID_HANDLE, "looked into what is no module");
    if (!strcmp(name, "store"))
        *function = &store;
    else if (!strcmp(name, "nothing"))
        *function = &nothing;
    else if (!strcmp(name, "raffia_copy"))
        *function = &gather;
    else
        return CUDA_ERROR_NOT_FOUND;
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    FAKE_CALL(cuModuleGetFunction, find_function(function, module, name));
}

/* What kernels/copy.ptx does, a warp of 32 threads for each piece. */
static CUresult copy_pieces(void **parameters, size_t threads)
{
    unsigned long long words[5];
    for (int i = 0; i < 5; i++)
        memcpy(&words[i], parameters[i], sizeof words[i]);
    if (words[1] > threads / 32)
        return fake_misuse(CUDA_ERROR_INVALID_VALUE, "launched too few threads for its pieces");
    for (size_t i = 0; i < words[1]; i++) {
        unsigned long long piece[3] = {words[2] + 4096 * i, words[3] + 4096 * i,
                                       words[4] - 4096 * i};
        if (words[0])
            memcpy(piece, (const char *)fake_pointer(words[0]) + sizeof piece * i, sizeof piece);
        else if (piece[2] > 4096)
            piece[2] = 4096;
        CUresult result = fake_check_memory(piece[0], piece[2], true);
        if (!result)
            result = fake_check_memory(piece[1], piece[2], false);
        if (result)
            return result;
        memcpy(fake_pointer(piece[0]), fake_pointer(piece[1]), piece[2]);
    }
    return CUDA_SUCCESS;
}

static CUresult launch(CUfunction function, CUstream stream, void **parameters, size_t threads)
{
    CUresult result = check_stream(stream, "cuLaunchKernel");
    if (result || !threads)
        return result ? result : CUDA_ERROR_INVALID_VALUE;
    if (function == &gather)
        return copy_pieces(parameters, threads);
    if (function != &store)
        return CUDA_SUCCESS;
    CUdeviceptr to;
    memcpy(&to, parameters[0], sizeof to);
    result = fake_check_memory(to, sizeof(uint32_t), true);
    if (!result)
        memcpy((void *)(uintptr_t)to, parameters[1], sizeof(uint32_t));
    return result;
}

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                        CUstream stream, void **parameters, void **extra)
{
    (void)shared_bytes, (void)extra;
    FAKE_CALL(cuLaunchKernel,
              launch(function, stream, parameters,
                     (size_t)grid_x * grid_y * grid_z * block_x * block_y * block_z));
}

void fake_work_clear(void)
{
    fake_set_clear(&streams, free);
    fake_set_clear(&events, free);
    fake_set_clear(&modules, free);
    captures = 0;
}

void fake_work_query(struct fake_cuda_usage *usage)
{
    usage->streams = streams.count;
    usage->events = events.count;
    usage->modules = modules.count;
}
