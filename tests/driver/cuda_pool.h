/* Pools on cuda:0, as programs make them; over a real GPU and over the fake. Test functions. */
#ifndef TESTS_DRIVER_CUDA_POOL_H
#define TESTS_DRIVER_CUDA_POOL_H

void the_default_device_is_the_gpu(void **state);
void a_pool_lives_in_device_memory(void **state);
void a_guarded_pool_sees_what_was_written_behind_a_block(void **state);
void seed_calls_serve_device_memory(void **state);

#endif
