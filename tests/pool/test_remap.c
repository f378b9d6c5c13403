/* Free chunks that are put together at other addresses. */
#include "core/fault.h"
#include "pool/pool_fixture.h"
#include "pool/pool_internal.h"
#include "support/cmocka.h"

#include <string.h>

#define CHUNKS 8

static struct pool_plan remap_plan(void)
{
    struct pool_plan plan = small_plan();
    plan.flags = RAFFIA_POOL_REMAPPABLE;
    plan.maximum_bytes = CHUNKS * TEST_CHUNK;
    plan.address_bytes = CHUNKS * TEST_CHUNK * 3 / 2;
    return plan;
}

/* A pool full of blocks of a chunk each, every byte of them marked. */
static raffia_pool *make_full(const struct pool_plan *plan, char *blocks[CHUNKS])
{
    raffia_pool *pool = make_pool(plan);
    for (size_t i = 0; i < CHUNKS; i++) {
        blocks[i] = must_alloc(pool, TEST_CHUNK);
        memset(blocks[i], (int)i + 1, TEST_CHUNK);
    }
    return pool;
}

/* The same with every other one freed. */
static raffia_pool *make_scattered(const struct pool_plan *plan, char *blocks[CHUNKS])
{
    raffia_pool *pool = make_full(plan, blocks);
    for (size_t i = 0; i < CHUNKS; i += 2) {
        must_free(pool, blocks[i]);
        blocks[i] = NULL;
    }
    return pool;
}

static void assert_contents(char *const blocks[CHUNKS])
{
    for (size_t i = 0; i < CHUNKS; i++)
        for (size_t at = 0; blocks[i] && at < TEST_CHUNK; at++)
            if (blocks[i][at] != (char)(i + 1))
                fail_msg("byte %zu of block %zu has changed", at, i);
}

/* What is left of the blocks, and the pool. */
static void drop_all(raffia_pool *pool, char *blocks[CHUNKS])
{
    for (size_t i = 0; i < CHUNKS; i++)
        if (blocks[i])
            must_free(pool, blocks[i]);
    drop_pool(pool);
}

static void b16_scattered_free_chunks_serve_one_large_request(void **state)
{
    (void)state;
    const struct pool_plan plan = remap_plan();
    char *blocks[CHUNKS];
    raffia_pool *pool = make_scattered(&plan, blocks);
    char *large = must_alloc(pool, CHUNKS / 2 * TEST_CHUNK);
    memset(large, 99, CHUNKS / 2 * TEST_CHUNK);
    assert_contents(blocks);
    assert_ok(raffia_pool_check(pool));
    const raffia_pool_stats stats = stats_of(pool);
    assert_int_equal(stats.remaps, 1);
    assert_in_range(stats.remapped_chunks, 3, 4);
    assert_int_equal(stats.reserved_bytes, CHUNKS * TEST_CHUNK);
    assert_int_equal(stats.peak_reserved_bytes, CHUNKS * TEST_CHUNK);
    assert_int_equal(stats.free_bytes, 0);
    must_free(pool, large);
    drop_all(pool, blocks);
}

static void b16_a_request_is_refused_only_for_want_of_whole_free_chunks(void **state)
{
    (void)state;
    const struct pool_plan plan = remap_plan();
    char *blocks[CHUNKS];
    raffia_pool *pool = make_scattered(&plan, blocks);
    void *pin = must_alloc(pool, TEST_GRANULE), *large = NULL;
    assert_int_equal(stats_of(pool).stranded_bytes, TEST_CHUNK - TEST_GRANULE);
    const raffia_pool_stats before = stats_of(pool);
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY,
                  raffia_pool_alloc(pool, CHUNKS / 2 * TEST_CHUNK - TEST_PAGE, 0, &large));
    assert_non_null(strstr(raffia_last_error(), "smaller chunk_bytes"));
    const raffia_pool_stats after = stats_of(pool);
    assert_int_equal(after.remaps, 0);
    assert_int_equal(after.remap_address_refusals, 0);
    assert_int_equal(after.free_blocks, before.free_blocks);
    assert_int_equal(after.driver_calls, before.driver_calls);
    large = must_alloc(pool, (CHUNKS / 2 - 1) * TEST_CHUNK);
    assert_int_equal(stats_of(pool).remaps, 1);
    assert_contents(blocks);
    must_free(pool, large);
    must_free(pool, pin);
    drop_all(pool, blocks);
}

static void what_may_still_be_borrowed_is_used_before_chunks_move(void **state)
{
    (void)state;
    struct pool_plan plan = remap_plan();
    plan.maximum_bytes += 2 * TEST_CHUNK;
    plan.address_bytes = 24 * TEST_CHUNK;
    char *blocks[CHUNKS];
    raffia_pool *pool = make_full(&plan, blocks);
    must_free(pool, blocks[0]);
    must_free(pool, blocks[2]);
    blocks[0] = blocks[2] = NULL;
    void *small = must_alloc(pool, 2 * TEST_CHUNK); /* two new ones, behind the last block */
    assert_int_equal(stats_of(pool).remaps, 0);
    must_free(pool, small);
    void *large = must_alloc(pool, 4 * TEST_CHUNK);
    assert_int_equal(stats_of(pool).remapped_chunks, 2);
    must_free(pool, large);
    drop_all(pool, blocks);
}

static void a_fixed_pool_moves_its_chunks_too(void **state)
{
    (void)state;
    struct pool_plan plan = remap_plan();
    plan.flags |= RAFFIA_POOL_FIXED;
    plan.initial_bytes = plan.maximum_bytes;
    char *blocks[CHUNKS];
    raffia_pool *pool = make_scattered(&plan, blocks);
    void *large = must_alloc(pool, CHUNKS / 2 * TEST_CHUNK), *more = NULL;
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, raffia_pool_alloc(pool, 1, 0, &more));
    assert_int_equal(stats_of(pool).remaps, 1);
    must_free(pool, large);
    drop_all(pool, blocks);
}

/* Caches that grow until their request ends. */
static void b16_a_block_grows_where_it_is_with_chunks_from_elsewhere(void **state)
{
    (void)state;
    const unsigned flags[] = {0, RAFFIA_POOL_FIXED};
    for (size_t i = 0; i < 2; i++) {
        struct pool_plan plan = remap_plan();
        plan.flags |= flags[i];
        plan.initial_bytes = plan.maximum_bytes;
        char *blocks[CHUNKS];
        raffia_pool *pool = make_full(&plan, blocks);
        must_free(pool, blocks[1]);
        must_free(pool, blocks[3]);
        must_free(pool, blocks[5]);
        blocks[1] = blocks[3] = blocks[5] = NULL;
        char *last = blocks[CHUNKS - 1]; /* absent slots are behind it */
        assert_ok(raffia_pool_resize(pool, last, 3 * TEST_CHUNK + 1));
        assert_contents(blocks);
        memset(last + TEST_CHUNK, 5, 2 * TEST_CHUNK + 1);
        assert_int_equal(stats_of(pool).remapped_chunks, 3);
        assert_status(RAFFIA_ERROR_OUT_OF_MEMORY,
                      raffia_pool_resize(pool, last, 4 * TEST_CHUNK + 1));
        assert_contents(blocks);
        assert_ok(raffia_pool_check(pool));
        drop_all(pool, blocks);
    }
}

static void a_want_of_addresses_is_counted(void **state)
{
    (void)state;
    struct pool_plan plan = remap_plan();
    plan.address_bytes = 0; /* no more than the maximum */
    char *blocks[CHUNKS];
    void *large = NULL;
    raffia_pool *pool = make_scattered(&plan, blocks);
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, raffia_pool_alloc(pool, 2 * TEST_CHUNK, 0, &large));
    assert_non_null(strstr(raffia_last_error(), "address_bytes"));
    assert_true(stats_of(pool).remap_address_refusals > 0);
    assert_int_equal(stats_of(pool).remap_mapping_refusals, 0);
    drop_all(pool, blocks);
}

static void a_want_of_mappings_is_counted(void **state)
{
    (void)state;
    struct pool_plan plan = remap_plan();
    plan.mapping_limit = CHUNKS + 1;
    char *blocks[CHUNKS];
    void *large = NULL;
    raffia_pool *pool = make_scattered(&plan, blocks);
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, raffia_pool_alloc(pool, 4 * TEST_CHUNK, 0, &large));
    assert_non_null(strstr(raffia_last_error(), "remap_mappings"));
    const raffia_pool_stats stats = stats_of(pool);
    assert_true(stats.remap_mapping_refusals > 0);
    assert_int_equal(stats.remap_address_refusals, 0);
    assert_int_equal(stats.remaps, 0);
    drop_all(pool, blocks);
}

static void chunks_of_regular_pages_do_not_move(void **state)
{
    (void)state;
    struct pool_plan plan = remap_plan();
    plan.kind = RAFFIA_PAGE_REGULAR;
    plan.page_size = SIM_BASE_PAGE;
    char *blocks[CHUNKS];
    raffia_pool *pool = make_scattered(&plan, blocks);
    void *large = must_alloc(pool, 2 * TEST_CHUNK); /* given back and taken anew */
    assert_int_equal(stats_of(pool).remaps, 0);
    must_free(pool, large);
    drop_all(pool, blocks);
}

static size_t mapped_on_the_device(void)
{
    struct sim_usage usage;
    sim_query(0, &usage);
    return usage.mapped_bytes;
}

static void the_old_addresses_are_unmapped_by_the_next_slow_call(void **state)
{
    (void)state;
    const struct pool_plan plan = remap_plan();
    char *blocks[CHUNKS];
    raffia_pool *pool = make_scattered(&plan, blocks);
    void *large = must_alloc(pool, CHUNKS / 2 * TEST_CHUNK);
    const size_t moved = stats_of(pool).remapped_chunks;
    assert_int_equal(mapped_on_the_device(), (CHUNKS + moved) * TEST_CHUNK);
    assert_true(moved > 0);
    assert_ok(raffia_pool_trim(pool, RAFFIA_NONE, NULL)); /* gives no chunk back */
    assert_int_equal(mapped_on_the_device(), CHUNKS * TEST_CHUNK);
    must_free(pool, large);
    assert_ok(raffia_pool_trim(pool, 0, NULL));
    assert_int_equal(mapped_on_the_device(), CHUNKS / 2 * TEST_CHUNK);
    assert_contents(blocks);
    drop_all(pool, blocks);
}

static void b16_what_a_stream_may_still_use_does_not_move(void **state)
{
    (void)state;
    struct pool_plan plan = remap_plan();
    char *blocks[CHUNKS];
    driver_stream stream;
    void *large = NULL;
    raffia_pool *pool = make_full(&plan, blocks);
    assert_ok(sim_driver.stream_create(0, &stream));
    assert_ok(sim_stream_hold(0, stream));
    for (size_t i = 0; i < CHUNKS; i += 2) {
        assert_ok(sim_driver.fill(0, stream, blocks[i], 77, TEST_CHUNK));
        assert_ok(raffia_pool_free_on(pool, stream, blocks[i]));
        blocks[i] = NULL;
    }
    /* A capture would be left alone as well; here the pool may not even wait. */
    pthread_mutex_lock(&pool->growth_lock);
    const struct space_request request = {.bytes = 2 * TEST_CHUNK, .thorough = true};
    const struct pool_remap_wish wish = {.request = &request};
    raffia_status status = RAFFIA_OK;
    assert_int_equal(pool_remap(pool, &wish, &status), POOL_REMAP_REFUSED);
    pthread_mutex_unlock(&pool->growth_lock);
    assert_int_equal(stats_of(pool).remaps, 0);
    /* Released, the request waits for the event, and the simulated device would notice a chunk
     * that is unmapped under its work. */
    assert_ok(sim_stream_resume(0, stream));
    assert_ok(raffia_pool_alloc(pool, CHUNKS / 2 * TEST_CHUNK, 0, &large));
    assert_int_equal(stats_of(pool).remaps, 1);
    assert_contents(blocks);
    must_free(pool, large);
    assert_ok(raffia_stream_retire("sim:0", stream));
    assert_ok(sim_driver.stream_destroy(0, stream));
    drop_all(pool, blocks);
}

/* ---- failures ------------------------------------------------------------------------------- */

static void assert_same_memory(const raffia_pool_stats *before, const raffia_pool_stats *after)
{
    assert_int_equal(after->reserved_bytes, before->reserved_bytes);
    assert_int_equal(after->in_use_bytes, before->in_use_bytes);
    assert_int_equal(after->free_bytes, before->free_bytes);
    assert_int_equal(after->free_blocks, before->free_blocks);
    assert_int_equal(after->largest_free_bytes, before->largest_free_bytes);
    assert_int_equal(after->chunks, before->chunks);
    assert_int_equal(after->stranded_bytes, before->stranded_bytes);
    assert_int_equal(after->live_blocks, before->live_blocks);
}

/* One call of the request fails, the first, the second, and so on until none does: the pool is then
 * as it was before, and serves the request when it is asked again. */
static void b16_any_call_of_a_remap_may_fail(void **state)
{
    (void)state;
    for (long n = 1;; n++) {
        fresh_device(NULL);
        const struct pool_plan plan = remap_plan();
        char *blocks[CHUNKS];
        void *large = NULL;
        raffia_pool *pool = make_scattered(&plan, blocks);
        const raffia_pool_stats before = stats_of(pool);
        core_fault_arm(n);
        raffia_status status = raffia_pool_alloc(pool, CHUNKS / 2 * TEST_CHUNK, 0, &large);
        const char *failed = core_fault_disarm();
        assert_ok(raffia_pool_check(pool));
        assert_contents(blocks);
        if (status) {
            assert_non_null(failed);
            const raffia_pool_stats after = stats_of(pool);
            assert_same_memory(&before, &after);
            assert_int_equal(after.remaps, 0);
            assert_int_equal(mapped_on_the_device(), CHUNKS * TEST_CHUNK);
            large = must_alloc(pool, CHUNKS / 2 * TEST_CHUNK);
            assert_contents(blocks);
        }
        must_free(pool, large);
        drop_all(pool, blocks);
        if (!failed) {
            assert_true(n > 3);
            return;
        }
    }
}

static bool next_is_smaller;

static raffia_status sees_smaller_pages(int device, const void *at, size_t bytes,
                                        raffia_page_kind kind, size_t expected,
                                        struct driver_page_evidence *evidence)
{
    if (!next_is_smaller)
        return sim_driver.page_size_of(device, at, bytes, kind, expected, evidence);
    next_is_smaller = false;
    *evidence = (struct driver_page_evidence){SIM_BASE_PAGE, 0, true, "a test"};
    return RAFFIA_OK;
}

/* A chunk that is read back in smaller pages at its new address is no good there. */
static void a_chunk_that_comes_out_smaller_goes_back(void **state)
{
    (void)state;
    const bool undo_fails[] = {false, true};
    struct driver doubtful = sim_driver;
    doubtful.page_size_of = sees_smaller_pages;
    for (size_t i = 0; i < 2; i++) {
        struct pool_plan plan = remap_plan();
        plan.device.driver = &doubtful;
        char *blocks[CHUNKS];
        void *large = NULL;
        raffia_pool *pool = make_scattered(&plan, blocks);
        const raffia_pool_stats before = stats_of(pool);
        next_is_smaller = true;
        if (undo_fails[i])
            sim_fail_next("chunk_unmap", RAFFIA_ERROR_DRIVER, RAFFIA_REASON_NONE);
        assert_status(RAFFIA_ERROR_OUT_OF_MEMORY,
                      raffia_pool_alloc(pool, CHUNKS / 2 * TEST_CHUNK, 0, &large));
        const raffia_pool_stats after = stats_of(pool);
        assert_same_memory(&before, &after);
        assert_ok(raffia_pool_check(pool));
        assert_contents(blocks);
        large = must_alloc(pool, CHUNKS / 2 * TEST_CHUNK);
        must_free(pool, large);
        drop_all(pool, blocks);
    }
}

static void an_old_address_that_cannot_be_unmapped_is_tried_again(void **state)
{
    (void)state;
    const struct pool_plan plan = remap_plan();
    char *blocks[CHUNKS];
    raffia_pool *pool = make_scattered(&plan, blocks);
    must_free(pool, must_alloc(pool, CHUNKS / 2 * TEST_CHUNK));
    sim_fail_next("chunk_unmap", RAFFIA_ERROR_DRIVER, RAFFIA_REASON_NONE);
    assert_status(RAFFIA_ERROR_DRIVER, raffia_pool_trim(pool, 0, NULL));
    assert_ok(raffia_pool_check(pool));
    assert_ok(raffia_pool_trim(pool, 0, NULL));
    assert_int_equal(mapped_on_the_device(), CHUNKS / 2 * TEST_CHUNK);
    drop_all(pool, blocks);
}

/* Where a chunk has one address at a time it leaves the old one first. */
static void a_driver_that_cannot_alias_moves_chunks_as_well(void **state)
{
    (void)state;
    struct driver plain = sim_driver;
    plain.capabilities &= ~(unsigned)DRIVER_CAN_ALIAS;
    struct pool_plan plan = remap_plan();
    plan.device.driver = &plain;
    for (long n = 0; n < 200; n++) {
        char *blocks[CHUNKS];
        void *large = NULL;
        raffia_pool *pool = make_scattered(&plan, blocks);
        if (n)
            core_fault_arm(n);
        raffia_status status = raffia_pool_alloc(pool, CHUNKS / 2 * TEST_CHUNK, 0, &large);
        const char *failed = core_fault_disarm();
        assert_true(!status || failed);
        assert_int_equal(mapped_on_the_device(), CHUNKS * TEST_CHUNK);
        assert_ok(raffia_pool_check(pool));
        assert_contents(blocks);
        if (status)
            large = must_alloc(pool, CHUNKS / 2 * TEST_CHUNK);
        assert_int_equal(stats_of(pool).remaps, 1);
        must_free(pool, large);
        drop_all(pool, blocks);
        if (n && !failed)
            return;
    }
    fail_msg("the calls do not end");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, set_up_device)
    const struct CMUnitTest tests[] = {
        TEST(b16_scattered_free_chunks_serve_one_large_request),
        TEST(b16_a_request_is_refused_only_for_want_of_whole_free_chunks),
        TEST(what_may_still_be_borrowed_is_used_before_chunks_move),
        TEST(a_fixed_pool_moves_its_chunks_too),
        TEST(b16_a_block_grows_where_it_is_with_chunks_from_elsewhere),
        TEST(a_want_of_addresses_is_counted),
        TEST(a_want_of_mappings_is_counted),
        TEST(chunks_of_regular_pages_do_not_move),
        TEST(the_old_addresses_are_unmapped_by_the_next_slow_call),
        TEST(b16_what_a_stream_may_still_use_does_not_move),
        TEST(b16_any_call_of_a_remap_may_fail),
        TEST(a_chunk_that_comes_out_smaller_goes_back),
        TEST(an_old_address_that_cannot_be_unmapped_is_tried_again),
        TEST(a_driver_that_cannot_alias_moves_chunks_as_well),
    };
    return cmocka_run_group_tests_name("pool remap", tests, NULL, NULL);
}
