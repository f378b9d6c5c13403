/* Pools on cuda:0, over a fake of NVIDIA's library. */
#include "driver/cuda_pool.h"
#include "driver/cuda_test.h"

static int nothing_is_left(void **state)
{
    (void)state;
    if (cuda_test_is_idle())
        return 0;
    print_error("left behind, or misused: %s\n", cuda_test_usage().first_misuse);
    return -1;
}

int main(void)
{
    cuda_test_use_fake(NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(the_default_device_is_the_gpu, nothing_is_left),
        cmocka_unit_test_teardown(a_pool_lives_in_device_memory, nothing_is_left),
        cmocka_unit_test_teardown(a_guarded_pool_sees_what_was_written_behind_a_block,
                                  nothing_is_left),
        cmocka_unit_test_teardown(seed_calls_serve_device_memory, nothing_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
