/* Where blocks go: placement, alignment, and ranges as large as the numbers. */
#include "space/space.h"
#include "support/cmocka.h"

#include <string.h>

#define GRANULE ((size_t)4096)

static struct space *make(size_t range_bytes, size_t granule)
{
    struct space_options options = {.range_bytes = range_bytes, .granule = granule};
    struct space *space = NULL;
    assert_ok(space_create(&options, &space));
    assert_ok(space_add(space, 0, range_bytes));
    return space;
}

static struct space_block take(struct space *space, size_t bytes, size_t alignment,
                               enum space_placement placement)
{
    struct space_request request = {.bytes = bytes, .alignment = alignment, .placement = placement};
    struct space_block block;
    assert_ok(space_allocate(space, &request, &block));
    assert_ok(space_check(space));
    return block;
}

static void refuse(struct space *space, size_t bytes, size_t alignment)
{
    for (int placement = SPACE_PLACE_ANY; placement <= SPACE_PLACE_HIGH; placement++) {
        struct space_request request = {
            .bytes = bytes, .alignment = alignment, .placement = (enum space_placement)placement};
        struct space_block block;
        assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, space_allocate(space, &request, &block));
    }
    assert_ok(space_check(space));
}

static void low_and_high_take_the_ends(void **state)
{
    (void)state;
    struct space *space = make(64 * GRANULE, GRANULE);
    assert_int_equal(take(space, GRANULE, 0, SPACE_PLACE_HIGH).offset, 63 * GRANULE);
    assert_int_equal(take(space, 2 * GRANULE, 0, SPACE_PLACE_HIGH).offset, 61 * GRANULE);
    assert_int_equal(take(space, GRANULE, 0, SPACE_PLACE_LOW).offset, 0);
    assert_int_equal(take(space, 2 * GRANULE, 0, SPACE_PLACE_LOW).offset, GRANULE);
    space_destroy(space);
}

/* Three holes: 8 granules at 0, 4 at 16, 8 at 32; the rest is held. */
static struct space *make_with_holes(void)
{
    struct space *space = make(64 * GRANULE, GRANULE);
    static const size_t pieces[] = {8, 8, 4, 12, 8, 24};
    struct space_block blocks[6];
    for (int i = 0; i < 6; i++)
        blocks[i] = take(space, pieces[i] * GRANULE, 0, SPACE_PLACE_LOW);
    for (int i = 0; i < 6; i += 2)
        assert_ok(space_free(space, blocks[i].handle));
    assert_ok(space_check(space));
    return space;
}

static void low_and_high_choose_among_all_stretches_that_fit(void **state)
{
    (void)state;
    struct space *space = make_with_holes();
    assert_int_equal(take(space, 3 * GRANULE, 0, SPACE_PLACE_HIGH).offset, 37 * GRANULE);
    assert_int_equal(take(space, 6 * GRANULE, 0, SPACE_PLACE_HIGH).offset, 2 * GRANULE);
    assert_int_equal(take(space, 3 * GRANULE, 0, SPACE_PLACE_LOW).offset, 16 * GRANULE);
    space_destroy(space);
}

static void any_prefers_the_stretch_of_the_right_size(void **state)
{
    (void)state;
    struct space *space = make_with_holes();
    assert_int_equal(take(space, 4 * GRANULE, 0, SPACE_PLACE_ANY).offset, 16 * GRANULE);
    refuse(space, 9 * GRANULE, 0);
    space_destroy(space);
}

static void every_alignment_up_to_the_range_is_kept(void **state)
{
    (void)state;
    enum { SHIFT = 10 };
    for (unsigned shift = 0; shift <= 12 + SHIFT; shift++) {
        struct space *space = make(GRANULE << SHIFT, GRANULE);
        size_t alignment = (size_t)1 << shift;
        take(space, GRANULE, 0, SPACE_PLACE_LOW);
        if (shift == 12 + SHIFT) {
            refuse(space, GRANULE, alignment);
            space_destroy(space);
            continue;
        }
        size_t first = alignment > GRANULE ? alignment : GRANULE;
        assert_int_equal(take(space, 1, alignment, SPACE_PLACE_ANY).offset, first);
        size_t step = alignment > GRANULE ? alignment : GRANULE;
        size_t last = (GRANULE << SHIFT) - step;
        if (last > first)
            assert_int_equal(take(space, 1, alignment, SPACE_PLACE_HIGH).offset, last);
        space_destroy(space);
    }
}

static void an_alignment_beyond_the_range_leaves_only_the_start(void **state)
{
    (void)state;
    struct space *space = make(16 * GRANULE, GRANULE);
    size_t alignment = (size_t)1 << 63;
    struct space_block block = take(space, GRANULE, alignment, SPACE_PLACE_HIGH);
    assert_int_equal(block.offset, 0);
    refuse(space, GRANULE, alignment);
    space_destroy(space);
}

static void a_stretch_large_enough_may_still_not_fit_for_alignment(void **state)
{
    (void)state;
    struct space *space = make(16 * GRANULE, GRANULE);
    take(space, GRANULE, 0, SPACE_PLACE_LOW);
    /* 15 granules are free, but 8 of them from a multiple of 8 on start at 8 only. */
    assert_int_equal(take(space, 8 * GRANULE, 8 * GRANULE, SPACE_PLACE_ANY).offset, 8 * GRANULE);
    refuse(space, 4 * GRANULE, 8 * GRANULE);
    assert_int_equal(take(space, 4 * GRANULE, 4 * GRANULE, SPACE_PLACE_ANY).offset, 4 * GRANULE);
    refuse(space, 3 * GRANULE, 2 * GRANULE);
    assert_int_equal(take(space, 2 * GRANULE, 2 * GRANULE, SPACE_PLACE_HIGH).offset, 2 * GRANULE);
    space_destroy(space);
}

static void an_aligned_search_passes_over_larger_bins_that_do_not_fit(void **state)
{
    (void)state;
    struct space *space = make(64 * GRANULE, GRANULE);
    struct space_block hole, wall;
    take(space, GRANULE, 0, SPACE_PLACE_LOW);
    hole = take(space, 14 * GRANULE, 0, SPACE_PLACE_LOW); /* 1 to 14: no multiple of 16 */
    wall = take(space, GRANULE, 0, SPACE_PLACE_LOW);      /* 15 */
    assert_int_equal(wall.offset, 15 * GRANULE);
    assert_ok(space_free(space, hole.handle));
    assert_int_equal(take(space, GRANULE, 16 * GRANULE, SPACE_PLACE_ANY).offset, 16 * GRANULE);
    assert_int_equal(take(space, GRANULE, 16 * GRANULE, SPACE_PLACE_LOW).offset, 32 * GRANULE);
    space_destroy(space);
}

/* The range of most granules for each size of them. */
static void a_range_may_have_as_many_granules_as_there_are_numbers(void **state)
{
    (void)state;
    static const size_t granules[] = {1, 256, 4096, (size_t)2 << 20, (size_t)1 << 32};
    for (size_t i = 0; i < sizeof granules / sizeof *granules; i++) {
        size_t granule = granules[i], range = (UINT32_MAX - (size_t)1) * granule;
        struct space *space = make(range, granule);
        struct space_stats stats;
        space_query(space, &stats);
        assert_true(stats.largest_free == range);
        refuse(space, SIZE_MAX, 0);
        refuse(space, range + 1, 0);

        struct space_block block = take(space, range, 0, SPACE_PLACE_ANY);
        assert_true(block.bytes == range);
        assert_ok(space_resize(space, block.handle, 1));
        assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, space_resize(space, block.handle, SIZE_MAX));
        struct space_block high = take(space, 1, 0, SPACE_PLACE_HIGH), found;
        assert_true(high.offset == range - granule);
        assert_ok(space_find(space, high.offset, &found));
        assert_true(found.handle == high.handle);
        assert_ok(space_resize(space, block.handle, range - granule));
        assert_ok(space_free(space, high.handle));
        assert_ok(space_free(space, block.handle));
        assert_ok(space_check(space));
        block = take(space, granule, granule << 31, SPACE_PLACE_HIGH);
        assert_true(block.offset == granule << 31);
        space_destroy(space);
    }
}

static void a_range_of_more_granules_is_refused(void **state)
{
    (void)state;
    static const struct space_options bad[] = {
        {.range_bytes = (size_t)UINT32_MAX * 256, .granule = 256},
        {.range_bytes = (size_t)1 << 40, .granule = 256},
        {.range_bytes = SIZE_MAX - 255, .granule = 256},
        {.range_bytes = SIZE_MAX, .granule = 1},
        {.range_bytes = (size_t)1 << 63, .granule = 1 << 30},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct space *space = NULL;
        assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, space_create(&bad[i], &space));
        assert_error_mentions("make the granule larger");
        assert_null(space);
    }
}

/* Beyond 32 bits of bytes, and beyond the 256 GiB that 30 bits of granules reach. */
static void blocks_lie_anywhere_in_a_large_range(void **state)
{
    (void)state;
    const size_t gib = (size_t)1 << 30;
    struct space *space = make(1000 * gib, 256);
    struct space_block blocks[10], found;
    for (size_t i = 0; i < 10; i++) {
        blocks[i] = take(space, 100 * gib - 256 * i, 0, SPACE_PLACE_ANY);
        assert_true(blocks[i].bytes == 100 * gib - 256 * i);
    }
    for (size_t i = 0; i < 10; i++) {
        assert_ok(space_containing(space, blocks[i].offset + blocks[i].bytes - 1, &found));
        assert_true(found.handle == blocks[i].handle && found.offset == blocks[i].offset);
        assert_status(RAFFIA_ERROR_BAD_ADDRESS,
                      space_find(space, blocks[i].offset + ((size_t)1 << 37), &found));
    }
    refuse(space, gib, 0);
    for (size_t i = 0; i < 10; i++) {
        size_t bytes;
        assert_ok(space_free_held(space, blocks[(i * 3) % 10].offset, 0, &bytes));
        assert_true(bytes == blocks[(i * 3) % 10].bytes);
        assert_ok(space_check(space));
    }
    assert_true(space_is_free(space, 0, 1000 * gib));
    space_destroy(space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(low_and_high_take_the_ends),
        cmocka_unit_test(low_and_high_choose_among_all_stretches_that_fit),
        cmocka_unit_test(any_prefers_the_stretch_of_the_right_size),
        cmocka_unit_test(every_alignment_up_to_the_range_is_kept),
        cmocka_unit_test(an_alignment_beyond_the_range_leaves_only_the_start),
        cmocka_unit_test(a_stretch_large_enough_may_still_not_fit_for_alignment),
        cmocka_unit_test(an_aligned_search_passes_over_larger_bins_that_do_not_fit),
        cmocka_unit_test(a_range_may_have_as_many_granules_as_there_are_numbers),
        cmocka_unit_test(a_range_of_more_granules_is_refused),
        cmocka_unit_test(blocks_lie_anywhere_in_a_large_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
