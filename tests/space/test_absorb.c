/* One space taking over what another has in it. */
#include "core/fault.h"
#include "fixture.h"
#include "support/random.h"

#define GRANULES 400
#define LEASES   8
#define LENGTH   (GRANULES / 8)

/* A space of which some eighths are in another one, and random blocks in both. */
struct pair {
    struct space *space, *other;
    enum space_state states[GRANULES]; /* what all of it should be in the end */
    size_t starts;                     /* blocks, in the end */
    size_t slack;
};

static void fill_at_random(struct pair *pair, struct space *space, struct test_random *random)
{
    struct space_block blocks[60];
    size_t count = 0;
    for (int i = 0; i < 150; i++) {
        if (count < 60 && test_random_below(random, 3)) {
            const size_t bytes = 1 + test_random_below(random, 20 * GRANULE);
            count += !try_take(space, bytes, &blocks[count]);
        } else if (count) {
            const size_t victim = test_random_below(random, count);
            assert_ok(space_free(space, blocks[victim].handle));
            blocks[victim] = blocks[--count];
        }
    }
    for (size_t i = 0; i < count; i++) {
        const enum space_state state = (enum space_state)(1 + test_random_below(random, 3));
        assert_ok(space_set_state(space, blocks[i].handle, state));
        for (size_t at = 0; at < blocks[i].bytes / GRANULE; at++)
            pair->states[blocks[i].offset / GRANULE + at] = state;
        pair->starts++;
        if (state == SPACE_HELD)
            pair->slack += blocks[i].bytes - blocks[i].requested;
    }
}

static void compare(struct pair *pair)
{
    struct space_stats stats = query(pair->space);
    size_t free_bytes = 0, held = 0;
    for (size_t i = 0; i < GRANULES; i++) {
        struct space_block block;
        assert_ok(space_containing(pair->space, i * GRANULE, &block));
        assert_int_equal(block.state, pair->states[i]);
        free_bytes += block.state == SPACE_FREE ? GRANULE : 0;
        held += block.state == SPACE_HELD ? GRANULE : 0;
    }
    assert_int_equal(stats.present_bytes, GRANULES * GRANULE);
    assert_int_equal(stats.free_bytes, free_bytes);
    assert_int_equal(stats.blocks, pair->starts);
    assert_int_equal(stats.requested_bytes, held - pair->slack);
    stats = query(pair->other);
    assert_int_equal(stats.present_bytes, 0);
    assert_int_equal(stats.blocks, 0);
    assert_int_equal(stats.free_bytes, 0);
}

static void the_blocks_of_another_space_move_to_their_places(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct test_random random = {seed};
        struct pair pair = {.space = make(GRANULES), .other = make(GRANULES)};
        for (size_t i = 0; i < LEASES; i++)
            assert_ok(space_add(test_random_below(&random, 2) ? pair.other : pair.space,
                                i * LENGTH * GRANULE, LENGTH * GRANULE));
        fill_at_random(&pair, pair.space, &random);
        fill_at_random(&pair, pair.other, &random);
        assert_ok(space_prepare_absorb(pair.space, pair.other));
        for (size_t i = 0; i < LEASES; i++) {
            struct space_block block;
            if (space_containing(pair.space, i * LENGTH * GRANULE, &block))
                assert_ok(space_add(pair.space, i * LENGTH * GRANULE, LENGTH * GRANULE));
        }
        space_absorb(pair.space, pair.other);
        assert_ok(space_check(pair.space));
        assert_ok(space_check(pair.other));
        compare(&pair);
        /* Both go on as before. */
        assert_ok(space_add(pair.other, 0, GRANULES * GRANULE));
        struct space_block block = take(pair.other, GRANULES);
        assert_ok(space_free(pair.other, block.handle));
        space_destroy(pair.space);
        space_destroy(pair.other);
    }
}

static void handles_of_blocks_that_moved_are_stale(void **state)
{
    (void)state;
    struct space *space = make_present(16), *other = make(16);
    struct space_block lease = take(space, 8);
    assert_ok(space_add(other, lease.offset, lease.bytes));
    const struct space_block block = take(other, 3);
    assert_ok(space_prepare_absorb(space, other));
    assert_ok(space_free(space, lease.handle)); /* which leaves all of it loose: recent.h */
    space_absorb(space, other);
    assert_ok(space_check(space));
    assert_int_equal(space_free(other, block.handle), RAFFIA_ERROR_BAD_ADDRESS);
    size_t bytes;
    assert_ok(space_free_held(space, block.offset, 0, &bytes));
    assert_int_equal(bytes, block.bytes);
    space_destroy(space);
    space_destroy(other);
}

static void preparing_fails_for_want_of_memory_and_changes_nothing(void **state)
{
    (void)state;
    struct space *space = make_present(GRANULES), *other = make_present(GRANULES);
    for (size_t i = 0; i < GRANULES; i++)
        (void)take(other, 1);
    long failed = 0;
    raffia_status status;
    do {
        core_fault_arm(++failed);
        status = space_prepare_absorb(space, other);
        (void)core_fault_disarm();
        assert_true(!status || status == RAFFIA_ERROR_OUT_OF_HOST_MEMORY);
        assert_ok(space_check(space));
        assert_int_equal(query(space).free_bytes, GRANULES * GRANULE);
    } while (status);
    assert_true(failed > 2);
    space_absorb(space, other);
    assert_ok(space_check(space));
    assert_int_equal(query(space).blocks, GRANULES);
    space_destroy(space);
    space_destroy(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_blocks_of_another_space_move_to_their_places),
        cmocka_unit_test(handles_of_blocks_that_moved_are_stale),
        cmocka_unit_test(preparing_fails_for_want_of_memory_and_changes_nothing),
    };
    return cmocka_run_group_tests_name("space absorbing another", tests, NULL, NULL);
}
