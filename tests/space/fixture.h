/*
 * What the tests of a space have in common: spaces of small granules, made and looked at.
 */
#ifndef TESTS_SPACE_FIXTURE_H
#define TESTS_SPACE_FIXTURE_H

#include "space/space.h"
#include "support/cmocka.h"

#include <string.h>

#define GRANULE ((size_t)256)

static inline struct space *make(size_t granules)
{
    struct space_options options = {.range_bytes = granules * GRANULE, .granule = GRANULE};
    struct space *space = NULL;
    assert_ok(space_create(&options, &space));
    return space;
}

static inline struct space *make_present(size_t granules)
{
    struct space *space = make(granules);
    assert_ok(space_add(space, 0, granules * GRANULE));
    return space;
}

/* Asks for bytes anywhere, and does not check the space: for tests that do so many times. */
static inline raffia_status try_take(struct space *space, size_t bytes, struct space_block *block)
{
    struct space_request request = {.bytes = bytes};
    return space_allocate(space, &request, block);
}

static inline struct space_block take(struct space *space, size_t granules)
{
    struct space_request request = {.bytes = granules * GRANULE};
    struct space_block block;
    assert_ok(space_allocate(space, &request, &block));
    assert_ok(space_check(space));
    return block;
}

static inline struct space_stats query(struct space *space)
{
    struct space_stats stats;
    space_query(space, &stats);
    return stats;
}

static inline void assert_same_block(const struct space_block *a, const struct space_block *b)
{
    assert_int_equal(a->handle, b->handle);
    assert_int_equal(a->offset, b->offset);
    assert_int_equal(a->bytes, b->bytes);
    assert_int_equal(a->requested, b->requested);
    assert_int_equal(a->state, b->state);
}

#endif
