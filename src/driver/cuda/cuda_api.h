/*
 * What we use of NVIDIA's driver library, declared by ourselves: no toolkit is needed to build or
 * run. Names, numbers and layouts are those of the CUDA Driver API
 * (https://docs.nvidia.com/cuda/cuda-driver-api/), which keeps them for ever.
 *
 * A test compiles the three lists below against the real cuda.h where there is one. It defines
 * CUDA_API_LISTS_ONLY, since the types then come from there.
 */
#ifndef DRIVER_CUDA_CUDA_API_H
#define DRIVER_CUDA_CUDA_API_H

#include <stddef.h>
#include <stdint.h>

/* X(name, value) */
#define CUDA_API_CONSTANTS(X)                                                                      \
    X(CUDA_SUCCESS, 0)                                                                             \
    X(CUDA_ERROR_INVALID_VALUE, 1)                                                                 \
    X(CUDA_ERROR_OUT_OF_MEMORY, 2)                                                                 \
    X(CUDA_ERROR_NOT_INITIALIZED, 3)                                                               \
    X(CUDA_ERROR_DEINITIALIZED, 4)                                                                 \
    X(CUDA_ERROR_STUB_LIBRARY, 34)                                                                 \
    X(CUDA_ERROR_DEVICE_UNAVAILABLE, 46)                                                           \
    X(CUDA_ERROR_NO_DEVICE, 100)                                                                   \
    X(CUDA_ERROR_INVALID_DEVICE, 101)                                                              \
    X(CUDA_ERROR_INVALID_IMAGE, 200)                                                               \
    X(CUDA_ERROR_INVALID_CONTEXT, 201)                                                             \
    X(CUDA_ERROR_NO_BINARY_FOR_GPU, 209)                                                           \
    X(CUDA_ERROR_ECC_UNCORRECTABLE, 214)                                                           \
    X(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, 217)                                                     \
    X(CUDA_ERROR_INVALID_PTX, 218)                                                                 \
    X(CUDA_ERROR_NVLINK_UNCORRECTABLE, 220)                                                        \
    X(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, 222)                                                     \
    X(CUDA_ERROR_OPERATING_SYSTEM, 304)                                                            \
    X(CUDA_ERROR_INVALID_HANDLE, 400)                                                              \
    X(CUDA_ERROR_NOT_FOUND, 500)                                                                   \
    X(CUDA_ERROR_NOT_READY, 600)                                                                   \
    X(CUDA_ERROR_ILLEGAL_ADDRESS, 700)                                                             \
    X(CUDA_ERROR_LAUNCH_TIMEOUT, 702)                                                              \
    X(CUDA_ERROR_CONTEXT_IS_DESTROYED, 709)                                                        \
    X(CUDA_ERROR_ASSERT, 710)                                                                      \
    X(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, 712)                                              \
    X(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, 713)                                                  \
    X(CUDA_ERROR_HARDWARE_STACK_ERROR, 714)                                                        \
    X(CUDA_ERROR_ILLEGAL_INSTRUCTION, 715)                                                         \
    X(CUDA_ERROR_MISALIGNED_ADDRESS, 716)                                                          \
    X(CUDA_ERROR_INVALID_ADDRESS_SPACE, 717)                                                       \
    X(CUDA_ERROR_INVALID_PC, 718)                                                                  \
    X(CUDA_ERROR_LAUNCH_FAILED, 719)                                                               \
    X(CUDA_ERROR_NOT_PERMITTED, 800)                                                               \
    X(CUDA_ERROR_NOT_SUPPORTED, 801)                                                               \
    X(CUDA_ERROR_SYSTEM_NOT_READY, 802)                                                            \
    X(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, 803)                                                      \
    X(CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, 804)                                              \
    X(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 900)                                                  \
    X(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, 906)                                                     \
    X(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, 908)                                                 \
    X(CUDA_ERROR_UNKNOWN, 999)                                                                     \
    X(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 102)                                \
    X(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 103)                        \
    X(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 115)                                             \
    X(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED, 128)                                       \
    X(CU_MEM_HANDLE_TYPE_NONE, 0)                                                                  \
    X(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 1)                                                 \
    X(CU_MEM_HANDLE_TYPE_FABRIC, 8)                                                                \
    X(CU_MEM_ALLOCATION_TYPE_PINNED, 1)                                                            \
    X(CU_MEM_LOCATION_TYPE_DEVICE, 1)                                                              \
    X(CU_MEM_ACCESS_FLAGS_PROT_READ, 1)                                                            \
    X(CU_MEM_ACCESS_FLAGS_PROT_READWRITE, 3)                                                       \
    X(CU_MEM_ALLOC_GRANULARITY_MINIMUM, 0)                                                         \
    X(CU_MEM_ALLOC_GRANULARITY_RECOMMENDED, 1)                                                     \
    X(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, 4)                                                        \
    X(CU_STREAM_NON_BLOCKING, 1)                                                                   \
    X(CU_STREAM_CAPTURE_STATUS_NONE, 0)                                                            \
    X(CU_STREAM_CAPTURE_MODE_RELAXED, 2)                                                           \
    X(CU_EVENT_DISABLE_TIMING, 2)                                                                  \
    X(CU_MEMCPY_SRC_ACCESS_ORDER_STREAM, 1)                                                        \
    X(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 2)                                                         \
    X(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, 3)                                                      \
    X(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, 9)                                                      \
    X(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, 11)                                                   \
    X(CU_POINTER_ATTRIBUTE_RANGE_SIZE, 12)                                                         \
    X(CU_MEMORYTYPE_HOST, 1)                                                                       \
    X(CU_MEMORYTYPE_DEVICE, 2)                                                                     \
    X(CU_JIT_ERROR_LOG_BUFFER, 5)                                                                  \
    X(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, 6)                                                       \
    X(CU_GET_PROC_ADDRESS_LEGACY_STREAM, 1)

/* Macros there, so not for the list of enumerators. */
#define CUDA_API_MEMHOSTREGISTER_PORTABLE 1u
#define CUDA_API_MEMHOSTALLOC_PORTABLE    1u

/* X(type, bytes), and M(type, member, offset). Types that are enumerations there are int here: the
 * same register or word. */
#define CUDA_API_LAYOUT(X, M)                                                                      \
    X(CUresult, 4)                                                                                 \
    X(CUdevice, 4)                                                                                 \
    X(CUdeviceptr, 8)                                                                              \
    X(CUmemGenericAllocationHandle, 8)                                                             \
    X(CUdevice_attribute, 4)                                                                       \
    X(CUmemAllocationHandleType, 4)                                                                \
    X(CUmemAllocationGranularity_flags, 4)                                                         \
    X(CUstreamCaptureStatus, 4)                                                                    \
    X(CUstreamCaptureMode, 4)                                                                      \
    X(CUjit_option, 4)                                                                             \
    X(CUpointer_attribute, 4)                                                                      \
    X(CUdriverProcAddressQueryResult, 4)                                                           \
    X(cuuint64_t, 8)                                                                               \
    X(CUmemFabricHandle, 64)                                                                       \
    X(CUmemLocation, 8)                                                                            \
    M(CUmemLocation, type, 0)                                                                      \
    M(CUmemLocation, id, 4)                                                                        \
    X(CUmemAllocationProp, 32)                                                                     \
    M(CUmemAllocationProp, type, 0)                                                                \
    M(CUmemAllocationProp, requestedHandleTypes, 4)                                                \
    M(CUmemAllocationProp, location, 8)                                                            \
    M(CUmemAllocationProp, win32HandleMetaData, 16)                                                \
    M(CUmemAllocationProp, allocFlags, 24)                                                         \
    X(CUmemPool_attribute, 4)                                                                      \
    X(CUmemPoolProps, 88)                                                                          \
    M(CUmemPoolProps, allocType, 0)                                                                \
    M(CUmemPoolProps, handleTypes, 4)                                                              \
    M(CUmemPoolProps, location, 8)                                                                 \
    M(CUmemPoolProps, win32SecurityAttributes, 16)                                                 \
    M(CUmemPoolProps, maxSize, 24)                                                                 \
    M(CUmemPoolProps, usage, 32)                                                                   \
    X(CUmemAccessDesc, 12)                                                                         \
    M(CUmemAccessDesc, location, 0)                                                                \
    M(CUmemAccessDesc, flags, 8)                                                                   \
    X(CUmemcpyAttributes, 24)                                                                      \
    M(CUmemcpyAttributes, srcAccessOrder, 0)                                                       \
    M(CUmemcpyAttributes, srcLocHint, 4)                                                           \
    M(CUmemcpyAttributes, dstLocHint, 12)                                                          \
    M(CUmemcpyAttributes, flags, 20)

/*
 * X(symbol, name, version, parameters): the symbol as the library exports it; the name and the
 * version of CUDA by which cuGetProcAddress() gives the same function.
 */
#define CUDA_API_FUNCTIONS(X)                                                                      \
    X(cuInit, cuInit, 2000, (unsigned flags))                                                      \
    X(cuDriverGetVersion, cuDriverGetVersion, 2020, (int *version))                                \
    X(cuGetErrorName, cuGetErrorName, 6000, (CUresult result, const char **name))                  \
    X(cuGetErrorString, cuGetErrorString, 6000, (CUresult result, const char **text))              \
    X(cuDeviceGetCount, cuDeviceGetCount, 2000, (int *count))                                      \
    X(cuDeviceGet, cuDeviceGet, 2000, (CUdevice * device, int ordinal))                            \
    X(cuDeviceGetName, cuDeviceGetName, 2000, (char *name, int capacity, CUdevice device))         \
    X(cuDeviceTotalMem_v2, cuDeviceTotalMem, 3020, (size_t * bytes, CUdevice device))              \
    X(cuDeviceGetAttribute, cuDeviceGetAttribute, 2000,                                            \
      (int *value, CUdevice_attribute attribute, CUdevice device))                                 \
    X(cuDeviceGetPCIBusId, cuDeviceGetPCIBusId, 4010, (char *id, int capacity, CUdevice device))   \
    X(cuDeviceCanAccessPeer, cuDeviceCanAccessPeer, 4000,                                          \
      (int *can, CUdevice device, CUdevice peer))                                                  \
    X(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, 7000,                                    \
      (CUcontext * context, CUdevice device))                                                      \
    X(cuCtxGetCurrent, cuCtxGetCurrent, 4000, (CUcontext * context))                               \
    X(cuCtxPushCurrent_v2, cuCtxPushCurrent, 4000, (CUcontext context))                            \
    X(cuCtxPopCurrent_v2, cuCtxPopCurrent, 4000, (CUcontext * context))                            \
    X(cuThreadExchangeStreamCaptureMode, cuThreadExchangeStreamCaptureMode, 10010,                 \
      (CUstreamCaptureMode * mode))                                                                \
    X(cuMemGetInfo_v2, cuMemGetInfo, 3020, (size_t * available, size_t * total))                   \
    X(cuMemGetAllocationGranularity, cuMemGetAllocationGranularity, 10020,                         \
      (size_t * bytes, const CUmemAllocationProp *prop, CUmemAllocationGranularity_flags which))   \
    X(cuMemAddressReserve, cuMemAddressReserve, 10020,                                             \
      (CUdeviceptr * base, size_t bytes, size_t alignment, CUdeviceptr wish,                       \
       unsigned long long flags))                                                                  \
    X(cuMemAddressFree, cuMemAddressFree, 10020, (CUdeviceptr base, size_t bytes))                 \
    X(cuMemCreate, cuMemCreate, 10020,                                                             \
      (CUmemGenericAllocationHandle * handle, size_t bytes, const CUmemAllocationProp *prop,       \
       unsigned long long flags))                                                                  \
    X(cuMemRelease, cuMemRelease, 10020, (CUmemGenericAllocationHandle handle))                    \
    X(cuMemMap, cuMemMap, 10020,                                                                   \
      (CUdeviceptr at, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,           \
       unsigned long long flags))                                                                  \
    X(cuMemUnmap, cuMemUnmap, 10020, (CUdeviceptr at, size_t bytes))                               \
    X(cuMemSetAccess, cuMemSetAccess, 10020,                                                       \
      (CUdeviceptr at, size_t bytes, const CUmemAccessDesc *access, size_t count))                 \
    X(cuMemExportToShareableHandle, cuMemExportToShareableHandle, 10020,                           \
      (void *shareable, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,       \
       unsigned long long flags))                                                                  \
    X(cuMemImportFromShareableHandle, cuMemImportFromShareableHandle, 10020,                       \
      (CUmemGenericAllocationHandle * handle, void *shareable, CUmemAllocationHandleType type))    \
    X(cuMemAlloc_v2, cuMemAlloc, 3020, (CUdeviceptr * address, size_t bytes))                      \
    X(cuMemFree_v2, cuMemFree, 3020, (CUdeviceptr address))                                        \
    X(cuMemHostRegister_v2, cuMemHostRegister, 6050, (void *at, size_t bytes, unsigned flags))     \
    X(cuMemHostUnregister, cuMemHostUnregister, 4000, (void *at))                                  \
    X(cuMemHostAlloc, cuMemHostAlloc, 2020, (void **at, size_t bytes, unsigned flags))             \
    X(cuMemFreeHost, cuMemFreeHost, 2000, (void *at))                                              \
    X(cuMemGetAddressRange_v2, cuMemGetAddressRange, 3020,                                         \
      (CUdeviceptr * start, size_t * bytes, CUdeviceptr at))                                       \
    X(cuPointerGetAttributes, cuPointerGetAttributes, 7000,                                        \
      (unsigned count, CUpointer_attribute *attributes, void **values, CUdeviceptr at))            \
    X(cuStreamCreate, cuStreamCreate, 2000, (CUstream * stream, unsigned flags))                   \
    X(cuStreamDestroy_v2, cuStreamDestroy, 4000, (CUstream stream))                                \
    X(cuStreamGetId, cuStreamGetId, 12000, (CUstream stream, unsigned long long *id))              \
    X(cuStreamIsCapturing, cuStreamIsCapturing, 10000,                                             \
      (CUstream stream, CUstreamCaptureStatus * status))                                           \
    X(cuStreamSynchronize, cuStreamSynchronize, 2000, (CUstream stream))                           \
    X(cuCtxSynchronize, cuCtxSynchronize, 2000, (void))                                            \
    X(cuStreamWaitEvent, cuStreamWaitEvent, 3020,                                                  \
      (CUstream stream, CUevent event, unsigned flags))                                            \
    X(cuEventCreate, cuEventCreate, 2000, (CUevent * event, unsigned flags))                       \
    X(cuEventDestroy_v2, cuEventDestroy, 4000, (CUevent event))                                    \
    X(cuEventRecord, cuEventRecord, 2000, (CUevent event, CUstream stream))                        \
    X(cuEventQuery, cuEventQuery, 2000, (CUevent event))                                           \
    X(cuEventSynchronize, cuEventSynchronize, 2000, (CUevent event))                               \
    X(cuMemcpyAsync, cuMemcpyAsync, 4000,                                                          \
      (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream))                           \
    X(cuMemsetD8Async, cuMemsetD8Async, 3020,                                                      \
      (CUdeviceptr to, unsigned char value, size_t count, CUstream stream))                        \
    X(cuModuleLoadDataEx, cuModuleLoadDataEx, 2010,                                                \
      (CUmodule * module, const void *image, unsigned count, CUjit_option *options,                \
       void **values))                                                                             \
    X(cuModuleUnload, cuModuleUnload, 2000, (CUmodule module))                                     \
    X(cuModuleGetFunction, cuModuleGetFunction, 2000,                                              \
      (CUfunction * function, CUmodule module, const char *name))                                  \
    X(cuLaunchKernel, cuLaunchKernel, 4000,                                                        \
      (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,   \
       unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream,                 \
       void **parameters, void **extra))

/* The same for functions that a driver may lack. */
#define CUDA_API_OPTIONAL(X)                                                                       \
    X(cuMemcpyBatchAsync, cuMemcpyBatchAsync, 12080,                                               \
      (CUdeviceptr * to, CUdeviceptr * from, size_t * bytes, size_t count,                         \
       CUmemcpyAttributes * attributes, size_t * attribute_starts, size_t attribute_count,         \
       size_t * failed, CUstream stream))                                                          \
    X(cuMemPoolCreate, cuMemPoolCreate, 11020, (CUmemoryPool * pool, const CUmemPoolProps *props)) \
    X(cuMemPoolDestroy, cuMemPoolDestroy, 11020, (CUmemoryPool pool))                              \
    X(cuMemPoolSetAttribute, cuMemPoolSetAttribute, 11020,                                         \
      (CUmemoryPool pool, CUmemPool_attribute attribute, void *value))                             \
    X(cuMemPoolTrimTo, cuMemPoolTrimTo, 11020, (CUmemoryPool pool, size_t keep_bytes))             \
    X(cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync, 11020,                                     \
      (CUdeviceptr * address, size_t bytes, CUmemoryPool pool, CUstream stream))                   \
    X(cuMemFreeAsync, cuMemFreeAsync, 11020, (CUdeviceptr address, CUstream stream))

/* How the others are found. It is itself found by dlsym(). */
#define CUDA_API_FINDER(X)                                                                         \
    X(cuGetProcAddress_v2, cuGetProcAddress, 12000,                                                \
      (const char *name, void **function, int version, cuuint64_t flags,                           \
       CUdriverProcAddressQueryResult *result))

#ifndef CUDA_API_LISTS_ONLY

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef unsigned long long CUmemGenericAllocationHandle;
typedef uint64_t cuuint64_t;

typedef int CUdevice_attribute;
typedef int CUmemAllocationHandleType;
typedef int CUmemAllocationGranularity_flags;
typedef int CUstreamCaptureStatus;
typedef int CUstreamCaptureMode;
typedef int CUjit_option;
typedef int CUpointer_attribute;
typedef int CUmemPool_attribute;
typedef int CUdriverProcAddressQueryResult;

typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;

typedef struct {
    unsigned char data[64];
} CUmemFabricHandle;

typedef struct {
    int type;
    int id;
} CUmemLocation;

typedef struct {
    int type;
    CUmemAllocationHandleType requestedHandleTypes;
    CUmemLocation location;
    void *win32HandleMetaData;
    struct {
        unsigned char compressionType;
        unsigned char gpuDirectRDMACapable;
        unsigned short usage;
        unsigned char reserved[4];
    } allocFlags;
} CUmemAllocationProp;

typedef struct {
    int allocType;
    CUmemAllocationHandleType handleTypes;
    CUmemLocation location;
    void *win32SecurityAttributes;
    size_t maxSize; /* 0: what the system has */
    unsigned short usage;
    unsigned char reserved[54];
} CUmemPoolProps;

typedef struct {
    CUmemLocation location;
    int flags;
} CUmemAccessDesc;

typedef struct {
    int srcAccessOrder;
    CUmemLocation srcLocHint;
    CUmemLocation dstLocHint;
    unsigned flags;
} CUmemcpyAttributes;

enum cuda_api_constant {
#define CUDA_API_ENUM(name, value) name = (value),
    CUDA_API_CONSTANTS(CUDA_API_ENUM)
#undef CUDA_API_ENUM
};

#define CUDA_API_SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), #type);
#define CUDA_API_MEMBER(type, member, offset)                                                      \
    _Static_assert(offsetof(type, member) == (offset), #type "." #member);
CUDA_API_LAYOUT(CUDA_API_SIZE, CUDA_API_MEMBER)
#undef CUDA_API_SIZE
#undef CUDA_API_MEMBER

#endif

#endif
