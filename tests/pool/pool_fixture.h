/* Small pools on the simulated device, and what every test asserts at its end. */
#ifndef POOL_POOL_FIXTURE_H
#define POOL_POOL_FIXTURE_H

#include "driver/sim/sim.h"
#include "pool/pool.h"

#define KIB ((size_t)1024)
#define MIB (1024 * KIB)

/* Small enough to fill, large enough to have every shape of slot. */
#define TEST_PAGE    (64 * KIB)
#define TEST_CHUNK   (256 * KIB)
#define TEST_GRANULE ((size_t)256)
#define TEST_MAXIMUM (8 * TEST_CHUNK)

/* A fresh simulated device 0 with pages of 64 KiB, transparent ones of 64 KiB, and regular ones;
 * `config` adds to that and may be NULL. */
void fresh_device(const struct sim_config *config);

/* A cmocka setup: fresh_device(NULL). */
int set_up_device(void **state);

/* The same without streams: pools then have no order of them, and may have arenas. */
int set_up_plain_device(void **state);

/* No initial bytes, TEST_* for the rest. */
struct pool_plan small_plan(void);

raffia_pool *make_pool(const struct pool_plan *plan);

/* A pool with so much mapped, and so much allowed. */
raffia_pool *make_pool_of(size_t initial_bytes, size_t maximum_bytes);

/* The same, and it learns. */
raffia_pool *make_adaptive_pool_of(size_t initial_bytes, size_t maximum_bytes);

void *must_alloc(raffia_pool *pool, size_t bytes);
void must_free(raffia_pool *pool, void *address);
raffia_pool_stats stats_of(raffia_pool *pool);

/* A full pool but for two stretches: the one that lies high is of just the size that was named, and
 * the one below it is longer. What may go anywhere gets the first, what is placed low the second.
 */
struct two_gaps {
    raffia_pool *pool;
    char *low, *high;
    void *wall, *rest; /* blocks between and behind them */
};

/* `pool` has TEST_CHUNK, all of it free, and `bytes` is at most a quarter of that. */
struct two_gaps make_two_gaps(raffia_pool *pool, size_t bytes);

/* Nothing lies in the gaps any more. The pool goes too. */
void drop_two_gaps(const struct two_gaps *gaps);

/* Everything is freed, or will be when the streams are there: asserts that all bytes are free again
 * and nothing is left on the device afterwards. */
void drop_pool(raffia_pool *pool);

#endif
