/* Blocks that go back and forth between a stream and its caller: what is on record of them stays,
 * and must tell the truth about each state. */
#include "core/fault.h"
#include "pool/order.h"
#include "pool/pool_fixture.h"
#include "pool/stream_fixture.h"
#include "support/cmocka.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

/* A block that its stream had back: it has a past there. */
static void *take_back(raffia_pool *pool, driver_stream stream, size_t bytes)
{
    void *block = must_alloc_on(pool, stream, bytes);
    must_free_on(pool, stream, block);
    assert_ptr_equal(must_alloc_on(pool, stream, bytes), block);
    return block;
}

/* Has an event recorded behind what the stream has freed. */
static void mark(raffia_pool *pool, driver_stream stream)
{
    const long records = sim_calls("event_record");
    (void)stats_of(pool); /* leaves word that it is wanted */
    must_free(pool, must_alloc_on(pool, stream, 100));
    assert_int_equal(sim_calls("event_record"), records + 1);
}

/* ---- states --------------------------------------------------------------------------------- */

static bool count_bytes(void *context, const raffia_block *block)
{
    size_t *bytes = context; /* live, pending */
    bytes[0] += block->live ? block->requested_bytes : 0;
    bytes[1] += block->pending ? block->bytes : 0;
    return true;
}

static void assert_bytes(raffia_pool *pool, size_t requested, size_t pending)
{
    size_t walked[2] = {0, 0};
    const raffia_pool_stats stats = stats_of(pool);
    assert_ok(raffia_pool_walk(pool, count_bytes, walked));
    assert_int_equal(walked[0], requested);
    assert_int_equal(walked[1], pending);
    assert_int_equal(stats.requested_bytes, requested);
    assert_int_equal(stats.pending_bytes, pending);
    assert_ok(raffia_pool_check(pool));
}

static void a_block_is_what_it_was_made_last(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_CHUNK);
    driver_stream stream = make_busy_stream();
    void *block = must_alloc_on(pool, stream, 8 * KIB);
    raffia_block found;
    for (int round = 0; round < 5; round++) {
        const size_t requested = 8 * KIB - (size_t)round;
        must_free_on(pool, stream, block);
        assert_bytes(pool, 0, 8 * KIB);
        assert_status(RAFFIA_ERROR_BAD_ADDRESS, raffia_pool_free_on(pool, stream, block));
        assert_error_mentions("waits for its stream");
        assert_status(RAFFIA_ERROR_BAD_ADDRESS, raffia_pool_free_on(pool, NULL, block));
        assert_status(RAFFIA_ERROR_BAD_ADDRESS, raffia_pool_free(pool, block));
        assert_status(RAFFIA_ERROR_BAD_ADDRESS, raffia_pool_resize(pool, block, 16 * KIB));
        assert_status(RAFFIA_ERROR_BAD_ADDRESS, raffia_pool_find(pool, block, &found));

        assert_ptr_equal(must_alloc_on(pool, stream, requested), block);
        assert_bytes(pool, requested, 0);
        assert_ok(raffia_pool_find(pool, block, &found));
        assert_int_equal(found.requested_bytes, requested);
        assert_status(RAFFIA_ERROR_BAD_ADDRESS,
                      raffia_pool_free_on(pool, stream, (char *)block + TEST_GRANULE));
        assert_error_mentions("lies inside");
        if (round % 2) {
            must_free(pool, block); /* in no order: it waits for what the stream did before */
            assert_bytes(pool, 0, 8 * KIB);
            assert_status(RAFFIA_ERROR_BAD_ADDRESS, raffia_pool_free(pool, block));
            assert_ptr_equal(must_alloc_on(pool, stream, requested), block);
        }
    }
    must_free_on(pool, stream, block);
    drop_stream(stream);
    drop_pool(pool);
}

static void a_block_that_grew_is_found_by_its_new_size(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_CHUNK);
    driver_stream stream = make_busy_stream();
    void *block = take_back(pool, stream, 4 * KIB);
    assert_ok(raffia_pool_resize(pool, block, 64 * KIB));
    must_free_on(pool, stream, block);
    assert_bytes(pool, 0, 64 * KIB);
    void *small = must_alloc_on(pool, stream, 4 * KIB);
    assert_ptr_not_equal(small, block);
    assert_ptr_equal(must_alloc_on(pool, stream, 60 * KIB), block);
    must_free_on(pool, stream, block);
    must_free_on(pool, stream, small);
    drop_stream(stream);
    drop_pool(pool);
}

/* Nobody can wait for a stream that is being captured. */
static void a_resize_that_cuts_nothing_off_waits_for_nobody(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_CHUNK);
    driver_stream stream = make_stream();
    void *block = take_back(pool, stream, 4 * KIB);
    assert_ok(sim_stream_capture_begin(0, stream));
    assert_status(RAFFIA_ERROR_BUSY, raffia_pool_resize(pool, block, KIB));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, pool_resize_sized(pool, block, 4 * KIB - 1, KIB));
    assert_error_mentions("as a block of");
    assert_ok(raffia_pool_resize(pool, block, 4 * KIB - TEST_GRANULE + 1));
    assert_bytes(pool, 4 * KIB - TEST_GRANULE + 1, 0);
    assert_status(RAFFIA_ERROR_BUSY, raffia_pool_resize(pool, block, 0));
    assert_ok(sim_stream_capture_end(0, stream, false));
    assert_ok(raffia_pool_resize(pool, block, 0));
    assert_bytes(pool, TEST_GRANULE, 0);
    must_free_on(pool, stream, block);
    drop_stream(stream);
    drop_pool(pool);
}

static void a_free_of_another_size_is_refused_on_the_short_way_too(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_CHUNK);
    driver_stream stream = make_busy_stream();
    void *block = take_back(pool, stream, 4 * KIB - 5);
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, pool_free_sized(pool, stream, block, 4 * KIB));
    assert_bytes(pool, 4 * KIB - 5, 0);
    assert_ok(pool_free_sized(pool, stream, block, 4 * KIB - 5));
    assert_bytes(pool, 0, 4 * KIB);
    drop_stream(stream);
    drop_pool(pool);
}

static void a_block_has_no_past_once_its_batch_has_passed(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_CHUNK);
    driver_stream stream = make_busy_stream();
    void *block = take_back(pool, stream, 4 * KIB), *other = take_back(pool, stream, 16 * KIB);
    mark(pool, stream);
    assert_ok(sim_stream_resume(0, stream));
    assert_ok(sim_driver.stream_wait(0, stream));
    assert_int_equal(stats_of(pool).live_blocks, 2); /* and looks whether it has passed */
    assert_ok(raffia_pool_check(pool));
    must_free(pool, block);
    assert_bytes(pool, 16 * KIB, 0);
    must_free_on(pool, stream, other); /* as any block that was never on a stream */
    assert_bytes(pool, 0, 16 * KIB);
    drop_stream(stream);
    drop_pool(pool);
}

static void chunks_with_waiting_blocks_stay(void **state)
{
    (void)state;
    struct pool_plan plan = small_plan();
    plan.flags = RAFFIA_POOL_REMAPPABLE;
    plan.maximum_bytes = 4 * TEST_CHUNK;
    plan.address_bytes = 6 * TEST_CHUNK;
    raffia_pool *pool = make_pool(&plan);
    driver_stream stream = make_busy_stream();
    void *blocks[4];
    size_t released;
    for (int i = 0; i < 4; i++)
        blocks[i] = must_alloc_on(pool, stream, TEST_CHUNK);
    for (int i = 1; i < 4; i += 2) {
        must_free_on(pool, stream, blocks[i]);
        assert_ptr_equal(must_alloc_on(pool, stream, TEST_CHUNK), blocks[i]);
        must_free_on(pool, stream, blocks[i]);
    }
    must_free(pool, blocks[0]);
    must_free(pool, blocks[2]);
    assert_bytes(pool, 0, 2 * TEST_CHUNK);
    /* Those that are free are put together around those that wait. */
    void *large = must_alloc(pool, 2 * TEST_CHUNK);
    assert_int_equal(stats_of(pool).remaps, 1);
    assert_bytes(pool, 2 * TEST_CHUNK, 2 * TEST_CHUNK);
    must_free(pool, large);
    assert_ok(raffia_pool_trim(pool, 0, &released));
    assert_int_equal(released, 2 * TEST_CHUNK);
    for (int i = 3; i > 0; i -= 2) {
        assert_ptr_equal(must_alloc_on(pool, stream, TEST_CHUNK), blocks[i]);
        assert_ok(sim_driver.fill(0, stream, blocks[i], 1, TEST_CHUNK));
    }
    must_free_on(pool, stream, blocks[1]);
    must_free_on(pool, stream, blocks[3]);
    drop_stream(stream);
    drop_pool(pool);
}

/* ---- which stream it is --------------------------------------------------------------------- */

static void a11_a_pair_on_one_stream_asks_who_it_is_once(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_CHUNK);
    driver_stream stream = make_busy_stream();
    void *block = take_back(pool, stream, 4 * KIB);
    const long ids = sim_calls("stream_id"), captures = sim_calls("stream_is_capturing");
    for (int round = 0; round < 100; round++) {
        must_free_on(pool, stream, block);
        assert_ptr_equal(must_alloc_on(pool, stream, 4 * KIB), block);
    }
    assert_int_equal(sim_calls("stream_id"), ids + 100);
    assert_int_equal(sim_calls("stream_is_capturing"), captures + 100);
    /* Default streams are other ones in other threads. */
    must_free_on(pool, stream, block);
    void *on_default = take_back(pool, NULL, 32 * KIB);
    const long before = sim_calls("stream_id");
    must_free_on(pool, NULL, on_default);
    assert_int_equal(sim_calls("stream_id"), before + 1);
    drop_stream(stream);
    drop_pool(pool);
}

/* The stream that a block was handed out on is destroyed, and the next one has its handle. What is
 * freed under that name must not become the new one's, nor free with it. */
static void a11_a_handle_that_changed_hands_gives_no_block_away(void **state)
{
    (void)state;
    enum { SIZE = 16 * KIB };
    raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_CHUNK);
    driver_stream a = make_stream(), keeper = make_busy_stream();
    char *block = take_back(pool, a, SIZE);
    driver_event gate = begin_behind(keeper, a);
    assert_ok(sim_driver.fill(0, a, block, 1, SIZE));
    (void)stats_of(pool); /* leaves word that an event behind a is wanted */
    assert_ok(sim_driver.stream_destroy(0, a));
    driver_stream b = make_stream();
    assert_ptr_equal(b, a);

    /* It is taken for a's, which is not marked by an event of b's. */
    const long records = sim_calls("event_record");
    must_free_on(pool, b, block);
    assert_int_equal(sim_calls("event_record"), records);
    void *other = must_alloc_on(pool, b, SIZE);
    assert_ptr_not_equal(other, block);
    must_free_on(pool, b, other);
    (void)stats_of(pool);
    must_free(pool, must_alloc_on(pool, b, SIZE / 2)); /* marks b */
    assert_int_equal(sim_calls("event_record"), records + 1);
    assert_ok(sim_driver.stream_wait(0, b));
    assert_int_equal(stats_of(pool).pending_blocks, 1);
    assert_ok(raffia_stream_retire("sim:0", b));
    assert_int_equal(stats_of(pool).pending_blocks, 1);
    assert_int_equal(block[0], 0);

    assert_ok(sim_stream_resume(0, keeper));
    char *all = must_alloc(pool, TEST_CHUNK); /* waits for the device */
    assert_int_equal(block[SIZE - 1], 1);
    must_free(pool, all);
    assert_ok(sim_driver.event_destroy(0, gate));
    drop_stream(keeper);
    drop_stream(b);
    drop_pool(pool);
}

/* Once b has freed anything, a is known to be gone. */
static void a_stream_whose_handle_is_anothers_is_not_taken_for_it(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_CHUNK);
    driver_stream a = make_stream();
    void *block = take_back(pool, a, 16 * KIB), *other;
    assert_ok(sim_driver.stream_destroy(0, a));
    driver_stream b = make_stream();
    assert_ptr_equal(b, a);
    must_free_on(pool, b, must_alloc_on(pool, b, KIB));
    const long ids = sim_calls("stream_id");
    must_free_on(pool, b, block);
    assert_int_equal(sim_calls("stream_id"), ids + 1);
    other = must_alloc_on(pool, b, 16 * KIB); /* b does not come behind a */
    assert_ptr_not_equal(other, block);
    must_free_on(pool, b, other);
    assert_ok(raffia_pool_check(pool));
    drop_stream(b);
    pool_order_wait_unmarked(pool); /* of a, that went without a word */
    drop_pool(pool);
}

/* A batch is marked in the call that fills it, which has to know the stream. */
static void a_stream_that_cannot_be_asked_is_marked_later(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_CHUNK);
    driver_stream a = make_busy_stream();
    void *block = take_back(pool, a, TEST_CHUNK / 2);
    const long records = sim_calls("event_record");
    sim_fail_next("stream_id", RAFFIA_ERROR_DRIVER, RAFFIA_REASON_NONE);
    must_free_on(pool, a, block); /* half of the pool */
    assert_int_equal(sim_calls("event_record"), records);
    assert_ptr_equal(must_alloc_on(pool, a, TEST_CHUNK / 2), block);
    must_free_on(pool, a, block);
    assert_int_equal(sim_calls("event_record"), records + 1);
    drop_stream(a);
    drop_pool(pool);
}

/* ---- without memory ------------------------------------------------------------------------- */

struct freeing {
    raffia_pool *pool;
    driver_stream stream;
    void *block;
    raffia_status status;
};

static void *free_on(void *argument)
{
    struct freeing *freeing = argument;
    freeing->status = raffia_pool_free_on(freeing->pool, freeing->stream, freeing->block);
    return NULL;
}

/* It waits for its stream in the call; meanwhile the batch that it was taken from may pass. */
static void a_free_without_memory_hides_the_block_until_it_is_done(void **state)
{
    (void)state;
    for (int passes = 0; passes < 2; passes++) {
        fresh_device(NULL);
        raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_CHUNK);
        driver_stream a = make_busy_stream(), b = make_busy_stream();
        struct freeing freeing = {pool, b, take_back(pool, a, 16 * KIB), RAFFIA_OK};
        mark(pool, a);
        pthread_t thread;
        const long waits = sim_calls("stream_wait");
        core_fault_arm(2); /* after the question for its id: the record of b */
        assert_int_equal(pthread_create(&thread, NULL, free_on, &freeing), 0);
        for (int i = 0; i < 100000 && sim_calls("stream_wait") == waits; i++)
            usleep(100);
        assert_string_equal(core_fault_disarm(), "calloc");
        assert_status(RAFFIA_ERROR_BAD_ADDRESS, raffia_pool_free(pool, freeing.block));
        assert_error_mentions("waits for its stream");
        assert_status(RAFFIA_ERROR_BAD_ADDRESS, raffia_pool_free_on(pool, a, freeing.block));
        assert_status(RAFFIA_ERROR_BAD_ADDRESS, raffia_pool_resize(pool, freeing.block, 100));
        if (passes) {
            assert_ok(sim_stream_resume(0, a));
            assert_ok(sim_driver.stream_wait(0, a));
        }
        assert_bytes(pool, 0, 16 * KIB);
        assert_ok(sim_stream_resume(0, b));
        pthread_join(thread, NULL);
        assert_ok(freeing.status);
        assert_bytes(pool, 0, passes ? 0 : 16 * KIB); /* back in the batch, or free */
        drop_stream(a);
        drop_stream(b);
        drop_pool(pool);
    }
}

/* ---- threads -------------------------------------------------------------------------------- */

enum { THREADS = 4, SHARED = 3, ROUNDS = 400 };

struct sharer {
    raffia_pool *pool;
    driver_stream streams[SHARED];
    unsigned char value;
    unsigned char seen[ROUNDS];
};

/* Threads that use the same streams, the default one among them: a block goes from one to another
 * within the stream's order. */
static void *share(void *argument)
{
    struct sharer *sharer = argument;
    for (int round = 0; round < ROUNDS; round++) {
        driver_stream stream = sharer->streams[round % SHARED];
        const size_t bytes = KIB << (round % 5);
        char *block = must_alloc_on(sharer->pool, stream, bytes);
        assert_ok(sim_driver.fill(0, stream, block, sharer->value, bytes));
        assert_ok(
            sim_driver.copy(0, stream, &sharer->seen[round], block + (size_t)round % bytes, 1));
        if (round % 16 == 7) {
            assert_ok(sim_driver.stream_wait(0, stream));
            must_free(sharer->pool, block);
        } else {
            must_free_on(sharer->pool, stream, block);
        }
        if (round % 50 == 0)
            assert_ok(raffia_pool_check(sharer->pool));
        if (round % 3 == 1)
            (void)stats_of(sharer->pool);
    }
    return NULL;
}

static void a11_threads_share_streams(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_MAXIMUM);
    static struct sharer sharers[THREADS];
    pthread_t threads[THREADS];
    const driver_stream streams[SHARED] = {make_stream(), make_stream(), NULL};
    for (int i = 0; i < THREADS; i++) {
        sharers[i] = (struct sharer){
            pool, {streams[0], streams[1], streams[2]}, (unsigned char)(i + 1), {0}};
        assert_int_equal(pthread_create(&threads[i], NULL, share, &sharers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_ok(sim_driver.device_wait(0));
    for (int i = 0; i < THREADS; i++)
        for (int round = 0; round < ROUNDS; round++)
            assert_int_equal(sharers[i].seen[round], i + 1);
    drop_stream(streams[0]);
    drop_stream(streams[1]);
    drop_pool(pool);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, set_up_device)
    const struct CMUnitTest tests[] = {
        TEST(a_block_is_what_it_was_made_last),
        TEST(a_block_that_grew_is_found_by_its_new_size),
        TEST(a_resize_that_cuts_nothing_off_waits_for_nobody),
        TEST(a_free_of_another_size_is_refused_on_the_short_way_too),
        TEST(a_block_has_no_past_once_its_batch_has_passed),
        TEST(chunks_with_waiting_blocks_stay),
        TEST(a11_a_pair_on_one_stream_asks_who_it_is_once),
        TEST(a11_a_handle_that_changed_hands_gives_no_block_away),
        TEST(a_stream_whose_handle_is_anothers_is_not_taken_for_it),
        TEST(a_stream_that_cannot_be_asked_is_marked_later),
        TEST(a_free_without_memory_hides_the_block_until_it_is_done),
        TEST(a11_threads_share_streams),
    };
    return cmocka_run_group_tests_name("back and forth on streams", tests, NULL, NULL);
}
