#include "pool/pool_fixture.h"

#include "pool/pool_internal.h"
#include "support/cmocka.h"

#include <string.h>

void fresh_device(const struct sim_config *config)
{
    struct sim_config merged = config ? *config : (struct sim_config){0};
    sim_reset();
    if (merged.page_count == 0) {
        merged.page_count = 3;
        merged.pages[0] = (raffia_page_offer){RAFFIA_PAGE_DEVICE, TEST_PAGE};
        merged.pages[1] = (raffia_page_offer){RAFFIA_PAGE_TRANSPARENT, TEST_PAGE};
        merged.pages[2] = (raffia_page_offer){RAFFIA_PAGE_REGULAR, SIM_BASE_PAGE};
    }
    assert_ok(sim_configure(0, &merged));
}

int set_up_device(void **state)
{
    (void)state;
    fresh_device(NULL);
    return 0;
}

int set_up_plain_device(void **state)
{
    (void)state;
    fresh_device(&(struct sim_config){.synchronous = true});
    return 0;
}

struct pool_plan small_plan(void)
{
    return (struct pool_plan){
        .device = {&sim_driver, 0},
        .name = "small",
        .kind = RAFFIA_PAGE_DEVICE,
        .page_size = TEST_PAGE,
        .maximum_bytes = TEST_MAXIMUM,
        .chunk_bytes = TEST_CHUNK,
        .granule = TEST_GRANULE,
        .threads = 1,
        .numa_node = -1,
        .asked_kind = RAFFIA_PAGE_DEVICE,
        .asked_size = TEST_PAGE,
    };
}

raffia_pool *make_pool(const struct pool_plan *plan)
{
    raffia_pool *pool = NULL;
    raffia_fallback_reason reason;
    assert_ok(pool_create(plan, &pool, &reason));
    assert_int_equal(reason, RAFFIA_REASON_NONE);
    assert_non_null(pool);
    return pool;
}

static raffia_pool *make_flagged_pool(size_t initial_bytes, size_t maximum_bytes, unsigned flags)
{
    struct pool_plan plan = small_plan();
    plan.initial_bytes = initial_bytes;
    plan.maximum_bytes = maximum_bytes;
    plan.flags = flags;
    return make_pool(&plan);
}

raffia_pool *make_pool_of(size_t initial_bytes, size_t maximum_bytes)
{
    return make_flagged_pool(initial_bytes, maximum_bytes, 0);
}

raffia_pool *make_adaptive_pool_of(size_t initial_bytes, size_t maximum_bytes)
{
    return make_flagged_pool(initial_bytes, maximum_bytes, RAFFIA_POOL_ADAPTIVE);
}

void *must_alloc(raffia_pool *pool, size_t bytes)
{
    void *address = NULL;
    assert_ok(raffia_pool_alloc(pool, bytes, 0, &address));
    assert_non_null(address);
    return address;
}

void must_free(raffia_pool *pool, void *address)
{
    assert_ok(raffia_pool_free(pool, address));
}

raffia_pool_stats stats_of(raffia_pool *pool)
{
    raffia_pool_stats stats;
    assert_ok(raffia_pool_query(pool, &stats));
    return stats;
}

struct two_gaps make_two_gaps(raffia_pool *pool, size_t bytes)
{
    struct two_gaps gaps = {.pool = pool};
    gaps.low = must_alloc(pool, TEST_CHUNK / 2);
    gaps.wall = must_alloc(pool, TEST_GRANULE);
    gaps.high = must_alloc(pool, bytes);
    gaps.rest = must_alloc(pool, stats_of(pool).free_bytes);
    must_free(pool, gaps.low);
    must_free(pool, gaps.high);
    return gaps;
}

void drop_two_gaps(const struct two_gaps *gaps)
{
    must_free(gaps->pool, gaps->wall);
    must_free(gaps->pool, gaps->rest);
    drop_pool(gaps->pool);
}

void drop_pool(raffia_pool *pool)
{
    (void)stats_of(pool); /* marks what waits for streams */
    assert_ok(sim_driver.device_wait(0));
    const raffia_pool_stats stats = stats_of(pool);
    assert_int_equal(stats.live_blocks, 0);
    assert_int_equal(stats.in_use_bytes, 0);
    assert_int_equal(stats.requested_bytes, 0);
    assert_int_equal(stats.free_bytes, stats.reserved_bytes);
    const bool fixed = (pool->flags & RAFFIA_POOL_FIXED) != 0;
    assert_int_equal(stats.idle_bytes, fixed ? 0 : stats.reserved_bytes);
    assert_ok(raffia_pool_check(pool));
    raffia_pool_release(pool);
    struct sim_usage usage;
    sim_query(0, &usage);
    assert_string_equal(usage.first_misuse, "");
    assert_true(sim_is_idle());
}
