/* Blocks in the order of streams. */
#include "pool/pool_fixture.h"
#include "pool/stream_fixture.h"
#include "support/cmocka.h"

#include <string.h>

static void
a11_a_free_on_a_stream_does_not_wait_and_is_pending_until_the_stream_is_there(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_CHUNK);
    driver_stream stream = make_busy_stream();
    void *block = must_alloc(pool, 1000);
    must_free_on(pool, stream, block);
    raffia_pool_stats stats = stats_of(pool);
    assert_int_equal(stats.pending_blocks, 1);
    assert_int_equal(stats.pending_bytes, 1024);
    assert_int_equal(stats.live_blocks, 0);
    assert_int_equal(stats.in_use_bytes, 0);
    assert_int_equal(stats.requested_bytes, 0);
    assert_int_equal(stats.free_bytes, TEST_CHUNK - 1024);
    assert_int_equal(stats.frees, 1);
    assert_ok(raffia_pool_check(pool));

    assert_ok(sim_stream_resume(0, stream));
    assert_ok(sim_driver.stream_wait(0, stream));
    drop_stream(stream);
    stats = stats_of(pool);
    assert_int_equal(stats.pending_blocks, 0);
    assert_int_equal(stats.pending_bytes, 0);
    assert_int_equal(stats.free_bytes, TEST_CHUNK);
    assert_ok(raffia_pool_free_on(pool, NULL, NULL));
    drop_pool(pool);
}

static bool note_pending(void *context, const raffia_block *block)
{
    *(size_t *)context += block->pending && !block->live ? block->bytes : 0;
    return true;
}

static void a_pending_block_is_nobodys(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_CHUNK);
    driver_stream stream = make_busy_stream();
    void *block = must_alloc(pool, 3 * KIB);
    must_free_on(pool, stream, block);
    raffia_block found;
    size_t walked = 0;
    assert_status(RAFFIA_ERROR_BAD_ADDRESS, raffia_pool_free(pool, block));
    assert_error_mentions("waits for its stream");
    assert_status(RAFFIA_ERROR_BAD_ADDRESS, raffia_pool_free_on(pool, NULL, block));
    assert_status(RAFFIA_ERROR_BAD_ADDRESS, raffia_pool_free_on(pool, stream, block));
    assert_status(RAFFIA_ERROR_BAD_ADDRESS, raffia_pool_find(pool, block, &found));
    assert_status(RAFFIA_ERROR_BAD_ADDRESS, raffia_pool_resize(pool, block, 1));
    assert_ok(raffia_pool_walk(pool, note_pending, &walked));
    assert_int_equal(walked, 3 * KIB);
    size_t released;
    assert_ok(raffia_pool_trim(pool, 0, &released)); /* the chunk is in use */
    assert_int_equal(released, 0);
    drop_stream(stream);
    assert_ok(raffia_pool_trim(pool, 0, &released));
    assert_int_equal(released, TEST_CHUNK);
    drop_pool(pool);
}

/* Whoever trims cannot name the stream. */
static void an_idle_stream_keeps_its_chunks_from_a_trim_until_it_is_named(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(0, TEST_CHUNK);
    driver_stream stream = make_busy_stream();
    size_t released;
    must_free_on(pool, stream, must_alloc_on(pool, stream, KIB));
    assert_ok(sim_stream_resume(0, stream));
    assert_ok(sim_driver.stream_wait(0, stream));
    for (int i = 0; i < 2; i++) {
        assert_ok(raffia_pool_trim(pool, 0, &released));
        assert_int_equal(released, 0);
    }
    assert_ok(raffia_stream_retire("sim:0", stream));
    assert_ok(sim_driver.stream_wait(0, stream));
    assert_ok(raffia_pool_trim(pool, 0, &released));
    assert_int_equal(released, TEST_CHUNK);
    assert_ok(sim_driver.stream_destroy(0, stream));
    drop_pool(pool);
}

static void a_captured_stream_gets_what_the_pool_grows_by(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(TEST_CHUNK, 2 * TEST_CHUNK);
    driver_stream stream = make_busy_stream();
    void *first = must_alloc_on(pool, stream, TEST_CHUNK);
    must_free_on(pool, stream, first);
    assert_ok(sim_stream_capture_begin(0, stream));
    void *second = must_alloc_on(pool, stream, TEST_CHUNK); /* waits for no stream */
    assert_ptr_not_equal(second, first);
    assert_int_equal(stats_of(pool).misses, 1);
    assert_ok(sim_stream_capture_end(0, stream, false));
    must_free_on(pool, stream, second);
    drop_stream(stream);
    drop_pool(pool);
}

static void a11_the_same_stream_has_its_blocks_back_at_once_without_driver_calls(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(TEST_MAXIMUM, TEST_MAXIMUM);
    driver_stream stream = make_busy_stream();
    static const size_t sizes[] = {2, 64, 10, 33, 5, 48, 20, 7};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    void *blocks[SIZES];
    for (int i = 0; i < SIZES; i++)
        blocks[i] = must_alloc_on(pool, stream, sizes[i] * KIB);
    for (int i = 0; i < SIZES; i++)
        must_free_on(pool, stream, blocks[i]);
    const long events = sim_calls("event_record"), waits = sim_calls("stream_wait_event"),
               queries = sim_calls("event_done"), made = sim_calls("event_create");
    for (int round = 0; round < 1000; round++) {
        const int i = round * 5 % SIZES;
        assert_ptr_equal(must_alloc_on(pool, stream, sizes[i] * KIB - (size_t)round % 200),
                         blocks[i]);
        must_free_on(pool, stream, blocks[i]);
    }
    assert_int_equal(sim_calls("event_record"), events);
    assert_int_equal(sim_calls("event_create"), made);
    assert_int_equal(sim_calls("event_done"), queries);
    assert_int_equal(sim_calls("stream_wait_event"), waits);
    assert_int_equal(sim_calls("stream_wait"), 0);
    assert_ok(raffia_pool_check(pool));
    drop_stream(stream);
    drop_pool(pool);
}

static void a_block_that_is_handed_out_again_has_the_size_asked_for(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_CHUNK);
    driver_stream stream = make_busy_stream();
    void *block = must_alloc_on(pool, stream, 16 * KIB);
    must_free_on(pool, stream, block);
    /* Much smaller requests leave it alone, those that nearly fill it do not. */
    void *other = must_alloc_on(pool, stream, 8 * KIB);
    assert_ptr_not_equal(other, block);
    assert_ptr_equal(must_alloc_on(pool, stream, 15 * KIB), block);
    raffia_block found;
    assert_ok(raffia_pool_find(pool, block, &found));
    assert_int_equal(found.requested_bytes, 15 * KIB);
    assert_int_equal(found.bytes, 16 * KIB);
    assert_int_equal(stats_of(pool).requested_bytes, 23 * KIB);
    must_free_on(pool, stream, block);
    must_free_on(pool, stream, other);
    /* An alignment that the block does not have is not served by it. */
    void *aligned;
    assert_ok(raffia_pool_alloc_on(pool, stream, 8 * KIB, 64 * KIB, &aligned));
    assert_int_equal((uintptr_t)aligned % (64 * KIB), 0);
    must_free_on(pool, stream, aligned);
    drop_stream(stream);
    drop_pool(pool);
}

static void a11_nobody_else_gets_a_block_before_its_stream_is_there(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(TEST_CHUNK, 2 * TEST_CHUNK);
    driver_stream a = make_busy_stream(), b = make_stream();
    void *block = must_alloc_on(pool, a, TEST_CHUNK);
    assert_ok(sim_driver.fill(0, a, block, 1, TEST_CHUNK));
    must_free_on(pool, a, block);
    char *plain = must_alloc(pool, TEST_CHUNK / 2); /* grows rather than wait */
    void *behind = must_alloc_on(pool, b, TEST_CHUNK / 2);
    assert_true(plain != block && behind != block);
    memset(plain, 7, TEST_CHUNK / 2);
    assert_int_equal(stats_of(pool).chunks, 2);
    drop_stream(a);
    for (size_t i = 0; i < TEST_CHUNK / 2; i++)
        assert_int_equal(plain[i], 7);
    assert_ptr_equal(must_alloc(pool, TEST_CHUNK), block);
    must_free(pool, block);
    must_free(pool, plain);
    must_free_on(pool, b, behind);
    drop_stream(b);
    drop_pool(pool);
}

/* What the stream did with the block before is not over because its new owner did nothing. */
static void a_plain_free_of_a_block_that_its_stream_still_uses_leaves_it_pending(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_CHUNK);
    driver_stream stream = make_busy_stream();
    void *block = must_alloc_on(pool, stream, TEST_CHUNK / 2), *out = NULL;
    assert_ok(sim_driver.fill(0, stream, block, 1, TEST_CHUNK / 2));
    for (int closed = 0; closed < 2; closed++) {
        must_free_on(pool, stream, block);
        if (closed)
            assert_int_equal(stats_of(pool).pending_blocks, 1); /* and the batch is marked */
        assert_ptr_equal(must_alloc_on(pool, stream, TEST_CHUNK / 2), block);
        must_free(pool, block);
        assert_int_equal(stats_of(pool).pending_blocks, 1);
        out = must_alloc(pool, TEST_CHUNK / 2);
        assert_ptr_not_equal(out, block);
        must_free(pool, out);
        assert_ptr_equal(must_alloc_on(pool, stream, TEST_CHUNK / 2), block);
        assert_ok(raffia_pool_check(pool));
    }
    /* Nor may a part be cut off meanwhile. */
    assert_ok(sim_stream_resume(0, stream));
    assert_ok(raffia_pool_resize(pool, block, 1000));
    size_t left;
    assert_ok(sim_stream_pending(0, stream, &left));
    assert_int_equal(left, 0);
    assert_ok(raffia_pool_resize(pool, block, 2000));
    must_free(pool, block);
    assert_int_equal(stats_of(pool).pending_blocks, 0);
    drop_stream(stream);
    drop_pool(pool);
}

static void a_block_with_a_past_can_grow(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_CHUNK);
    driver_stream stream = make_busy_stream();
    void *block = must_alloc_on(pool, stream, KIB);
    must_free_on(pool, stream, block);
    assert_ptr_equal(must_alloc_on(pool, stream, KIB), block);
    assert_ok(raffia_pool_resize(pool, block, 4 * KIB)); /* does not wait */
    assert_ok(raffia_pool_check(pool));
    must_free_on(pool, stream, block);
    assert_int_equal(stats_of(pool).pending_bytes, 4 * KIB);
    assert_ok(raffia_pool_check(pool));
    drop_stream(stream);
    drop_pool(pool);
}

static void many_frees_are_marked_by_few_events(void **state)
{
    (void)state;
    enum { BLOCKS = 1000 };
    raffia_pool *pool = make_pool_of(TEST_MAXIMUM, TEST_MAXIMUM);
    driver_stream stream = make_busy_stream();
    static void *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = must_alloc(pool, 256);
    for (int i = 0; i < BLOCKS; i++)
        must_free_on(pool, stream, blocks[i]);
    assert_int_equal(sim_calls("event_record"), BLOCKS / 256);
    assert_int_equal(stats_of(pool).pending_blocks, BLOCKS);
    assert_int_equal(sim_calls("event_record"), BLOCKS / 256);
    must_free(pool, must_alloc_on(pool, stream, KIB)); /* its next call */
    assert_int_equal(sim_calls("event_record"), BLOCKS / 256 + 1);
    must_free(pool, must_alloc_on(pool, stream, KIB)); /* nobody has asked since */
    assert_int_equal(sim_calls("event_record"), BLOCKS / 256 + 1);
    assert_ok(raffia_pool_check(pool));
    /* Half of the pool closes a batch as well. */
    void *large = must_alloc_on(pool, stream, TEST_MAXIMUM / 2);
    must_free_on(pool, stream, large);
    assert_int_equal(sim_calls("event_record"), BLOCKS / 256 + 2);
    drop_stream(stream);
    drop_pool(pool);
}

static void a11_a_stream_that_is_captured_is_left_alone(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_CHUNK);
    driver_stream stream = make_stream();
    void *before = must_alloc_on(pool, stream, TEST_CHUNK / 8),
         *during = must_alloc_on(pool, stream, TEST_CHUNK / 8);
    assert_ok(sim_stream_hold(0, stream));
    assert_ok(sim_stream_delay(0, stream, 1));
    must_free_on(pool, stream, before);
    assert_ok(sim_stream_capture_begin(0, stream));
    const long events = sim_calls("event_record");
    must_free_on(pool, stream, during);
    void *fresh = must_alloc_on(pool, stream, TEST_CHUNK / 8);
    assert_true(fresh != before && fresh != during);
    assert_int_equal(stats_of(pool).pending_blocks, 2);
    void *none;
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY,
                  raffia_pool_alloc(pool, TEST_CHUNK / 4 * 3, 0, &none));
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY,
                  raffia_pool_alloc_on(pool, stream, TEST_CHUNK / 4 * 3, 0, &none));
    assert_error_mentions("freed on streams");
    assert_status(RAFFIA_ERROR_BUSY, raffia_stream_retire("sim:0", stream));
    assert_error_mentions("captured");
    assert_int_equal(sim_calls("event_record"), events);
    assert_ok(raffia_pool_check(pool));

    assert_ok(sim_stream_capture_end(0, stream, false));
    assert_int_equal(stats_of(pool).pending_blocks, 2);
    must_free(pool, fresh);
    must_free(pool, must_alloc_on(pool, stream, KIB)); /* now they are marked */
    assert_int_equal(sim_calls("event_record"), events + 1);
    drop_stream(stream);
    assert_int_equal(stats_of(pool).pending_blocks, 0);
    drop_pool(pool);
}

/* It may have been destroyed since. */
static void nobody_names_a_stream_but_its_own_calls(void **state)
{
    (void)state;
    enum { ROUNDS = 3 };
    raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_CHUNK);
    driver_stream stream = make_stream();
    for (int round = 0; round < ROUNDS; round++) {
        void *block = must_alloc_on(pool, stream, KIB), *all;
        must_free_on(pool, stream, block);
        const long ids = sim_calls("stream_id"), captures = sim_calls("stream_is_capturing"),
                   records = sim_calls("event_record"), waits = sim_calls("device_wait");
        assert_int_equal(stats_of(pool).pending_blocks, 1);
        assert_ok(raffia_pool_trim(pool, TEST_CHUNK, NULL));
        assert_ok(raffia_pool_check(pool));
        all = must_alloc(pool, TEST_CHUNK); /* waits for the device rather than fail */
        assert_int_equal(sim_calls("device_wait"), waits + 1);
        assert_int_equal(sim_calls("stream_id"), ids);
        assert_int_equal(sim_calls("stream_is_capturing"), captures);
        assert_int_equal(sim_calls("event_record"), records);
        must_free(pool, all);
    }
    drop_stream(stream);
    drop_pool(pool);
}

static void a_stream_that_needs_its_own_pieces_waits_for_its_own_event(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_CHUNK);
    driver_stream stream = make_stream();
    assert_ok(sim_stream_delay(0, stream, 2000));
    must_free_on(pool, stream, must_alloc_on(pool, stream, KIB));
    void *all = must_alloc_on(pool, stream, TEST_CHUNK);
    assert_int_equal(sim_calls("device_wait"), 0);
    must_free_on(pool, stream, all);
    drop_stream(stream);
    drop_pool(pool);
}

static void the_default_stream_is_marked_by_anybody(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_CHUNK);
    must_free_on(pool, NULL, must_alloc_on(pool, NULL, KIB));
    assert_ok(sim_driver.stream_wait(0, NULL));
    const long records = sim_calls("event_record");
    (void)stats_of(pool);
    assert_int_equal(sim_calls("event_record"), records + 1);
    must_free(pool, must_alloc(pool, TEST_CHUNK));
    assert_int_equal(sim_calls("device_wait"), 0);
    drop_pool(pool);
}

static void an_unknown_stream_leaves_the_block_live(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_CHUNK);
    driver_stream stream = make_stream();
    void *block = must_alloc(pool, 100), *none = NULL;
    sim_fail_next("stream_id", RAFFIA_ERROR_DRIVER, RAFFIA_REASON_NONE);
    assert_status(RAFFIA_ERROR_DRIVER, raffia_pool_free_on(pool, stream, block));
    assert_int_equal(stats_of(pool).requested_bytes, 100);
    sim_fail_next("stream_id", RAFFIA_ERROR_DRIVER, RAFFIA_REASON_NONE);
    assert_status(RAFFIA_ERROR_DRIVER, raffia_pool_alloc_on(pool, stream, 1, 0, &none));
    sim_fail_next("stream_is_capturing", RAFFIA_ERROR_DRIVER, RAFFIA_REASON_NONE);
    assert_status(RAFFIA_ERROR_DRIVER, raffia_pool_alloc_on(pool, stream, 1, 0, &none));
    must_free_on(pool, stream, block);
    drop_stream(stream);
    drop_pool(pool);
}

/* As pinned memory, which the CPU fills in no stream's order (SPEC A6). */
static void a6_memory_that_the_cpu_fills_is_reused_only_when_its_event_has_passed(void **state)
{
    (void)state;
    struct driver pinned = sim_driver;
    pinned.capabilities |= DRIVER_REUSE_BY_EVENT;
    struct pool_plan plan = small_plan();
    plan.device.driver = &pinned;
    plan.initial_bytes = plan.maximum_bytes = TEST_CHUNK;
    raffia_pool *pool = make_pool(&plan);
    driver_stream stream = make_busy_stream(), other = make_stream();
    char *block = must_alloc_on(pool, stream, TEST_CHUNK / 2);
    must_free_on(pool, stream, block);
    for (int i = 0; i < 2; i++) {
        void *fresh = must_alloc_on(pool, i ? other : stream, TEST_CHUNK / 2);
        assert_ptr_not_equal(fresh, block);
        must_free(pool, fresh);
    }
    assert_ok(raffia_pool_check(pool));
    assert_ok(sim_stream_resume(0, stream));
    assert_ok(sim_stream_delay(0, stream, 2000));
    assert_ok(sim_driver.fill(0, stream, block, 1, 100));
    must_free_on(pool, stream, must_alloc_on(pool, stream, TEST_CHUNK / 2));
    char *all = must_alloc_on(pool, stream, TEST_CHUNK); /* waits */
    size_t left;
    assert_ok(sim_stream_pending(0, stream, &left));
    assert_int_equal(left, 0);
    must_free_on(pool, stream, all);
    drop_stream(stream);
    drop_stream(other);
    drop_pool(pool);
}

static void damage_is_told_when_a_stream_gets_there(void **state)
{
    (void)state;
    struct pool_plan plan = small_plan();
    plan.flags = RAFFIA_POOL_GUARD;
    raffia_pool *pool = make_pool(&plan);
    char *block = must_alloc(pool, 100);
    assert_ok(sim_stream_delay(0, NULL, 2000));
    assert_ok(sim_driver.fill(0, NULL, block, 1, 101));
    assert_status(RAFFIA_ERROR_CORRUPT, raffia_pool_free_on(pool, NULL, block));
    assert_error_mentions("the block of 100 bytes");
    drop_pool(pool);
}

static void a_device_without_streams_takes_only_null(void **state)
{
    (void)state;
    fresh_device(&(struct sim_config){.synchronous = true});
    raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_CHUNK);
    void *block = NULL;
    int not_a_stream;
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT,
                  raffia_pool_alloc_on(pool, &not_a_stream, 1, 0, &block));
    assert_error_mentions("no streams");
    assert_null(block);
    assert_ok(raffia_pool_alloc_on(pool, NULL, 1, 0, &block));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, raffia_pool_free_on(pool, &not_a_stream, block));
    assert_ok(raffia_pool_free_on(pool, NULL, block));
    drop_pool(pool);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, set_up_device)
    const struct CMUnitTest tests[] = {
        TEST(a11_a_free_on_a_stream_does_not_wait_and_is_pending_until_the_stream_is_there),
        TEST(a_pending_block_is_nobodys),
        TEST(an_idle_stream_keeps_its_chunks_from_a_trim_until_it_is_named),
        TEST(a_captured_stream_gets_what_the_pool_grows_by),
        TEST(a11_the_same_stream_has_its_blocks_back_at_once_without_driver_calls),
        TEST(a_block_that_is_handed_out_again_has_the_size_asked_for),
        TEST(a11_nobody_else_gets_a_block_before_its_stream_is_there),
        TEST(a_plain_free_of_a_block_that_its_stream_still_uses_leaves_it_pending),
        TEST(a_block_with_a_past_can_grow),
        TEST(many_frees_are_marked_by_few_events),
        TEST(a11_a_stream_that_is_captured_is_left_alone),
        TEST(nobody_names_a_stream_but_its_own_calls),
        TEST(a_stream_that_needs_its_own_pieces_waits_for_its_own_event),
        TEST(the_default_stream_is_marked_by_anybody),
        TEST(an_unknown_stream_leaves_the_block_live),
        TEST(a6_memory_that_the_cpu_fills_is_reused_only_when_its_event_has_passed),
        TEST(damage_is_told_when_a_stream_gets_there),
        TEST(a_device_without_streams_takes_only_null),
    };
    return cmocka_run_group_tests_name("pool streams", tests, NULL, NULL);
}
