/* The CUDA driver passes what every driver must pass, on the first GPU of the machine. */
#include "driver/conformance.h"
#include "driver/gpu_test.h"

int main(void)
{
    if (!gpu_test_has_device())
        return GPU_TEST_SKIPPED;
    const struct conformance subject = {
        .device = {&cuda_driver, 0}, .has_fault_points = true, .streams_ignore_default = true};
    return conformance_run("cuda:0", &subject) ? 1 : 0;
}
