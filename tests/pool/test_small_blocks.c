/* Pools with so many small blocks that these lie in slabs. */
#include "pool/arena.h"
#include "pool/pool_fixture.h"
#include "pool/stream_fixture.h"
#include "support/cmocka.h"
#include "support/random.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 60000, LARGEST = 4000, THREADS = 3, ROUNDS = 40000 };

#define POOL_BYTES  (512 * MIB)
#define CHUNK_BYTES (16 * MIB)

struct blocks {
    raffia_pool *pool;
    void *addresses[BLOCKS];
    size_t sizes[BLOCKS];
};

static raffia_pool *make_large_pool(size_t initial_bytes)
{
    struct pool_plan plan = small_plan();
    plan.initial_bytes = initial_bytes;
    plan.maximum_bytes = POOL_BYTES;
    plan.chunk_bytes = CHUNK_BYTES;
    return make_pool(&plan);
}

static struct blocks *fill(raffia_pool *pool)
{
    struct test_random random = {7};
    struct blocks *blocks = malloc(sizeof *blocks);
    assert_non_null(blocks);
    blocks->pool = pool;
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks->sizes[i] = 1 + test_random_below(&random, LARGEST);
        blocks->addresses[i] = must_alloc(pool, blocks->sizes[i]);
    }
    return blocks;
}

/* All but every n-th. */
static void free_most(struct blocks *blocks, size_t kept)
{
    for (size_t i = 0; i < BLOCKS; i++)
        if (i % kept) {
            must_free(blocks->pool, blocks->addresses[i]);
            blocks->addresses[i] = NULL;
        }
}

static void empty(struct blocks *blocks)
{
    for (size_t i = 0; i < BLOCKS; i++)
        if (blocks->addresses[i])
            must_free(blocks->pool, blocks->addresses[i]);
    drop_pool(blocks->pool);
    free(blocks);
}

/* A slot is what a block of its own cannot be: larger than its size in granules. */
static size_t count_slots(const struct blocks *blocks)
{
    size_t count = 0;
    for (size_t i = 0; i < BLOCKS; i++) {
        raffia_block block;
        if (!blocks->addresses[i])
            continue;
        assert_ok(raffia_pool_find(blocks->pool, blocks->addresses[i], &block));
        assert_ptr_equal(block.address, blocks->addresses[i]);
        assert_int_equal(block.requested_bytes, blocks->sizes[i]);
        assert_true(block.live && block.bytes >= block.requested_bytes);
        count += block.bytes - block.requested_bytes >= TEST_GRANULE;
    }
    return count;
}

struct seen {
    size_t blocks, bytes, free_bytes, at;
};

static bool see(void *context, const raffia_block *block)
{
    struct seen *seen = context;
    assert_true((uintptr_t)block->address >= seen->at);
    seen->at = (uintptr_t)block->address + block->bytes;
    seen->blocks += block->live;
    seen->bytes += block->live ? block->bytes : 0;
    seen->free_bytes += block->live ? 0 : block->bytes;
    return true;
}

static void expect_books_to_agree(raffia_pool *pool, size_t blocks)
{
    struct seen seen = {0};
    assert_ok(raffia_pool_check(pool));
    assert_ok(raffia_pool_walk(pool, see, &seen));
    const raffia_pool_stats stats = stats_of(pool);
    assert_int_equal(seen.blocks, blocks);
    assert_int_equal(stats.live_blocks, blocks);
    assert_int_equal(stats.in_use_bytes, seen.bytes);
    assert_int_equal(stats.free_bytes, seen.free_bytes);
    assert_int_equal(stats.reserved_bytes, seen.bytes + seen.free_bytes);
}

static void small_blocks_are_found_walked_and_counted(void **state)
{
    (void)state;
    struct blocks *blocks = fill(make_large_pool(0));
    assert_true(count_slots(blocks) > BLOCKS / 8);
    expect_books_to_agree(blocks->pool, BLOCKS);
    free_most(blocks, 10);
    expect_books_to_agree(blocks->pool, BLOCKS / 10);
    empty(blocks);
}

static void what_is_no_block_is_refused(void **state)
{
    (void)state;
    struct blocks *blocks = fill(make_large_pool(0));
    char *last = blocks->addresses[BLOCKS - 1];
    raffia_block block;
    assert_ok(raffia_pool_find(blocks->pool, last + 1, &block)); /* inside */
    assert_ptr_equal(block.address, last);
    assert_status(RAFFIA_ERROR_BAD_ADDRESS, raffia_pool_free(blocks->pool, last + 1));
    assert_error_mentions("inside the block");
    must_free(blocks->pool, last);
    assert_status(RAFFIA_ERROR_BAD_ADDRESS, raffia_pool_free(blocks->pool, last));
    assert_error_mentions("freed before");
    assert_status(RAFFIA_ERROR_BAD_ADDRESS, raffia_pool_resize(blocks->pool, last, 10));
    blocks->addresses[BLOCKS - 1] = NULL;
    expect_books_to_agree(blocks->pool, BLOCKS - 1);
    empty(blocks);
}

static void a_small_block_resizes_within_its_slot(void **state)
{
    (void)state;
    struct blocks *blocks = fill(make_large_pool(0));
    raffia_block block;
    for (size_t i = BLOCKS - 1000; i < BLOCKS; i++) {
        assert_ok(raffia_pool_find(blocks->pool, blocks->addresses[i], &block));
        assert_ok(raffia_pool_resize(blocks->pool, blocks->addresses[i], block.bytes));
        blocks->sizes[i] = 1;
        assert_ok(raffia_pool_resize(blocks->pool, blocks->addresses[i], 1));
    }
    assert_true(count_slots(blocks) > BLOCKS / 8);
    expect_books_to_agree(blocks->pool, BLOCKS);
    empty(blocks);
}

/* Whatever slabs are without blocks, no memory stays for their sake. */
static void a_trim_gives_all_back_but_what_has_blocks(void **state)
{
    (void)state;
    struct blocks *blocks = fill(make_large_pool(0));
    void *large = must_alloc(blocks->pool, POOL_BYTES / 2);
    free_most(blocks, BLOCKS);
    must_free(blocks->pool, large);
    size_t released;
    assert_ok(raffia_pool_trim(blocks->pool, 0, &released));
    assert_int_equal(stats_of(blocks->pool).reserved_bytes, CHUNK_BYTES);
    expect_books_to_agree(blocks->pool, 1);
    empty(blocks);
}

static void a_large_request_is_not_refused_for_empty_slabs(void **state)
{
    (void)state;
    struct blocks *blocks = fill(make_large_pool(POOL_BYTES));
    free_most(blocks, BLOCKS + 1);
    must_free(blocks->pool, blocks->addresses[0]);
    blocks->addresses[0] = must_alloc(blocks->pool, POOL_BYTES);
    assert_ok(raffia_pool_check(blocks->pool));
    empty(blocks);
}

static void small_blocks_wait_for_their_streams(void **state)
{
    (void)state;
    struct blocks *blocks = fill(make_large_pool(0));
    driver_stream stream = make_busy_stream();
    for (size_t i = BLOCKS / 2; i < BLOCKS; i++) {
        must_free_on(blocks->pool, stream, blocks->addresses[i]);
        assert_status(RAFFIA_ERROR_BAD_ADDRESS,
                      raffia_pool_free(blocks->pool, blocks->addresses[i]));
        blocks->addresses[i] = NULL;
    }
    assert_true(stats_of(blocks->pool).pending_blocks > 0);
    assert_ok(raffia_pool_check(blocks->pool));
    for (size_t i = BLOCKS / 2; i < BLOCKS * 3 / 4; i++) {
        blocks->sizes[i] = 1 + i % LARGEST;
        blocks->addresses[i] = must_alloc_on(blocks->pool, stream, blocks->sizes[i]);
    }
    assert_ok(raffia_pool_check(blocks->pool));
    (void)count_slots(blocks);
    drop_stream(stream);
    empty(blocks);
}

/* ---- threads -------------------------------------------------------------------------------- */

struct worker {
    raffia_pool *pool;
    uint64_t seed;
    pthread_t thread;
};

/* Blocks of any small size come and go at each of a thread's places. They are marked at both ends
 * with a value of the thread and place, which is looked at again before they are freed. */
static void *churn(void *argument)
{
    enum { KEPT = 2000 };
    struct worker *worker = argument;
    struct test_random random = {worker->seed};
    unsigned char *kept[KEPT] = {0};
    size_t sizes[KEPT] = {0};
    for (int i = 0; i < 1000; i++) /* a seat at an arena, as if others had been met */
        pool_arena_met(worker->pool, true);
    for (size_t i = 0; i < ROUNDS + KEPT; i++) {
        const size_t place = i < ROUNDS ? test_random_below(&random, KEPT) : i - ROUNDS;
        const unsigned char mark = (unsigned char)(worker->seed * 50 + place % 50);
        if (kept[place]) {
            if (kept[place][0] != mark || kept[place][sizes[place] - 1] != mark ||
                raffia_pool_free(worker->pool, kept[place]))
                return worker;
            kept[place] = NULL;
        } else if (i < ROUNDS) {
            void *address;
            sizes[place] = 1 + test_random_below(&random, LARGEST);
            if (raffia_pool_alloc(worker->pool, sizes[place], 0, &address))
                return worker;
            kept[place] = address;
            kept[place][0] = kept[place][sizes[place] - 1] = mark;
        }
    }
    return NULL;
}

static void threads_share_slabs_by_way_of_arenas(void **state)
{
    (void)state;
    struct worker workers[THREADS];
    struct blocks *blocks = fill(make_large_pool(POOL_BYTES));
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.pool = blocks->pool, .seed = i + 1};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, churn, &workers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        void *failed;
        pthread_join(workers[i].thread, &failed);
        assert_null(failed);
    }
    expect_books_to_agree(blocks->pool, BLOCKS);
    empty(blocks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(small_blocks_are_found_walked_and_counted, set_up_device),
        cmocka_unit_test_setup(what_is_no_block_is_refused, set_up_device),
        cmocka_unit_test_setup(a_small_block_resizes_within_its_slot, set_up_device),
        cmocka_unit_test_setup(a_trim_gives_all_back_but_what_has_blocks, set_up_device),
        cmocka_unit_test_setup(a_large_request_is_not_refused_for_empty_slabs, set_up_device),
        cmocka_unit_test_setup(small_blocks_wait_for_their_streams, set_up_device),
        cmocka_unit_test_setup(threads_share_slabs_by_way_of_arenas, set_up_plain_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
