/* Blocks: taking, finding, resizing, freeing them, and each of the errors. */
#include "fixture.h"

static void a_block_is_what_was_asked_for(void **state)
{
    (void)state;
    struct space *space = make_present(16);
    struct space_request request = {.bytes = 2 * GRANULE + 1};
    struct space_block block, found;
    assert_ok(space_allocate(space, &request, &block));
    assert_true(block.handle != 0);
    assert_int_equal(block.bytes, 3 * GRANULE);
    assert_int_equal(block.requested, 2 * GRANULE + 1);
    assert_int_equal(block.state, SPACE_HELD);
    assert_ok(space_find(space, block.offset, &found));
    assert_same_block(&block, &found);
    assert_ok(space_containing(space, block.offset + block.bytes - 1, &found));
    assert_same_block(&block, &found);
    assert_ok(space_containing(space, block.offset + block.bytes, &found));
    assert_int_equal(found.handle, 0);
    assert_int_equal(found.state, SPACE_FREE);
    assert_int_equal(found.requested, found.bytes);
    assert_int_equal(found.bytes, 13 * GRANULE);
    space_destroy(space);
}

static void impossible_requests_are_refused(void **state)
{
    (void)state;
    struct space *space = make_present(16);
    static const struct space_request bad[] = {
        {.bytes = 0},
        {.bytes = 1, .alignment = 3},
        {.bytes = 1, .alignment = SIZE_MAX},
        {.bytes = 1, .placement = (enum space_placement)3},
        {.bytes = 1, .placement = (enum space_placement) - 1},
    };
    struct space_block block = {.offset = 4711};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, space_allocate(space, &bad[i], &block));
    assert_int_equal(block.offset, 4711);
    assert_ok(space_check(space));
    assert_int_equal(query(space).blocks, 0);
    space_destroy(space);
}

static void running_out_of_space_records_no_sentence(void **state)
{
    (void)state;
    struct space *space = make_present(16);
    struct space_request bad = {.bytes = 0};
    struct space_block block = {.offset = 4711};
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, space_allocate(space, &bad, &block));
    static const size_t too_large[] = {16 * GRANULE + 1, SIZE_MAX, SIZE_MAX - GRANULE + 1,
                                       SIZE_MAX - GRANULE + 2, SIZE_MAX / 2 + 1};
    for (size_t i = 0; i < sizeof too_large / sizeof *too_large; i++) {
        struct space_request request = {.bytes = too_large[i], .alignment = (size_t)1 << (i + 59)};
        assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, space_allocate(space, &request, &block));
    }
    assert_int_equal(raffia_last_status(), RAFFIA_ERROR_INVALID_ARGUMENT);
    assert_status(RAFFIA_ERROR_BAD_ADDRESS, space_find(space, 0, &block));
    assert_int_equal(raffia_last_status(), RAFFIA_ERROR_INVALID_ARGUMENT);
    assert_int_equal(block.offset, 4711);
    space_destroy(space);
}

static void a_full_space_serves_again_what_is_freed(void **state)
{
    (void)state;
    enum { BLOCKS = 300 };
    struct space *space = make_present(BLOCKS);
    struct space_block blocks[BLOCKS], extra;
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = take(space, 1);
    struct space_request request = {.bytes = 1};
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, space_allocate(space, &request, &extra));
    assert_int_equal(query(space).free_bytes, 0);
    assert_int_equal(query(space).free_blocks, 0);
    assert_int_equal(query(space).blocks, BLOCKS);
    for (int i = 0; i < BLOCKS; i += 2)
        assert_ok(space_free(space, blocks[i].handle));
    assert_ok(space_check(space));
    assert_int_equal(query(space).largest_free, GRANULE);
    request.bytes = GRANULE + 1;
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, space_allocate(space, &request, &extra));
    for (int i = 1; i < BLOCKS; i += 2)
        assert_ok(space_free(space, blocks[i].handle));
    assert_ok(space_check(space));
    assert_int_equal(query(space).free_blocks, 1);
    assert_int_equal(query(space).largest_free, BLOCKS * GRANULE);
    assert_int_equal(take(space, BLOCKS).offset, 0);
    space_destroy(space);
}

static void a_handle_dies_with_its_block(void **state)
{
    (void)state;
    struct space *space = make_present(4);
    struct space_block first = take(space, 4);
    assert_ok(space_free(space, first.handle));
    struct space_block second = take(space, 4);
    assert_true(first.handle != second.handle);
    const space_handle bad[] = {first.handle, 0, second.handle + 1, second.handle | 1000000, ~0ull};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_status(RAFFIA_ERROR_BAD_ADDRESS, space_free(space, bad[i]));
        assert_status(RAFFIA_ERROR_BAD_ADDRESS, space_resize(space, bad[i], 1));
        assert_status(RAFFIA_ERROR_BAD_ADDRESS, space_set_state(space, bad[i], SPACE_CACHED));
    }
    assert_ok(space_check(space));
    assert_ok(space_free(space, second.handle));
    assert_status(RAFFIA_ERROR_BAD_ADDRESS, space_free(space, second.handle));
    assert_error_mentions("freed before");
    space_destroy(space);
}

static void a_block_is_found_only_by_its_start(void **state)
{
    (void)state;
    struct space *space = make_present(16);
    struct space_block block = take(space, 4), found;
    const size_t bad[] = {1,
                          GRANULE,
                          4 * GRANULE - 1,
                          4 * GRANULE,
                          8 * GRANULE,
                          16 * GRANULE,
                          17 * GRANULE,
                          SIZE_MAX,
                          GRANULE / 2,
                          SIZE_MAX - GRANULE + 1};
    assert_ok(space_find(space, block.offset, &found));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_status(RAFFIA_ERROR_BAD_ADDRESS, space_find(space, bad[i], &found));
    assert_status(RAFFIA_ERROR_NOT_FOUND, space_containing(space, 16 * GRANULE, &found));
    assert_status(RAFFIA_ERROR_NOT_FOUND, space_containing(space, SIZE_MAX, &found));
    space_destroy(space);
}

static void a_held_block_is_freed_by_its_start(void **state)
{
    (void)state;
    struct space *space = make_present(16);
    struct space_block block = take(space, 4);
    const size_t bad[] = {1, GRANULE, 4 * GRANULE, 16 * GRANULE, SIZE_MAX};
    size_t bytes = 7;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_status(RAFFIA_ERROR_BAD_ADDRESS, space_free_held(space, bad[i], 0, &bytes));
    assert_ok(space_set_state(space, block.handle, SPACE_PENDING));
    assert_status(RAFFIA_ERROR_BAD_ADDRESS, space_free_held(space, block.offset, 0, &bytes));
    assert_int_equal(bytes, 7);
    assert_ok(space_set_state(space, block.handle, SPACE_HELD));
    assert_ok(space_free_held(space, block.offset, 0, &bytes));
    assert_int_equal(bytes, 4 * GRANULE);
    assert_status(RAFFIA_ERROR_BAD_ADDRESS, space_free_held(space, block.offset, 0, &bytes));
    assert_status(RAFFIA_ERROR_BAD_ADDRESS, space_free(space, block.handle));
    assert_ok(space_check(space));
    space_destroy(space);
}

static void a_held_block_is_freed_with_its_size_alone(void **state)
{
    (void)state;
    struct space *space = make_present(16);
    const struct space_request request = {.bytes = 3 * GRANULE + 5};
    const size_t bad[] = {1, 3 * GRANULE, 3 * GRANULE + 4, 3 * GRANULE + 6, 4 * GRANULE, SIZE_MAX};
    struct space_block block;
    size_t bytes = 7;
    assert_ok(space_allocate(space, &request, &block));
    assert_int_equal(space_requested(space, block.handle), request.bytes);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_status(RAFFIA_ERROR_BAD_ADDRESS,
                      space_free_held(space, block.offset, bad[i], &bytes));
    assert_ok(space_resize(space, block.handle, 2 * GRANULE + 1));
    assert_status(RAFFIA_ERROR_BAD_ADDRESS,
                  space_free_held(space, block.offset, request.bytes, &bytes));
    assert_int_equal(bytes, 7);
    assert_ok(space_free_held(space, block.offset, 2 * GRANULE + 1, &bytes));
    assert_int_equal(bytes, 3 * GRANULE);
    assert_ok(space_check(space));
    space_destroy(space);
}

static void a_block_is_handed_out_again_whole(void **state)
{
    (void)state;
    struct space *space = make_present(16);
    struct space_block block = take(space, 4), found;
    assert_ok(space_set_state(space, block.handle, SPACE_PENDING));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, space_reuse(space, block.handle, 0));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, space_reuse(space, block.handle, 4 * GRANULE + 1));
    assert_int_equal(query(space).requested_bytes, 0);
    assert_ok(space_reuse(space, block.handle, 2 * GRANULE + 1));
    assert_ok(space_find(space, block.offset, &found));
    assert_int_equal(found.handle, block.handle);
    assert_int_equal(found.bytes, 4 * GRANULE);
    assert_int_equal(found.requested, 2 * GRANULE + 1);
    assert_int_equal(found.state, SPACE_HELD);
    assert_int_equal(query(space).requested_bytes, 2 * GRANULE + 1);
    assert_int_equal(query(space).state_bytes[SPACE_HELD], 4 * GRANULE);
    assert_ok(space_check(space));
    assert_ok(space_free(space, block.handle));
    assert_status(RAFFIA_ERROR_BAD_ADDRESS, space_reuse(space, block.handle, 1));
    space_destroy(space);
}

static void blocks_grow_into_free_space_behind_them(void **state)
{
    (void)state;
    struct space *space = make_present(16);
    struct space_block first = take(space, 4), second = take(space, 4), found;
    assert_int_equal(second.offset, 4 * GRANULE);
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, space_resize(space, first.handle, 4 * GRANULE + 1));
    assert_ok(space_resize(space, first.handle, 4 * GRANULE - 1));
    assert_ok(space_find(space, 0, &found));
    assert_int_equal(found.bytes, 4 * GRANULE);
    assert_int_equal(found.requested, 4 * GRANULE - 1);

    assert_ok(space_resize(space, second.handle, 10 * GRANULE));
    assert_ok(space_check(space));
    assert_int_equal(query(space).free_bytes, 2 * GRANULE);
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, space_resize(space, second.handle, 13 * GRANULE));
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, space_resize(space, second.handle, SIZE_MAX));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, space_resize(space, second.handle, 0));
    assert_ok(space_resize(space, second.handle, 12 * GRANULE));
    assert_ok(space_check(space));
    assert_int_equal(query(space).free_blocks, 0);
    assert_ok(space_free(space, second.handle));
    space_destroy(space);
}

static void blocks_give_their_tails_back(void **state)
{
    (void)state;
    struct space *space = make_present(12);
    struct space_block first = take(space, 4), second = take(space, 4), found;
    assert_ok(space_resize(space, first.handle, GRANULE + 1));
    assert_ok(space_check(space));
    assert_true(space_is_free(space, 2 * GRANULE, 2 * GRANULE));
    assert_int_equal(query(space).free_blocks, 2);
    assert_ok(space_resize(space, second.handle, 1));
    assert_ok(space_check(space));
    assert_int_equal(query(space).free_blocks, 2);
    assert_int_equal(query(space).largest_free, 7 * GRANULE);
    assert_ok(space_find(space, second.offset, &found));
    assert_int_equal(found.handle, second.handle);
    assert_int_equal(found.requested, 1);
    space_destroy(space);
}

static void states_are_accounted_apart(void **state)
{
    (void)state;
    struct space *space = make_present(16);
    struct space_request request = {.bytes = GRANULE + 10};
    struct space_block block;
    assert_ok(space_allocate(space, &request, &block));
    take(space, 3);
    assert_int_equal(query(space).requested_bytes, 4 * GRANULE + 10);
    assert_int_equal(query(space).state_bytes[SPACE_HELD], 5 * GRANULE);
    assert_ok(space_set_state(space, block.handle, SPACE_PENDING));
    assert_ok(space_check(space));
    struct space_stats stats = query(space);
    assert_int_equal(stats.requested_bytes, 3 * GRANULE);
    assert_int_equal(stats.state_bytes[SPACE_FREE], 11 * GRANULE);
    assert_int_equal(stats.state_bytes[SPACE_HELD], 3 * GRANULE);
    assert_int_equal(stats.state_bytes[SPACE_PENDING], 2 * GRANULE);
    assert_int_equal(stats.blocks, 2);
    assert_ok(space_set_state(space, block.handle, SPACE_CACHED));
    assert_int_equal(query(space).state_bytes[SPACE_CACHED], 2 * GRANULE);
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, space_set_state(space, block.handle, SPACE_FREE));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT,
                  space_set_state(space, block.handle, SPACE_STATES));
    assert_status(RAFFIA_ERROR_BUSY, space_remove(space, block.offset, GRANULE));
    assert_ok(space_free(space, block.handle));
    assert_int_equal(query(space).state_bytes[SPACE_CACHED], 0);
    assert_ok(space_check(space));
    space_destroy(space);
}

static void is_free_looks_at_bytes(void **state)
{
    (void)state;
    struct space *space = make_present(8);
    take(space, 2);
    assert_true(space_is_free(space, 2 * GRANULE, 6 * GRANULE));
    assert_true(space_is_free(space, 2 * GRANULE + 5, 1));
    assert_true(space_is_free(space, 0, 0));
    assert_false(space_is_free(space, 2 * GRANULE - 1, 1));
    assert_false(space_is_free(space, 2 * GRANULE, 6 * GRANULE + 1));
    assert_false(space_is_free(space, 8 * GRANULE, 1));
    assert_false(space_is_free(space, 4 * GRANULE, SIZE_MAX));
    assert_false(space_is_free(space, SIZE_MAX, 1));
    space_destroy(space);
}

struct visits {
    size_t count, until;
    size_t offsets[8];
};

static bool visit(void *context, const struct space_block *block)
{
    struct visits *visits = context;
    visits->offsets[visits->count++] = block->offset;
    return visits->count < visits->until;
}

static void a_walk_is_in_order_and_can_be_stopped(void **state)
{
    (void)state;
    struct space *space = make(16);
    assert_ok(space_add(space, 8 * GRANULE, 8 * GRANULE));
    assert_ok(space_add(space, 0, 4 * GRANULE));
    struct space_block block = take(space, 3);
    assert_int_equal(block.offset, 0);
    struct visits all = {.until = 8}, two = {.until = 2};
    space_walk(space, visit, &all);
    assert_int_equal(all.count, 3);
    assert_int_equal(all.offsets[0], 0);
    assert_int_equal(all.offsets[1], 3 * GRANULE);
    assert_int_equal(all.offsets[2], 8 * GRANULE);
    space_walk(space, visit, &two);
    assert_int_equal(two.count, 2);
    space_destroy(space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_block_is_what_was_asked_for),
        cmocka_unit_test(impossible_requests_are_refused),
        cmocka_unit_test(running_out_of_space_records_no_sentence),
        cmocka_unit_test(a_full_space_serves_again_what_is_freed),
        cmocka_unit_test(a_handle_dies_with_its_block),
        cmocka_unit_test(a_block_is_found_only_by_its_start),
        cmocka_unit_test(a_held_block_is_freed_by_its_start),
        cmocka_unit_test(a_held_block_is_freed_with_its_size_alone),
        cmocka_unit_test(a_block_is_handed_out_again_whole),
        cmocka_unit_test(blocks_grow_into_free_space_behind_them),
        cmocka_unit_test(blocks_give_their_tails_back),
        cmocka_unit_test(states_are_accounted_apart),
        cmocka_unit_test(is_free_looks_at_bytes),
        cmocka_unit_test(a_walk_is_in_order_and_can_be_stopped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
