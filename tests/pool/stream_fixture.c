#include "pool/stream_fixture.h"

#include "support/cmocka.h"

driver_stream make_stream(void)
{
    driver_stream stream;
    assert_ok(sim_driver.stream_create(0, &stream));
    return stream;
}

driver_stream make_busy_stream(void)
{
    driver_stream stream = make_stream();
    assert_ok(sim_stream_hold(0, stream));
    assert_ok(sim_stream_delay(0, stream, 1));
    return stream;
}

driver_event begin_behind(driver_stream keeper, driver_stream stream)
{
    driver_event gate;
    assert_ok(sim_driver.event_create(0, &gate));
    assert_ok(sim_driver.event_record(0, gate, keeper));
    assert_ok(sim_driver.stream_wait_event(0, stream, gate));
    return gate;
}

void drop_stream(driver_stream stream)
{
    assert_ok(sim_stream_resume(0, stream));
    assert_ok(raffia_stream_retire("sim:0", stream));
    assert_ok(sim_driver.stream_wait(0, stream));
    assert_ok(sim_driver.stream_destroy(0, stream));
}

void *must_alloc_on(raffia_pool *pool, driver_stream stream, size_t bytes)
{
    void *block = NULL;
    assert_ok(raffia_pool_alloc_on(pool, stream, bytes, 0, &block));
    return block;
}

void must_free_on(raffia_pool *pool, driver_stream stream, void *block)
{
    assert_ok(raffia_pool_free_on(pool, stream, block));
}
