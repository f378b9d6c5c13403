/* Conformance: streams and events. */
#include "driver/conformance.h"
#include "support/cmocka.h"
#include "support/fault_loop.h"

#include <string.h>

#define BYTES ((size_t)256 << 10)

void stream_ids_are_never_given_twice(void **state)
{
    enum { ROUNDS = 20 };
    const struct subject *s = *state;
    if (!subject_can(s, DRIVER_IS_ASYNCHRONOUS))
        skip();
    uint64_t seen[2 * ROUNDS + 1];
    size_t count = 0;
    assert_ok(s->driver->stream_id(s->index, NULL, &seen[count++]));
    for (int round = 0; round < ROUNDS; round++) {
        driver_stream pair[2];
        for (int i = 0; i < 2; i++) {
            assert_ok(s->driver->stream_create(s->index, &pair[i]));
            assert_non_null(pair[i]);
            uint64_t again;
            assert_ok(s->driver->stream_id(s->index, pair[i], &seen[count]));
            assert_ok(s->driver->stream_id(s->index, pair[i], &again));
            assert_int_equal(again, seen[count]);
            for (size_t k = 0; k < count; k++)
                assert_true(seen[k] != seen[count]);
            count++;
        }
        for (int i = 0; i < 2; i++) {
            assert_ok(s->driver->stream_retire(s->index, pair[i]));
            assert_ok(s->driver->stream_destroy(s->index, pair[i]));
        }
    }
}

void events_order_streams(void **state)
{
    const struct subject *s = *state;
    const struct driver *d = s->driver;
    if (!subject_can(s, DRIVER_IS_ASYNCHRONOUS))
        skip();
    driver_stream first, second;
    driver_event event;
    void *a, *b;
    bool done = false, capturing = true;
    assert_ok(d->mem_alloc(s->index, BYTES, &a));
    assert_ok(d->mem_alloc(s->index, BYTES, &b));
    assert_ok(d->stream_create(s->index, &first));
    assert_ok(d->stream_create(s->index, &second));
    assert_ok(d->event_create(s->index, &event));
    assert_ok(d->event_done(s->index, event, &done));
    assert_true(done); /* never recorded */
    assert_ok(d->event_wait(s->index, event));
    assert_ok(d->stream_is_capturing(s->index, first, &capturing));
    assert_false(capturing);
    for (int round = 1; round <= 8; round++) {
        assert_ok(d->fill(s->index, first, a, (unsigned char)round, BYTES));
        assert_ok(d->event_record(s->index, event, first));
        assert_ok(d->stream_wait_event(s->index, second, event));
        assert_ok(d->copy(s->index, second, b, a, BYTES));
        assert_ok(d->stream_wait(s->index, second));
        subject_expect(s, b, (unsigned char)round, BYTES);
        assert_ok(d->event_done(s->index, event, &done));
        assert_true(done);
    }
    assert_ok(d->fill(s->index, first, a, 0x70, BYTES));
    assert_ok(d->event_record(s->index, event, first));
    assert_ok(d->event_wait(s->index, event));
    subject_expect(s, a, 0x70, BYTES);
    assert_ok(d->event_destroy(s->index, event));
    assert_ok(d->stream_destroy(s->index, first));
    assert_ok(d->stream_destroy(s->index, second));
    assert_ok(d->mem_free(s->index, a, BYTES));
    assert_ok(d->mem_free(s->index, b, BYTES));
}

void the_default_stream_works(void **state)
{
    const struct subject *s = *state;
    const struct driver *d = s->driver;
    if (!subject_can(s, DRIVER_IS_ASYNCHRONOUS))
        skip();
    assert_true(d->default_stream(s->index) != DRIVER_DEFAULT_STREAM_NONE);
    void *a;
    assert_ok(d->mem_alloc(s->index, BYTES, &a));
    if (d->default_stream(s->index) == DRIVER_DEFAULT_STREAM_LEGACY && !s->streams_ignore_default) {
        /* It waits for all others, and they for it. */
        driver_stream stream;
        assert_ok(d->stream_create(s->index, &stream));
        assert_ok(d->fill(s->index, stream, a, 1, BYTES));
        assert_ok(d->fill(s->index, NULL, a, 2, BYTES));
        assert_ok(d->fill(s->index, stream, a, 3, BYTES / 2));
        assert_ok(d->stream_wait(s->index, stream));
        subject_expect(s, a, 3, BYTES / 2);
        subject_expect(s, (char *)a + BYTES / 2, 2, BYTES / 2);
        assert_ok(d->stream_destroy(s->index, stream));
    }
    driver_event event;
    assert_ok(d->event_create(s->index, &event));
    assert_ok(d->fill(s->index, NULL, a, 4, BYTES));
    assert_ok(d->event_record(s->index, event, NULL));
    assert_ok(d->event_wait(s->index, event));
    subject_expect(s, a, 4, BYTES);
    assert_ok(d->event_destroy(s->index, event));
    assert_ok(d->mem_free(s->index, a, BYTES));
}

/* A wait must be done before memory goes, whatever failed. */
static void settle(const struct subject *s, driver_stream stream)
{
    if (s->driver->stream_wait(s->index, stream))
        assert_ok(s->driver->stream_wait(s->index, stream));
}

static raffia_status order_work(const struct subject *s, driver_stream stream, char *memory,
                                size_t bytes)
{
    const struct driver *d = s->driver;
    driver_event event;
    bool done;
    raffia_status status = d->event_create(s->index, &event);
    if (status)
        return status;
    if (!(status = d->fill(s->index, stream, memory, 5, bytes)) &&
        !(status = d->event_record(s->index, event, stream)) &&
        !(status = d->stream_wait_event(s->index, NULL, event)) &&
        !(status = d->copy(s->index, NULL, memory + bytes, memory, bytes)) &&
        !(status = d->event_record(s->index, event, NULL)) &&
        !(status = d->event_wait(s->index, event)) &&
        !(status = d->event_done(s->index, event, &done))) {
        assert_true(done);
        if (subject_can(s, DRIVER_CPU_ACCESSIBLE))
            assert_int_equal(memory[2 * bytes - 1], 5);
    }
    settle(s, stream);
    settle(s, NULL);
    assert_ok(d->event_destroy(s->index, event));
    return status;
}

static raffia_status order_once(void *context)
{
    const struct subject *s = context;
    const size_t bytes = 4096;
    void *memory;
    driver_stream stream;
    raffia_status status = s->driver->mem_alloc(s->index, 2 * bytes, &memory);
    if (status)
        return status;
    status = s->driver->stream_create(s->index, &stream);
    if (!status) {
        status = order_work(s, stream, memory, bytes);
        assert_ok(s->driver->stream_retire(s->index, stream));
        assert_ok(s->driver->stream_destroy(s->index, stream));
    }
    assert_ok(s->driver->mem_free(s->index, memory, 2 * bytes));
    return status;
}

void order_may_fail_at_every_call(void **state)
{
    struct subject *s = *state;
    if (!s->has_fault_points || !subject_can(s, DRIVER_IS_ASYNCHRONOUS))
        skip();
    assert_true(fault_loop(order_once, s, 1000) > 0);
}
