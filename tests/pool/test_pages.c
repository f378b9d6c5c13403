/* Page sizes of a pool: one for its whole range, read back, and seen in its addresses (SPEC B10,
 * B11). */
#include "driver/host/host.h"
#include "pool/pool_fixture.h"
#include "support/cmocka.h"
#include "support/log_capture.h"
#include "support/random.h"

#include <string.h>
#include <sys/mman.h>

#define HUGE_PAGE (2 * MIB)
#define HOST_PAGE ((size_t)4096)

static raffia_pool *make_transparent(size_t initial_bytes)
{
    struct pool_plan plan = small_plan();
    plan.kind = plan.asked_kind = RAFFIA_PAGE_TRANSPARENT;
    plan.initial_bytes = initial_bytes;
    return make_pool(&plan);
}

static void b10_pages_that_are_split_later_are_noticed_and_told_once(void **state)
{
    (void)state;
    raffia_pool *pool = make_transparent(2 * TEST_CHUNK);
    raffia_page_report report;
    char *block = must_alloc(pool, TEST_CHUNK);
    log_capture_start();
    assert_ok(raffia_pool_verify(pool, &report));
    assert_true(report.verified);
    assert_int_equal(report.verified_bytes, 2 * TEST_CHUNK);
    assert_int_equal(log_capture_count(), 0);

    assert_ok(sim_split(0, block + TEST_PAGE, 1));
    for (int i = 0; i < 3; i++) {
        assert_ok(raffia_pool_verify(pool, &report));
        assert_false(report.verified);
        assert_int_equal(report.verified_size, SIM_BASE_PAGE);
        assert_int_equal(report.verified_bytes, 2 * TEST_CHUNK - TEST_PAGE);
        assert_int_equal(report.total_bytes, 2 * TEST_CHUNK);
        assert_int_equal(stats_of(pool).pages.verified_bytes, report.verified_bytes);
        assert_int_equal(log_capture_count(), 1);
    }
    log_capture_stop();
    assert_int_equal(log_capture_level(0), RAFFIA_LOG_WARN);
    assert_non_null(strstr(log_capture_line(0), "pool 'small': 64 KiB lie in pages of less"));

    raffia_pool *other = make_transparent(TEST_CHUNK);
    void *page = must_alloc(other, TEST_PAGE);
    assert_ok(sim_split(0, page, TEST_PAGE));
    log_capture_start();
    assert_ok(raffia_pool_verify(other, NULL));
    log_capture_stop();
    assert_int_equal(log_capture_count(), 1);
    must_free(other, page);
    raffia_pool_release(other);
    must_free(pool, block);
    drop_pool(pool);
}

/* A chunk that has other pages is refused whole, at birth and at growth. */
static void b10_smaller_pages_never_join_a_pool(void **state)
{
    (void)state;
    struct pool_plan plan = small_plan();
    raffia_pool *pool = NULL;
    raffia_fallback_reason reason;
    void *block = NULL;
    plan.initial_bytes = 2 * TEST_CHUNK;
    /* Twice, because the store asks once more. */
    assert_ok(sim_configure(0, &(struct sim_config){.page_count = 1,
                                                    .pages = {{RAFFIA_PAGE_DEVICE, TEST_PAGE}},
                                                    .smaller_pages = 2}));
    assert_true(pool_create(&plan, &pool, &reason) != RAFFIA_OK);
    assert_int_equal(reason, RAFFIA_REASON_SMALLER);
    assert_null(pool);
    assert_true(sim_is_idle());

    plan.initial_bytes = TEST_CHUNK;
    pool = make_pool(&plan);
    char *first = must_alloc(pool, TEST_CHUNK);
    assert_ok(sim_configure(0, &(struct sim_config){.page_count = 1,
                                                    .pages = {{RAFFIA_PAGE_DEVICE, TEST_PAGE}},
                                                    .smaller_pages = 2}));
    assert_true(raffia_pool_alloc(pool, 2 * TEST_CHUNK, 0, &block) != RAFFIA_OK);
    assert_null(block);
    const raffia_pool_stats stats = stats_of(pool);
    assert_int_equal(stats.reserved_bytes, TEST_CHUNK);
    assert_int_equal(stats.pages.verified_bytes, TEST_CHUNK);
    assert_true(stats.pages.verified);
    block = must_alloc(pool, 2 * TEST_CHUNK); /* the device behaves again */
    assert_int_equal(stats_of(pool).pages.verified_bytes, 3 * TEST_CHUNK);
    must_free(pool, block);
    must_free(pool, first);
    drop_pool(pool);
}

struct extent {
    char *start, *end;
};

static struct extent extent_of(raffia_pool *pool)
{
    char *first = must_alloc(pool, 1);
    struct extent extent = {first, first + stats_of(pool).address_bytes};
    must_free(pool, first);
    return extent;
}

static void b10_ranges_of_different_pages_never_interleave(void **state)
{
    (void)state;
    enum { POOLS = 6 };
    raffia_pool *pools[POOLS];
    struct extent extents[POOLS];
    for (int i = 0; i < POOLS; i++) {
        struct pool_plan plan = small_plan();
        plan.initial_bytes = TEST_CHUNK;
        if (i % 2) {
            plan.kind = plan.asked_kind = RAFFIA_PAGE_REGULAR;
            plan.page_size = plan.asked_size = SIM_BASE_PAGE;
        }
        pools[i] = make_pool(&plan);
        extents[i] = extent_of(pools[i]);
        for (int j = 0; j < i; j++)
            assert_true(extents[i].start >= extents[j].end || extents[j].start >= extents[i].end);
    }
    for (int i = 0; i < POOLS; i++) {
        raffia_page_report report;
        assert_ok(raffia_pool_verify(pools[i], &report));
        assert_int_equal(report.verified_size, i % 2 ? SIM_BASE_PAGE : TEST_PAGE);
        assert_int_equal(report.verified_bytes, report.total_bytes);
        raffia_pool_release(pools[i]);
    }
    assert_true(sim_is_idle());
}

static void b11_addresses_and_their_differences_are_multiples_of_the_page(void **state)
{
    (void)state;
    enum { BLOCKS = 64, STEPS = 2000 };
    struct test_random random = test_random_seeded("pool_pages");
    char *blocks[BLOCKS] = {NULL};
    fresh_device(&(struct sim_config){.page_count = 1, .pages = {{RAFFIA_PAGE_DEVICE, HUGE_PAGE}}});
    for (unsigned guard = 0; guard < 2; guard++) {
        struct pool_plan plan = small_plan();
        plan.page_size = plan.asked_size = plan.granule = HUGE_PAGE;
        plan.chunk_bytes = 16 * HUGE_PAGE;
        plan.maximum_bytes = 192 * HUGE_PAGE;
        plan.flags = guard ? RAFFIA_POOL_GUARD : 0;
        raffia_pool *pool = make_pool(&plan);
        for (int step = 0; step < (guard ? BLOCKS : STEPS); step++) {
            char **block = &blocks[test_random_below(&random, BLOCKS)];
            if (*block)
                must_free(pool, *block);
            *block = NULL;
            const size_t alignment =
                test_random_below(&random, 2) ? (size_t)1 << test_random_below(&random, 24) : 0;
            void *address = NULL;
            if (raffia_pool_alloc(pool, test_random_size(&random, 6 * HUGE_PAGE), alignment,
                                  &address))
                continue;
            *block = address;
            assert_int_equal((uintptr_t)address % HUGE_PAGE, 0);
            for (size_t i = 0; i < BLOCKS; i++)
                if (blocks[i])
                    assert_int_equal((size_t)(blocks[i] - *block) % HUGE_PAGE, 0);
        }
        for (size_t i = 0; i < BLOCKS; i++) {
            if (blocks[i])
                must_free(pool, blocks[i]);
            blocks[i] = NULL;
        }
        drop_pool(pool);
    }
}

static void b11_a_device_that_does_not_tell_is_reported_as_not_verified(void **state)
{
    (void)state;
    raffia_page_report report;
    fresh_device(&(struct sim_config){.hides_page_sizes = true});
    raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_CHUNK);
    log_capture_start();
    assert_ok(raffia_pool_verify(pool, &report));
    log_capture_stop();
    assert_false(report.verified);
    assert_int_equal(report.verified_bytes, 0);
    assert_int_equal(report.total_bytes, TEST_CHUNK);
    assert_string_equal(report.evidence, "none");
    assert_int_equal(log_capture_count(), 0); /* not known is not split */
    drop_pool(pool);
}

/* ---- the same with the kernel's own pages --------------------------------------------------- */

/* NULL, after saying why, where the machine has no transparent pages to give. */
static raffia_pool *make_host_huge(unsigned flags)
{
    raffia_pool *pool = NULL;
    raffia_fallback_reason reason;
    const struct pool_plan plan = {
        .device = {&host_driver, 0},
        .name = "host pool",
        .kind = RAFFIA_PAGE_TRANSPARENT,
        .page_size = HUGE_PAGE,
        .initial_bytes = 4 * HUGE_PAGE,
        .maximum_bytes = 4 * HUGE_PAGE,
        .chunk_bytes = 4 * HUGE_PAGE,
        .granule = HUGE_PAGE,
        .flags = flags,
        .threads = 1,
        .numa_node = -1,
        .asked_kind = RAFFIA_PAGE_TRANSPARENT,
        .asked_size = HUGE_PAGE,
    };
    if (pool_create(&plan, &pool, &reason))
        print_message("skipped: %s\n", raffia_last_error());
    return pool;
}

static void b10_a_page_that_the_kernel_splits_is_noticed(void **state)
{
    (void)state;
    raffia_page_report report;
    raffia_pool *pool = make_host_huge(0);
    if (!pool)
        skip();
    char *block = must_alloc(pool, 2 * HUGE_PAGE);
    assert_ok(raffia_pool_verify(pool, &report));
    assert_int_equal(report.verified_bytes, 4 * HUGE_PAGE);

    assert_int_equal(madvise(block + 5 * HOST_PAGE, HOST_PAGE, MADV_DONTNEED), 0);
    log_capture_start();
    assert_ok(raffia_pool_verify(pool, &report));
    assert_ok(raffia_pool_verify(pool, NULL));
    log_capture_stop();
    assert_int_equal(report.verified_bytes, 3 * HUGE_PAGE);
    assert_int_equal(report.total_bytes, 4 * HUGE_PAGE);
    assert_int_equal(report.verified_size, HOST_PAGE);
    assert_false(report.verified);
    assert_int_equal(log_capture_count(), 1);
    assert_non_null(strstr(log_capture_line(0), "2 MiB lie in pages of less than 2 MiB"));
    must_free(pool, block);
    raffia_pool_release(pool);
}

/* The read-only page behind a block must not cost it its pages. */
static void b10_guards_of_whole_pages_split_none(void **state)
{
    (void)state;
    raffia_page_report report;
    raffia_pool *pool = make_host_huge(RAFFIA_POOL_GUARD);
    if (!pool)
        skip();
    char *block = must_alloc(pool, HUGE_PAGE), *other = must_alloc(pool, HUGE_PAGE);
    memset(block, 1, HUGE_PAGE);
    for (int i = 0; i < 2; i++) {
        assert_ok(raffia_pool_verify(pool, &report));
        assert_true(report.verified);
        assert_int_equal(report.verified_bytes, 4 * HUGE_PAGE);
        if (i == 0)
            must_free(pool, block);
    }
    assert_int_equal((uintptr_t)block % HUGE_PAGE, 0);
    assert_int_equal((size_t)(block - other) % HUGE_PAGE, 0);
    must_free(pool, other);
    raffia_pool_release(pool);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, set_up_device)
    const struct CMUnitTest tests[] = {
        TEST(b10_pages_that_are_split_later_are_noticed_and_told_once),
        TEST(b10_smaller_pages_never_join_a_pool),
        TEST(b10_ranges_of_different_pages_never_interleave),
        TEST(b11_addresses_and_their_differences_are_multiples_of_the_page),
        TEST(b11_a_device_that_does_not_tell_is_reported_as_not_verified),
        TEST(b10_a_page_that_the_kernel_splits_is_noticed),
        TEST(b10_guards_of_whole_pages_split_none),
    };
    return cmocka_run_group_tests_name("pages of pools", tests, NULL, NULL);
}
