/* What the tests of the simulated device share. */
#ifndef TESTS_DRIVER_SIM_TEST_H
#define TESTS_DRIVER_SIM_TEST_H

#include "driver/sim/sim.h"
#include "support/cmocka.h"

#include <string.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

/* Asserts that the call was taken for a misuse, and that the sentence mentions `why`. */
#define assert_misuse(call, why)                                                                   \
    do {                                                                                           \
        assert_status(RAFFIA_ERROR_DRIVER, call);                                                  \
        assert_string_equal(raffia_last_native_error(), "SIM_MISUSE");                             \
        assert_error_mentions(why);                                                                \
    } while (0)

static inline struct driver_chunk_spec sim_test_spec(raffia_page_kind kind, size_t page_size,
                                                     size_t bytes)
{
    return (struct driver_chunk_spec){
        .bytes = bytes, .page_size = page_size, .kind = kind, .numa_node = -1, .threads = 1};
}

static inline struct driver_chunk_spec sim_test_device_spec(size_t bytes)
{
    return sim_test_spec(RAFFIA_PAGE_DEVICE, 2 * MIB, bytes);
}

static inline char *sim_test_reserve(int device, size_t bytes)
{
    void *base = NULL;
    assert_ok(sim_driver.range_reserve(device, bytes, 2 * MIB, &base));
    return base;
}

static inline driver_chunk sim_test_create(int device, const struct driver_chunk_spec *spec)
{
    driver_chunk chunk = NULL;
    raffia_fallback_reason reason;
    assert_ok(sim_driver.chunk_create(device, spec, &chunk, &reason));
    return chunk;
}

static inline void sim_test_map(int device, driver_chunk chunk, void *at)
{
    raffia_fallback_reason reason;
    assert_ok(sim_driver.chunk_map(device, chunk, at, &reason));
}

static inline struct sim_usage sim_test_usage(int device)
{
    struct sim_usage usage;
    sim_query(device, &usage);
    return usage;
}

/* Fixtures: every test starts with fresh devices and must leave them idle unless it
 * misused them on purpose. */
static inline int sim_test_fresh(void **state)
{
    (void)state;
    sim_reset();
    return 0;
}

static inline int sim_test_left_idle(void **state)
{
    (void)state;
    bool idle = sim_is_idle();
    sim_reset();
    return idle ? 0 : -1;
}

static inline int sim_test_left_anyhow(void **state)
{
    (void)state;
    sim_reset();
    return 0;
}

#define SIM_TEST(function)                                                                         \
    cmocka_unit_test_setup_teardown(function, sim_test_fresh, sim_test_left_idle)
#define SIM_TEST_OF_MISUSE(function)                                                               \
    cmocka_unit_test_setup_teardown(function, sim_test_fresh, sim_test_left_anyhow)

#endif
