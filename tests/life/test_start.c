/*
 * The four steps in which a pool begins (SPEC B6), on the simulated device, which can be asked to
 * do each of them wrong.
 */
#include "driver/sim/sim.h"
#include "support/cmocka.h"

#include <raffia/log.h>
#include <raffia/pool.h>

#include <string.h>

#define KIB ((size_t)1024)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)

#define POOL_BYTES (8 * MIB)

/* As many bases as a pool asks for before it gives a driver up, and one more. */
enum { ATTEMPTS = 3, MANY = 1000 };

static int fresh_device(void **state)
{
    (void)state;
    sim_reset();
    return 0;
}

static void configure(struct sim_config config)
{
    if (config.page_count == 0) {
        config.page_count = 2;
        config.pages[0] = (raffia_page_offer){RAFFIA_PAGE_HUGETLB, 2 * MIB};
        config.pages[1] = (raffia_page_offer){RAFFIA_PAGE_REGULAR, SIM_BASE_PAGE};
    }
    assert_ok(sim_configure(0, &config));
}

static raffia_pool_options options_of(raffia_pages_mode pages)
{
    return (raffia_pool_options){.struct_size = sizeof(raffia_pool_options),
                                 .device = "sim:0",
                                 .pages = pages,
                                 .initial_bytes = POOL_BYTES};
}

static raffia_pool *must_make(raffia_pages_mode pages, raffia_pool_stats *stats)
{
    const raffia_pool_options options = options_of(pages);
    raffia_pool *pool = NULL;
    assert_ok(raffia_pool_create(&options, &pool));
    assert_ok(raffia_pool_query(pool, stats));
    return pool;
}

static void end(raffia_pool *pool)
{
    struct sim_usage usage;
    assert_ok(raffia_pool_check(pool));
    raffia_pool_release(pool);
    sim_query(0, &usage);
    assert_string_equal(usage.first_misuse, "");
    assert_true(sim_is_idle());
}

static void refuse(raffia_fallback_reason reason, const char *mentions)
{
    const raffia_pool_options options = options_of(RAFFIA_PAGES_ON);
    raffia_pool *pool = NULL;
    const long ranges = sim_calls("range_reserve");
    assert_status(RAFFIA_ERROR_NO_HUGE_PAGES, raffia_pool_create(&options, &pool));
    assert_null(pool);
    assert_error_mentions(mentions);
    assert_true(sim_calls("range_reserve") - ranges <= ATTEMPTS);
    assert_true(sim_is_idle());
    raffia_fallback_count rows[64];
    const size_t count = raffia_fallbacks(rows, 64);
    for (size_t i = 0; i < count && i < 64; i++)
        if (rows[i].reason == reason && rows[i].to_kind == RAFFIA_PAGE_NONE)
            return;
    fail_msg("the refusal was not counted as '%s'", raffia_fallback_reason_name(reason));
}

/* ---- step 1: which pages there are ---------------------------------------------------------- */

static void b6_a_device_without_huge_pages_is_never_asked_for_any(void **state)
{
    (void)state;
    raffia_pool_stats stats;
    configure(
        (struct sim_config){.page_count = 1, .pages = {{RAFFIA_PAGE_REGULAR, SIM_BASE_PAGE}}});
    raffia_pool *pool = must_make(RAFFIA_PAGES_TRY, &stats);
    assert_int_equal(stats.pages.got_kind, RAFFIA_PAGE_REGULAR);
    assert_int_equal(sim_calls("chunk_create"), stats.chunks);
    end(pool);

    const raffia_pool_options options = options_of(RAFFIA_PAGES_ON);
    const long ranges = sim_calls("range_reserve"), chunks = sim_calls("chunk_create");
    assert_status(RAFFIA_ERROR_NO_HUGE_PAGES, raffia_pool_create(&options, &pool));
    assert_error_mentions("offers no huge pages");
    assert_int_equal(sim_calls("range_reserve"), ranges);
    assert_int_equal(sim_calls("chunk_create"), chunks);
}

static void b6_pages_of_a_size_the_device_lacks_are_not_asked_for(void **state)
{
    (void)state;
    raffia_pool_stats stats;
    raffia_pool_options options = options_of(RAFFIA_PAGES_ON);
    configure((struct sim_config){0});
    options.page_size = GIB;
    raffia_pool *pool = NULL;
    assert_ok(raffia_pool_create(&options, &pool));
    assert_ok(raffia_pool_query(pool, &stats));
    assert_int_equal(stats.pages.got_size, 2 * MIB);
    assert_int_equal(sim_calls("chunk_create"), stats.chunks);
    end(pool);
}

/* ---- step 2: size and alignment ------------------------------------------------------------- */

static void b6_sizes_are_whole_pages_and_bases_are_aligned_to_a_huge_page_at_least(void **state)
{
    (void)state;
    for (int huge = 0; huge < 2; huge++) {
        raffia_pool_options options = options_of(huge ? RAFFIA_PAGES_ON : RAFFIA_PAGES_OFF);
        raffia_pool_stats stats;
        raffia_pool *pool = NULL;
        void *block;
        configure((struct sim_config){0});
        options.initial_bytes = 3 * MIB + 1;
        options.flags = RAFFIA_POOL_FIXED;
        assert_ok(raffia_pool_create(&options, &pool));
        assert_ok(raffia_pool_query(pool, &stats));
        assert_int_equal(stats.reserved_bytes, huge ? 4 * MIB : 3 * MIB + SIM_BASE_PAGE);
        assert_int_equal(stats.address_bytes, stats.reserved_bytes);
        /* The first block lies at the base. */
        assert_ok(raffia_pool_alloc(pool, stats.reserved_bytes, 0, &block));
        assert_int_equal((uintptr_t)block % (2 * MIB), 0);
        assert_ok(raffia_pool_free(pool, block));
        end(pool);
        sim_reset();
    }
}

/* ---- step 3: the mapping request, and what comes back --------------------------------------- */

static void b6_every_page_is_there_before_the_first_block(void **state)
{
    (void)state;
    raffia_pool_stats stats;
    struct sim_usage usage;
    void *block;
    configure((struct sim_config){0});
    raffia_pool *pool = must_make(RAFFIA_PAGES_ON, &stats);
    sim_query(0, &usage);
    assert_int_equal(usage.mapped_bytes, POOL_BYTES);
    assert_int_equal(stats.pages.verified_bytes, POOL_BYTES);
    assert_true(stats.pages.verified && stats.pages.verified_size == 2 * MIB);
    assert_ok(raffia_pool_alloc(pool, POOL_BYTES, 0, &block));
    memset(block, 1, POOL_BYTES);
    assert_ok(raffia_pool_query(pool, &stats));
    assert_int_equal(stats.misses, 0);
    assert_ok(raffia_pool_free(pool, block));
    end(pool);
}

static void b6_a_misaligned_base_is_asked_for_again(void **state)
{
    (void)state;
    raffia_pool_stats stats;
    configure((struct sim_config){.misaligned_bases = ATTEMPTS - 1});
    raffia_pool *pool = must_make(RAFFIA_PAGES_ON, &stats);
    assert_int_equal(sim_calls("range_reserve"), ATTEMPTS);
    assert_int_equal(sim_calls("range_release"), ATTEMPTS - 1);
    end(pool);
}

static void b6_a_driver_that_misaligns_every_base_is_refused(void **state)
{
    (void)state;
    configure((struct sim_config){.misaligned_bases = MANY});
    refuse(RAFFIA_REASON_MISALIGNED, "aligned");
    assert_int_equal(sim_calls("chunk_create"), 0);
}

static void b6_after_a_misaligned_base_the_next_rung_is_tried(void **state)
{
    (void)state;
    raffia_pool_stats stats;
    configure((struct sim_config){.misaligned_bases = ATTEMPTS});
    raffia_pool *pool = must_make(RAFFIA_PAGES_TRY, &stats);
    assert_int_equal(stats.pages.got_kind, RAFFIA_PAGE_REGULAR);
    assert_int_equal(stats.pages.reason, RAFFIA_REASON_MISALIGNED);
    end(pool);
}

static void b6_smaller_pages_than_promised_are_asked_for_again(void **state)
{
    (void)state;
    raffia_pool_stats stats;
    configure((struct sim_config){.smaller_pages = 1});
    raffia_pool *pool = must_make(RAFFIA_PAGES_ON, &stats);
    assert_true(stats.pages.verified && stats.pages.verified_size == 2 * MIB);
    end(pool);
}

static void b6_pages_that_stay_smaller_than_promised_are_refused(void **state)
{
    (void)state;
    configure((struct sim_config){.smaller_pages = MANY});
    refuse(RAFFIA_REASON_SMALLER, "found pages of 4 KiB");
}

static void b6_after_smaller_pages_the_next_rung_is_tried_whole(void **state)
{
    (void)state;
    raffia_pool_stats stats;
    raffia_pool_options options = options_of(RAFFIA_PAGES_TRY);
    configure((struct sim_config){.smaller_pages = 2});
    options.chunk_bytes = 2 * MIB; /* the first of four chunks is bad each time */
    raffia_pool *pool = NULL;
    assert_ok(raffia_pool_create(&options, &pool));
    assert_ok(raffia_pool_query(pool, &stats));
    assert_int_equal(stats.pages.got_kind, RAFFIA_PAGE_REGULAR);
    assert_int_equal(stats.pages.reason, RAFFIA_REASON_SMALLER);
    assert_int_equal(stats.reserved_bytes, POOL_BYTES);
    end(pool);
}

static void b6_a_device_that_cannot_tell_is_believed_and_not_called_verified(void **state)
{
    (void)state;
    raffia_pool_stats stats;
    configure((struct sim_config){.hides_page_sizes = true});
    raffia_pool *pool = must_make(RAFFIA_PAGES_ON, &stats);
    assert_int_equal(stats.pages.got_size, 2 * MIB);
    assert_false(stats.pages.verified);
    assert_int_equal(stats.pages.verified_size, 0);
    end(pool);
}

/* ---- step 4: the free space ----------------------------------------------------------------- */

static void b6_the_free_space_is_one_stretch_from_the_start(void **state)
{
    (void)state;
    raffia_pool_stats stats;
    configure((struct sim_config){0});
    raffia_pool *pool = must_make(RAFFIA_PAGES_ON, &stats);
    assert_int_equal(stats.free_bytes, POOL_BYTES);
    assert_int_equal(stats.largest_free_bytes, POOL_BYTES);
    assert_int_equal(stats.free_blocks, 1);
    assert_int_equal(stats.live_blocks, 0);
    end(pool);
}

/* Whatever step fails, the steps before it are undone. */
static void b6_a_step_that_fails_leaves_nothing_behind(void **state)
{
    (void)state;
    static const char *const verbs[] = {"device_info", "range_reserve", "chunk_create", "chunk_map",
                                        "page_size_of"};
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        const raffia_pool_options options = options_of(RAFFIA_PAGES_ON);
        raffia_pool *pool = NULL;
        configure((struct sim_config){0});
        sim_fail_next(verbs[i], RAFFIA_ERROR_DRIVER, RAFFIA_REASON_NONE);
        assert_status(RAFFIA_ERROR_DRIVER, raffia_pool_create(&options, &pool));
        assert_null(pool);
        assert_true(sim_is_idle());
        sim_reset();
    }
}

static int be_quiet(void **state)
{
    (void)state;
    raffia_log_set_level(RAFFIA_LOG_ERROR);
    return 0;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, fresh_device)
    const struct CMUnitTest tests[] = {
        TEST(b6_a_device_without_huge_pages_is_never_asked_for_any),
        TEST(b6_pages_of_a_size_the_device_lacks_are_not_asked_for),
        TEST(b6_sizes_are_whole_pages_and_bases_are_aligned_to_a_huge_page_at_least),
        TEST(b6_every_page_is_there_before_the_first_block),
        TEST(b6_a_misaligned_base_is_asked_for_again),
        TEST(b6_a_driver_that_misaligns_every_base_is_refused),
        TEST(b6_after_a_misaligned_base_the_next_rung_is_tried),
        TEST(b6_smaller_pages_than_promised_are_asked_for_again),
        TEST(b6_pages_that_stay_smaller_than_promised_are_refused),
        TEST(b6_after_smaller_pages_the_next_rung_is_tried_whole),
        TEST(b6_a_device_that_cannot_tell_is_believed_and_not_called_verified),
        TEST(b6_the_free_space_is_one_stretch_from_the_start),
        TEST(b6_a_step_that_fails_leaves_nothing_behind),
    };
    return cmocka_run_group_tests_name("life start", tests, be_quiet, NULL);
}
