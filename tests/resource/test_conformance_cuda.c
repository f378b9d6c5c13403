/* Every resource passes the suite on the CUDA driver, over a fake of NVIDIA's library. */
#include "driver/cuda/cuda_driver.h"
#include "fake_cuda.h"
#include "resource/conformance.h"

#include <stdlib.h>

static const char *misuse(void)
{
    static struct fake_cuda_usage usage;
    fake_cuda_query(&usage);
    return usage.first_misuse;
}

int main(void)
{
    static const struct conformance_device device = {
        .name = "cuda:0", .hidden = true, .misuse = misuse};
    setenv("RAFFIA_CUDA_LIBRARY", FAKE_CUDA_LIBRARY, 1);
    fake_cuda_reset(&(struct fake_cuda_config){.device_bytes = 8 * GIB});
    return conformance_run("every resource on cuda, over a fake library", &device, 1);
}
