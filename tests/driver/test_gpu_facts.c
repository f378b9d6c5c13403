/*
 * The facts about CUDA's virtual memory that the design rests on, each looked at again on the GPU
 * at hand. Times are printed, not judged; that a call did not wait is seen from a kernel that still
 * runs behind it.
 */
#include "driver/gpu_facts.h"
#include "driver/gpu_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIBRARY cuda_library

static void a_handle_cannot_be_mapped_from_an_offset_on(void **state)
{
    const struct gpu *gpu = *state;
    const size_t g = gpu->granule;
    CUmemGenericAllocationHandle handle = gpu_create(gpu, 2 * g);
    CUdeviceptr base = gpu_reserve(2 * g);
    assert_refused(LIBRARY.cuMemMap(base, g, g, handle, 0));
    gpu_release(base, 2 * g);
    assert_cuda(LIBRARY.cuMemRelease(handle));
}

static void no_part_of_a_handle_can_be_mapped_or_unmapped(void **state)
{
    const struct gpu *gpu = *state;
    const size_t g = gpu->granule;
    CUmemGenericAllocationHandle handle = gpu_create(gpu, 2 * g);
    CUdeviceptr base = gpu_reserve(4 * g);
    assert_refused(LIBRARY.cuMemMap(base, g, 0, handle, 0));
    assert_refused(LIBRARY.cuMemMap(base, 4 * g, 0, handle, 0)); /* nor more than it */
    assert_cuda(LIBRARY.cuMemMap(base, 2 * g, 0, handle, 0));
    assert_refused(LIBRARY.cuMemUnmap(base, g));
    assert_refused(LIBRARY.cuMemUnmap(base + g, g));
    assert_refused(LIBRARY.cuMemMap(base, 2 * g, 0, handle, 0)); /* nor over itself */
    assert_cuda(LIBRARY.cuMemUnmap(base, 2 * g));
    gpu_release(base, 4 * g);
    assert_cuda(LIBRARY.cuMemRelease(handle));
}

static void fill(const struct gpu *gpu, CUdeviceptr at, unsigned char value, size_t bytes)
{
    assert_ok(cuda_driver.fill(0, gpu->stream, (void *)(uintptr_t)at, value, bytes));
    assert_ok(cuda_driver.stream_wait(0, gpu->stream));
}

static unsigned char byte_at(const struct gpu *gpu, CUdeviceptr at)
{
    unsigned char value = 0;
    assert_ok(cuda_driver.copy(0, gpu->stream, &value, (const void *)(uintptr_t)at, 1));
    assert_ok(cuda_driver.stream_wait(0, gpu->stream));
    return value;
}

static void one_handle_can_be_at_two_addresses(void **state)
{
    const struct gpu *gpu = *state;
    const size_t g = gpu->granule;
    CUmemGenericAllocationHandle handle = gpu_create(gpu, g);
    CUdeviceptr base = gpu_reserve(2 * g);
    assert_cuda(LIBRARY.cuMemMap(base, g, 0, handle, 0));
    assert_cuda(LIBRARY.cuMemMap(base + g, g, 0, handle, 0));
    assert_cuda(gpu_set_access(gpu, base, 2 * g, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    fill(gpu, base, 0x31, g);
    assert_int_equal(byte_at(gpu, base + g), 0x31);
    assert_int_equal(byte_at(gpu, base + 2 * g - 1), 0x31);
    assert_cuda(LIBRARY.cuMemUnmap(base, g));
    assert_int_equal(byte_at(gpu, base + g), 0x31);
    assert_cuda(LIBRARY.cuMemUnmap(base + g, g));
    gpu_release(base, 2 * g);
    assert_cuda(LIBRARY.cuMemRelease(handle));
}

/* One set of access over many mappings, and what it costs apart from one for each. */
static void one_call_gives_access_to_many_mappings(void **state)
{
    enum { COUNT = 64 };
    const struct gpu *gpu = *state;
    const size_t g = gpu->granule;
    CUmemGenericAllocationHandle handles[COUNT];
    CUdeviceptr base = gpu_reserve(COUNT * g);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < COUNT; i++) {
            handles[i] = gpu_create(gpu, g);
            assert_cuda(LIBRARY.cuMemMap(base + i * g, g, 0, handles[i], 0));
        }
        uint64_t start = gpu_now_ns();
        for (size_t i = 0; i < (round ? COUNT : 1); i++)
            assert_cuda(gpu_set_access(gpu, base + i * g, round ? g : COUNT * g,
                                       CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
        printf("access to %d mappings in %d call(s): %.1f us\n", COUNT, round ? COUNT : 1,
               (double)(gpu_now_ns() - start) / 1e3);
        fill(gpu, base, 1, COUNT * g);
        assert_int_equal(byte_at(gpu, base + COUNT * g - 1), 1);
        for (size_t i = 0; i < COUNT; i++) {
            assert_cuda(LIBRARY.cuMemUnmap(base + i * g, g));
            assert_cuda(LIBRARY.cuMemRelease(handles[i]));
        }
    }
    gpu_release(base, COUNT * g);
}

static double since_us(uint64_t *start)
{
    const uint64_t now = gpu_now_ns();
    const double us = (double)(now - *start) / 1e3;
    *start = now;
    return us;
}

static void nothing_waits_for_a_running_kernel(void **state)
{
    const struct gpu *gpu = *state;
    const size_t g = gpu->granule;
    CUmemGenericAllocationHandle old = gpu_create(gpu, g);
    CUdeviceptr base = gpu_reserve(2 * g);
    assert_cuda(LIBRARY.cuMemMap(base, g, 0, old, 0));
    assert_cuda(gpu_set_access(gpu, base, g, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    gpu_spin(gpu, 1); /* the first launch loads the kernel, and does wait */
    assert_ok(cuda_driver.stream_wait(0, gpu->stream));

    gpu_spin(gpu, 500);
    uint64_t clock = gpu_now_ns();
    CUmemGenericAllocationHandle new = gpu_create(gpu, g);
    double create = since_us(&clock);
    assert_cuda(LIBRARY.cuMemMap(base + g, g, 0, new, 0));
    double map = since_us(&clock);
    assert_cuda(gpu_set_access(gpu, base + g, g, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    double access = since_us(&clock);
    assert_cuda(LIBRARY.cuMemUnmap(base, g));
    double unmap = since_us(&clock);
    assert_cuda(LIBRARY.cuMemRelease(old));
    double release = since_us(&clock);
    const bool busy = gpu_is_busy(gpu);
    printf("under a kernel: create %.1f, map %.1f, access %.1f, unmap %.1f, release %.1f us\n",
           create, map, access, unmap, release);
    if (!busy)
        fail_msg("this driver (CUDA %d) waited for the kernel in one of the calls above",
                 LIBRARY.version);
    assert_ok(cuda_driver.stream_wait(0, gpu->stream));
    assert_cuda(LIBRARY.cuMemUnmap(base + g, g));
    assert_cuda(LIBRARY.cuMemRelease(new));
    gpu_release(base, 2 * g);
}

/* The regular path does wait, which is one reason for the other. */
static void freeing_regular_memory_waits(void **state)
{
    const struct gpu *gpu = *state;
    void *block;
    assert_ok(cuda_driver.mem_alloc(0, 4 * MIB, &block));
    gpu_spin(gpu, 200);
    uint64_t start = gpu_now_ns();
    assert_ok(cuda_driver.mem_free(0, block, 4 * MIB));
    printf("mem_free() under a kernel of 200 ms: %.1f ms; the kernel is %s\n",
           (double)(gpu_now_ns() - start) / 1e6, gpu_is_busy(gpu) ? "still running" : "done");
    assert_ok(cuda_driver.stream_wait(0, gpu->stream));
}

/* Remaps `count` handles of `bytes` each; microseconds for each of the three steps. */
static void remap(const struct gpu *gpu, size_t count, size_t bytes)
{
    CUmemGenericAllocationHandle *handles = malloc(count * sizeof *handles);
    assert_non_null(handles);
    const size_t total = count * bytes;
    CUdeviceptr from = gpu_reserve(total), to = gpu_reserve(total);
    for (size_t i = 0; i < count; i++) {
        handles[i] = gpu_create(gpu, bytes);
        assert_cuda(LIBRARY.cuMemMap(from + i * bytes, bytes, 0, handles[i], 0));
    }
    assert_cuda(gpu_set_access(gpu, from, total, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    fill(gpu, from, 0x66, total);
    uint64_t clock = gpu_now_ns();
    for (size_t i = 0; i < count; i++)
        assert_cuda(LIBRARY.cuMemMap(to + i * bytes, bytes, 0, handles[i], 0));
    double map = since_us(&clock);
    assert_cuda(gpu_set_access(gpu, to, total, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    double access = since_us(&clock);
    for (size_t i = 0; i < count; i++)
        assert_cuda(LIBRARY.cuMemUnmap(from + i * bytes, bytes));
    double unmap = since_us(&clock);
    assert_int_equal(byte_at(gpu, to + total - 1), 0x66);
    printf("remap of %4zu handles of %3zu MiB, for each: map %.2f, access %.2f, unmap %.2f us\n",
           count, bytes / MIB, map / (double)count, access / (double)count, unmap / (double)count);
    for (size_t i = 0; i < count; i++) {
        assert_cuda(LIBRARY.cuMemUnmap(to + i * bytes, bytes));
        assert_cuda(LIBRARY.cuMemRelease(handles[i]));
    }
    gpu_release(from, total);
    gpu_release(to, total);
    free(handles);
}

static void remapping_keeps_the_content_whatever_the_number_of_handles(void **state)
{
    const struct gpu *gpu = *state;
    remap(gpu, 64, gpu->granule);
    remap(gpu, 256, gpu->granule);
    remap(gpu, 1024, gpu->granule);
    remap(gpu, 64, 16 * gpu->granule);
}

/* The contract says so of fresh memory; no page of CUDA's does. */
static void fresh_memory_is_zero_even_where_it_was_used_before(void **state)
{
    enum { COUNT = 32 };
    const struct gpu *gpu = *state;
    const size_t bytes = 16 * gpu->granule;
    static unsigned char window[MIB];
    CUdeviceptr base = gpu_reserve(bytes);
    for (int i = 0; i < COUNT; i++) {
        CUmemGenericAllocationHandle handle = gpu_create(gpu, bytes);
        assert_cuda(LIBRARY.cuMemMap(base, bytes, 0, handle, 0));
        assert_cuda(gpu_set_access(gpu, base, bytes, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
        for (size_t at = 0; at < bytes; at += sizeof window) {
            assert_ok(cuda_driver.copy(0, gpu->stream, window, (const void *)(uintptr_t)(base + at),
                                       sizeof window));
            assert_ok(cuda_driver.stream_wait(0, gpu->stream));
            for (size_t k = 0; k < sizeof window; k++)
                if (window[k])
                    fail_msg("byte %zu of fresh memory is %#x in round %d", at + k, window[k], i);
        }
        fill(gpu, base, 0xc7, bytes);
        assert_cuda(LIBRARY.cuMemUnmap(base, bytes));
        assert_cuda(LIBRARY.cuMemRelease(handle));
    }
    gpu_release(base, bytes);
}

/* Printed only: nothing rests on these yet. */
static void what_else_this_driver_does(void **state)
{
    const struct gpu *gpu = *state;
    const size_t g = gpu->granule;
    CUdeviceptr base = gpu_reserve(4 * g);
    CUmemGenericAllocationHandle handle = gpu_create(gpu, 2 * g);
    assert_cuda(LIBRARY.cuMemMap(base, 2 * g, 0, handle, 0));
    assert_cuda(gpu_set_access(gpu, base, 2 * g, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    printf("driver of CUDA %d; granularity %zu, recommended %zu; exports fd %d, fabric %d\n",
           LIBRARY.version, g, gpu->scope.device->recommended, gpu->scope.device->exports_fd,
           gpu->scope.device->exports_fabric);
    printf("access to part of a handle: %d\n",
           gpu_set_access(gpu, base, g, CU_MEM_ACCESS_FLAGS_PROT_READ));
    printf("read-only access for the device itself: %d, ",
           gpu_set_access(gpu, base, 2 * g, CU_MEM_ACCESS_FLAGS_PROT_READ));
    printf("a fill then: %d\n", LIBRARY.cuMemsetD8Async(base, 1, g, gpu->stream));
    printf("access to what is partly mapped: %d\n",
           gpu_set_access(gpu, base, 4 * g, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    printf("unmapping where nothing is mapped: %d\n", LIBRARY.cuMemUnmap(base + 2 * g, 2 * g));
    (void)gpu_set_access(gpu, base, 2 * g, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    assert_cuda(LIBRARY.cuMemUnmap(base, 2 * g));
    assert_cuda(LIBRARY.cuMemRelease(handle));
    gpu_release(base, 4 * g);
}

static const char child_word[] = "lose-the-context";

/* In a process of its own, since nothing of CUDA works there afterwards. */
static int lose_the_context(void)
{
    void *state;
    gpu_open(&state);
    struct gpu *gpu = state;
    driver_function trap;
    const struct driver_launch launch = {{1, 1, 1}, {1, 1, 1}, 0, NULL};
    if (cuda_driver.module_function(0, gpu->module, "trap_now", &trap) ||
        cuda_driver.launch(0, gpu->stream, trap, &launch))
        return 1;
    raffia_status status = cuda_driver.stream_wait(0, gpu->stream);
    printf("after a trap: %s\n", raffia_last_error());
    if (status != RAFFIA_ERROR_DRIVER || !strstr(raffia_last_error(), "lost"))
        return 2;
    status = cuda_driver.context_state(0);
    printf("context_state: %s\n", raffia_last_error());
    if (status != RAFFIA_ERROR_DRIVER || !strstr(raffia_last_error(), "lost"))
        return 3;
    void *block;
    return cuda_driver.mem_alloc(0, MIB, &block) == RAFFIA_ERROR_DRIVER ? 0 : 4;
}

static void a_lost_context_is_told_apart(void **state)
{
    (void)state;
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        execl("/proc/self/exe", "/proc/self/exe", child_word, (char *)NULL);
        _exit(100);
    }
    int how = 0;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), 0);
}

int main(int count, char **arguments)
{
    if (!gpu_test_has_device())
        return GPU_TEST_SKIPPED;
    if (count == 2 && !strcmp(arguments[1], child_word))
        return lose_the_context();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_handle_cannot_be_mapped_from_an_offset_on),
        cmocka_unit_test(no_part_of_a_handle_can_be_mapped_or_unmapped),
        cmocka_unit_test(one_handle_can_be_at_two_addresses),
        cmocka_unit_test(one_call_gives_access_to_many_mappings),
        cmocka_unit_test(nothing_waits_for_a_running_kernel),
        cmocka_unit_test(freeing_regular_memory_waits),
        cmocka_unit_test(remapping_keeps_the_content_whatever_the_number_of_handles),
        cmocka_unit_test(fresh_memory_is_zero_even_where_it_was_used_before),
        cmocka_unit_test(what_else_this_driver_does),
        cmocka_unit_test(a_lost_context_is_told_apart),
    };
    return cmocka_run_group_tests(tests, gpu_open, gpu_close) ? 1 : 0;
}
