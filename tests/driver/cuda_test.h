/* What the tests of the CUDA driver share. */
#ifndef TESTS_DRIVER_CUDA_TEST_H
#define TESTS_DRIVER_CUDA_TEST_H

#include "driver/cuda/cuda_driver.h"
#include "fake_cuda.h"
#include "support/cmocka.h"

#include <stdlib.h>
#include <string.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

/* Makes the driver open the fake, if it has opened nothing yet, and the fake fresh. */
static inline void cuda_test_use_fake(const struct fake_cuda_config *config)
{
    setenv("RAFFIA_CUDA_LIBRARY", FAKE_CUDA_LIBRARY, 1);
    fake_cuda_reset(config);
}

static inline struct fake_cuda_usage cuda_test_usage(void)
{
    struct fake_cuda_usage usage;
    fake_cuda_query(&usage);
    return usage;
}

/* Whether nothing exists and nothing was misused. */
static inline bool cuda_test_is_idle(void)
{
    const struct fake_cuda_usage u = cuda_test_usage();
    return !(u.ranges + u.handles + u.mappings + u.blocks + u.registrations + u.host_blocks +
             u.streams + u.events + u.modules + u.pools + u.pool_blocks + u.bytes + u.misuses);
}

static inline void *cuda_test_allocate(int device, size_t bytes)
{
    void *block = NULL;
    assert_ok(cuda_driver.mem_alloc(device, bytes, &block));
    return block;
}

static inline CUcontext cuda_test_current(void)
{
    CUcontext context;
    assert_int_equal(cuCtxGetCurrent(&context), CUDA_SUCCESS);
    return context;
}

/* Fixtures: each test begins with two fresh devices, and leaves nothing. Misuses are judged in the
 * tests: some misuse on purpose. */
static inline int cuda_test_fresh(void **state)
{
    (void)state;
    const struct fake_cuda_config config = {.devices = 2};
    fake_cuda_reset(&config);
    return 0;
}

static inline int cuda_test_left_nothing(void **state)
{
    (void)state;
    const struct fake_cuda_usage u = cuda_test_usage();
    return u.ranges + u.handles + u.mappings + u.blocks + u.registrations + u.host_blocks +
                       u.streams + u.events + u.modules + u.pools + u.pool_blocks ||
                   cuda_test_current()
               ? -1
               : 0;
}

#define CUDA_TEST(function)                                                                        \
    cmocka_unit_test_setup_teardown(function, cuda_test_fresh, cuda_test_left_nothing)

static inline struct driver_chunk_spec cuda_test_spec(size_t bytes)
{
    return (struct driver_chunk_spec){.bytes = bytes,
                                      .page_size = 2 * MIB,
                                      .kind = RAFFIA_PAGE_DEVICE,
                                      .numa_node = -1,
                                      .threads = 1};
}

#endif
