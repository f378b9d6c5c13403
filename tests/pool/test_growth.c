/* Pools that grow, shrink, and are refused growth. */
#include "pool/pool_fixture.h"
#include "support/cmocka.h"

#include <raffia/log.h>

#include <string.h>

static void a_pool_grows_by_whole_chunks_and_no_more_than_needed(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(0, TEST_MAXIMUM);
    void *small = must_alloc(pool, 1);
    assert_int_equal(stats_of(pool).reserved_bytes, TEST_CHUNK);
    assert_int_equal(stats_of(pool).misses, 1);
    /* The free end of the first chunk counts: two more are enough. */
    char *large = must_alloc(pool, 3 * TEST_CHUNK - TEST_GRANULE);
    assert_int_equal(stats_of(pool).reserved_bytes, 3 * TEST_CHUNK);
    assert_int_equal(stats_of(pool).free_bytes, 0);
    memset(large, 9, 3 * TEST_CHUNK - TEST_GRANULE);
    assert_int_equal(stats_of(pool).misses, 2);
    assert_int_equal(stats_of(pool).hits, 0);
    must_free(pool, small);
    must_free(pool, large);
    assert_int_equal(stats_of(pool).free_blocks, 1);
    drop_pool(pool);
}

static void every_byte_of_the_maximum_can_be_had(void **state)
{
    (void)state;
    const size_t maximum = 3 * TEST_CHUNK + TEST_PAGE; /* the last slot is short */
    raffia_pool *pool = make_pool_of(0, maximum);
    char *all = must_alloc(pool, maximum);
    all[0] = all[maximum - 1] = 1;
    assert_int_equal(stats_of(pool).reserved_bytes, maximum);
    must_free(pool, all);
    size_t released;
    assert_ok(raffia_pool_trim(pool, 0, &released));
    assert_int_equal(released, maximum);

    void *pieces[3 * TEST_CHUNK / TEST_PAGE + 1];
    const size_t count = sizeof pieces / sizeof *pieces;
    for (size_t i = 0; i < count; i++)
        pieces[i] = must_alloc(pool, TEST_PAGE);
    void *none = NULL;
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, raffia_pool_alloc(pool, 1, 0, &none));
    assert_null(none);
    for (size_t i = 0; i < count; i++)
        must_free(pool, pieces[i]);
    must_free(pool, must_alloc(pool, maximum));
    drop_pool(pool);
}

static void a_trimmed_pool_grows_back_into_its_holes(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(0, TEST_MAXIMUM);
    void *blocks[8];
    for (size_t i = 0; i < 8; i++)
        blocks[i] = must_alloc(pool, TEST_CHUNK);
    for (size_t i = 0; i < 8; i += 2)
        must_free(pool, blocks[i]);
    size_t released;
    assert_ok(raffia_pool_trim(pool, 0, &released));
    assert_int_equal(released, 4 * TEST_CHUNK);
    assert_ok(raffia_pool_check(pool));
    assert_int_equal(stats_of(pool).reserved_bytes, 4 * TEST_CHUNK);
    for (size_t i = 0; i < 8; i += 2)
        blocks[i] = must_alloc(pool, TEST_CHUNK);
    assert_int_equal(stats_of(pool).reserved_bytes, TEST_MAXIMUM);

    /* Free but for the holes: one request closes them all. */
    for (size_t i = 0; i < 8; i++)
        if (i % 2)
            must_free(pool, blocks[i]);
    assert_ok(raffia_pool_trim(pool, 0, &released));
    assert_int_equal(released, 4 * TEST_CHUNK);
    for (size_t i = 0; i < 8; i++)
        if (i % 2)
            blocks[i] = must_alloc(pool, TEST_CHUNK);
    for (size_t i = 0; i < 8; i++)
        must_free(pool, blocks[i]);
    must_free(pool, must_alloc(pool, TEST_MAXIMUM));
    drop_pool(pool);
}

static void one_request_fills_several_holes_at_once(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(TEST_MAXIMUM, TEST_MAXIMUM);
    char *all = must_alloc(pool, TEST_MAXIMUM);
    must_free(pool, all);
    /* Leave chunks 1 and 5 by holding them during the trim. */
    void *blocks[8];
    for (size_t i = 0; i < 8; i++)
        blocks[i] = must_alloc(pool, TEST_CHUNK);
    for (size_t i = 0; i < 8; i++)
        if (i != 1 && i != 5)
            must_free(pool, blocks[i]);
    assert_ok(raffia_pool_trim(pool, 0, NULL));
    must_free(pool, blocks[1]);
    must_free(pool, blocks[5]);
    assert_int_equal(stats_of(pool).free_blocks, 2);
    must_free(pool, must_alloc(pool, TEST_MAXIMUM));
    assert_int_equal(stats_of(pool).free_blocks, 1);
    assert_int_equal(stats_of(pool).reserved_bytes, TEST_MAXIMUM);
    drop_pool(pool);
}

static void growth_takes_the_cheapest_place(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(0, TEST_MAXIMUM);
    char *blocks[8];
    for (size_t i = 0; i < 8; i++)
        blocks[i] = must_alloc(pool, TEST_CHUNK);
    /* Slots 1 and 2 become absent; slot 5 becomes absent beside slot 6, which stays free. */
    char *keep = blocks[0];
    must_free(pool, blocks[1]);
    must_free(pool, blocks[2]);
    must_free(pool, blocks[5]);
    assert_ok(raffia_pool_trim(pool, 0, NULL));
    must_free(pool, blocks[6]);
    char *two = must_alloc(pool, 2 * TEST_CHUNK); /* one new chunk at 5, not two at 1 */
    assert_ptr_equal(two, keep + 5 * TEST_CHUNK);
    assert_int_equal(stats_of(pool).reserved_bytes, 6 * TEST_CHUNK);
    must_free(pool, two);
    must_free(pool, blocks[0]);
    must_free(pool, blocks[3]);
    must_free(pool, blocks[4]);
    must_free(pool, blocks[7]);
    drop_pool(pool);
}

static void trim_keeps_what_it_is_told_and_what_is_used(void **state)
{
    (void)state;
    for (int remappable = 0; remappable < 2; remappable++) {
        struct pool_plan plan = small_plan();
        plan.initial_bytes = TEST_MAXIMUM;
        plan.flags = remappable ? RAFFIA_POOL_REMAPPABLE : 0;
        raffia_pool *pool = make_pool(&plan);
        char *low = must_alloc(pool, 1);
        size_t released = 0;
        assert_ok(raffia_pool_trim(pool, 5 * TEST_CHUNK, &released));
        assert_int_equal(released, 3 * TEST_CHUNK);
        assert_int_equal(stats_of(pool).chunks, 5);
        assert_int_equal(stats_of(pool).pages.total_bytes, 5 * TEST_CHUNK);
        assert_ok(raffia_pool_trim(pool, 5 * TEST_CHUNK, &released));
        assert_int_equal(released, 0);
        assert_ok(raffia_pool_trim(pool, 0, &released));
        assert_int_equal(released, 4 * TEST_CHUNK);
        struct sim_usage usage;
        sim_query(0, &usage);
        assert_int_equal(usage.chunk_bytes, TEST_CHUNK); /* given to the device, not kept */
        *low = 1;
        must_free(pool, low);
        drop_pool(pool);
    }
}

static void a_chunk_the_driver_keeps_goes_back_to_use(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(2 * TEST_CHUNK, TEST_MAXIMUM);
    size_t released = 77;
    sim_fail_next("chunk_unmap", RAFFIA_ERROR_DRIVER, RAFFIA_REASON_NONE);
    assert_status(RAFFIA_ERROR_DRIVER, raffia_pool_trim(pool, 0, &released));
    assert_int_equal(released, 77);
    assert_ok(raffia_pool_check(pool));
    assert_int_equal(stats_of(pool).reserved_bytes, 2 * TEST_CHUNK);
    must_free(pool, must_alloc(pool, 2 * TEST_CHUNK));
    assert_ok(raffia_pool_trim(pool, 0, &released));
    assert_int_equal(released, 2 * TEST_CHUNK);
    drop_pool(pool);
}

static void a_chunk_that_is_not_destroyed_is_still_counted(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(2 * TEST_CHUNK, 2 * TEST_CHUNK);
    sim_fail_next("chunk_destroy", RAFFIA_ERROR_DRIVER, RAFFIA_REASON_NONE);
    assert_ok(raffia_pool_trim(pool, TEST_CHUNK, NULL));
    must_free(pool, must_alloc(pool, 2 * TEST_CHUNK));
    drop_pool(pool);
}

struct listener {
    raffia_pool *pool;
    unsigned calls;
};

/* A sink may use the pool that speaks. */
static void ask_the_pool(void *context, raffia_log_level level, const char *message)
{
    struct listener *listener = context;
    raffia_pool_stats stats;
    (void)level, (void)message;
    listener->calls++;
    assert_ok(raffia_pool_query(listener->pool, &stats));
}

static void a_fallback_is_told_when_no_lock_is_held(void **state)
{
    (void)state;
    struct pool_plan plan = small_plan();
    plan.lower[0] = (raffia_page_offer){RAFFIA_PAGE_TRANSPARENT, TEST_PAGE};
    plan.lower_count = 1;
    plan.reasons_to_descend = 1u << RAFFIA_REASON_MEMORY;
    struct listener listener = {.pool = make_pool(&plan)};
    sim_fail_next("chunk_create", RAFFIA_ERROR_OUT_OF_MEMORY, RAFFIA_REASON_MEMORY);
    const raffia_log_level level = raffia_log_get_level();
    raffia_log_set_level(RAFFIA_LOG_INFO);
    raffia_log_set_sink(ask_the_pool, &listener);
    void *block = must_alloc(listener.pool, KIB);
    raffia_log_set_sink(NULL, NULL);
    raffia_log_set_level(level);
    assert_true(listener.calls > 0);
    must_free(listener.pool, block);
    drop_pool(listener.pool);
}

static void the_maximum_can_be_lowered_and_raised(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(TEST_MAXIMUM, TEST_MAXIMUM);
    char *low = must_alloc(pool, 3 * TEST_CHUNK);
    assert_ok(raffia_pool_set_maximum(pool, TEST_CHUNK));
    assert_int_equal(stats_of(pool).maximum_bytes, TEST_CHUNK);
    assert_int_equal(stats_of(pool).reserved_bytes, 3 * TEST_CHUNK); /* what is live stays */
    void *none;
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, raffia_pool_alloc(pool, 1, 0, &none));
    must_free(pool, low);
    must_free(pool, must_alloc(pool, 3 * TEST_CHUNK)); /* mapped already: no growth is needed */
    assert_ok(raffia_pool_trim(pool, 0, NULL));
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, raffia_pool_alloc(pool, TEST_CHUNK + 1, 0, &none));
    must_free(pool, must_alloc(pool, TEST_CHUNK));

    assert_ok(raffia_pool_set_maximum(pool, TEST_MAXIMUM));
    must_free(pool, must_alloc(pool, TEST_MAXIMUM));
    assert_status(RAFFIA_ERROR_LIMIT, raffia_pool_set_maximum(pool, TEST_MAXIMUM + 1));
    assert_error_mentions("2 MiB");
    assert_status(RAFFIA_ERROR_LIMIT, raffia_pool_set_maximum(pool, RAFFIA_NONE));
    assert_error_mentions("cannot do without a maximum");
    assert_error_mentions("2 MiB");
    assert_int_equal(stats_of(pool).maximum_bytes, TEST_MAXIMUM);
    assert_ok(raffia_pool_set_maximum(pool, 0));
    assert_int_equal(stats_of(pool).reserved_bytes, 0);
    drop_pool(pool);
}

static void idle_chunks_move_before_a_request_is_refused(void **state)
{
    (void)state;
    for (int remappable = 0; remappable < 2; remappable++) {
        struct pool_plan plan = small_plan();
        plan.flags = remappable ? RAFFIA_POOL_REMAPPABLE : 0;
        raffia_pool *pool = make_pool(&plan);
        void *blocks[8];
        char *low = must_alloc(pool, TEST_CHUNK / 2);
        blocks[0] = must_alloc(pool, TEST_CHUNK / 2);
        for (size_t i = 1; i < 8; i++)
            blocks[i] = must_alloc(pool, TEST_CHUNK);
        /* Slot 0 half used, 5 and 6 idle, the rest absent; no room to grow. */
        for (size_t i = 0; i < 8; i++)
            if (i != 5 && i != 6)
                must_free(pool, blocks[i]);
        assert_ok(raffia_pool_trim(pool, 0, NULL));
        must_free(pool, blocks[5]);
        must_free(pool, blocks[6]);
        assert_int_equal(stats_of(pool).chunks, 3);
        assert_ok(raffia_pool_set_maximum(pool, 3 * TEST_CHUNK));
        char *large = must_alloc(pool, 2 * TEST_CHUNK + TEST_CHUNK / 2);
        assert_ptr_equal(large, low + TEST_CHUNK / 2);
        assert_int_equal(stats_of(pool).chunks, 3);
        assert_ok(raffia_pool_check(pool));
        must_free(pool, low);
        must_free(pool, large);
        drop_pool(pool);
    }
}

static void idle_chunks_go_when_the_device_has_no_more(void **state)
{
    (void)state;
    fresh_device(&(struct sim_config){.capacity_bytes = 3 * TEST_CHUNK});
    raffia_pool *pool = make_pool_of(0, TEST_MAXIMUM);
    void *one = must_alloc(pool, TEST_CHUNK), *two = must_alloc(pool, TEST_CHUNK),
         *three = must_alloc(pool, TEST_CHUNK);
    must_free(pool, one);
    must_free(pool, three);
    must_free(pool, must_alloc(pool, 2 * TEST_CHUNK)); /* slot 0 moves to slot 3 */
    assert_int_equal(stats_of(pool).chunks, 3);
    assert_int_equal(sim_calls("chunk_unmap"), 1); /* slot 2, part of the new place, stayed */
    void *none;
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, raffia_pool_alloc(pool, 3 * TEST_CHUNK, 0, &none));
    assert_error_mentions("the device has no more to give");
    assert_error_mentions("it said:");
    assert_ok(raffia_pool_check(pool));
    must_free(pool, two);
    drop_pool(pool);
}

static void a_growth_that_fails_half_way_leaves_nothing(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(0, TEST_MAXIMUM);
    void *none = NULL;
    const char *const verbs[] = {"chunk_create", "chunk_map", "page_size_of"};
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        sim_fail_next(verbs[i], RAFFIA_ERROR_DRIVER, RAFFIA_REASON_NONE);
        assert_status(RAFFIA_ERROR_DRIVER, raffia_pool_alloc(pool, 3 * TEST_CHUNK, 0, &none));
        assert_error_mentions("pool 'small' cannot grow");
        assert_null(none);
        assert_int_equal(stats_of(pool).reserved_bytes, 0);
        assert_ok(raffia_pool_check(pool));
    }
    must_free(pool, must_alloc(pool, 3 * TEST_CHUNK));
    drop_pool(pool);
}

/* Half of a request that cannot be met must not be taken from the system, not even for a moment. */
static void chunks_that_do_not_fit_together_are_not_begun(void **state)
{
    (void)state;
    fresh_device(&(struct sim_config){.capacity_bytes = 3 * TEST_CHUNK});
    struct pool_plan plan = small_plan();
    plan.initial_bytes = 4 * TEST_CHUNK;
    raffia_pool *pool = NULL;
    raffia_fallback_reason reason;
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, pool_create(&plan, &pool, &reason));
    assert_int_equal(reason, RAFFIA_REASON_MEMORY);
    assert_error_mentions("1 MiB of device pages are needed, but the device has 768 KiB free");

    pool = make_pool_of(0, TEST_MAXIMUM);
    void *block = NULL;
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, raffia_pool_alloc(pool, 4 * TEST_CHUNK, 0, &block));
    assert_error_mentions("768 KiB free");
    assert_int_equal(stats_of(pool).driver_calls, 0);
    must_free(pool, must_alloc(pool, 3 * TEST_CHUNK));
    drop_pool(pool);
}

static void chunks_already_borrowed_go_back_when_a_later_one_is_refused(void **state)
{
    (void)state;
    fresh_device(&(struct sim_config){
        .limits = {{RAFFIA_PAGE_DEVICE, TEST_PAGE, 2 * TEST_CHUNK, RAFFIA_REASON_POOL_EMPTY}}});
    raffia_pool *pool = make_pool_of(0, TEST_MAXIMUM);
    void *none = NULL;
    struct sim_usage usage;
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, raffia_pool_alloc(pool, 3 * TEST_CHUNK, 0, &none));
    sim_query(0, &usage);
    assert_int_equal(usage.chunks, 0);
    must_free(pool, must_alloc(pool, 2 * TEST_CHUNK));
    drop_pool(pool);
}

/* A driver during whose calls another thread is very quick: it takes all free space there is. No
 * lock that allocation needs may be held during a driver call, or this would hang. */
static struct {
    raffia_pool *victim;
    void *loot[16];
    size_t count;
} thief;

static raffia_status map_while_stealing(int device, driver_chunk chunk, void *at,
                                        raffia_fallback_reason *reason)
{
    const size_t largest = thief.victim ? stats_of(thief.victim).largest_free_bytes : 0;
    if (largest)
        thief.loot[thief.count++] = must_alloc(thief.victim, largest);
    return sim_driver.chunk_map(device, chunk, at, reason);
}

static void a_request_robbed_of_its_free_space_is_served_all_the_same(void **state)
{
    (void)state;
    struct driver stealing = sim_driver;
    struct pool_plan plan = small_plan();
    stealing.chunk_map = map_while_stealing;
    plan.device.driver = &stealing;
    plan.initial_bytes = TEST_CHUNK;
    thief.victim = NULL;
    raffia_pool *pool = make_pool(&plan);
    thief.victim = pool;
    void *block = must_alloc(pool, 2 * TEST_CHUNK);
    assert_true(thief.count >= 2 && thief.count < 6);
    assert_ok(raffia_pool_check(pool));
    must_free(pool, block);
    while (thief.count)
        must_free(pool, thief.loot[--thief.count]);
    thief.victim = NULL;
    drop_pool(pool);
}

static void a_misaligned_base_is_asked_for_again(void **state)
{
    (void)state;
    fresh_device(&(struct sim_config){.misaligned_bases = 2});
    raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_MAXIMUM);
    void *block = must_alloc(pool, 1);
    assert_int_equal((uintptr_t)block % (2 * MIB), 0);
    assert_int_equal(sim_calls("range_reserve"), 3);
    must_free(pool, block);
    drop_pool(pool);
}

static void a_driver_that_misaligns_every_base_is_refused(void **state)
{
    (void)state;
    fresh_device(&(struct sim_config){.misaligned_bases = 3});
    struct pool_plan plan = small_plan();
    raffia_pool *pool = NULL;
    raffia_fallback_reason reason = RAFFIA_REASON_NONE;
    assert_status(RAFFIA_ERROR_DRIVER, pool_create(&plan, &pool, &reason));
    assert_int_equal(reason, RAFFIA_REASON_MISALIGNED);
    assert_error_mentions("3 times");
    assert_null(pool);
    assert_int_equal(sim_calls("range_reserve"), 3);
    assert_true(sim_is_idle());
}

static void smaller_pages_are_refused_whole(void **state)
{
    (void)state;
    fresh_device(&(struct sim_config){.smaller_pages = 2});
    struct pool_plan plan = small_plan();
    raffia_pool *pool = NULL;
    raffia_fallback_reason reason = RAFFIA_REASON_NONE;
    plan.initial_bytes = 3 * TEST_CHUNK;
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, pool_create(&plan, &pool, &reason));
    assert_int_equal(reason, RAFFIA_REASON_SMALLER);
    assert_null(pool);
    assert_true(sim_is_idle());
}

static void initial_bytes_that_cannot_be_had_are_refused_with_the_reason(void **state)
{
    (void)state;
    fresh_device(&(struct sim_config){
        .limits = {{RAFFIA_PAGE_DEVICE, TEST_PAGE, 2 * TEST_CHUNK, RAFFIA_REASON_POOL_EMPTY}}});
    struct pool_plan plan = small_plan();
    raffia_pool *pool = NULL;
    raffia_fallback_reason reason = RAFFIA_REASON_NONE;
    plan.initial_bytes = 3 * TEST_CHUNK;
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, pool_create(&plan, &pool, &reason));
    assert_int_equal(reason, RAFFIA_REASON_POOL_EMPTY);
    assert_true(sim_is_idle());
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, set_up_device)
    const struct CMUnitTest tests[] = {
        TEST(a_pool_grows_by_whole_chunks_and_no_more_than_needed),
        TEST(every_byte_of_the_maximum_can_be_had),
        TEST(a_trimmed_pool_grows_back_into_its_holes),
        TEST(one_request_fills_several_holes_at_once),
        TEST(growth_takes_the_cheapest_place),
        TEST(trim_keeps_what_it_is_told_and_what_is_used),
        TEST(a_chunk_the_driver_keeps_goes_back_to_use),
        TEST(a_chunk_that_is_not_destroyed_is_still_counted),
        TEST(a_fallback_is_told_when_no_lock_is_held),
        TEST(the_maximum_can_be_lowered_and_raised),
        TEST(idle_chunks_move_before_a_request_is_refused),
        TEST(idle_chunks_go_when_the_device_has_no_more),
        TEST(a_growth_that_fails_half_way_leaves_nothing),
        TEST(chunks_that_do_not_fit_together_are_not_begun),
        TEST(chunks_already_borrowed_go_back_when_a_later_one_is_refused),
        TEST(a_request_robbed_of_its_free_space_is_served_all_the_same),
        TEST(a_misaligned_base_is_asked_for_again),
        TEST(a_driver_that_misaligns_every_base_is_refused),
        TEST(smaller_pages_are_refused_whole),
        TEST(initial_bytes_that_cannot_be_had_are_refused_with_the_reason),
    };
    return cmocka_run_group_tests_name("pool growth", tests, NULL, NULL);
}
