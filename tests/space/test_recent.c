/*
 * The block that was taken last and is given back first: its stretch is in no cell, and nobody can
 * tell.
 */
#include "fixture.h"
#include "space/recent.h"
#include "space/slab.h"
#include "support/random.h"

static void give(struct space *space, const struct space_block *block)
{
    assert_ok(space_free(space, block->handle));
    assert_ok(space_check(space));
}

static void a_pair_leaves_its_stretch_loose(void **state)
{
    (void)state;
    struct space *space = make_present(64);
    const struct space_block first = take(space, 4);
    assert_int_equal(space_loose(space), 0);
    for (int i = 0; i < 3; i++) {
        struct space_block block = take(space, 8), same;
        assert_int_equal(block.offset, 4 * GRANULE);
        assert_ok(space_find(space, block.offset, &same));
        assert_same_block(&same, &block);
        assert_int_equal(space->loose, i ? SPACE_LOOSE_REST : SPACE_LOOSE_NONE);
        give(space, &block);
        assert_int_equal(space->loose, SPACE_LOOSE_WHOLE);
        assert_int_equal(space_find(space, block.offset, &same), RAFFIA_ERROR_BAD_ADDRESS);
        assert_int_equal(space_free(space, block.handle), RAFFIA_ERROR_BAD_ADDRESS);
    }
    give(space, &first);
    assert_int_equal(space_loose(space), 0);
    assert_int_equal(query(space).largest_free, 64 * GRANULE);
    space_destroy(space);
}

/* By its offset, of fewer bytes, and in a stretch that it fills. */
static void other_pairs_do_as_well(void **state)
{
    (void)state;
    struct space *space = make_present(8);
    struct space_block block;
    size_t bytes;
    for (size_t i = 0; i < 3; i++) {
        assert_ok(try_take(space, 8 * GRANULE - i, &block));
        assert_int_equal(block.requested, 8 * GRANULE - i);
        assert_int_equal(block.bytes, 8 * GRANULE);
        assert_ok(space_check(space));
        assert_int_equal(try_take(space, 1, &(struct space_block){0}), RAFFIA_ERROR_OUT_OF_MEMORY);
        assert_int_equal(space_loose(space), 0);
        assert_ok(space_free_held(space, 0, 8 * GRANULE - i, &bytes));
        assert_int_equal(bytes, 8 * GRANULE);
        assert_ok(space_check(space));
    }
    /* Blocks that were put into another state are freed like any. */
    for (int kept = SPACE_CACHED; kept <= SPACE_PENDING; kept++) {
        block = take(space, 7);
        assert_ok(space_set_state(space, block.handle, (enum space_state)kept));
        give(space, &block);
        assert_int_equal(space_loose(space), 0);
        assert_int_equal(query(space).largest_free, 8 * GRANULE);
    }
    space_destroy(space);
}

/* The next of a ring is taken first: a stretch that is not alone in its cell is put behind it. */
static void a_stretch_with_company_is_not_loose(void **state)
{
    (void)state;
    struct space *space = make_present(64);
    struct space_block holes[2], block;
    for (int i = 0; i < 2; i++) {
        holes[i] = take(space, 4);
        take(space, 1);
    }
    take(space, 54);
    give(space, &holes[0]);
    give(space, &holes[1]);
    for (int i = 0; i < 4; i++) {
        block = take(space, 3);
        assert_int_equal(block.offset, holes[i % 2].offset);
        give(space, &block);
        assert_int_equal(space_loose(space), 0);
    }
    space_destroy(space);
}

/* Which request may be served from the loose stretch without a search. */
static void only_the_same_request_is_served_again(void **state)
{
    (void)state;
    struct space *space = make_present(64);
    const struct space_request others[] = {
        {.bytes = 7 * GRANULE},
        {.bytes = 8 * GRANULE + 1},
        {.bytes = 8 * GRANULE, .alignment = 2 * GRANULE},
        {.bytes = 8 * GRANULE, .placement = SPACE_PLACE_HIGH},
        {.bytes = 8 * GRANULE, .thorough = true},
    };
    const struct space_request bad[] = {
        {.bytes = 0},
        {.bytes = 8 * GRANULE, .alignment = 3},
        {.bytes = 8 * GRANULE, .placement = (enum space_placement)3},
        {.bytes = 8 * GRANULE, .placement = (enum space_placement) - 1},
    };
    const size_t too_large[] = {SIZE_MAX, SIZE_MAX - GRANULE, SIZE_MAX - 8 * GRANULE + 1,
                                ((size_t)1 << 40) + 8 * GRANULE};
    struct space_block block;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        block = take(space, 8);
        give(space, &block);
        assert_ok(space_allocate(space, &others[i], &block));
        assert_int_equal(space->loose, SPACE_LOOSE_NONE);
        assert_int_equal(block.offset, others[i].placement == SPACE_PLACE_HIGH ? 56 * GRANULE : 0);
        give(space, &block);
        assert_int_equal(query(space).largest_free, 64 * GRANULE);
    }
    block = take(space, 8);
    give(space, &block);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(space_allocate(space, &bad[i], &block), RAFFIA_ERROR_INVALID_ARGUMENT);
    for (size_t i = 0; i < sizeof too_large / sizeof *too_large; i++) {
        assert_int_equal(try_take(space, too_large[i], &block), RAFFIA_ERROR_OUT_OF_MEMORY);
        block = take(space, 8);
        give(space, &block);
        assert_int_equal(space->loose, SPACE_LOOSE_WHOLE);
    }
    space_destroy(space);
}

/* What only a thorough request finds, another one does not get. */
static void a_thorough_request_is_not_remembered(void **state)
{
    (void)state;
    enum { HOLES = SPACE_LOOKS + 8 };
    const struct space_request request = {.bytes = 9 * GRANULE, .thorough = true};
    struct space *space = make_present(1024);
    struct space_block holes[HOLES], wide, block;
    for (size_t i = 0; i < HOLES; i++) {
        holes[i] = take(space, 8);
        take(space, 1);
    }
    take(space, 1024 - HOLES * 9 - 10);
    wide = take(space, 9);
    take(space, 1);
    for (size_t i = 0; i < HOLES; i++)
        give(space, &holes[i]);
    give(space, &wide);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(try_take(space, request.bytes, &block), RAFFIA_ERROR_OUT_OF_MEMORY);
        assert_ok(space_allocate(space, &request, &block));
        assert_int_equal(block.offset, wide.offset);
        give(space, &block);
        assert_int_equal(space_loose(space), 0);
    }
    space_destroy(space);
}

static bool sum(void *context, const struct space_block *block)
{
    size_t *bytes = context;
    bytes[block->state] += block->bytes;
    return true;
}

/* While the stretch is loose, whole or what remains of it. */
static void every_question_sees_it(void **state)
{
    (void)state;
    for (int held = 0; held < 2; held++) {
        const size_t taken = held ? 8 * GRANULE : 0;
        for (int question = 0; question < 5; question++) {
            struct space *space = make_present(64);
            size_t bytes[SPACE_STATES] = {0};
            struct space_stats stats;
            struct space_block block;
            for (int i = 0; i < 2; i++) {
                block = take(space, 8);
                if (i == 0 || !held)
                    give(space, &block);
            }
            assert_int_not_equal(space_loose(space), 0);
            switch (question) {
            case 0:
                stats = query(space);
                assert_int_equal(stats.largest_free, 64 * GRANULE - taken);
                assert_int_equal(stats.free_bytes, 64 * GRANULE - taken);
                assert_int_equal(stats.free_blocks, 1);
                break;
            case 1:
                space_walk(space, sum, bytes);
                assert_int_equal(bytes[SPACE_FREE], 64 * GRANULE - taken);
                break;
            case 2:
                assert_true(space_is_free(space, taken, 64 * GRANULE - taken));
                break;
            case 3:
                assert_ok(space_containing(space, 40 * GRANULE, &block));
                assert_int_equal(block.offset, taken);
                assert_int_equal(block.bytes, 64 * GRANULE - taken);
                break;
            default:
                assert_ok(space_remove(space, 60 * GRANULE, 4 * GRANULE));
                assert_int_equal(query(space).largest_free, 60 * GRANULE - taken);
            }
            assert_ok(space_check(space));
            space_destroy(space);
        }
    }
}

/* ---- two spaces, one of which never has a loose stretch ----------------------------------------
 */

enum { STEPS = 30000, BLOCKS = 200, LENGTH = 4096, CHECK_EVERY = 16, REGIME = 500 };

struct twins {
    struct space *space, *settled;
    struct space_block blocks[BLOCKS];
    size_t count, again, refused;
    bool slabs;
};

static void start(struct twins *twins, bool slabs)
{
    /* Slabs want a longer range. */
    const size_t length = slabs ? SPACE_SLABS_IN_RANGE * SPACE_SLAB_UNITS : LENGTH;
    const struct space_options options = {
        .range_bytes = length * GRANULE, .granule = GRANULE, .slabs = slabs};
    struct space **spaces[] = {&twins->space, &twins->settled};
    *twins = (struct twins){.slabs = slabs};
    for (int i = 0; i < 2; i++) {
        assert_ok(space_create(&options, spaces[i]));
        assert_ok(space_add(*spaces[i], 0, options.range_bytes));
        if (slabs)
            space_slabs_start(*spaces[i]);
    }
}

static void take_both(struct twins *twins, const struct space_request *request)
{
    struct space_block block, other;
    const raffia_status status = space_allocate(twins->space, request, &block);
    assert_int_equal(space_allocate(twins->settled, request, &other), status);
    space_settle(twins->settled);
    twins->refused += status == RAFFIA_ERROR_OUT_OF_MEMORY;
    if (status)
        return;
    assert_same_block(&block, &other);
    twins->again += twins->space->loose == SPACE_LOOSE_REST && !(block.handle & SLOT_HANDLE);
    twins->blocks[twins->count++] = block;
}

static void give_both(struct twins *twins, size_t place)
{
    assert_ok(space_free(twins->space, twins->blocks[place].handle));
    assert_ok(space_free(twins->settled, twins->blocks[place].handle));
    space_settle(twins->settled);
    twins->blocks[place] = twins->blocks[--twins->count];
}

static void resize_both(struct twins *twins, size_t place, size_t bytes)
{
    const space_handle handle = twins->blocks[place].handle;
    const raffia_status status = space_resize(twins->space, handle, bytes);
    assert_int_equal(space_resize(twins->settled, handle, bytes), status);
    space_settle(twins->settled);
}

/* Takes part of the free space away and adds it again, if it is free. */
static void remove_both(struct twins *twins, size_t granule)
{
    const raffia_status status = space_remove(twins->space, granule * GRANULE, 4 * GRANULE);
    assert_int_equal(space_remove(twins->settled, granule * GRANULE, 4 * GRANULE), status);
    space_settle(twins->settled);
    if (status)
        return;
    assert_ok(space_add(twins->space, granule * GRANULE, 4 * GRANULE));
    assert_ok(space_add(twins->settled, granule * GRANULE, 4 * GRANULE));
}

static struct space_request choose(struct test_random *random)
{
    const size_t most = test_random_below(random, 8) ? 60 : 400;
    return (struct space_request){
        .bytes = 1 + test_random_below(random, most * GRANULE),
        .alignment = test_random_below(random, 16) ? 0 : 4 * GRANULE,
        .placement = test_random_below(random, 16) ? SPACE_PLACE_ANY : SPACE_PLACE_LOW,
        .thorough = test_random_below(random, 32) == 0,
    };
}

/* Pairs of one request, and now and then something between them. */
static void pairs(struct twins *twins, struct test_random *random)
{
    const struct space_request request = choose(random);
    for (size_t i = test_random_below(random, 5); i > 0 && twins->count < BLOCKS; i--) {
        const size_t before = twins->count;
        take_both(twins, &request);
        if (test_random_below(random, 8) == 0)
            remove_both(twins, test_random_below(random, LENGTH - 4));
        if (twins->count > before)
            give_both(twins, before);
    }
}

static void step(struct twins *twins, struct test_random *random, bool filling)
{
    const size_t chance = test_random_below(random, filling ? 13 : 16);
    if (chance < 6)
        pairs(twins, random);
    else if (chance < 10 && twins->count < BLOCKS)
        take_both(twins, &(const struct space_request){
                             .bytes = 1 + test_random_below(random, 60 * GRANULE)});
    else if (chance < 14 && twins->count)
        give_both(twins, test_random_below(random, twins->count));
    else if (chance < 15 && twins->count)
        resize_both(twins, test_random_below(random, twins->count),
                    1 + test_random_below(random, 60 * GRANULE));
    else if (twins->count)
        give_both(twins, twins->count - 1);
}

static void blocks_are_where_they_would_be(void **state)
{
    (void)state;
    struct test_random random = test_random_seeded("blocks_are_where_they_would_be");
    for (int slabs = 0; slabs < 2; slabs++) {
        static struct twins twins;
        start(&twins, slabs);
        for (size_t i = 0; i < STEPS; i++) {
            step(&twins, &random, i / REGIME % 2 == 0);
            if (i % CHECK_EVERY == 0)
                assert_ok(space_check(twins.space));
        }
        const struct space_stats a = query(twins.space), b = query(twins.settled);
        assert_memory_equal(&a, &b, sizeof a);
        assert_true(twins.again > STEPS / (slabs ? 100 : 10));
        assert_true(slabs ? twins.space->slabs.count > 0 : twins.refused > 0);
        space_destroy(twins.space);
        space_destroy(twins.settled);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pair_leaves_its_stretch_loose),
        cmocka_unit_test(other_pairs_do_as_well),
        cmocka_unit_test(a_stretch_with_company_is_not_loose),
        cmocka_unit_test(only_the_same_request_is_served_again),
        cmocka_unit_test(a_thorough_request_is_not_remembered),
        cmocka_unit_test(every_question_sees_it),
        cmocka_unit_test(blocks_are_where_they_would_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
