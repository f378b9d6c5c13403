/* What the tests on a real GPU share. They are skipped, with the reason, where there is none. */
#ifndef TESTS_DRIVER_GPU_TEST_H
#define TESTS_DRIVER_GPU_TEST_H

#include "driver/cuda/cuda_driver.h"

#include <stdio.h>

/* What ctest takes for "skipped". */
#define GPU_TEST_SKIPPED 77

static inline bool gpu_test_has_device(void)
{
    int count = 0;
    if (cuda_driver.devices(&count) == RAFFIA_OK && count > 0)
        return true;
    printf("skipped: %s\n", raffia_last_error());
    return false;
}

#endif
