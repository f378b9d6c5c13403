/* Blocks that are used and freed on other streams than they were had on. */
#include "driver/sim/sim.h"
#include "resource/conformance.h"

#include <raffia/current_resource.h>

#include <string.h>

enum { MOVES = 20, MOVED = 4 * 1024 };

static bool takes_streams(const struct subject *subject)
{
    return subject->driver->capabilities & DRIVER_IS_ASYNCHRONOUS &&
           (!(subject->maker->traits & NO_STREAMS) || subject_orders(subject));
}

/* The caller's part of using a block on another stream. */
static void order_behind(const struct subject *subject, driver_stream second, driver_stream first)
{
    const struct driver *driver = subject->driver;
    driver_event event;
    if (second == first)
        return;
    assert_ok(driver->event_create(subject->index, &event));
    assert_ok(driver->event_record(subject->index, event, first));
    assert_ok(driver->stream_wait_event(subject->index, second, event));
    assert_ok(driver->event_destroy(subject->index, event));
}

/* Had and written on one stream, read and freed on the other; `seen` is there once the other was
 * waited for. */
static void move_block(const struct subject *subject, driver_stream first, driver_stream second,
                       const char *source, char *seen)
{
    const struct driver *driver = subject->driver;
    const bool used = subject_orders(subject);
    void *block;
    assert_ok(raffia_allocate(subject->ref, first, MOVED, 0, &block));
    if (driver == &sim_driver)
        assert_ok(sim_stream_delay(subject->index, first, 200));
    if (used)
        assert_ok(driver->copy(subject->index, first, block, source, MOVED));
    order_behind(subject, second, first);
    if (used)
        assert_ok(driver->copy(subject->index, second, seen, block, MOVED));
    assert_ok(raffia_deallocate(subject->ref, second, block, MOVED, 0));
}

static void move_blocks(const struct subject *subject, driver_stream streams[2])
{
    static char source[MOVES][MOVED], seen[MOVES][MOVED];
    memset(seen, 0, sizeof seen);
    for (int i = 0; i < MOVES; i++) {
        memset(source[i], i + 1, MOVED);
        move_block(subject, streams[i % 2], streams[(i / 2) % 2], source[i], seen[i]);
    }
    for (int i = 0; i < 2; i++)
        assert_ok(subject->driver->stream_wait(subject->index, streams[i]));
    if (subject_orders(subject))
        assert_memory_equal(seen, source, sizeof seen);
}

static void what_is_no_stream_is_refused(const struct subject *subject)
{
    void *block;
    int not_a_stream;
    if (subject->driver->capabilities & DRIVER_IS_ASYNCHRONOUS ||
        subject->maker->traits & NO_STREAMS || !(subject->maker->traits & FINDS))
        return;
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT,
                  raffia_allocate(subject->ref, &not_a_stream, KIB, 0, &block));
}

void a11_blocks_move_between_streams(void **state)
{
    const struct subject *subject = *state;
    const struct driver *driver = subject->driver;
    driver_stream streams[2];
    if (!takes_streams(subject)) {
        what_is_no_stream_is_refused(subject);
        return;
    }
    for (int i = 0; i < 2; i++)
        assert_ok(driver->stream_create(subject->index, &streams[i]));
    move_blocks(subject, streams);
    for (int i = 0; i < 2; i++) {
        assert_ok(raffia_stream_retire(subject->device->name, streams[i]));
        assert_ok(driver->stream_destroy(subject->index, streams[i]));
    }
    /* A block that was freed on a stream that is gone can be had again. */
    must_free(subject, must_allocate(subject, MOVED, 0), MOVED, 0);
}
