/* Pools on the first GPU of the machine. */
#include "driver/cuda_pool.h"
#include "driver/gpu_test.h"
#include "support/cmocka.h"

int main(void)
{
    if (!gpu_test_has_device())
        return GPU_TEST_SKIPPED;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_default_device_is_the_gpu),
        cmocka_unit_test(a_pool_lives_in_device_memory),
        cmocka_unit_test(a_guarded_pool_sees_what_was_written_behind_a_block),
        cmocka_unit_test(seed_calls_serve_device_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
