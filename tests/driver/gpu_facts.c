#include "driver/gpu_facts.h"

#include <string.h>
#include <time.h>

/* Older PTX than any driver we accept; it is compiled for the device when it is loaded. */
static const char spin_ptx[] = ".version 7.0\n"
                               ".target sm_52\n"
                               ".address_size 64\n"
                               ".visible .entry spin(.param .u64 nanoseconds)\n"
                               "{\n"
                               "    .reg .u64 %now, %end;\n"
                               "    .reg .pred %again;\n"
                               "    ld.param.u64 %end, [nanoseconds];\n"
                               "    mov.u64 %now, %globaltimer;\n"
                               "    add.u64 %end, %end, %now;\n"
                               "more:\n"
                               "    mov.u64 %now, %globaltimer;\n"
                               "    setp.lt.u64 %again, %now, %end;\n"
                               "    @%again bra more;\n"
                               "    ret;\n"
                               "}\n"
                               ".visible .entry trap_now()\n"
                               "{\n"
                               "    trap;\n"
                               "    ret;\n"
                               "}\n";

int gpu_open(void **state)
{
    static struct gpu gpu;
    memset(&gpu, 0, sizeof gpu);
    assert_ok(cuda_enter(&gpu.scope, 0, "a test"));
    gpu.granule = gpu.scope.device->granularity;
    assert_ok(cuda_driver.module_load(0, spin_ptx, sizeof spin_ptx, &gpu.module));
    assert_ok(cuda_driver.module_function(0, gpu.module, "spin", &gpu.spin));
    assert_ok(cuda_driver.stream_create(0, &gpu.stream));
    *state = &gpu;
    return 0;
}

int gpu_close(void **state)
{
    struct gpu *gpu = *state;
    assert_ok(cuda_driver.stream_wait(0, gpu->stream));
    assert_ok(cuda_driver.stream_destroy(0, gpu->stream));
    assert_ok(cuda_driver.module_unload(0, gpu->module));
    cuda_leave(&gpu->scope);
    return 0;
}

void gpu_spin(const struct gpu *gpu, unsigned milliseconds)
{
    uint64_t nanoseconds = (uint64_t)milliseconds * 1000 * 1000;
    void *arguments[] = {&nanoseconds};
    const struct driver_launch launch = {{1, 1, 1}, {1, 1, 1}, 0, arguments};
    assert_ok(cuda_driver.launch(0, gpu->stream, gpu->spin, &launch));
}

bool gpu_is_busy(const struct gpu *gpu)
{
    driver_event event;
    bool done;
    assert_ok(cuda_driver.event_create(0, &event));
    assert_ok(cuda_driver.event_record(0, event, gpu->stream));
    assert_ok(cuda_driver.event_done(0, event, &done));
    assert_ok(cuda_driver.event_destroy(0, event));
    return !done;
}

uint64_t gpu_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

CUmemGenericAllocationHandle gpu_create(const struct gpu *gpu, size_t bytes)
{
    const CUmemAllocationProp prop = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {CU_MEM_LOCATION_TYPE_DEVICE, gpu->scope.device->handle}};
    CUmemGenericAllocationHandle handle = 0;
    assert_cuda(cuda_library.cuMemCreate(&handle, bytes, &prop, 0));
    return handle;
}

CUdeviceptr gpu_reserve(size_t bytes)
{
    CUdeviceptr base = 0;
    assert_cuda(cuda_library.cuMemAddressReserve(&base, bytes, 0, 0, 0));
    return base;
}

void gpu_release(CUdeviceptr base, size_t bytes)
{
    assert_cuda(cuda_library.cuMemAddressFree(base, bytes));
}

CUresult gpu_set_access(const struct gpu *gpu, CUdeviceptr at, size_t bytes, int flags)
{
    const CUmemAccessDesc access = {
        .location = {CU_MEM_LOCATION_TYPE_DEVICE, gpu->scope.device->handle}, .flags = flags};
    return cuda_library.cuMemSetAccess(at, bytes, &access, 1);
}
