/* What a pool refuses, and how well it says why. */
#include "core/fault.h"
#include "pool/pool_fixture.h"
#include "pool/pool_internal.h"
#include "support/cmocka.h"

#include <stdio.h>
#include <string.h>

static void bad_addresses_are_named_and_harm_nothing(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_MAXIMUM);
    char *block = must_alloc(pool, 1000), *other = must_alloc(pool, 1000);
    int local;
    char sentence[64];

    assert_status(RAFFIA_ERROR_BAD_ADDRESS, raffia_pool_free(pool, &local));
    assert_error_mentions("it is no address of pool 'small'");
    assert_status(RAFFIA_ERROR_BAD_ADDRESS, raffia_pool_free(pool, block + 1));
    snprintf(sentence, sizeof sentence, "inside the block of 1024 bytes at %p", (void *)block);
    assert_error_mentions(sentence);
    assert_status(RAFFIA_ERROR_BAD_ADDRESS, raffia_pool_free(pool, block + 512));
    assert_status(RAFFIA_ERROR_BAD_ADDRESS, raffia_pool_free(pool, block + 1023));
    must_free(pool, block);
    assert_status(RAFFIA_ERROR_BAD_ADDRESS, raffia_pool_free(pool, block));
    assert_error_mentions("freed before");
    assert_status(RAFFIA_ERROR_BAD_ADDRESS, raffia_pool_free(pool, other + TEST_CHUNK * 3));
    assert_error_mentions("has no memory there");
    assert_status(RAFFIA_ERROR_BAD_ADDRESS, raffia_pool_free(pool, pool->base - 1));
    assert_status(RAFFIA_ERROR_BAD_ADDRESS, raffia_pool_free(pool, pool->base + TEST_MAXIMUM));
    assert_ok(raffia_pool_free(pool, NULL));

    const raffia_pool_stats stats = stats_of(pool);
    assert_int_equal(stats.bad_frees, 8);
    assert_int_equal(stats.frees, 1);
    assert_int_equal(stats.live_blocks, 1);
    assert_ok(raffia_pool_check(pool));
    must_free(pool, other);
    drop_pool(pool);
}

static void bad_arguments_are_refused(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_MAXIMUM);
    void *none = NULL;
    raffia_block block;
    raffia_pool_stats stats;
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, raffia_pool_alloc(pool, 1, 3, &none));
    assert_error_mentions("power of two");
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, raffia_pool_alloc(pool, 1, 2 * TEST_CHUNK, &none));
    assert_error_mentions("256 KiB");
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, raffia_pool_alloc(pool, 1, 0, NULL));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, raffia_pool_alloc(NULL, 1, 0, &none));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, raffia_pool_free(NULL, &none));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, raffia_pool_resize(NULL, &none, 1));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, raffia_pool_find(pool, &none, NULL));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, raffia_pool_find(NULL, &none, &block));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, raffia_pool_query(pool, NULL));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, raffia_pool_query(NULL, &stats));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, raffia_pool_walk(pool, NULL, NULL));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, raffia_pool_trim(NULL, 0, NULL));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, raffia_pool_verify(NULL, NULL));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, raffia_pool_check(NULL));
    assert_null(none);
    assert_int_equal(stats_of(pool).failures, 0);
    drop_pool(pool);
}

static void sizes_beyond_everything_do_not_wrap(void **state)
{
    (void)state;
    const size_t sizes[] = {SIZE_MAX,         SIZE_MAX - 1,     SIZE_MAX - 254, SIZE_MAX - 255,
                            SIZE_MAX / 2 + 1, TEST_MAXIMUM + 1, SIZE_MAX - 15};
    const size_t count = sizeof sizes / sizeof *sizes;
    for (unsigned flags = 0; flags <= RAFFIA_POOL_GUARD; flags += RAFFIA_POOL_GUARD) {
        struct pool_plan plan = small_plan();
        plan.flags = flags;
        raffia_pool *pool = make_pool(&plan);
        void *none = NULL;
        for (size_t i = 0; i < count; i++) {
            assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, raffia_pool_alloc(pool, sizes[i], 0, &none));
            assert_status(RAFFIA_ERROR_OUT_OF_MEMORY,
                          raffia_pool_alloc(pool, sizes[i], TEST_CHUNK, &none));
        }
        assert_null(none);
        assert_int_equal(stats_of(pool).failures, 2 * count);
        assert_int_equal(stats_of(pool).reserved_bytes, 0);
        drop_pool(pool);
    }
}

static void out_of_memory_says_what_there_is_and_what_to_do(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(0, TEST_MAXIMUM);
    void *none, *half = must_alloc(pool, TEST_MAXIMUM / 2);
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY,
                  raffia_pool_alloc(pool, TEST_MAXIMUM / 2 + 1, 0, &none));
    assert_error_mentions("pool 'small' cannot serve 1048577 bytes");
    assert_error_mentions("1 MiB are mapped of a maximum of 2 MiB");
    assert_error_mentions("the device has 1023 MiB free");
    assert_error_mentions("raise its maximum_bytes");
    must_free(pool, half);
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, raffia_pool_alloc(pool, TEST_MAXIMUM + 1, 0, &none));
    assert_error_mentions("1 MiB are free (1 MiB in one piece), 1 MiB of that in idle chunks");
    assert_int_equal(stats_of(pool).failures, 2);
    drop_pool(pool);
}

static void fragmented_memory_is_called_so(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(TEST_MAXIMUM, TEST_MAXIMUM);
    void *blocks[8], *none;
    for (size_t i = 0; i < 8; i++)
        blocks[i] = must_alloc(pool, TEST_CHUNK);
    for (size_t i = 0; i < 8; i += 2)
        must_free(pool, blocks[i]);
    assert_true(stats_of(pool).fragmentation > 0.74 && stats_of(pool).fragmentation < 0.76);
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, raffia_pool_alloc(pool, 2 * TEST_CHUNK, 0, &none));
    assert_error_mentions("fragmented");
    assert_error_mentions("256 KiB in one piece");
    for (size_t i = 1; i < 8; i += 2)
        must_free(pool, blocks[i]);
    drop_pool(pool);
}

static void a_fixed_pool_stays_as_it_is(void **state)
{
    (void)state;
    struct pool_plan plan = small_plan();
    plan.initial_bytes = 2 * TEST_CHUNK;
    plan.flags = RAFFIA_POOL_FIXED;
    raffia_pool *pool = make_pool(&plan);
    void *none, *all = must_alloc(pool, 2 * TEST_CHUNK);
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, raffia_pool_alloc(pool, 1, 0, &none));
    assert_error_mentions("fixed pool");
    assert_int_equal(stats_of(pool).chunks, 2);
    must_free(pool, all);

    size_t released = 1;
    assert_ok(raffia_pool_trim(pool, 0, &released));
    assert_int_equal(released, 0);
    assert_int_equal(stats_of(pool).idle_bytes, 0);
    assert_status(RAFFIA_ERROR_UNSUPPORTED, raffia_pool_set_maximum(pool, 0));
    assert_error_mentions("fixed pool");
    all = must_alloc(pool, 2 * TEST_CHUNK);
    must_free(pool, all);
    drop_pool(pool);
}

static void advice_counts_the_guard_and_the_alignment(void **state)
{
    (void)state;
    void *none = NULL;
    struct pool_plan plan = small_plan();
    plan.initial_bytes = plan.maximum_bytes = 4 * TEST_CHUNK;
    plan.flags = RAFFIA_POOL_GUARD;
    raffia_pool *pool = make_pool(&plan);
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, raffia_pool_alloc(pool, 4 * TEST_CHUNK, 0, &none));
    assert_error_mentions("1048576 bytes and a guard (1.00 MiB in all): 1 MiB are free");
    assert_error_mentions("raise its maximum_bytes");
    assert_null(strstr(raffia_last_error(), "in pieces"));
    drop_pool(pool);

    pool = make_pool_of(TEST_CHUNK, TEST_CHUNK);
    void *block = must_alloc(pool, TEST_GRANULE);
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY,
                  raffia_pool_alloc(pool, TEST_CHUNK / 4, TEST_CHUNK, &none));
    assert_error_mentions("at a multiple of 256 KiB");
    assert_error_mentions("not at that alignment");
    must_free(pool, block);

    const struct space_request request = {.bytes = 1000};
    const struct pool_refusal refusal = {.bytes = 1000, .request = &request, .gave_up = true};
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, pool_refuse_request(pool, &refusal));
    assert_error_mentions("again and again");
    drop_pool(pool);
}

static void bookkeeping_that_does_not_fit_names_the_pool_it_was_for(void **state)
{
    (void)state;
    const struct pool_plan plan = small_plan();
    raffia_fallback_reason reason;
    bool named = false;
    for (long n = 1; !named && n < 100; n++) {
        raffia_pool *pool;
        core_fault_arm(n);
        const raffia_status status = pool_create(&plan, &pool, &reason);
        core_fault_disarm();
        if (!status) /* what failed can be done without */
            drop_pool(pool);
        else
            named = strstr(raffia_last_error(), "pool 'small' of at most 2 MiB: ");
    }
    assert_true(named);
}

static void a_device_that_says_nothing_of_its_memory_is_no_obstacle(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(0, TEST_MAXIMUM);
    void *none;
    sim_fail_next("device_info", RAFFIA_ERROR_DRIVER, RAFFIA_REASON_NONE);
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, raffia_pool_alloc(pool, TEST_MAXIMUM + 1, 0, &none));
    assert_error_mentions("the device has an unknown amount free");
    drop_pool(pool);
}

/* Damage made by hand, one kind at a time: what the check is there to see. */
static void a_damaged_pool_is_found_out_and_frozen(void **state)
{
    (void)state;
    for (int kind = 0; kind < 5; kind++) {
        raffia_pool *pool = make_pool_of(2 * TEST_CHUNK, TEST_MAXIMUM);
        void *none = NULL, *block = must_alloc(pool, 1000);
        size_t *const numbers[] = {&pool->in_use_bytes, &pool->live_blocks, &pool->mapped_bytes,
                                   &pool->mapped_slots};
        if (kind < 4)
            ++*numbers[kind];
        else
            pool->slots[1].state = POOL_SLOT_LOANED;
        assert_status(RAFFIA_ERROR_CORRUPT, raffia_pool_check(pool));
        assert_error_mentions("pool 'small' is damaged");
        assert_status(RAFFIA_ERROR_CORRUPT, raffia_pool_alloc(pool, 1, 0, &none));
        assert_error_mentions("frozen");
        assert_status(RAFFIA_ERROR_CORRUPT, raffia_pool_resize(pool, block, 1));
        assert_status(RAFFIA_ERROR_CORRUPT, raffia_pool_trim(pool, 0, NULL));
        assert_status(RAFFIA_ERROR_CORRUPT, raffia_pool_set_maximum(pool, 0));
        assert_null(none);
        if (kind < 4)
            --*numbers[kind];
        else
            pool->slots[1].state = POOL_SLOT_MAPPED;
        must_free(pool, block);
        drop_pool(pool);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, set_up_device)
    const struct CMUnitTest tests[] = {
        TEST(bad_addresses_are_named_and_harm_nothing),
        TEST(bad_arguments_are_refused),
        TEST(sizes_beyond_everything_do_not_wrap),
        TEST(out_of_memory_says_what_there_is_and_what_to_do),
        TEST(fragmented_memory_is_called_so),
        TEST(a_fixed_pool_stays_as_it_is),
        TEST(advice_counts_the_guard_and_the_alignment),
        TEST(bookkeeping_that_does_not_fit_names_the_pool_it_was_for),
        TEST(a_device_that_says_nothing_of_its_memory_is_no_obstacle),
        TEST(a_damaged_pool_is_found_out_and_frozen),
    };
    return cmocka_run_group_tests_name("pool refusals", tests, NULL, NULL);
}
