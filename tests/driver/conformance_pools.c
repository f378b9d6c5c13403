/* Conformance: pools of the driver's own, in the order of streams. */
#include "driver/conformance.h"
#include "support/cmocka.h"
#include "support/fault_loop.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

#define POOL_ALIGNMENT 256u

static void *must_allocate(const struct subject *s, driver_pool pool, driver_stream stream,
                           size_t bytes)
{
    void *block = NULL;
    assert_ok(s->driver->pool_alloc(s->index, pool, stream, bytes, &block));
    assert_non_null(block);
    assert_int_equal((uintptr_t)block % POOL_ALIGNMENT, 0);
    return block;
}

/* Lets the second stream come behind what the first was given so far. */
static void follow(const struct subject *s, driver_stream first, driver_stream second)
{
    driver_event event;
    assert_ok(s->driver->event_create(s->index, &event));
    assert_ok(s->driver->event_record(s->index, event, first));
    assert_ok(s->driver->stream_wait_event(s->index, second, event));
    assert_ok(s->driver->event_destroy(s->index, event));
}

/* Blocks of all sizes are live at once; each is filled on the stream it was allocated on, and freed
 * on another one that comes behind. */
void pools_give_memory_in_the_order_of_streams(void **state)
{
    const struct subject *s = *state;
    const struct driver *d = s->driver;
    const size_t sizes[] = {1, 255, 257, 4097, 64 * KIB, MIB + 1, 3 * MIB, 40 * MIB};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    driver_pool pool;
    driver_stream streams[3] = {NULL};
    void *blocks[SIZES], *none = NULL;
    if (!subject_make_pool(s, &pool))
        skip();
    assert_ok(d->stream_create(s->index, &streams[1]));
    assert_ok(d->stream_create(s->index, &streams[2]));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, d->pool_alloc(s->index, pool, NULL, 0, &none));
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY,
                  d->pool_alloc(s->index, pool, NULL, (size_t)1 << 50, &none));
    assert_null(none);
    for (int i = 0; i < SIZES; i++) {
        blocks[i] = must_allocate(s, pool, streams[i % 3], sizes[i]);
        assert_ok(d->fill(s->index, streams[i % 3], blocks[i], (unsigned char)(i + 1), sizes[i]));
    }
    for (int i = 0; i < 3; i++)
        assert_ok(d->stream_wait(s->index, streams[i]));
    for (int i = 0; i < SIZES; i++) {
        const size_t seen = sizes[i] < MIB ? sizes[i] : MIB;
        subject_expect(s, blocks[i], (unsigned char)(i + 1), seen);
        subject_expect(s, (char *)blocks[i] + sizes[i] - seen, (unsigned char)(i + 1), seen);
    }
    for (int i = 0; i < SIZES; i++) {
        driver_stream last_user = streams[i % 3], freer = streams[(i + 1) % 3];
        assert_ok(d->fill(s->index, last_user, blocks[i], 0, sizes[i]));
        follow(s, last_user, freer);
        assert_ok(d->pool_free(s->index, pool, freer, blocks[i]));
    }
    for (int i = 1; i < 3; i++) {
        assert_ok(d->stream_retire(s->index, streams[i]));
        assert_ok(d->stream_destroy(s->index, streams[i])); /* with frees under way */
    }
    assert_ok(d->pool_destroy(s->index, pool));
    assert_ok(d->device_wait(s->index));
}

/* What is filled before a free is not what the next holder of the memory sees overwritten. */
void pools_use_freed_memory_again(void **state)
{
    enum { ROUNDS = 40 };
    const struct subject *s = *state;
    const struct driver *d = s->driver;
    driver_pool pool;
    driver_stream streams[2];
    if (!subject_make_pool(s, &pool))
        skip();
    for (int i = 0; i < 2; i++)
        assert_ok(d->stream_create(s->index, &streams[i]));
    for (int round = 1; round <= ROUNDS; round++) {
        driver_stream stream = streams[round % 2];
        const size_t bytes = (size_t)round * 3 * KIB;
        void *block = must_allocate(s, pool, stream, bytes);
        assert_ok(d->fill(s->index, stream, block, 0xee, bytes));
        assert_ok(d->pool_free(s->index, pool, stream, block));
        block = must_allocate(s, pool, stream, bytes);
        assert_ok(d->fill(s->index, stream, block, (unsigned char)round, bytes));
        assert_ok(d->stream_wait(s->index, stream));
        subject_expect(s, block, (unsigned char)round, bytes);
        assert_ok(d->pool_free(s->index, pool, stream, block));
        if (round % 10 == 0)
            assert_ok(d->pool_trim(s->index, pool, round % 20 == 0 ? 0 : MIB));
    }
    for (int i = 0; i < 2; i++) {
        assert_ok(d->stream_wait(s->index, streams[i]));
        assert_ok(d->stream_destroy(s->index, streams[i]));
    }
    assert_ok(d->pool_destroy(s->index, pool));
}

static raffia_status live(void *context)
{
    const struct subject *s = context;
    const struct driver *d = s->driver;
    const struct driver_pool_spec spec = {.release_threshold = MIB};
    driver_pool pool;
    raffia_status status = d->pool_create(s->index, &spec, &pool);
    if (status)
        return status;
    void *blocks[3] = {NULL};
    for (size_t i = 0; i < 3 && !status; i++) {
        status = d->pool_alloc(s->index, pool, NULL, (i + 1) * 700 * KIB, &blocks[i]);
        if (status)
            assert_null(blocks[i]);
        else if (i == 1) /* its memory is for the third */
            assert_ok(d->pool_free(s->index, pool, NULL, blocks[1]));
    }
    if (blocks[0])
        assert_ok(d->pool_free(s->index, pool, NULL, blocks[0]));
    if (blocks[2])
        assert_ok(d->pool_free(s->index, pool, NULL, blocks[2]));
    assert_ok(d->pool_trim(s->index, pool, 0));
    assert_ok(d->pool_destroy(s->index, pool));
    return status;
}

void pools_may_fail_at_every_call(void **state)
{
    struct subject *s = *state;
    driver_pool pool;
    if (!s->has_fault_points || !subject_make_pool(s, &pool))
        skip();
    assert_ok(s->driver->pool_destroy(s->index, pool));
    assert_true(fault_loop(live, s, 1000) > 0);
}
