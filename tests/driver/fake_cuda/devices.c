/* The fake's library, devices and contexts. */
#include "fake.h"

#include <stdio.h>
#include <string.h>

#define STACK_MAX 8

static struct CUctx_st primary[FAKE_CUDA_DEVICES_MAX];
static struct CUctx_st foreign[FAKE_CUDA_DEVICES_MAX];
static long retained[FAKE_CUDA_DEVICES_MAX];
static CUresult poison[FAKE_CUDA_DEVICES_MAX];

static _Thread_local CUcontext stack[STACK_MAX];
static _Thread_local int depth;
static _Thread_local CUstreamCaptureMode thread_mode; /* 0: global, the strictest */

CUcontext fake_current_context(void)
{
    return depth ? stack[depth - 1] : NULL;
}

int fake_current_device(void)
{
    return depth ? stack[depth - 1]->device : -1;
}

CUresult fake_poisoned(void)
{
    int device = fake_current_device();
    return device < 0 ? CUDA_SUCCESS : poison[device];
}

void fake_cuda_poison(int device, CUresult result)
{
    poison[device] = result;
}

CUcontext fake_cuda_foreign_context(int device)
{
    foreign[device].device = device;
    return &foreign[device];
}

void fake_devices_clear(void)
{
    memset(poison, 0, sizeof poison);
}

void fake_devices_query(struct fake_cuda_usage *usage)
{
    memcpy(usage->retained, retained, sizeof retained);
}

CUstreamCaptureMode *fake_thread_mode(void)
{
    return &thread_mode;
}

CUresult fake_check_capture(const char *call)
{
    if (!fake_is_capturing() || thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_SUCCESS;
    return fake_misuse(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "%s disturbed a capture", call);
}

CUresult cuInit(unsigned flags)
{
    FAKE_CALL(cuInit, flags ? CUDA_ERROR_INVALID_VALUE : fake_config.init_result);
}

static CUresult get_int(int *to, int value)
{
    *to = value;
    return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version)
{
    FAKE_CALL(cuDriverGetVersion, get_int(version, fake_config.version));
}

static const struct {
    const char *name;
    int value;
} constants[] = {
#define ROW(name, value) {#name, value},
    CUDA_API_CONSTANTS(ROW)
#undef ROW
};

static CUresult error_name(CUresult result, const char **name)
{
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
        if (constants[i].value == result && !strncmp(constants[i].name, "CUDA_", 5)) {
            *name = constants[i].name;
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorName(CUresult result, const char **name)
{
    FAKE_CALL(cuGetErrorName, error_name(result, name));
}

static CUresult error_text(CUresult result, const char **text)
{
    *text = "what the fake says of it";
    return error_name(result, &(const char *){NULL});
}

CUresult cuGetErrorString(CUresult result, const char **text)
{
    FAKE_CALL(cuGetErrorString, error_text(result, text));
}

CUresult cuDeviceGetCount(int *count)
{
    FAKE_CALL(cuDeviceGetCount, get_int(count, fake_config.devices));
}

static bool exists(int device)
{
    return device >= 0 && device < fake_config.devices;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    FAKE_CALL(cuDeviceGet, exists(ordinal) ? get_int(device, ordinal) : CUDA_ERROR_INVALID_DEVICE);
}

static CUresult device_name(char *name, int capacity, CUdevice device)
{
    if (!exists(device))
        return CUDA_ERROR_INVALID_DEVICE;
    snprintf(name, (size_t)capacity, "Fake GPU %d", device);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int capacity, CUdevice device)
{
    FAKE_CALL(cuDeviceGetName, device_name(name, capacity, device));
}

static CUresult total(size_t *bytes, CUdevice device)
{
    *bytes = fake_config.device_bytes;
    return exists(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    FAKE_CALL(cuDeviceTotalMem_v2, total(bytes, device));
}

static CUresult attribute_of(int *value, CUdevice_attribute attribute, CUdevice device)
{
    if (!exists(device))
        return CUDA_ERROR_INVALID_DEVICE;
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
        return get_int(value, !fake_config.no_virtual_memory);
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
        return get_int(value, !fake_config.no_fd_export);
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
        return get_int(value, !fake_config.no_pools);
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED:
        return get_int(value, 0);
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    FAKE_CALL(cuDeviceGetAttribute, attribute_of(value, attribute, device));
}

static CUresult pci_id(char *id, int capacity, CUdevice device)
{
    snprintf(id, (size_t)capacity, "0000:FA:%02X.0", device);
    return exists(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetPCIBusId(char *id, int capacity, CUdevice device)
{
    FAKE_CALL(cuDeviceGetPCIBusId, pci_id(id, capacity, device));
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
    FAKE_CALL(cuDeviceCanAccessPeer, get_int(can, exists(device) && exists(peer)));
}

static CUresult retain(CUcontext *context, CUdevice device)
{
    if (!exists(device))
        return CUDA_ERROR_INVALID_DEVICE;
    primary[device].device = device;
    retained[device]++;
    *context = &primary[device];
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    FAKE_CALL(cuDevicePrimaryCtxRetain, retain(context, device));
}

static CUresult current(CUcontext *context)
{
    *context = fake_current_context();
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
    FAKE_CALL(cuCtxGetCurrent, current(context));
}

static CUresult push(CUcontext context)
{
    if (!context || depth == STACK_MAX)
        return fake_misuse(CUDA_ERROR_INVALID_CONTEXT, "pushed context %p on %d others",
                           (void *)context, depth);
    stack[depth++] = context;
    return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext context)
{
    FAKE_CALL(cuCtxPushCurrent_v2, push(context));
}

static CUresult pop(CUcontext *context)
{
    if (!depth)
        return fake_misuse(CUDA_ERROR_INVALID_CONTEXT, "popped from an empty stack of contexts");
    *context = stack[--depth];
    return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
    FAKE_CALL(cuCtxPopCurrent_v2, pop(context));
}

static CUresult exchange(CUstreamCaptureMode *mode)
{
    CUstreamCaptureMode before = thread_mode;
    thread_mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    FAKE_CALL(cuThreadExchangeStreamCaptureMode, exchange(mode));
}
