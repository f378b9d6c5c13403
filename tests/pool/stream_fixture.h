/* Streams of the simulated device, and calls in their order that must succeed. */
#ifndef POOL_STREAM_FIXTURE_H
#define POOL_STREAM_FIXTURE_H

#include "driver/sim/sim.h"
#include "pool/pool.h"

driver_stream make_stream(void);

/* A stream with work that does not begin until it is resumed. */
driver_stream make_busy_stream(void);

/* Keeps the stream's work from beginning, even once it is destroyed, until the keeper is resumed.
 * The event is the caller's to destroy. */
driver_event begin_behind(driver_stream keeper, driver_stream stream);

/* Resumes the stream, has every pool record what is behind it, and ends it. */
void drop_stream(driver_stream stream);

void *must_alloc_on(raffia_pool *pool, driver_stream stream, size_t bytes);
void must_free_on(raffia_pool *pool, driver_stream stream, void *block);

#endif
