/* The CUDA side of copies, over a fake of NVIDIA's library, which has a kernel of the same name. */
#include "copy/copy.h"
#include "copy/copy_property.h"
#include "driver/cuda_test.h"

static void a7_copies_of_all_sizes_and_alignments_are_exact(void **state)
{
    (void)state;
    copy_property("a7_copies_of_all_sizes_and_alignments_are_exact", "cuda:0", 20);
    assert_int_equal(fake_cuda_calls("cuModuleLoadDataEx"), 1);
    raffia_copy_release_kernels();
    assert_int_equal(cuda_test_usage().modules, 0);
    assert_int_equal(cuda_test_usage().misuses, 0);
}

static void a7_a_kernel_that_cuda_refuses_is_done_without(void **state)
{
    (void)state;
    const raffia_copy_element copy = {cuda_test_allocate(0, 4096), calloc(1, 4096), 100};
    const raffia_memory_resources none = {{0}, {0}};
    struct copy_device on;
    size_t by_kernel = 1;
    assert_ok(copy_device_open("cuda:0", &on));
    assert_ok(cuda_driver.host_register(0, (void *)(uintptr_t)copy.source, 4096));
    fake_cuda_fail("cuModuleLoadDataEx", 1, CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
    assert_ok(copy_batch_below(&on, NULL, &copy, 1, 4096, &none, &by_kernel));
    assert_int_equal(by_kernel, 0);
    raffia_copy_release_kernels();
    assert_ok(copy_batch_below(&on, NULL, &copy, 1, 4096, &none, &by_kernel));
    assert_int_equal(by_kernel, 1);
    raffia_copy_release_kernels();
    assert_ok(cuda_driver.host_unregister(0, (void *)(uintptr_t)copy.source, 4096));
    assert_ok(cuda_driver.mem_free(0, copy.destination, 4096));
    free((void *)(uintptr_t)copy.source);
}

int main(void)
{
    setenv("RAFFIA_DRIVER", "cuda", 1);
    /* How far it goes is then known by page, and by what was registered in one piece. */
    cuda_test_use_fake(&(struct fake_cuda_config){.no_host_ranges = true});
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a7_copies_of_all_sizes_and_alignments_are_exact),
        cmocka_unit_test(a7_a_kernel_that_cuda_refuses_is_done_without),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
