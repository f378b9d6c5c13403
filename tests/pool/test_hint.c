/* Where hints put blocks. */
#include "pool/pool_fixture.h"
#include "support/cmocka.h"

#include <string.h>

static char *hinted(raffia_pool *pool, unsigned hints)
{
    void *address = NULL;
    assert_ok(raffia_pool_alloc_hint(pool, TEST_PAGE, 0, hints, &address));
    return address;
}

static void b15_long_lived_blocks_are_low_and_short_lived_ones_where_they_fit(void **state)
{
    (void)state;
    for (int adaptive = 0; adaptive < 2; adaptive++) {
        raffia_pool *pool = adaptive ? make_adaptive_pool_of(TEST_CHUNK, TEST_CHUNK)
                                     : make_pool_of(TEST_CHUNK, TEST_CHUNK);
        const struct two_gaps gaps = make_two_gaps(pool, TEST_PAGE);
        char *brief = hinted(pool, RAFFIA_HINT_SHORT_LIVED);
        assert_ptr_equal(brief, gaps.high);
        must_free(pool, brief);
        char *stays = hinted(pool, RAFFIA_HINT_LONG_LIVED);
        assert_ptr_equal(stays, gaps.low);
        char *grows = hinted(pool, RAFFIA_HINT_WILL_GROW | RAFFIA_HINT_SHORT_LIVED);
        assert_ptr_equal(grows, gaps.low + TEST_PAGE);
        must_free(pool, stays);
        must_free(pool, grows);
        drop_two_gaps(&gaps);
    }
}

/* Huge or regular is not the pool's to choose. */
static void hints_about_pages_place_nothing(void **state)
{
    (void)state;
    const unsigned hints[] = {RAFFIA_HINT_HUGE, RAFFIA_HINT_REGULAR};
    raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_CHUNK);
    const struct two_gaps gaps = make_two_gaps(pool, TEST_PAGE);
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++) {
        char *any = hinted(pool, hints[i]);
        assert_ptr_equal(any, gaps.high);
        must_free(pool, any);
    }
    drop_two_gaps(&gaps);
}

static void a_hinted_block_makes_the_pool_grow_like_any_other(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(0, TEST_MAXIMUM);
    char *block = hinted(pool, RAFFIA_HINT_SHORT_LIVED);
    assert_int_equal(stats_of(pool).misses, 1);
    must_free(pool, block);
    drop_pool(pool);
}

static void hints_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_CHUNK);
    const unsigned bad[] = {RAFFIA_HINT_LONG_LIVED | RAFFIA_HINT_SHORT_LIVED,
                            RAFFIA_HINT_HUGE | RAFFIA_HINT_REGULAR, 1u << 5, ~0u};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        void *address = NULL;
        assert_status(RAFFIA_ERROR_INVALID_ARGUMENT,
                      raffia_pool_alloc_hint(pool, 1, 0, bad[i], &address));
        assert_null(address);
        assert_error_mentions("hints");
    }
    void *address;
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, raffia_pool_alloc_hint(NULL, 1, 0, 0, &address));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, raffia_pool_alloc_hint(pool, 1, 0, 0, NULL));
    drop_pool(pool);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, set_up_device)
    const struct CMUnitTest tests[] = {
        TEST(b15_long_lived_blocks_are_low_and_short_lived_ones_where_they_fit),
        TEST(hints_about_pages_place_nothing),
        TEST(a_hinted_block_makes_the_pool_grow_like_any_other),
        TEST(hints_that_make_no_sense_are_refused),
    };
    return cmocka_run_group_tests_name("pool hints", tests, NULL, NULL);
}
