/* Making a space; adding parts to it and removing them. */
#include "fixture.h"

static void impossible_spaces_are_refused(void **state)
{
    (void)state;
    static const struct space_options bad[] = {
        {.range_bytes = 4096, .granule = 0},
        {.range_bytes = 4096, .granule = 384},
        {.range_bytes = 0, .granule = 256},
        {.range_bytes = 4097, .granule = 256},
        {.range_bytes = 128, .granule = 256},
        {.range_bytes = SIZE_MAX, .granule = 2},
        {.range_bytes = 0, .granule = 0},
        {.range_bytes = (size_t)1 << 33, .granule = (size_t)1 << 33},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct space *space = NULL;
        assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, space_create(&bad[i], &space));
        assert_null(space);
    }
    space_destroy(NULL);
}

static void a_new_space_is_absent(void **state)
{
    (void)state;
    struct space *space = make(16);
    struct space_block block;
    struct space_request request = {.bytes = 1};
    assert_ok(space_check(space));
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, space_allocate(space, &request, &block));
    assert_status(RAFFIA_ERROR_BAD_ADDRESS, space_find(space, 0, &block));
    assert_status(RAFFIA_ERROR_NOT_FOUND, space_containing(space, 0, &block));
    assert_status(RAFFIA_ERROR_BUSY, space_remove(space, 0, GRANULE));
    assert_false(space_is_free(space, 0, 1));
    assert_int_equal(query(space).present_bytes, 0);
    assert_int_equal(query(space).largest_free, 0);
    assert_int_equal(query(space).free_blocks, 0);
    space_destroy(space);
}

static void parts_that_are_no_granules_of_the_range_are_refused(void **state)
{
    (void)state;
    struct space *space = make(16);
    static const size_t bad[][2] = {
        {0, 0},
        {1, GRANULE},
        {0, GRANULE + 1},
        {0, 17 * GRANULE},
        {16 * GRANULE, GRANULE},
        {15 * GRANULE, 2 * GRANULE},
        {GRANULE, SIZE_MAX - GRANULE + 1},
        {SIZE_MAX - GRANULE + 1, GRANULE},
        {SIZE_MAX, SIZE_MAX},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, space_add(space, bad[i][0], bad[i][1]));
        assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, space_remove(space, bad[i][0], bad[i][1]));
        assert_ok(space_check(space));
    }
    assert_int_equal(query(space).present_bytes, 0);
    space_destroy(space);
}

static void a_part_is_added_once(void **state)
{
    (void)state;
    struct space *space = make(16);
    assert_ok(space_add(space, 4 * GRANULE, 4 * GRANULE));
    static const size_t overlapping[][2] = {{4, 4}, {5, 1}, {3, 2}, {7, 2}, {3, 6}, {0, 16}};
    for (size_t i = 0; i < sizeof overlapping / sizeof *overlapping; i++) {
        assert_status(RAFFIA_ERROR_INVALID_ARGUMENT,
                      space_add(space, overlapping[i][0] * GRANULE, overlapping[i][1] * GRANULE));
        assert_error_mentions("added before");
        assert_ok(space_check(space));
    }
    assert_int_equal(query(space).present_bytes, 4 * GRANULE);
    space_destroy(space);
}

static void added_parts_that_touch_are_one_stretch(void **state)
{
    (void)state;
    struct space *space = make(16);
    assert_ok(space_add(space, 2 * GRANULE, 2 * GRANULE));
    assert_ok(space_add(space, 6 * GRANULE, 2 * GRANULE));
    assert_int_equal(query(space).free_blocks, 2);
    assert_false(space_is_free(space, 2 * GRANULE, 6 * GRANULE));
    assert_ok(space_add(space, 4 * GRANULE, 2 * GRANULE));
    assert_ok(space_check(space));
    assert_int_equal(query(space).free_blocks, 1);
    assert_int_equal(query(space).largest_free, 6 * GRANULE);
    assert_true(space_is_free(space, 2 * GRANULE, 6 * GRANULE));
    space_destroy(space);
}

static void free_space_is_not_merged_across_an_absent_part(void **state)
{
    (void)state;
    struct space *space = make_present(12);
    assert_ok(space_remove(space, 4 * GRANULE, 4 * GRANULE));
    assert_int_equal(query(space).free_blocks, 2);
    struct space_block low = take(space, 4), high = take(space, 4);
    assert_int_equal(low.offset + high.offset, 8 * GRANULE);
    assert_ok(space_free(space, low.handle));
    assert_ok(space_free(space, high.handle));
    assert_ok(space_check(space));
    assert_int_equal(query(space).free_blocks, 2);
    assert_int_equal(query(space).largest_free, 4 * GRANULE);
    struct space_request request = {.bytes = 5 * GRANULE};
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, space_allocate(space, &request, &low));
    space_destroy(space);
}

static void only_free_parts_can_be_removed(void **state)
{
    (void)state;
    struct space *space = make_present(8);
    struct space_block block = take(space, 4);
    assert_int_equal(block.offset, 0);
    static const size_t busy[][2] = {{0, 1}, {0, 4}, {3, 2}, {0, 8}, {1, 7}};
    for (size_t i = 0; i < sizeof busy / sizeof *busy; i++)
        assert_status(RAFFIA_ERROR_BUSY,
                      space_remove(space, busy[i][0] * GRANULE, busy[i][1] * GRANULE));
    assert_ok(space_check(space));
    assert_int_equal(query(space).present_bytes, 8 * GRANULE);
    assert_ok(space_remove(space, 5 * GRANULE, GRANULE));
    assert_status(RAFFIA_ERROR_BUSY, space_remove(space, 4 * GRANULE, 4 * GRANULE));
    assert_ok(space_remove(space, 4 * GRANULE, GRANULE));
    assert_ok(space_remove(space, 6 * GRANULE, 2 * GRANULE));
    assert_ok(space_check(space));
    assert_int_equal(query(space).present_bytes, 4 * GRANULE);
    assert_int_equal(query(space).free_bytes, 0);
    assert_ok(space_free(space, block.handle));
    assert_ok(space_remove(space, 0, 4 * GRANULE));
    assert_ok(space_check(space));
    assert_int_equal(query(space).present_bytes, 0);
    assert_ok(space_add(space, 0, 8 * GRANULE));
    space_destroy(space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(impossible_spaces_are_refused),
        cmocka_unit_test(a_new_space_is_absent),
        cmocka_unit_test(parts_that_are_no_granules_of_the_range_are_refused),
        cmocka_unit_test(a_part_is_added_once),
        cmocka_unit_test(added_parts_that_touch_are_one_stretch),
        cmocka_unit_test(free_space_is_not_merged_across_an_absent_part),
        cmocka_unit_test(only_free_parts_can_be_removed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
