/* Streams of the simulated device, and calls in their order that must succeed. */
#ifndef POOL_STREAM_FIXTURE_H
#define POOL_STREAM_FIXTURE_H

#include "driver/sim/sim.h"
#include "pool/pool.h"

driver_stream make_stream(void);

/* A stream with work that does not begin until it is resumed. */
driver_stream make_busy_stream(void);

/* Resumes the stream, has every pool record what is behind it, and ends it. */
void drop_stream(driver_stream stream);

void *must_alloc_on(raffia_pool *pool, driver_stream stream, size_t bytes);
void must_free_on(raffia_pool *pool, driver_stream stream, void *block);

#endif
