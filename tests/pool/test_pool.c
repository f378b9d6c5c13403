/* What a pool does when all goes well, call by call. */
#include "core/memory.h"
#include "pool/pool_fixture.h"
#include "support/cmocka.h"

#include <string.h>

#define LIVE_MAX 16

static void a_pool_maps_its_initial_bytes_and_says_so(void **state)
{
    (void)state;
    struct pool_plan plan = small_plan();
    plan.initial_bytes = TEST_CHUNK + TEST_PAGE; /* rounded up to two chunks */
    plan.asked_kind = RAFFIA_PAGE_HUGETLB;
    plan.asked_size = 2 * MIB;
    plan.asked_refused = RAFFIA_REASON_POOL_EMPTY;
    raffia_pool *pool = make_pool(&plan);
    const raffia_pool_stats stats = stats_of(pool);
    assert_int_equal(stats.reserved_bytes, 2 * TEST_CHUNK);
    assert_int_equal(stats.free_bytes, 2 * TEST_CHUNK);
    assert_int_equal(stats.largest_free_bytes, 2 * TEST_CHUNK);
    assert_int_equal(stats.idle_bytes, 2 * TEST_CHUNK);
    assert_int_equal(stats.free_blocks, 1);
    assert_int_equal(stats.chunks, 2);
    assert_int_equal(stats.chunk_bytes, TEST_CHUNK);
    assert_int_equal(stats.granule, TEST_GRANULE);
    assert_int_equal(stats.maximum_bytes, TEST_MAXIMUM);
    assert_int_equal(stats.address_bytes, TEST_MAXIMUM);
    assert_int_equal(stats.peak_reserved_bytes, 2 * TEST_CHUNK);
    assert_true(stats.fragmentation >= 0 && stats.fragmentation <= 0);
    assert_int_equal(stats.driver_calls, 4);
    assert_int_equal(stats.pages.asked_kind, RAFFIA_PAGE_HUGETLB);
    assert_int_equal(stats.pages.asked_size, 2 * MIB);
    assert_int_equal(stats.pages.got_kind, RAFFIA_PAGE_DEVICE);
    assert_int_equal(stats.pages.got_size, TEST_PAGE);
    assert_int_equal(stats.pages.reason, RAFFIA_REASON_POOL_EMPTY);
    assert_true(stats.pages.verified);
    assert_int_equal(stats.pages.verified_size, TEST_PAGE);
    assert_int_equal(stats.pages.verified_bytes, 2 * TEST_CHUNK);
    assert_int_equal(stats.pages.total_bytes, 2 * TEST_CHUNK);
    drop_pool(pool);
}

static void an_empty_pool_verifies_nothing(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(0, TEST_MAXIMUM);
    const raffia_pool_stats stats = stats_of(pool);
    assert_int_equal(stats.reserved_bytes, 0);
    assert_int_equal(stats.pages.total_bytes, 0);
    assert_false(stats.pages.verified);
    assert_string_equal(stats.pages.evidence, "none");
    drop_pool(pool);
}

static void blocks_are_aligned_apart_and_counted(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(TEST_MAXIMUM, TEST_MAXIMUM);
    const size_t sizes[] = {0, 1, 255, 256, 257, 4096, TEST_PAGE, TEST_CHUNK + 1};
    const size_t count = sizeof sizes / sizeof *sizes;
    char *blocks[LIVE_MAX];
    size_t requested = 0, in_use = 0;
    for (size_t i = 0; i < count; i++) {
        blocks[i] = must_alloc(pool, sizes[i]);
        assert_int_equal((uintptr_t)blocks[i] % TEST_GRANULE, 0);
        memset(blocks[i], (int)i + 1, sizes[i]);
        requested += sizes[i] ? sizes[i] : TEST_GRANULE;
        in_use +=
            sizes[i] ? (sizes[i] + TEST_GRANULE - 1) / TEST_GRANULE * TEST_GRANULE : TEST_GRANULE;
    }
    const raffia_pool_stats stats = stats_of(pool);
    assert_int_equal(stats.live_blocks, count);
    assert_int_equal(stats.requested_bytes, requested);
    assert_int_equal(stats.in_use_bytes, in_use);
    assert_int_equal(stats.peak_in_use_bytes, in_use);
    assert_int_equal(stats.free_bytes, TEST_MAXIMUM - in_use);
    assert_int_equal(stats.hits, count);
    assert_int_equal(stats.misses, 0);
    assert_ok(raffia_pool_check(pool));
    for (size_t i = 0; i < count; i++) {
        for (size_t byte = 0; byte < sizes[i]; byte++)
            assert_int_equal(blocks[i][byte], i + 1);
        must_free(pool, blocks[i]);
    }
    assert_int_equal(stats_of(pool).frees, count);
    assert_int_equal(stats_of(pool).free_blocks, 1);
    assert_int_equal(stats_of(pool).peak_in_use_bytes, in_use);
    drop_pool(pool);
}

static void every_alignment_up_to_the_chunk_is_honoured(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(TEST_MAXIMUM, TEST_MAXIMUM);
    for (size_t alignment = 1; alignment <= TEST_CHUNK; alignment *= 2) {
        void *wedge = must_alloc(pool, 1), *block;
        assert_ok(raffia_pool_alloc(pool, 1000, alignment, &block));
        assert_int_equal((uintptr_t)block % alignment, 0);
        must_free(pool, wedge);
        must_free(pool, block);
    }
    drop_pool(pool);
}

static void addresses_are_aligned_even_to_chunks_larger_than_2_mib(void **state)
{
    (void)state;
    struct pool_plan plan = small_plan();
    plan.chunk_bytes = 16 * MIB;
    plan.maximum_bytes = 48 * MIB;
    raffia_pool *pool = make_pool(&plan);
    void *small = must_alloc(pool, 1), *block;
    assert_ok(raffia_pool_alloc(pool, 1, 16 * MIB, &block));
    assert_int_equal((uintptr_t)block % (16 * MIB), 0);
    must_free(pool, small);
    must_free(pool, block);
    drop_pool(pool);
}

static void a_coarse_granule_rounds_every_block(void **state)
{
    (void)state;
    struct pool_plan plan = small_plan();
    plan.granule = TEST_PAGE;
    raffia_pool *pool = make_pool(&plan);
    void *one = must_alloc(pool, 1), *two = must_alloc(pool, TEST_PAGE + 1);
    assert_int_equal((uintptr_t)one % TEST_PAGE, 0);
    assert_int_equal((uintptr_t)two % TEST_PAGE, 0);
    assert_int_equal(stats_of(pool).in_use_bytes, 3 * TEST_PAGE);
    must_free(pool, one);
    must_free(pool, two);
    drop_pool(pool);
}

static void find_knows_blocks_from_any_address_inside(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_MAXIMUM);
    char *first = must_alloc(pool, 1000), *second = must_alloc(pool, 5000);
    raffia_block block;
    assert_ok(raffia_pool_find(pool, second, &block));
    assert_ptr_equal(block.address, second);
    assert_int_equal(block.bytes, 5120);
    assert_int_equal(block.requested_bytes, 5000);
    assert_true(block.live);
    assert_ok(raffia_pool_find(pool, second + 5119, &block));
    assert_ptr_equal(block.address, second);
    assert_int_equal(block.requested_bytes, 5000);
    assert_ok(raffia_pool_find(pool, first + 1, &block));
    assert_ptr_equal(block.address, first);
    must_free(pool, first);
    assert_status(RAFFIA_ERROR_BAD_ADDRESS, raffia_pool_find(pool, first, &block));
    assert_status(RAFFIA_ERROR_BAD_ADDRESS, raffia_pool_find(pool, &block, &block));
    must_free(pool, second);
    drop_pool(pool);
}

struct tour {
    size_t visits, stop_after;
    size_t live_bytes, free_bytes, requested_bytes;
    const char *end;
};

static bool visit(void *context, const raffia_block *block)
{
    struct tour *tour = context;
    if (tour->end)
        assert_true((const char *)block->address >= tour->end);
    tour->end = (const char *)block->address + block->bytes;
    if (block->live) {
        tour->live_bytes += block->bytes;
        tour->requested_bytes += block->requested_bytes;
    } else {
        tour->free_bytes += block->bytes;
    }
    return ++tour->visits != tour->stop_after;
}

static void a_walk_sees_every_byte_in_order(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_MAXIMUM);
    void *first = must_alloc(pool, 1000), *second = must_alloc(pool, 5000),
         *third = must_alloc(pool, 300);
    must_free(pool, second);
    struct tour tour = {0};
    assert_ok(raffia_pool_walk(pool, visit, &tour));
    assert_int_equal(tour.live_bytes, 1024 + 512);
    assert_int_equal(tour.requested_bytes, 1300);
    assert_int_equal(tour.live_bytes + tour.free_bytes, TEST_CHUNK);
    struct tour short_tour = {.stop_after = 2};
    assert_ok(raffia_pool_walk(pool, visit, &short_tour));
    assert_int_equal(short_tour.visits, 2);
    must_free(pool, first);
    must_free(pool, third);
    drop_pool(pool);
}

static void steady_state_makes_no_driver_call(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_MAXIMUM);
    const raffia_pool_stats before = stats_of(pool);
    const long maps = sim_calls("chunk_map"), infos = sim_calls("device_info");
    for (size_t i = 0; i < 1000; i++)
        must_free(pool, must_alloc(pool, 1 + i * 61 % TEST_CHUNK));
    const raffia_pool_stats after = stats_of(pool);
    assert_int_equal(after.driver_calls, before.driver_calls);
    assert_int_equal(sim_calls("chunk_map"), maps);
    assert_int_equal(sim_calls("device_info"), infos);
    assert_int_equal(after.hits, before.hits + 1000);
    drop_pool(pool);
}

static void the_last_owner_takes_the_pool_with_it(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_MAXIMUM);
    assert_ptr_equal(raffia_pool_retain(pool), pool);
    raffia_pool_release(pool);
    assert_false(sim_is_idle());
    must_free(pool, must_alloc(pool, 1));
    drop_pool(pool);
    raffia_pool_release(NULL);
    assert_null(raffia_pool_retain(NULL));
}

static void live_blocks_defer_the_teardown(void **state)
{
    (void)state;
    const long memory = core_memory_live();
    raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_MAXIMUM);
    char *first = must_alloc(pool, 100), *second = must_alloc(pool, 100);
    raffia_pool_release(pool);
    memset(second, 5, 100);
    must_free(pool, first);
    assert_int_equal(second[99], 5);
    assert_false(sim_is_idle());
    must_free(pool, second);
    assert_true(sim_is_idle());
    assert_int_equal(core_memory_live(), memory);
}

static void a_plan_that_makes_no_sense_is_refused(void **state)
{
    (void)state;
    const struct pool_plan good = small_plan();
    struct pool_plan bad[11];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        bad[i] = good;
    bad[0].page_size = 0;
    bad[1].page_size = 3 * KIB;
    bad[2].maximum_bytes = 0;
    bad[3].maximum_bytes = TEST_PAGE + 1;
    bad[4].initial_bytes = TEST_MAXIMUM + TEST_PAGE;
    bad[5].initial_bytes = 1;
    bad[6].chunk_bytes = 0;
    bad[7].chunk_bytes = TEST_PAGE + 1;
    bad[8].granule = 0;
    bad[9].granule = 384;
    bad[10].granule = 2 * TEST_MAXIMUM; /* the maximum must be whole granules */
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        raffia_pool *pool = NULL;
        raffia_fallback_reason reason = RAFFIA_REASON_MEMORY;
        assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, pool_create(&bad[i], &pool, &reason));
        assert_null(pool);
        assert_int_equal(reason, RAFFIA_REASON_NONE);
    }
    assert_true(sim_is_idle());
}

static void flags_the_device_cannot_honour_are_refused_at_creation(void **state)
{
    (void)state;
    struct driver plain = sim_driver;
    plain.capabilities &= ~(unsigned)(DRIVER_CAN_REMAP | DRIVER_CAN_EXPORT);
    const unsigned flags[] = {RAFFIA_POOL_REMAPPABLE, RAFFIA_POOL_SHAREABLE};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        struct pool_plan plan = small_plan();
        raffia_pool *pool = NULL;
        raffia_fallback_reason reason;
        plan.device.driver = &plain;
        plan.flags = flags[i];
        assert_status(RAFFIA_ERROR_UNSUPPORTED, pool_create(&plan, &pool, &reason));
        assert_null(pool);
        plan.device.driver = &sim_driver;
        drop_pool(make_pool(&plan));
    }
}

static void verify_sees_pages_that_were_split(void **state)
{
    (void)state;
    struct pool_plan plan = small_plan();
    plan.kind = RAFFIA_PAGE_TRANSPARENT;
    plan.initial_bytes = 2 * TEST_CHUNK;
    raffia_pool *pool = make_pool(&plan);
    raffia_page_report report;
    assert_ok(raffia_pool_verify(pool, &report));
    assert_true(report.verified);
    assert_int_equal(report.verified_bytes, 2 * TEST_CHUNK);
    char *block = must_alloc(pool, 1);
    assert_ok(sim_split(0, block, 1));
    assert_true(stats_of(pool).pages.verified); /* nobody has looked yet */
    assert_ok(raffia_pool_verify(pool, &report));
    assert_false(report.verified);
    assert_int_equal(report.verified_size, SIM_BASE_PAGE);
    assert_int_equal(report.verified_bytes, 2 * TEST_CHUNK - TEST_PAGE);
    assert_false(stats_of(pool).pages.verified);
    sim_fail_next("page_size_of", RAFFIA_ERROR_DRIVER, RAFFIA_REASON_NONE);
    assert_status(RAFFIA_ERROR_DRIVER, raffia_pool_verify(pool, &report));
    assert_ok(raffia_pool_verify(pool, NULL));
    must_free(pool, block);
    drop_pool(pool);
}

static void hidden_page_sizes_are_reported_as_unverified(void **state)
{
    (void)state;
    fresh_device(&(struct sim_config){.hides_page_sizes = true});
    raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_MAXIMUM);
    raffia_page_report report;
    assert_ok(raffia_pool_verify(pool, &report));
    assert_false(report.verified);
    assert_int_equal(report.verified_size, 0);
    assert_int_equal(report.verified_bytes, 0);
    assert_int_equal(report.total_bytes, TEST_CHUNK);
    drop_pool(pool);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, set_up_device)
    const struct CMUnitTest tests[] = {
        TEST(a_pool_maps_its_initial_bytes_and_says_so),
        TEST(an_empty_pool_verifies_nothing),
        TEST(blocks_are_aligned_apart_and_counted),
        TEST(every_alignment_up_to_the_chunk_is_honoured),
        TEST(addresses_are_aligned_even_to_chunks_larger_than_2_mib),
        TEST(a_coarse_granule_rounds_every_block),
        TEST(find_knows_blocks_from_any_address_inside),
        TEST(a_walk_sees_every_byte_in_order),
        TEST(steady_state_makes_no_driver_call),
        TEST(the_last_owner_takes_the_pool_with_it),
        TEST(live_blocks_defer_the_teardown),
        TEST(a_plan_that_makes_no_sense_is_refused),
        TEST(flags_the_device_cannot_honour_are_refused_at_creation),
        TEST(verify_sees_pages_that_were_split),
        TEST(hidden_page_sizes_are_reported_as_unverified),
    };
    return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
