/* What an adaptive pool learns of sizes, forgets, and does with it. */
#include "core/memory.h"
#include "pool/pool_fixture.h"
#include "support/cmocka.h"
#include "support/random.h"

#include <pthread.h>

/* The small blocks of a pool of TEST_CHUNK are those of up to this. */
#define SMALL_MOST (TEST_CHUNK / 4)

#define BRIEF_BYTES 3000
#define OTHER_BYTES 20000
#define MANY        64

/* Placed blocks from one look to the next. */
#define PLACED_MOST 4096

static bool is_placed(raffia_pool *pool, size_t bytes)
{
    const uint64_t before = stats_of(pool).placed_low;
    must_free(pool, must_alloc(pool, bytes));
    return stats_of(pool).placed_low != before;
}

static void look(raffia_pool *pool)
{
    assert_ok(raffia_pool_trim(pool, RAFFIA_NONE, NULL));
}

/* Blocks come and go between one look and the next. */
static void live_briefly(raffia_pool *pool, size_t bytes, size_t looks)
{
    for (size_t i = 0; i < looks; i++) {
        for (size_t j = 0; j < MANY; j++)
            must_free(pool, must_alloc(pool, bytes));
        look(pool);
    }
}

/* Blocks see so many looks each. */
static void live_long(raffia_pool *pool, size_t bytes, size_t rounds)
{
    void *blocks[MANY];
    for (size_t i = 0; i < rounds; i++) {
        for (size_t j = 0; j < MANY; j++)
            blocks[j] = must_alloc(pool, bytes);
        look(pool);
        for (size_t j = 0; j < MANY; j++)
            must_free(pool, blocks[j]);
    }
}

static void b16_what_nothing_is_known_of_goes_low(void **state)
{
    (void)state;
    for (int adaptive = 0; adaptive < 2; adaptive++) {
        raffia_pool *pool = adaptive ? make_adaptive_pool_of(TEST_CHUNK, TEST_CHUNK)
                                     : make_pool_of(TEST_CHUNK, TEST_CHUNK);
        const struct two_gaps gaps = make_two_gaps(pool, 4096);
        void *block = must_alloc(pool, 4096);
        assert_ptr_equal(block, adaptive ? gaps.low : gaps.high);
        must_free(pool, block);
        drop_two_gaps(&gaps);
    }
}

static void b16_sizes_that_are_gone_when_memory_is_given_back_go_anywhere(void **state)
{
    (void)state;
    raffia_pool *pool = make_adaptive_pool_of(TEST_CHUNK, TEST_MAXIMUM);
    assert_true(is_placed(pool, BRIEF_BYTES));
    live_briefly(pool, BRIEF_BYTES, 1);
    assert_false(is_placed(pool, BRIEF_BYTES));
    assert_int_equal(stats_of(pool).brief_classes, 1);
    assert_true(is_placed(pool, OTHER_BYTES));
    live_long(pool, OTHER_BYTES, 4);
    assert_true(is_placed(pool, OTHER_BYTES));
    assert_int_equal(stats_of(pool).brief_classes, 1);
    drop_pool(pool);
}

static void b16_a_pool_forgets_what_is_not_so_any_more(void **state)
{
    (void)state;
    raffia_pool *pool = make_adaptive_pool_of(TEST_CHUNK, TEST_MAXIMUM);
    live_briefly(pool, BRIEF_BYTES, 50);
    assert_false(is_placed(pool, BRIEF_BYTES));
    live_long(pool, BRIEF_BYTES, 10);
    assert_true(is_placed(pool, BRIEF_BYTES));
    assert_int_equal(stats_of(pool).brief_classes, 0);
    live_briefly(pool, BRIEF_BYTES, 10);
    assert_false(is_placed(pool, BRIEF_BYTES));
    drop_pool(pool);
}

/* Two of three survive: that is neither brief, nor reason to change one's mind. */
static void b16_a_size_that_is_both_stays_what_it_was(void **state)
{
    (void)state;
    for (int brief = 0; brief < 2; brief++) {
        raffia_pool *pool = make_adaptive_pool_of(TEST_CHUNK, TEST_MAXIMUM);
        if (brief)
            live_briefly(pool, BRIEF_BYTES, 4);
        for (int i = 0; i < 20; i++) {
            void *blocks[20];
            for (int j = 0; j < 20; j++)
                blocks[j] = must_alloc(pool, BRIEF_BYTES);
            for (int j = 0; j < 7; j++)
                must_free(pool, blocks[j]);
            look(pool);
            for (int j = 7; j < 20; j++)
                must_free(pool, blocks[j]);
        }
        assert_int_equal(is_placed(pool, BRIEF_BYTES), !brief);
        drop_pool(pool);
    }
}

static void b16_large_blocks_are_no_part_of_it(void **state)
{
    (void)state;
    raffia_pool *pool = make_adaptive_pool_of(TEST_CHUNK, TEST_MAXIMUM);
    assert_true(is_placed(pool, SMALL_MOST));
    assert_false(is_placed(pool, SMALL_MOST + 1));
    live_briefly(pool, SMALL_MOST + 1, 4);
    assert_int_equal(stats_of(pool).brief_classes, 0);
    void *address;
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY,
                  raffia_pool_alloc(pool, RAFFIA_NONE - 1, 0, &address));
    drop_pool(pool);
}

static void b15_hints_overrule_it_and_teach_nothing(void **state)
{
    (void)state;
    const unsigned hints[] = {RAFFIA_HINT_LONG_LIVED, RAFFIA_HINT_SHORT_LIVED};
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++) {
        raffia_pool *pool = make_adaptive_pool_of(TEST_CHUNK, TEST_CHUNK);
        for (int j = 0; j < MANY; j++) {
            void *address;
            assert_ok(raffia_pool_alloc_hint(pool, TEST_GRANULE, 0, hints[i], &address));
            must_free(pool, address);
        }
        look(pool);
        assert_int_equal(stats_of(pool).placed_low, 0);
        assert_int_equal(stats_of(pool).brief_classes, 0);
        drop_pool(pool);
    }
}

static void b16_no_more_are_placed_than_giving_memory_back_is_worth(void **state)
{
    (void)state;
    raffia_pool *pool = make_adaptive_pool_of(TEST_CHUNK, TEST_MAXIMUM);
    for (int i = 0; i < PLACED_MOST + 100; i++)
        must_free(pool, must_alloc(pool, 100));
    assert_int_equal(stats_of(pool).placed_low, PLACED_MOST);
    look(pool);
    assert_false(is_placed(pool, 100));
    assert_true(is_placed(pool, OTHER_BYTES));
    drop_pool(pool);
}

/* Bad frees are refused as ever, and are no news: every place there is that no block starts at, so
 * also those that share a sample with a block. */
static void addresses_that_are_no_block_teach_nothing(void **state)
{
    (void)state;
    raffia_pool *pool = make_adaptive_pool_of(TEST_CHUNK, TEST_MAXIMUM);
    char *base = pool_base(pool);
    void *blocks[MANY];
    for (size_t i = 0; i < MANY; i++)
        blocks[i] = must_alloc(pool, BRIEF_BYTES);
    for (size_t offset = 0; offset < TEST_MAXIMUM; offset += TEST_GRANULE) {
        raffia_block block;
        if (raffia_pool_find(pool, base + offset, &block) || block.address != base + offset)
            assert_status(RAFFIA_ERROR_BAD_ADDRESS, raffia_pool_free(pool, base + offset));
    }
    assert_status(RAFFIA_ERROR_BAD_ADDRESS, raffia_pool_free(pool, &pool));
    look(pool);
    for (size_t i = 0; i < MANY; i++) {
        must_free(pool, blocks[i]);
        assert_status(RAFFIA_ERROR_BAD_ADDRESS, raffia_pool_free(pool, blocks[i]));
    }
    look(pool);
    assert_int_equal(stats_of(pool).brief_classes, 0);
    drop_pool(pool);
}

/* Every size was wrongly learned to be brief, or to last; a full pool takes as much as any. */
static void b16_wrong_guesses_refuse_nothing(void **state)
{
    (void)state;
    size_t served[3];
    for (int kind = 0; kind < 3; kind++) {
        raffia_pool *pool = kind ? make_adaptive_pool_of(TEST_CHUNK, TEST_MAXIMUM)
                                 : make_pool_of(TEST_CHUNK, TEST_MAXIMUM);
        if (kind == 1)
            live_briefly(pool, 5000, 4);
        if (kind == 2)
            live_long(pool, 5000, 4);
        void *blocks[TEST_MAXIMUM / 5000];
        size_t count = 0;
        while (!raffia_pool_alloc(pool, 5000, 0, &blocks[count]))
            count++;
        assert_true(stats_of(pool).free_bytes < 5120);
        assert_int_equal(stats_of(pool).reserved_bytes, TEST_MAXIMUM);
        served[kind] = count;
        while (count)
            must_free(pool, blocks[--count]);
        drop_pool(pool);
    }
    assert_int_equal(served[0], served[1]);
    assert_int_equal(served[0], served[2]);
}

/* Jobs use large blocks for a while, and leave a small one each. The mean of the chunks that a trim
 * after each job could not give back. */
static double chunks_held(bool adaptive)
{
    enum { JOBS = 200, TEMPORARIES = 12, RESULTS = 40 };
    struct test_random random = {16};
    raffia_pool *pool = adaptive ? make_adaptive_pool_of(TEST_CHUNK, 100 * TEST_CHUNK)
                                 : make_pool_of(TEST_CHUNK, 100 * TEST_CHUNK);
    void *results[RESULTS] = {NULL}, *temporaries[TEMPORARIES] = {NULL};
    size_t chunks = 0;
    for (size_t job = 0; job < JOBS; job++) {
        for (size_t i = 0; i < 3 * TEMPORARIES; i++) {
            void **block = &temporaries[test_random_below(&random, TEMPORARIES)];
            if (*block)
                must_free(pool, *block);
            *block = must_alloc(pool, 10000 + test_random_below(&random, TEST_CHUNK));
        }
        void **result = &results[test_random_below(&random, RESULTS)];
        if (*result)
            must_free(pool, *result);
        *result = must_alloc(pool, 500 + test_random_below(&random, 3000));
        for (size_t i = 0; i < TEMPORARIES; i++) {
            if (temporaries[i])
                must_free(pool, temporaries[i]);
            temporaries[i] = NULL;
        }
        assert_ok(raffia_pool_trim(pool, 0, NULL));
        chunks += stats_of(pool).chunks;
    }
    for (size_t i = 0; i < RESULTS; i++)
        if (results[i])
            must_free(pool, results[i]);
    drop_pool(pool);
    return (double)chunks / JOBS;
}

static void b16_what_stays_is_kept_together_so_that_more_can_be_given_back(void **state)
{
    (void)state;
    const double without = chunks_held(false), with = chunks_held(true);
    print_message("%.2f chunks held without, %.2f with\n", without, with);
    assert_true(with < without * 0.75);
}

static void b16_a_pool_that_gives_nothing_back_does_without(void **state)
{
    (void)state;
    struct pool_plan plan = small_plan();
    plan.initial_bytes = plan.maximum_bytes = TEST_CHUNK;
    plan.flags = RAFFIA_POOL_ADAPTIVE | RAFFIA_POOL_FIXED;
    raffia_pool *pool = make_pool(&plan);
    assert_false(is_placed(pool, BRIEF_BYTES));
    drop_pool(pool);
}

static void b16_it_learns_with_guards_and_on_streams_too(void **state)
{
    (void)state;
    struct pool_plan plan = small_plan();
    plan.flags = RAFFIA_POOL_ADAPTIVE | RAFFIA_POOL_GUARD;
    raffia_pool *pool = make_pool(&plan);
    live_briefly(pool, BRIEF_BYTES, 1);
    assert_false(is_placed(pool, BRIEF_BYTES));
    drop_pool(pool);

    pool = make_adaptive_pool_of(TEST_CHUNK, TEST_MAXIMUM);
    for (int i = 0; i < MANY; i++) {
        void *block;
        assert_ok(raffia_pool_alloc_on(pool, NULL, BRIEF_BYTES, 0, &block));
        assert_ok(raffia_pool_free_on(pool, NULL, block));
    }
    assert_true(stats_of(pool).placed_low > 0);
    look(pool);
    assert_int_equal(stats_of(pool).brief_classes, 1);
    drop_pool(pool);
}

#define THREADS 4
#define ROUNDS  3000

static void *come_and_go(void *argument)
{
    raffia_pool *pool = argument;
    void *blocks[8] = {NULL};
    for (size_t i = 0; i < ROUNDS; i++) {
        void **block = &blocks[i * 5 % 8];
        if (*block && raffia_pool_free(pool, *block))
            return "a free was refused";
        *block = NULL;
        if (raffia_pool_alloc(pool, 100 + i * 7919 % OTHER_BYTES, 0, block))
            return "an allocation was refused";
    }
    for (size_t i = 0; i < 8; i++)
        if (raffia_pool_free(pool, blocks[i]))
            return "a free was refused";
    return NULL;
}

static void b16_threads_come_and_go_while_it_looks(void **state)
{
    (void)state;
    raffia_pool *pool = make_adaptive_pool_of(TEST_CHUNK, 8 * TEST_MAXIMUM);
    pthread_t threads[THREADS];
    void *wrong;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, come_and_go, pool), 0);
    for (int i = 0; i < 100; i++) {
        assert_ok(raffia_pool_trim(pool, 0, NULL));
        (void)stats_of(pool);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], &wrong);
        assert_null(wrong);
    }
    drop_pool(pool);
}

static void nothing_is_left_of_it(void **state)
{
    (void)state;
    const long memory = core_memory_live();
    raffia_pool *pool = make_adaptive_pool_of(TEST_CHUNK, TEST_MAXIMUM);
    void *block = must_alloc(pool, 100);
    raffia_pool_release(pool);
    must_free(pool, block); /* the last one takes the pool with it */
    assert_int_equal(core_memory_live(), memory);
    assert_true(sim_is_idle());
}

int main(void)
{
/* With stream order, and without. */
#define TEST(name)                                                                                 \
    cmocka_unit_test_setup(name, set_up_device), cmocka_unit_test_setup(name, set_up_plain_device)
    const struct CMUnitTest tests[] = {
        TEST(b16_what_nothing_is_known_of_goes_low),
        TEST(b16_sizes_that_are_gone_when_memory_is_given_back_go_anywhere),
        TEST(b16_a_pool_forgets_what_is_not_so_any_more),
        TEST(b16_a_size_that_is_both_stays_what_it_was),
        TEST(b16_large_blocks_are_no_part_of_it),
        TEST(b15_hints_overrule_it_and_teach_nothing),
        TEST(b16_no_more_are_placed_than_giving_memory_back_is_worth),
        TEST(addresses_that_are_no_block_teach_nothing),
        TEST(b16_wrong_guesses_refuse_nothing),
        TEST(b16_what_stays_is_kept_together_so_that_more_can_be_given_back),
        TEST(b16_a_pool_that_gives_nothing_back_does_without),
        TEST(b16_it_learns_with_guards_and_on_streams_too),
        TEST(b16_threads_come_and_go_while_it_looks),
        TEST(nothing_is_left_of_it),
    };
    return cmocka_run_group_tests_name("pool history", tests, NULL, NULL);
}
