/* Several streams: memory that changes streams, and streams that end. */
#include "pool/pool_fixture.h"
#include "pool/stream_fixture.h"
#include "support/cmocka.h"
#include "support/fault_loop.h"

#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void must_fill(driver_stream stream, void *block, unsigned char value, size_t bytes)
{
    assert_ok(sim_driver.fill(0, stream, block, value, bytes));
}

static size_t work_left(driver_stream stream)
{
    size_t left;
    assert_ok(sim_stream_pending(0, stream, &left));
    return left;
}

/* ---- between streams ------------------------------------------------------------------------ */

static void a11_a_stream_that_finds_nothing_waits_for_another_on_the_device(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_CHUNK);
    driver_stream a = make_busy_stream(), b = make_stream();
    char *block = must_alloc_on(pool, a, TEST_CHUNK), seen = 0;
    must_fill(a, block, 1, TEST_CHUNK);
    must_free_on(pool, a, block);
    assert_ptr_equal(must_alloc_on(pool, b, TEST_CHUNK), block); /* does not wait itself */
    must_fill(b, block, 2, TEST_CHUNK);
    assert_ok(sim_driver.copy(0, b, &seen, block + TEST_CHUNK - 1, 1));
    usleep(3000);
    assert_true(work_left(b) > 0);
    assert_int_equal(seen, 0);
    assert_ok(raffia_pool_check(pool));
    assert_ok(sim_stream_resume(0, a));
    assert_ok(sim_driver.stream_wait(0, b));
    assert_int_equal(seen, 2);
    assert_int_equal(block[0], 2);
    must_free_on(pool, b, block);
    drop_stream(a);
    drop_stream(b);
    drop_pool(pool);
}

static void a_block_that_changed_streams_is_pending_when_freed_in_no_order(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_CHUNK);
    driver_stream a = make_busy_stream(), b = make_stream();
    void *block = must_alloc_on(pool, a, TEST_CHUNK);
    must_free_on(pool, a, block);
    assert_ptr_equal(must_alloc_on(pool, b, TEST_CHUNK), block);
    must_free(pool, block);
    assert_int_equal(stats_of(pool).pending_blocks, 1);
    drop_stream(a);
    assert_int_equal(stats_of(pool).pending_blocks, 0);
    drop_stream(b);
    drop_pool(pool);
}

/* Freed on a third stream, which has to come behind the first. */
static void a_free_on_another_stream_comes_behind_what_the_block_was_used_for(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_CHUNK);
    driver_stream a = make_busy_stream(), b = make_stream();
    void *block = must_alloc_on(pool, a, TEST_CHUNK);
    must_fill(a, block, 1, TEST_CHUNK);
    must_free_on(pool, a, block);
    assert_ptr_equal(must_alloc_on(pool, a, TEST_CHUNK), block);
    must_free_on(pool, b, block);
    assert_ok(sim_driver.stream_wait(0, b)); /* b itself had nothing to do */
    assert_int_equal(stats_of(pool).pending_blocks, 1);
    assert_ok(sim_stream_resume(0, a));
    assert_ok(sim_driver.stream_wait(0, a));
    assert_int_equal(stats_of(pool).pending_blocks, 0);
    drop_stream(a);
    drop_stream(b);
    drop_pool(pool);
}

/* It cannot be made to come behind anything, nor may the call wait. */
static void a_free_on_a_captured_stream_does_not_wait_for_another(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_CHUNK);
    driver_stream a = make_busy_stream(), b = make_stream(), c = make_stream();
    void *block = must_alloc_on(pool, a, TEST_CHUNK);
    must_fill(a, block, 1, TEST_CHUNK);
    must_free_on(pool, a, block);
    assert_ptr_equal(must_alloc_on(pool, b, TEST_CHUNK), block);
    assert_ok(sim_stream_capture_begin(0, c));
    must_free_on(pool, c, block);
    assert_true(work_left(a) > 0);
    assert_int_equal(stats_of(pool).pending_blocks, 1);
    assert_ok(raffia_pool_check(pool));
    assert_ok(sim_stream_capture_end(0, c, false));

    /* c is there, but not a: the block is not c's to have. */
    assert_ok(raffia_stream_retire("sim:0", c));
    assert_int_equal(stats_of(pool).pending_blocks, 1);
    assert_ok(sim_driver.stream_wait(0, c));
    assert_ptr_equal(must_alloc_on(pool, b, TEST_CHUNK), block);
    must_fill(b, block, 2, TEST_CHUNK);
    usleep(3000);
    assert_true(work_left(b) > 0); /* behind a */
    must_free_on(pool, b, block);
    drop_stream(a);
    drop_stream(b);
    drop_stream(c);
    drop_pool(pool);
}

/* A block that no event speaks for, on either side. */
static void a_free_on_another_stream_waits_for_both_without_marking_either(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_CHUNK);
    driver_stream a = make_busy_stream(), b = make_stream();
    char *block = must_alloc_on(pool, a, KIB), *other;
    must_fill(a, block, 1, KIB);
    must_free_on(pool, a, block);
    assert_ptr_equal(must_alloc_on(pool, a, KIB), block);
    const long records = sim_calls("event_record"), waits = sim_calls("stream_wait_event");
    must_free_on(pool, b, block);
    assert_int_equal(sim_calls("event_record"), records);
    assert_int_equal(sim_calls("stream_wait_event"), waits);
    /* Neither stream has it back: b is not behind a, and a not behind b. */
    other = must_alloc_on(pool, b, KIB);
    assert_ptr_not_equal(other, block);
    must_free(pool, other);
    other = must_alloc_on(pool, a, KIB);
    assert_ptr_not_equal(other, block);
    must_free(pool, other);
    assert_ok(raffia_pool_check(pool));
    /* Once b is there, a may. */
    assert_ok(raffia_stream_retire("sim:0", b));
    assert_ok(sim_driver.stream_wait(0, b));
    assert_int_equal(stats_of(pool).pending_blocks, 1);
    assert_ok(raffia_pool_check(pool));
    assert_ptr_equal(must_alloc_on(pool, a, KIB), block);
    must_free(pool, block);
    assert_int_equal(stats_of(pool).pending_blocks, 1);
    drop_stream(a);
    assert_int_equal(stats_of(pool).pending_blocks, 0);
    drop_stream(b);
    drop_pool(pool);
}

struct asking {
    raffia_pool *pool;
    size_t bytes;
    void *block;
    raffia_status status;
    driver_stream stream;
};

static void *ask(void *argument)
{
    struct asking *asking = argument;
    asking->status = raffia_pool_alloc(asking->pool, asking->bytes, 0, &asking->block);
    return NULL;
}

static void an_allocation_in_no_order_waits_rather_than_fail(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_CHUNK);
    driver_stream a = make_busy_stream();
    char *block = must_alloc_on(pool, a, TEST_CHUNK);
    must_fill(a, block, 1, TEST_CHUNK);
    must_free_on(pool, a, block);
    struct asking asking = {.pool = pool, .bytes = TEST_CHUNK};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, ask, &asking), 0);
    while (sim_calls("event_wait") == 0)
        usleep(100);
    /* Meanwhile the stream may have its block back, and free it once more. */
    assert_ptr_equal(must_alloc_on(pool, a, TEST_CHUNK), block);
    must_fill(a, block, 2, TEST_CHUNK);
    must_free_on(pool, a, block);
    assert_ok(raffia_pool_check(pool));
    assert_ok(sim_stream_resume(0, a));
    pthread_join(thread, NULL);
    assert_ok(asking.status);
    assert_ptr_equal(asking.block, block);
    assert_int_equal(work_left(a), 0);
    assert_int_equal(block[0], 2);
    must_free(pool, block);
    drop_stream(a);
    drop_pool(pool);
}

static void pending_pieces_of_two_streams_become_one_stretch(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_CHUNK);
    driver_stream streams[2] = {make_stream(), make_stream()};
    void *blocks[8];
    for (int i = 0; i < 8; i++)
        blocks[i] = must_alloc_on(pool, streams[i % 2], TEST_CHUNK / 8);
    for (int i = 0; i < 2; i++)
        assert_ok(sim_stream_delay(0, streams[i], 2000));
    for (int i = 0; i < 8; i++)
        must_free_on(pool, streams[i % 2], blocks[i]);
    void *all = must_alloc_on(pool, streams[0], TEST_CHUNK);
    assert_int_equal(work_left(streams[0]) + work_left(streams[1]), 0);
    must_free_on(pool, streams[0], all);
    drop_stream(streams[0]);
    drop_stream(streams[1]);
    drop_pool(pool);
}

static void a_request_beyond_the_pool_does_not_wait(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_CHUNK);
    driver_stream a = make_busy_stream();
    void *none;
    must_free_on(pool, a, must_alloc(pool, TEST_CHUNK));
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, raffia_pool_alloc(pool, TEST_CHUNK + 1, 0, &none));
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, raffia_pool_alloc_on(pool, a, SIZE_MAX, 0, &none));
    drop_stream(a);
    drop_pool(pool);
}

static void pools_that_are_asked_for_room_know_which_of_their_blocks_are_free(void **state)
{
    (void)state;
    fresh_device(&(struct sim_config){.capacity_bytes = 2 * TEST_CHUNK});
    raffia_pool *first = make_pool_of(TEST_CHUNK, 2 * TEST_CHUNK),
                *second = make_pool_of(TEST_CHUNK, 2 * TEST_CHUNK);
    driver_stream a = make_stream();
    must_free_on(first, a, must_alloc_on(first, a, TEST_CHUNK));
    assert_ok(sim_driver.stream_wait(0, a));
    void *large = must_alloc(second, 2 * TEST_CHUNK);
    assert_int_equal(stats_of(first).reserved_bytes, 0);
    must_free(second, large);
    drop_stream(a);
    raffia_pool_release(first);
    drop_pool(second);
}

/* ---- the end of streams --------------------------------------------------------------------- */

static void a_retired_stream_is_marked_in_every_pool(void **state)
{
    (void)state;
    raffia_pool *pools[2] = {make_pool_of(TEST_CHUNK, TEST_CHUNK),
                             make_pool_of(TEST_CHUNK, TEST_CHUNK)};
    driver_stream a = make_stream(), keeper = make_busy_stream();
    driver_event gate = begin_behind(keeper, a);
    for (int i = 0; i < 2; i++)
        must_free_on(pools[i], a, must_alloc_on(pools[i], a, TEST_CHUNK));
    const long events = sim_calls("event_record");
    must_free_on(pools[0], a, must_alloc_on(pools[0], a, TEST_CHUNK));
    assert_ok(raffia_stream_retire("sim:0", a));
    assert_true(sim_calls("event_record") > events);
    assert_ok(sim_driver.stream_destroy(0, a));

    /* The new one gets the handle, not the blocks. */
    driver_stream b = make_stream();
    assert_ptr_equal(b, a);
    for (int i = 0; i < 2; i++)
        assert_int_equal(stats_of(pools[i]).pending_blocks, 1);
    struct sim_usage usage;
    sim_query(0, &usage);
    assert_string_equal(usage.first_misuse, "");
    /* The dead stream's work is still held: nothing but a wait behind it can give memory. */
    char seen = 0, *block = must_alloc_on(pools[0], b, TEST_CHUNK);
    must_fill(b, block, 5, TEST_CHUNK);
    assert_ok(sim_driver.copy(0, b, &seen, block, 1));
    usleep(3000);
    assert_int_equal(seen, 0);
    assert_ok(sim_stream_resume(0, keeper));
    assert_ok(sim_driver.stream_wait(0, b));
    assert_int_equal(seen, 5);
    must_free_on(pools[0], b, block);
    assert_ok(sim_driver.event_destroy(0, gate));
    drop_stream(keeper);
    drop_stream(b);
    raffia_pool_release(pools[0]);
    drop_pool(pools[1]);
}

static void a_stream_is_retired_again_or_without_blocks(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_CHUNK);
    driver_stream a = make_stream();
    must_free_on(pool, NULL, must_alloc_on(pool, NULL, 100));
    assert_ok(raffia_stream_retire("sim:0", NULL)); /* it lives on */
    must_free_on(pool, NULL, must_alloc_on(pool, NULL, 100));
    assert_ok(raffia_stream_retire("sim:0", a));
    assert_ok(raffia_stream_retire("sim:0", a));
    assert_status(RAFFIA_ERROR_NOT_FOUND, raffia_stream_retire("nowhere:3", a));
    assert_ok(raffia_stream_retire("host", NULL));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, raffia_stream_retire("host", a));
    assert_ok(sim_driver.stream_destroy(0, a));
    drop_pool(pool);
}

/* Another driver may give the same ids. */
static void a_retirement_reaches_the_pools_of_its_own_device_only(void **state)
{
    (void)state;
    struct driver other = sim_driver;
    struct pool_plan plan = small_plan();
    plan.device.driver = &other;
    raffia_pool *pool = make_pool(&plan), *own = make_pool_of(TEST_CHUNK, TEST_CHUNK);
    driver_stream a = make_stream();
    must_free_on(pool, a, must_alloc_on(pool, a, KIB));
    must_free_on(own, a, must_alloc_on(own, a, KIB));
    const long records = sim_calls("event_record"), retired = sim_calls("stream_retire");
    assert_ok(raffia_stream_retire("sim:0", a));
    assert_int_equal(sim_calls("event_record"), records + 1);
    assert_int_equal(sim_calls("stream_retire"), retired + 1);
    assert_ok(sim_driver.stream_destroy(0, a));
    raffia_pool_release(pool);
    drop_pool(own);

    /* The streams of pinned memory are its GPU's. */
    struct driver_device pinned;
    assert_ok(driver_open("pinned:sim:0", &pinned));
    assert_ptr_equal(driver_stream_owner(pinned).driver, &sim_driver);
    assert_int_equal(driver_stream_owner(pinned).index, 0);
}

static void a_stream_that_cannot_be_marked_is_waited_for_when_it_is_retired(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_CHUNK);
    driver_stream a = make_stream();
    assert_ok(sim_stream_delay(0, a, 2000));
    must_free_on(pool, a, must_alloc_on(pool, a, 100));
    sim_fail_next("event_create", RAFFIA_ERROR_OUT_OF_MEMORY, RAFFIA_REASON_NONE);
    assert_ok(raffia_stream_retire("sim:0", a));
    assert_int_equal(work_left(a), 0);
    assert_ok(sim_driver.stream_destroy(0, a));
    assert_int_equal(stats_of(pool).pending_blocks, 0);
    drop_pool(pool);
}

/* Its handle goes to another stream, which must not be asked. */
static void
a_stream_destroyed_without_a_word_keeps_its_blocks_until_the_device_is_idle(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_CHUNK);
    driver_stream a = make_stream(), keeper = make_busy_stream();
    char *block = must_alloc_on(pool, a, TEST_CHUNK / 8);
    driver_event gate = begin_behind(keeper, a);
    must_fill(a, block, 1, TEST_CHUNK / 8);
    must_free_on(pool, a, block);
    assert_ok(sim_driver.stream_destroy(0, a));
    driver_stream b = make_stream();
    assert_ptr_equal(b, a);

    void *other = must_alloc_on(pool, b, TEST_CHUNK / 8);
    assert_ptr_not_equal(other, block);
    must_free_on(pool, b, other);
    assert_ok(sim_driver.stream_wait(0, b));
    assert_int_equal(stats_of(pool).pending_blocks, 2); /* b has made no call since */
    struct asking asking = {.pool = pool, .bytes = TEST_CHUNK};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, ask, &asking), 0);
    while (sim_calls("device_wait") == 0)
        usleep(100);
    assert_ok(sim_stream_resume(0, keeper));
    pthread_join(thread, NULL);
    assert_ok(asking.status);
    assert_int_equal(block[0], 1); /* written before it was handed out */
    must_free(pool, asking.block);
    assert_ok(sim_driver.event_destroy(0, gate));
    drop_stream(keeper);
    drop_stream(b);
    drop_pool(pool);
}

static void a_pool_of_destroyed_streams_gives_room_to_others(void **state)
{
    (void)state;
    fresh_device(&(struct sim_config){.capacity_bytes = 2 * TEST_CHUNK});
    raffia_pool *first = make_pool_of(TEST_CHUNK, 2 * TEST_CHUNK),
                *second = make_pool_of(TEST_CHUNK, 2 * TEST_CHUNK);
    for (int i = 0; i < 3; i++) {
        driver_stream a = make_stream();
        must_free_on(first, a, must_alloc_on(first, a, KIB));
        assert_ok(sim_driver.stream_destroy(0, a)); /* without a word */
    }
    must_free(second, must_alloc(second, 2 * TEST_CHUNK));
    assert_int_equal(stats_of(first).reserved_bytes, 0);
    assert_int_equal(stats_of(first).pending_blocks, 0);
    raffia_pool_release(first);
    drop_pool(second);
}

static void many_streams_that_come_and_go_leave_nothing(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_CHUNK);
    for (int i = 0; i < 300; i++) {
        driver_stream a = make_stream();
        must_free_on(pool, a, must_alloc_on(pool, a, KIB));
        assert_ok(raffia_stream_retire("sim:0", a));
        assert_ok(sim_driver.stream_destroy(0, a));
    }
    struct sim_usage usage;
    sim_query(0, &usage);
    assert_true(usage.events <= 16);
    drop_pool(pool);
}

/* ---- the end of pools ----------------------------------------------------------------------- */

static void *release(void *argument)
{
    raffia_pool_release(argument);
    return NULL;
}

static void a_pool_with_pending_blocks_is_torn_down_behind_them(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_CHUNK);
    driver_stream a = make_busy_stream();
    char *block = must_alloc_on(pool, a, 100);
    must_fill(a, block, 1, 100);
    must_free_on(pool, a, block);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, release, pool), 0);
    while (sim_calls("device_wait") == 0)
        usleep(100);
    struct sim_usage usage;
    sim_query(0, &usage);
    assert_int_equal(usage.mappings, 1);
    assert_ok(sim_stream_resume(0, a));
    pthread_join(thread, NULL);
    drop_stream(a);
    assert_true(sim_is_idle());
}

static void the_last_free_of_a_pool_without_owners_tears_it_down(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_CHUNK);
        driver_stream a = make_stream();
        void *blocks[2] = {must_alloc_on(pool, a, 100), must_alloc_on(pool, a, 200)};
        assert_ok(sim_stream_delay(0, a, 1000));
        raffia_pool_release(pool);
        if (i == 0) {
            must_free(pool, blocks[0]);
            must_free_on(pool, a, blocks[1]);
        } else if (i == 1) {
            must_free_on(pool, a, blocks[0]);
            must_free(pool, blocks[1]);
        } else {
            must_free_on(pool, a, blocks[0]);
            must_free_on(pool, a, blocks[1]);
        }
        struct sim_usage usage;
        sim_query(0, &usage);
        assert_int_equal(usage.ranges, 0);
        assert_int_equal(usage.events, 0);
        drop_stream(a);
        assert_true(sim_is_idle());
    }
}

static void a_pool_that_cannot_be_drained_goes_when_it_can(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_CHUNK);
        driver_stream a = make_stream();
        void *block = must_alloc_on(pool, a, 100);
        assert_ok(sim_stream_capture_begin(0, a));
        must_free_on(pool, a, block);
        raffia_pool_release(pool); /* nobody may wait for a */
        struct sim_usage usage;
        sim_query(0, &usage);
        assert_int_equal(usage.ranges, 1);
        assert_ok(sim_stream_capture_end(0, a, false));
        if (i == 0)
            assert_ok(raffia_stream_retire("sim:0", a));
        raffia_pool *other = make_pool_of(0, TEST_CHUNK); /* looks for what was left behind */
        assert_ok(sim_driver.stream_wait(0, a));
        raffia_pool_release(other);
        sim_query(0, &usage);
        assert_int_equal(usage.ranges, 0);
        assert_ok(sim_driver.stream_destroy(0, a));
        assert_true(sim_is_idle());
    }
}

static void a_child_leaves_the_pending_blocks_of_its_parent_alone(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_CHUNK);
    driver_stream a = make_busy_stream();
    void *block = must_alloc_on(pool, a, 100), *live = must_alloc_on(pool, a, 100), *none;
    must_free_on(pool, a, block);
    const pid_t child = fork();
    if (child == 0) {
        const bool frozen = raffia_pool_alloc_on(pool, a, 100, 0, &none) == RAFFIA_ERROR_FORKED &&
                            raffia_pool_free_on(pool, a, live) == RAFFIA_OK &&
                            raffia_stream_retire("sim:0", a) == RAFFIA_ERROR_FORKED;
        raffia_pool_release(pool);
        _exit(frozen ? 0 : 1);
    }
    int exit_status = -1;
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &exit_status, 0), child);
    assert_int_equal(exit_status, 0);
    assert_int_equal(stats_of(pool).pending_blocks, 1);
    assert_int_equal(stats_of(pool).live_blocks, 1);
    must_free_on(pool, a, live);
    drop_stream(a);
    drop_pool(pool);
}

/* ---- failures ------------------------------------------------------------------------------- */

static raffia_status first_of(raffia_status one, raffia_status other)
{
    return one ? one : other;
}

/* Two streams in a pool that is too small for both. */
static raffia_status share_a_pool(void *context)
{
    driver_stream *streams = context;
    raffia_pool *pool = NULL;
    raffia_fallback_reason reason;
    struct pool_plan plan = small_plan();
    plan.maximum_bytes = TEST_CHUNK;
    raffia_status status = pool_create(&plan, &pool, &reason);
    if (status)
        return status;
    for (int i = 0; i < 12; i++) {
        const bool plain = i % 4 == 3;
        const size_t bytes = i % 3 ? TEST_CHUNK / 2 : TEST_CHUNK;
        driver_stream stream = streams[i % 2];
        char *block = NULL;
        raffia_status one = plain ? raffia_pool_alloc(pool, bytes, 0, (void **)&block)
                                  : raffia_pool_alloc_on(pool, stream, bytes, 0, (void **)&block);
        status = first_of(status, one);
        if (one)
            continue;
        if (i % 5 == 4)
            status = first_of(status, raffia_pool_resize(pool, block, 1000));
        raffia_status freed = raffia_pool_free_on(pool, streams[(i / 2) % 2], block);
        if (freed) /* it is live */
            assert_ok(raffia_pool_free(pool, block));
        status = first_of(status, freed);
        assert_ok(raffia_pool_check(pool));
    }
    status = first_of(status, raffia_stream_retire("sim:0", NULL));
    raffia_pool_release(pool);
    struct sim_usage usage;
    sim_query(0, &usage);
    assert_int_equal(usage.ranges, 0);
    assert_int_equal(usage.events, 0);
    assert_int_equal(usage.misuses, 0);
    return status;
}

static void any_call_on_the_way_may_fail(void **state)
{
    (void)state;
    driver_stream streams[2] = {make_stream(), make_stream()};
    assert_ok(sim_driver.stream_wait(0, NULL)); /* the device keeps its default stream */
    assert_true(fault_loop(share_a_pool, streams, 2000) > 50);
    drop_stream(streams[0]);
    drop_stream(streams[1]);
}

static raffia_status lost_event_wait(int device, driver_event event)
{
    (void)device, (void)event;
    return RAFFIA_ERROR_DRIVER;
}

static raffia_status is_lost(int device)
{
    (void)device;
    return RAFFIA_ERROR_DRIVER;
}

/* It runs nothing any more, whatever its events say. */
static void a_lost_device_lets_its_pool_go(void **state)
{
    (void)state;
    struct driver lost = sim_driver;
    lost.event_wait = lost_event_wait;
    lost.device_wait = lost.context_state = is_lost;
    struct pool_plan plan = small_plan();
    plan.device.driver = &lost;
    raffia_pool *pool = make_pool(&plan);
    driver_stream a = make_busy_stream();
    must_free_on(pool, a, must_alloc_on(pool, a, 100));
    raffia_pool_release(pool); /* and does not hang */
    drop_stream(a);
    assert_true(sim_is_idle());
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, set_up_device)
    const struct CMUnitTest tests[] = {
        TEST(a11_a_stream_that_finds_nothing_waits_for_another_on_the_device),
        TEST(a_block_that_changed_streams_is_pending_when_freed_in_no_order),
        TEST(a_free_on_another_stream_comes_behind_what_the_block_was_used_for),
        TEST(a_free_on_a_captured_stream_does_not_wait_for_another),
        TEST(a_free_on_another_stream_waits_for_both_without_marking_either),
        TEST(a_pool_of_destroyed_streams_gives_room_to_others),
        TEST(an_allocation_in_no_order_waits_rather_than_fail),
        TEST(pending_pieces_of_two_streams_become_one_stretch),
        TEST(a_request_beyond_the_pool_does_not_wait),
        TEST(pools_that_are_asked_for_room_know_which_of_their_blocks_are_free),
        TEST(a_stream_is_retired_again_or_without_blocks),
        TEST(a_retirement_reaches_the_pools_of_its_own_device_only),
        TEST(a_stream_that_cannot_be_marked_is_waited_for_when_it_is_retired),
        TEST(a_stream_destroyed_without_a_word_keeps_its_blocks_until_the_device_is_idle),
        TEST(many_streams_that_come_and_go_leave_nothing),
        TEST(a_pool_with_pending_blocks_is_torn_down_behind_them),
        TEST(the_last_free_of_a_pool_without_owners_tears_it_down),
        TEST(a_pool_that_cannot_be_drained_goes_when_it_can),
        TEST(a_child_leaves_the_pending_blocks_of_its_parent_alone),
        TEST(any_call_on_the_way_may_fail),
        TEST(a_lost_device_lets_its_pool_go),
        TEST(a_retired_stream_is_marked_in_every_pool),
    };
    return cmocka_run_group_tests_name("order of streams", tests, NULL, NULL);
}
