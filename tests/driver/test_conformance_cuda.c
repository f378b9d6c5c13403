/* The CUDA driver passes what every driver must pass, over a fake of NVIDIA's library. */
#include "driver/conformance.h"
#include "driver/cuda_test.h"

#include <stdio.h>

int main(void)
{
    const struct fake_cuda_config config = {.devices = 2};
    cuda_test_use_fake(&config);
    const struct conformance subject = {
        .device = {&cuda_driver, 1}, .has_fault_points = true, .streams_ignore_default = true};
    int failed = conformance_run("cuda, over a fake library", &subject);
    if (!cuda_test_is_idle()) {
        const struct fake_cuda_usage usage = cuda_test_usage();
        fprintf(stderr, "something was left behind, or misused: %s\n", usage.first_misuse);
        failed++;
    }
    return failed ? 1 : 0;
}
