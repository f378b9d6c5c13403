/* Asking the program before it is refused. */
#include "pool/pool_fixture.h"
#include "support/cmocka.h"

struct cache {
    void *blocks[4];
    size_t count;
    size_t wanted; /* of the last call */
    unsigned calls;
    bool lies; /* says that it freed something */
    bool on_stream;
    size_t nested; /* bytes that it asks for itself */
    raffia_status nested_status;
};

static bool give_one(void *context, raffia_pool *pool, size_t bytes)
{
    struct cache *cache = context;
    cache->calls++;
    cache->wanted = bytes;
    if (cache->nested) {
        void *more = NULL;
        cache->nested_status = raffia_pool_alloc(pool, cache->nested, 0, &more);
        assert_null(more);
    }
    if (!cache->count)
        return cache->lies;
    void *block = cache->blocks[--cache->count];
    if (cache->on_stream)
        assert_ok(raffia_pool_free_on(pool, NULL, block));
    else
        must_free(pool, block);
    return true;
}

static raffia_pool *make_full(struct cache *cache, size_t count)
{
    raffia_pool *pool = make_pool_of(0, count * TEST_CHUNK);
    assert_ok(raffia_pool_on_pressure(pool, give_one, cache));
    for (cache->count = 0; cache->count < count; cache->count++)
        cache->blocks[cache->count] = must_alloc(pool, TEST_CHUNK);
    return pool;
}

static void empty(raffia_pool *pool, struct cache *cache)
{
    while (cache->count)
        must_free(pool, cache->blocks[--cache->count]);
    drop_pool(pool);
}

static void a_request_is_tried_once_more_when_something_was_freed(void **state)
{
    (void)state;
    struct cache cache = {.calls = 0};
    raffia_pool *pool = make_full(&cache, 3);
    assert_int_equal(cache.calls, 0);
    void *block = must_alloc(pool, TEST_CHUNK - 1);
    assert_int_equal(cache.calls, 1);
    assert_int_equal(cache.wanted, TEST_CHUNK - 1);
    assert_int_equal(stats_of(pool).pressure_calls, 1);
    assert_int_equal(stats_of(pool).failures, 0);
    must_free(pool, block);
    empty(pool, &cache);
}

static void a_resize_asks_nobody(void **state)
{
    (void)state;
    struct cache cache = {.calls = 0};
    raffia_pool *pool = make_full(&cache, 2);
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY,
                  raffia_pool_resize(pool, cache.blocks[0], 2 * TEST_CHUNK));
    assert_int_equal(cache.calls, 0);
    empty(pool, &cache);
}

static void one_round_and_no_more(void **state)
{
    (void)state;
    struct cache cache = {.lies = true};
    raffia_pool *pool = make_full(&cache, 4);
    void *block = NULL;
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, raffia_pool_alloc(pool, 2 * TEST_CHUNK, 0, &block));
    assert_int_equal(cache.calls, 1);
    assert_int_equal(stats_of(pool).failures, 1);
    block = must_alloc(pool, 2 * TEST_CHUNK); /* the one that was freed then, and one more */
    assert_int_equal(cache.calls, 2);
    must_free(pool, block);
    empty(pool, &cache);
}

static void what_no_freeing_could_help_is_refused_at_once(void **state)
{
    (void)state;
    struct cache cache = {.lies = true};
    raffia_pool *pool = make_full(&cache, 2);
    void *block = NULL;
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, raffia_pool_alloc(pool, 3 * TEST_CHUNK, 0, &block));
    assert_int_equal(cache.calls, 0);
    assert_ok(raffia_pool_on_pressure(pool, NULL, NULL));
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, raffia_pool_alloc(pool, TEST_CHUNK, 0, &block));
    assert_int_equal(cache.calls, 0);
    assert_int_equal(stats_of(pool).pressure_calls, 0);
    empty(pool, &cache);
}

static void it_is_not_called_from_within_itself(void **state)
{
    (void)state;
    struct cache cache = {.nested = TEST_CHUNK};
    raffia_pool *pool = make_full(&cache, 2);
    void *block = must_alloc(pool, TEST_CHUNK);
    assert_int_equal(cache.calls, 1);
    assert_int_equal(cache.nested_status, RAFFIA_ERROR_OUT_OF_MEMORY);
    cache.nested = 0;
    must_free(pool, block);
    empty(pool, &cache);
}

static void a_block_that_it_frees_on_a_stream_is_waited_for(void **state)
{
    (void)state;
    struct cache cache = {.on_stream = true};
    raffia_pool *pool = make_full(&cache, 2);
    assert_ok(sim_stream_delay(0, NULL, 2000));
    assert_ok(sim_driver.fill(0, NULL, cache.blocks[1], 1, TEST_CHUNK));
    void *block = must_alloc(pool, TEST_CHUNK);
    assert_int_equal(cache.calls, 1);
    must_free(pool, block);
    empty(pool, &cache);
}

static void a_lowered_limit_asks_for_what_is_over_it(void **state)
{
    (void)state;
    struct cache cache = {.calls = 0};
    raffia_pool *pool = make_full(&cache, 3);
    assert_ok(raffia_pool_set_maximum(pool, TEST_CHUNK));
    assert_int_equal(cache.calls, 1);
    assert_int_equal(cache.wanted, 2 * TEST_CHUNK);
    assert_int_equal(stats_of(pool).reserved_bytes, 2 * TEST_CHUNK); /* one was freed, and went */
    empty(pool, &cache);
}

static void a_guarded_pool_asks_with_no_lock_held(void **state)
{
    (void)state;
    struct cache cache = {.calls = 0};
    struct pool_plan plan = small_plan();
    plan.flags = RAFFIA_POOL_GUARD;
    plan.maximum_bytes = 2 * TEST_CHUNK;
    raffia_pool *pool = make_pool(&plan);
    const size_t bytes = TEST_CHUNK - TEST_GRANULE;
    assert_ok(raffia_pool_on_pressure(pool, give_one, &cache));
    cache.blocks[0] = must_alloc(pool, bytes);
    cache.count = 1;
    void *other = must_alloc(pool, bytes), *block = must_alloc(pool, bytes);
    assert_int_equal(cache.calls, 1);
    assert_int_equal(cache.count, 0);
    assert_int_equal(stats_of(pool).failures, 0);
    must_free(pool, block);
    must_free(pool, other);
    drop_pool(pool);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, set_up_device)
    const struct CMUnitTest tests[] = {
        TEST(a_request_is_tried_once_more_when_something_was_freed),
        TEST(a_resize_asks_nobody),
        TEST(one_round_and_no_more),
        TEST(what_no_freeing_could_help_is_refused_at_once),
        TEST(it_is_not_called_from_within_itself),
        TEST(a_block_that_it_frees_on_a_stream_is_waited_for),
        TEST(a_guarded_pool_asks_with_no_lock_held),
        TEST(a_lowered_limit_asks_for_what_is_over_it),
    };
    return cmocka_run_group_tests_name("pool pressure", tests, NULL, NULL);
}
