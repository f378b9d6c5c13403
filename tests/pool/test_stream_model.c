/* Random work on several streams. Each use of a block writes a value of its own and reads it back,
 * in the order of its stream: a block that is handed out too early shows in what is read. */
#include "pool/order.h"
#include "pool/pool_fixture.h"
#include "support/cmocka.h"
#include "support/random.h"

#include <pthread.h>
#include <string.h>

enum { STREAMS = 3, SLOTS = 24, READS = 4096, STEPS = 1500, THREADS = 4, THREAD_STEPS = 400 };

/* Where a stream reads a block to. */
struct reading {
    unsigned char first, last;
    unsigned char expected;
};

struct use {
    unsigned char *block; /* NULL: nothing */
    size_t bytes;
    int stream; /* -1: the CPU's */
    unsigned char value;
};

struct player {
    raffia_pool *pool;
    driver_stream streams[STREAMS];
    struct test_random random;
    struct use uses[SLOTS];
    struct reading *readings;
    size_t reading_count;
    unsigned char value;
};

static void start_player(struct player *player, raffia_pool *pool, uint64_t seed)
{
    *player = (struct player){.pool = pool, .random = {seed}};
    player->readings = test_calloc(READS, sizeof *player->readings);
    for (int i = 0; i < STREAMS; i++)
        assert_ok(sim_driver.stream_create(0, &player->streams[i]));
}

/* Has the stream read what is in the block now. */
static void read_on(struct player *player, const struct use *use, driver_stream stream)
{
    struct reading *reading = &player->readings[player->reading_count++];
    reading->expected = use->value;
    assert_ok(sim_driver.copy(0, stream, &reading->first, use->block, 1));
    assert_ok(sim_driver.copy(0, stream, &reading->last, use->block + use->bytes - 1, 1));
}

static void verify_readings(struct player *player)
{
    assert_ok(sim_driver.device_wait(0)); /* streams that were destroyed meanwhile included */
    for (size_t i = 0; i < player->reading_count; i++) {
        const struct reading *reading = &player->readings[i];
        assert_int_equal(reading->first, reading->expected);
        assert_int_equal(reading->last, reading->expected);
    }
    player->reading_count = 0;
}

static void slow_down(struct player *player, driver_stream stream)
{
    if (test_random_below(&player->random, 4) == 0)
        assert_ok(sim_stream_delay(0, stream, (unsigned)test_random_below(&player->random, 300)));
}

static void begin_use(struct player *player, struct use *use)
{
    use->bytes = test_random_size(&player->random, TEST_CHUNK / 4);
    use->stream = (int)test_random_below(&player->random, STREAMS + 1) - 1;
    use->value = ++player->value;
    void *block = NULL;
    raffia_status status = use->stream < 0
                               ? raffia_pool_alloc(player->pool, use->bytes, 0, &block)
                               : raffia_pool_alloc_on(player->pool, player->streams[use->stream],
                                                      use->bytes, 0, &block);
    use->block = block;
    if (status) {
        assert_int_equal(status, RAFFIA_ERROR_OUT_OF_MEMORY);
        return;
    }
    if (use->stream < 0) {
        memset(use->block, use->value, use->bytes);
        return;
    }
    driver_stream stream = player->streams[use->stream];
    slow_down(player, stream);
    assert_ok(sim_driver.fill(0, stream, use->block, use->value, use->bytes));
    slow_down(player, stream);
}

/* Freed on a stream that was made to come behind the block's own. */
static void free_elsewhere(struct player *player, struct use *use)
{
    driver_stream own = player->streams[use->stream],
                  other = player->streams[(use->stream + 1) % STREAMS];
    driver_event event;
    assert_ok(sim_driver.event_create(0, &event));
    assert_ok(sim_driver.event_record(0, event, own));
    assert_ok(sim_driver.stream_wait_event(0, other, event));
    assert_ok(sim_driver.event_destroy(0, event));
    read_on(player, use, other);
    assert_ok(raffia_pool_free_on(player->pool, other, use->block));
}

static void end_use(struct player *player, struct use *use)
{
    driver_stream stream = use->stream < 0 ? NULL : player->streams[use->stream];
    if (use->stream < 0) {
        assert_int_equal(use->block[0], use->value);
        assert_int_equal(use->block[use->bytes - 1], use->value);
        assert_ok(raffia_pool_free(player->pool, use->block));
    } else if (test_random_below(&player->random, 8) == 0) {
        assert_ok(sim_driver.stream_wait(0, stream));
        assert_int_equal(use->block[0], use->value);
        assert_ok(raffia_pool_free(player->pool, use->block));
    } else if (test_random_below(&player->random, 6) == 0) {
        free_elsewhere(player, use);
    } else {
        read_on(player, use, stream);
        assert_ok(raffia_pool_free_on(player->pool, stream, use->block));
    }
    use->block = NULL;
}

/* Allocated and given back without any use: what the block was used for before may still go on. */
static void take_for_nothing(struct player *player)
{
    void *block;
    driver_stream stream = player->streams[test_random_below(&player->random, STREAMS)];
    if (!raffia_pool_alloc_on(player->pool, stream,
                              test_random_size(&player->random, TEST_CHUNK / 4), 0, &block))
        assert_ok(raffia_pool_free(player->pool, block));
}

static void capture_for_a_moment(struct player *player)
{
    driver_stream stream = player->streams[test_random_below(&player->random, STREAMS)];
    void *before, *during;
    raffia_status status = raffia_pool_alloc_on(player->pool, stream, 5000, 0, &before);
    if (status)
        return;
    assert_ok(sim_stream_capture_begin(0, stream));
    assert_ok(raffia_pool_free_on(player->pool, stream, before));
    if (!raffia_pool_alloc_on(player->pool, stream, 5000, 0, &during)) {
        memset(during, 1, 5000); /* nobody else's */
        assert_ok(raffia_pool_free(player->pool, during));
    }
    assert_ok(sim_stream_capture_end(0, stream, false));
}

static void end_uses(struct player *player, int which)
{
    for (int i = 0; i < SLOTS; i++)
        if (player->uses[i].block && player->uses[i].stream == which)
            end_use(player, &player->uses[i]);
}

/* The new stream has the handle of the old one, and may have its blocks as well: then it comes
 * behind the old one's work. */
static void replace_stream(struct player *player)
{
    const int which = (int)test_random_below(&player->random, STREAMS);
    driver_stream *stream_p = &player->streams[which];
    driver_event event;
    if (test_random_below(&player->random, 2))
        end_uses(player, which);
    assert_ok(sim_driver.event_create(0, &event));
    assert_ok(sim_driver.event_record(0, event, *stream_p));
    if (test_random_below(&player->random, 2)) /* or it goes without a word */
        assert_ok(raffia_stream_retire("sim:0", *stream_p));
    assert_ok(sim_driver.stream_destroy(0, *stream_p));
    assert_ok(sim_driver.stream_create(0, stream_p));
    assert_ok(sim_driver.stream_wait_event(0, *stream_p, event));
    assert_ok(sim_driver.event_destroy(0, event));
}

static void play(struct player *player, int steps, bool captures)
{
    for (int step = 0; step < steps; step++) {
        struct use *use = &player->uses[test_random_below(&player->random, SLOTS)];
        if (use->block)
            end_use(player, use);
        else
            begin_use(player, use);
        const size_t dice = test_random_below(&player->random, 100);
        if (dice < 10)
            take_for_nothing(player);
        else if (dice < 12)
            replace_stream(player);
        else if (dice < 14 && captures)
            capture_for_a_moment(player);
        else if (dice < 15)
            assert_ok(raffia_pool_trim(player->pool, 0, NULL));
        else if (dice < 20)
            assert_ok(raffia_pool_check(player->pool));
        if (player->reading_count > READS - 2 * SLOTS || dice == 99)
            verify_readings(player);
    }
    for (int i = 0; i < SLOTS; i++)
        if (player->uses[i].block)
            end_use(player, &player->uses[i]);
    verify_readings(player);
}

static void end_player(struct player *player)
{
    for (int i = 0; i < STREAMS; i++) {
        assert_ok(raffia_stream_retire("sim:0", player->streams[i]));
        assert_ok(sim_driver.stream_destroy(0, player->streams[i]));
    }
    test_free(player->readings);
}

static void a11_no_block_is_handed_out_while_a_stream_uses_it(void **state)
{
    (void)state;
    struct test_random random = test_random_seeded("pool_stream_model");
    for (int round = 0; round < 6; round++) {
        struct player player;
        const size_t maximum = (size_t)(1 + 2 * (round / 2)) * TEST_CHUNK;
        raffia_pool *pool = round % 2 ? make_adaptive_pool_of(TEST_CHUNK, maximum)
                                      : make_pool_of(TEST_CHUNK, maximum);
        start_player(&player, pool, test_random_next(&random));
        play(&player, STEPS, true);
        end_player(&player);
        pool_order_wait_unmarked(pool); /* of streams that went without a word */
        drop_pool(pool);
    }
}

static void *play_on_a_thread(void *argument)
{
    play(argument, THREAD_STEPS, false);
    return NULL;
}

static void a11_nor_with_several_threads(void **state)
{
    (void)state;
    struct test_random random = test_random_seeded("pool_stream_threads");
    raffia_pool *pool = make_pool_of(TEST_CHUNK, 4 * TEST_CHUNK);
    struct player players[THREADS];
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        start_player(&players[i], pool, test_random_next(&random));
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, play_on_a_thread, &players[i]), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++)
        end_player(&players[i]);
    pool_order_wait_unmarked(pool);
    drop_pool(pool);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, set_up_device)
    const struct CMUnitTest tests[] = {
        TEST(a11_no_block_is_handed_out_while_a_stream_uses_it),
        TEST(a11_nor_with_several_threads),
    };
    return cmocka_run_group_tests_name("model of streams", tests, NULL, NULL);
}
