/* A request looks at a bounded number of stretches, and a thorough one at all. */
#include "fixture.h"
#include "space/index.h"

#include <stdlib.h>

/* Holes of 8 granules with walls of one between them, then a hole of 9 and a wall. All holes are of
 * one size class, and the last one freed is looked at last. Returns the offset of the last hole. */
static size_t make_holes(struct space *space, size_t holes)
{
    struct space_block *blocks = calloc(holes + 1, sizeof *blocks);
    assert_non_null(blocks);
    for (size_t i = 0; i <= holes; i++) {
        struct space_request request = {.bytes = (i == holes ? 9 : 8) * GRANULE};
        struct space_block wall;
        assert_ok(space_allocate(space, &request, &blocks[i]));
        assert_ok(try_take(space, GRANULE, &wall));
    }
    for (size_t i = 0; i <= holes; i++)
        assert_ok(space_free(space, blocks[i].handle));
    assert_ok(space_check(space));
    const size_t offset = blocks[holes].offset;
    free(blocks);
    return offset;
}

/* A space full but for the holes. */
static struct space *make_full_of_holes(size_t holes, size_t *last_p)
{
    struct space *space = make_present(holes * 9 + 10);
    *last_p = make_holes(space, holes);
    return space;
}

static void a_fit_behind_few_others_of_its_class_is_found(void **state)
{
    (void)state;
    size_t last;
    struct space *space = make_full_of_holes(SPACE_LOOKS - 1, &last);
    struct space_block piece;
    assert_int_equal(space_class_of(8), space_class_of(9));
    assert_ok(try_take(space, 9 * GRANULE, &piece));
    assert_int_equal(piece.offset, last);
    assert_ok(space_check(space));
    space_destroy(space);
}

static void a_fit_behind_many_others_of_its_class_needs_a_thorough_request(void **state)
{
    (void)state;
    size_t last;
    struct space *space = make_full_of_holes(5000, &last);
    struct space_request request = {.bytes = 9 * GRANULE};
    struct space_block block;
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, space_allocate(space, &request, &block));
    request.thorough = true;
    assert_ok(space_allocate(space, &request, &block));
    assert_int_equal(block.offset, last);
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, space_allocate(space, &request, &block));
    request = (struct space_request){.bytes = 8 * GRANULE};
    assert_ok(space_allocate(space, &request, &block));
    assert_ok(space_check(space));
    space_destroy(space);
}

/* However many stretches do not fit, one that is ample for size and alignment is not missed. */
static void an_aligned_request_passes_over_many_that_do_not_fit(void **state)
{
    (void)state;
    const size_t holes = 5000, start = (holes * 9 + 10) * GRANULE, ample = 16384 * GRANULE;
    struct space *space = make((start + ample) / GRANULE);
    struct space_block first;
    assert_ok(space_add(space, 0, start));
    make_holes(space, holes);
    assert_ok(try_take(space, 8 * GRANULE, &first));
    assert_int_equal(first.offset, 0);
    assert_ok(space_add(space, start, ample));
    for (int placement = SPACE_PLACE_ANY; placement <= SPACE_PLACE_HIGH; placement++) {
        struct space_request request = {.bytes = 2 * GRANULE,
                                        .alignment = 4096 * GRANULE,
                                        .placement = (enum space_placement)placement};
        struct space_block block;
        assert_ok(space_allocate(space, &request, &block));
        assert_int_equal(block.offset % request.alignment, 0);
        if (placement != SPACE_PLACE_LOW)
            assert_true(block.offset >= start);
        assert_ok(space_check(space));
        assert_ok(space_free(space, block.handle));
    }
    space_destroy(space);
}

/* Among holes that do not fit, the only aligned ones are too far for a short look. */
static void an_aligned_fit_behind_many_needs_a_thorough_request(void **state)
{
    (void)state;
    size_t last;
    struct space *space = make_full_of_holes(5000, &last);
    struct space_block first;
    assert_ok(try_take(space, 8 * GRANULE, &first)); /* the hole at 0 */
    struct space_request request = {.bytes = 2 * GRANULE, .alignment = 4096 * GRANULE};
    struct space_block block;
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, space_allocate(space, &request, &block));
    request.thorough = true;
    assert_ok(space_allocate(space, &request, &block));
    assert_int_equal(block.offset % request.alignment, 0);
    assert_ok(space_check(space));
    space_destroy(space);
}

static void a_placement_that_finds_nothing_soon_is_served_like_any(void **state)
{
    (void)state;
    for (int placement = SPACE_PLACE_LOW; placement <= SPACE_PLACE_HIGH; placement++) {
        size_t last;
        struct space *space = make_full_of_holes(5000, &last);
        struct space_request request = {.bytes = 9 * GRANULE,
                                        .placement = (enum space_placement)placement};
        struct space_block block;
        request.thorough = true;
        assert_ok(space_allocate(space, &request, &block));
        assert_int_equal(block.offset, last);
        assert_ok(space_free(space, block.handle));
        request.thorough = false;
        request.bytes = 8 * GRANULE;
        assert_ok(space_allocate(space, &request, &block));
        assert_ok(space_check(space));
        space_destroy(space);
    }
}

/* The table by offset: no chain of it is long, however the blocks lie. */
static void a_block_is_found_in_few_steps_wherever_it_lies(void **state)
{
    (void)state;
    enum { BLOCKS = 1 << 15, MOST = 12 };
    static const size_t strides[] = {1, 2, 3, 4, 7, 8, 16, 100, 127, 128, 1000, 1024, 8192, 100000};
    for (size_t i = 0; i < sizeof strides / sizeof *strides; i++) {
        struct space *space = make_present(strides[i] * BLOCKS);
        for (size_t n = 0; n < BLOCKS; n++) {
            struct space_block piece;
            assert_ok(try_take(space, strides[i] * GRANULE, &piece));
        }
        for (uint32_t slot = 0; slot < space->slot_count; slot++) {
            int steps = 0;
            for (space_link link = space->slots[slot]; link;
                 link = space_ring_at(space, link)->previous)
                steps++;
            assert_true(steps <= MOST);
        }
        space_destroy(space);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fit_behind_few_others_of_its_class_is_found),
        cmocka_unit_test(a_fit_behind_many_others_of_its_class_needs_a_thorough_request),
        cmocka_unit_test(an_aligned_request_passes_over_many_that_do_not_fit),
        cmocka_unit_test(an_aligned_fit_behind_many_needs_a_thorough_request),
        cmocka_unit_test(a_placement_that_finds_nothing_soon_is_served_like_any),
        cmocka_unit_test(a_block_is_found_in_few_steps_wherever_it_lies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
