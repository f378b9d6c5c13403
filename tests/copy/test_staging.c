/* The ring by itself: made-up stretches, readers who are slow or fail, devices that do. */
#include "copy/staging.h"
#include "core/memory.h"
#include "driver/sim/sim.h"
#include "support/cmocka.h"
#include "support/fault_loop.h"
#include "support/random.h"

#include <raffia/log.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

#define SLOT   (64 * KIB)
#define PIECE  (16 * KIB)
#define PIECES ((unsigned)(SLOT / PIECE))

static const struct driver_device device = {&sim_driver, 0};
static const struct staging_shape shape = {SLOT, 4};

/* A move of `stretches` whole slots to device memory, each copied as two halves, the second first.
 */
struct move {
    struct staging *ring;
    size_t stretches;
    unsigned char *to;
    atomic_size_t listed, done;
    unsigned readers;

    size_t slow_stretch; /* its first piece waits until so many stretches are listed */
    size_t slow_until;   /* 0: nobody waits */
    size_t stop_at;      /* the reader of this stretch stops the ring; 0: none does */
    raffia_status status;
};

static unsigned char byte_of(size_t stretch, size_t offset)
{
    return (unsigned char)(stretch * 37 + offset * 7 + offset / 251);
}

static unsigned count_pieces(void *context, size_t stretch)
{
    (void)context, (void)stretch;
    return PIECES;
}

static size_t list_copies(void *context, size_t stretch, const unsigned char *slot,
                          struct driver_copy copies[static STAGING_COPIES_MAX])
{
    struct move *move = context;
    unsigned char *to = move->to + stretch * SLOT;
    copies[0] = (struct driver_copy){to + SLOT / 2, slot + SLOT / 2, SLOT / 2};
    copies[1] = (struct driver_copy){to, slot, SLOT / 2};
    atomic_fetch_add(&move->listed, 1);
    return 2;
}

static void note_done(void *context, size_t stretch)
{
    struct move *move = context;
    (void)stretch;
    atomic_fetch_add(&move->done, 1);
}

static raffia_status read_some(struct move *move)
{
    struct staging_piece piece;
    bool got = true;
    raffia_status status = RAFFIA_OK;
    while (!status && got) {
        status = staging_take(move->ring, &piece, &got);
        if (status || !got)
            break;
        if (move->slow_until && piece.stretch == move->slow_stretch && piece.number == 0)
            while (atomic_load(&move->listed) < move->slow_until)
                usleep(100);
        if (move->stop_at && piece.stretch == move->stop_at) {
            staging_stop(move->ring);
            break;
        }
        for (size_t i = 0; i < PIECE; i++)
            piece.memory[piece.number * PIECE + i] =
                byte_of(piece.stretch, piece.number * PIECE + i);
        status = staging_put(move->ring, &piece);
    }
    raffia_status last = staging_leave(move->ring);
    return status ? status : last;
}

static void *reader_main(void *argument)
{
    struct move *move = argument;
    return (void *)(uintptr_t)read_some(move);
}

/* Runs the readers; returns the first failure of any. */
static raffia_status run(struct move *move)
{
    pthread_t threads[16];
    const struct staging_work work = {move->stretches, count_pieces, list_copies, move, note_done};
    atomic_store(&move->done, 0);
    const long waits = sim_calls("stream_wait");
    staging_begin(move->ring, &work, move->readers);
    for (unsigned i = 0; i < move->readers; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, reader_main, move), 0);
    raffia_status status = RAFFIA_OK;
    for (unsigned i = 0; i < move->readers; i++) {
        void *result;
        pthread_join(threads[i], &result);
        if (!status)
            status = (raffia_status)(uintptr_t)result;
    }
    struct staging_stats stats;
    staging_query(move->ring, &stats);
    assert_true(atomic_load(&move->done) <= atomic_load(&move->listed));
    if (!status) { /* the last to leave waited, and nobody else */
        assert_int_equal(atomic_load(&move->done) * SLOT, stats.bytes_copied);
        assert_true(sim_calls("stream_wait") <= waits + 1);
    }
    return status;
}

static raffia_status check_bytes(void *context, const unsigned char *bytes, size_t count)
{
    size_t *at = context;
    for (size_t i = 0; i < count; i++, (*at)++)
        if (bytes[i] != byte_of(*at / SLOT, *at % SLOT))
            fail_msg("byte %zu is %#x", *at, bytes[i]);
    return RAFFIA_OK;
}

static void expect_moved(struct move *move)
{
    size_t at = 0;
    assert_ok(staging_read_back(move->ring, move->to, move->stretches * SLOT, check_bytes, &at));
    assert_int_equal(at, move->stretches * SLOT);
}

static void open_move(struct move *move, size_t stretches, unsigned readers)
{
    void *to;
    *move = (struct move){.stretches = stretches, .readers = readers};
    assert_ok(staging_open(device, shape, 1, &move->ring));
    assert_ok(sim_driver.mem_alloc(0, stretches * SLOT, &to));
    move->to = to;
}

static void close_move(struct move *move)
{
    staging_close(move->ring);
    assert_ok(sim_driver.mem_free(0, move->to, move->stretches * SLOT));
}

static void every_stretch_gets_to_its_place(void **state)
{
    (void)state;
    static const unsigned readers[] = {1, 2, 5, 12};
    for (size_t i = 0; i < 4; i++) {
        struct move move;
        open_move(&move, 50, readers[i]);
        assert_ok(run(&move));
        struct staging_stats stats;
        staging_query(move.ring, &stats);
        assert_int_equal(stats.copies, 100);
        assert_int_equal(stats.bytes_copied, 50 * SLOT);
        assert_int_equal(stats.bytes, 4 * SLOT);
        expect_moved(&move);
        assert_int_equal(sim_calls("copy_batch"), 50 * (long)(i + 1));
        close_move(&move);
    }
}

/* Another reader's slot is not waited for as long as there is one that is free. */
static void a_slow_reader_holds_up_its_own_slot_only(void **state)
{
    (void)state;
    struct move move;
    open_move(&move, 40, 3);
    move.slow_stretch = 5;
    move.slow_until = 39;
    assert_ok(run(&move));
    expect_moved(&move);
    close_move(&move);
}

static void a_ring_of_one_slot_works(void **state)
{
    (void)state;
    struct move move = {.stretches = 9, .readers = 3};
    void *to;
    assert_ok(staging_open(device, (struct staging_shape){SLOT, 1}, 1, &move.ring));
    assert_ok(sim_driver.mem_alloc(0, 9 * SLOT, &to));
    move.to = to;
    assert_ok(run(&move));
    expect_moved(&move);
    close_move(&move);
}

static void a_ring_smaller_than_a_huge_page_takes_small_ones(void **state)
{
    (void)state;
    struct staging *ring;
    struct staging_stats stats;
    assert_ok(staging_open(device, (struct staging_shape){32 * KIB, 2}, 1, &ring));
    staging_query(ring, &stats);
    assert_true(stats.page.size <= 64 * KIB);
    assert_int_equal(stats.bytes, 64 * KIB);
    staging_close(ring);
    /* Where pages are larger than what is left, all that was taken is told. */
    assert_ok(staging_open(device, (struct staging_shape){1040 * KIB, 2}, 1, &ring));
    staging_query(ring, &stats);
    assert_int_equal(stats.bytes % stats.page.size, 0);
    assert_true(stats.bytes >= 2080 * KIB);
    staging_close(ring);
}

static void a_device_without_streams_works(void **state)
{
    (void)state;
    assert_ok(
        sim_configure(0, &(struct sim_config){.synchronous = true, .cpu_inaccessible = true}));
    struct move move;
    open_move(&move, 20, 3);
    assert_ok(run(&move));
    expect_moved(&move);
    close_move(&move);
}

static void a_ring_stopped_half_way_is_fit_for_the_next(void **state)
{
    (void)state;
    struct move move;
    open_move(&move, 50, 4);
    for (size_t at = 1; at < 30; at += 9) {
        move.stop_at = at;
        assert_ok(run(&move));
        assert_int_equal(atomic_load(&move.listed) < 50, 1);
        atomic_store(&move.listed, 0);
    }
    move.stop_at = 0;
    assert_ok(run(&move));
    expect_moved(&move);
    close_move(&move);
}

static void a_ring_is_kept_and_given_back_on_request(void **state)
{
    (void)state;
    struct staging *first, *second, *third;
    assert_ok(staging_open(device, shape, 1, &first));
    assert_ok(staging_open(device, shape, 1, &second));
    assert_ptr_not_equal(first, second);
    staging_close(first);
    staging_close(second); /* one is enough */
    assert_ok(staging_open(device, shape, 1, &third));
    assert_ptr_equal(third, first);
    struct staging_stats stats;
    staging_query(third, &stats);
    assert_true(stats.build_seconds == 0);
    staging_close(third);
    /* Another shape does not fit. */
    assert_ok(staging_open(device, (struct staging_shape){SLOT, 2}, 1, &third));
    staging_query(third, &stats);
    assert_int_equal(stats.shape.slot_count, 2);
    assert_true(stats.build_seconds > 0);
    staging_close(third);
    assert_false(sim_is_idle());
    staging_release_kept();
    assert_true(sim_is_idle());
}

static void a_forked_child_leaves_its_parents_ring_alone(void **state)
{
    (void)state;
    struct staging *ring;
    assert_ok(staging_open(device, shape, 1, &ring));
    staging_close(ring);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        raffia_status status = staging_open(device, shape, 1, &ring);
        staging_release_kept();
        _exit(status == RAFFIA_ERROR_FORKED ? 0 : 1);
    }
    int how = 0;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
    struct staging *again;
    assert_ok(staging_open(device, shape, 1, &again));
    assert_ptr_equal(again, ring);
    staging_close(again);
}

static void fail_once(const char *verb)
{
    struct move move;
    open_move(&move, 30, 3);
    sim_fail_next(verb, RAFFIA_ERROR_DRIVER, RAFFIA_REASON_NONE);
    assert_status(RAFFIA_ERROR_DRIVER, run(&move));
    struct sim_usage usage;
    sim_query(0, &usage);
    assert_int_equal(usage.queued, 0); /* what was under way was waited for */
    close_move(&move);
    sim_query(0, &usage);
    assert_int_equal(usage.registrations, 0); /* it is not kept */
    assert_int_equal(usage.misuses, 0);
}

static void a_failed_call_ends_the_move_when_nothing_is_under_way(void **state)
{
    (void)state;
    fail_once("copy_batch");
    fail_once("event_record");
    fail_once("stream_wait");
}

static void a_lost_device_ends_the_move(void **state)
{
    (void)state;
    struct move move;
    open_move(&move, 30, 3);
    sim_poison(0);
    assert_status(RAFFIA_ERROR_DRIVER, run(&move));
    staging_close(move.ring);
    assert_true(staging_open(device, shape, 1, &move.ring) != RAFFIA_OK);
}

static raffia_status build(void *context)
{
    (void)context;
    struct staging *ring;
    raffia_status status = staging_open(device, shape, 1, &ring);
    if (!status)
        staging_close(ring);
    staging_release_kept();
    return status;
}

static void building_survives_every_failure(void **state)
{
    (void)state;
    assert_true(fault_loop(build, NULL, 1000) > 10);
    assert_true(sim_is_idle());
}

static raffia_status move_all(void *context)
{
    struct move *move = context;
    atomic_store(&move->listed, 0);
    raffia_status status = staging_open(device, shape, 1, &move->ring);
    if (!status) {
        status = run(move);
        if (!status) {
            size_t at = 0;
            status =
                staging_read_back(move->ring, move->to, move->stretches * SLOT, check_bytes, &at);
        }
        staging_close(move->ring);
    }
    staging_release_kept();
    return status;
}

static void moving_survives_every_failure(void **state)
{
    (void)state;
    struct move move;
    open_move(&move, 6, 1);
    staging_close(move.ring);
    staging_release_kept();
    assert_true(fault_loop(move_all, &move, 1000) > 30);
    assert_ok(sim_driver.mem_free(0, move.to, 6 * SLOT));
}

static int fresh(void **state)
{
    (void)state;
    sim_reset();
    raffia_log_set_level(RAFFIA_LOG_OFF);
    assert_ok(sim_configure(0, &(struct sim_config){.cpu_inaccessible = true}));
    return 0;
}

static int left_idle(void **state)
{
    (void)state;
    staging_release_kept();
    bool idle = sim_is_idle();
    sim_reset();
    return idle ? 0 : -1;
}

static int left_anyhow(void **state)
{
    (void)state;
    staging_release_kept();
    sim_reset();
    return 0;
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, fresh, left_idle)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_stretch_gets_to_its_place),
        TEST(a_slow_reader_holds_up_its_own_slot_only),
        TEST(a_ring_of_one_slot_works),
        TEST(a_ring_smaller_than_a_huge_page_takes_small_ones),
        TEST(a_device_without_streams_works),
        TEST(a_ring_stopped_half_way_is_fit_for_the_next),
        TEST(a_ring_is_kept_and_given_back_on_request),
        TEST(a_forked_child_leaves_its_parents_ring_alone),
        TEST(a_failed_call_ends_the_move_when_nothing_is_under_way),
        cmocka_unit_test_setup_teardown(a_lost_device_ends_the_move, fresh, left_anyhow),
        TEST(building_survives_every_failure),
        TEST(moving_survives_every_failure),
    };
    return cmocka_run_group_tests_name("staging", tests, NULL, NULL);
}
