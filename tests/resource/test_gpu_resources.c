/* Every resource passes the suite on the first GPU of the machine. */
#include "driver/gpu_test.h"
#include "resource/conformance.h"

int main(void)
{
    static const struct conformance_device device = {.name = "cuda:0", .hidden = true};
    if (!gpu_test_has_device())
        return GPU_TEST_SKIPPED;
    return conformance_run("every resource on cuda:0", &device, 1);
}
