/* Small blocks in slabs. */
#include "core/fault.h"
#include "core/memory.h"
#include "fixture.h"
#include "space/slab.h"
#include "support/random.h"

#include <stdlib.h>

/* So much that a few dozen slabs may be empty. */
enum { UNITS = 32 * (size_t)SPACE_SLABS_SPARE_SHARE * SPACE_SLAB_UNITS };
#define RANGE      (UNITS * GRANULE)
#define SLAB_BYTES (SPACE_SLAB_UNITS * GRANULE)

static struct space *make_with_slabs(void)
{
    const struct space_options options = {.range_bytes = RANGE, .granule = GRANULE, .slabs = true};
    struct space *space = NULL;
    assert_ok(space_create(&options, &space));
    assert_ok(space_add(space, 0, RANGE));
    space_slabs_start(space); /* as if there had been many blocks */
    return space;
}

/* So many blocks of one size as make a slab worth it; all are freed but the last. Its slab stays.
 */
static struct space_block take_from_slab(struct space *space, size_t bytes)
{
    struct space_block blocks[2 * SPACE_SLAB_UNITS];
    size_t count = 0;
    do
        assert_ok(try_take(space, bytes, &blocks[count]));
    while (!(blocks[count++].handle & SLOT_HANDLE));
    for (size_t i = 0; i + 1 < count; i++)
        assert_ok(space_free(space, blocks[i].handle));
    assert_ok(space_check(space));
    return blocks[count - 1];
}

static void few_small_blocks_get_no_slab(void **state)
{
    (void)state;
    struct space *space = make_with_slabs();
    struct space_block block;
    for (int i = 0; i < 10; i++) {
        assert_ok(try_take(space, 300, &block));
        assert_int_equal(block.bytes, 2 * GRANULE);
    }
    assert_int_equal(space->slabs.count, 0);
    space_destroy(space);
}

static void many_small_blocks_get_slabs(void **state)
{
    (void)state;
    const struct space_options options = {.range_bytes = RANGE, .granule = GRANULE, .slabs = true};
    struct space *space;
    struct space_block block;
    assert_ok(space_create(&options, &space));
    assert_ok(space_add(space, 0, RANGE));
    for (size_t i = 0; i < SPACE_SLAB_RECORDS / 4; i++)
        assert_ok(try_take(space, 1, &block));
    assert_int_equal(space->slabs.count, 0);
    for (size_t i = 0; i < 2 * SPACE_SLAB_RECORDS; i++)
        assert_ok(try_take(space, 1, &block));
    assert_true(space->slabs.count > SPACE_SLAB_RECORDS / SPACE_SLAB_UNITS / 2);
    assert_ok(space_check(space));
    space_destroy(space);
}

static void spaces_that_are_too_small_or_coarse_have_none(void **state)
{
    (void)state;
    const struct space_options options[] = {
        {.range_bytes = SPACE_SLABS_IN_RANGE * SLAB_BYTES / 2, .granule = GRANULE, .slabs = true},
        {.range_bytes = 16 * RANGE, .granule = 16 * GRANULE, .slabs = true},
        {.range_bytes = RANGE, .granule = GRANULE, .slabs = false},
    };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        struct space *space;
        struct space_block block;
        assert_ok(space_create(&options[i], &space));
        assert_ok(space_add(space, 0, options[i].range_bytes));
        space_slabs_start(space);
        for (int j = 0; j < 2000; j++)
            assert_ok(try_take(space, 1, &block));
        assert_int_equal(space->slabs.count, 0);
        space_destroy(space);
    }
}

/* Rounding costs a quarter at most, what is left over in a slab an eighth of that. */
static void each_size_has_a_slot_that_is_little_larger(void **state)
{
    (void)state;
    for (uint32_t units = 1; units <= 64; units++) {
        struct space *space = make_with_slabs();
        const struct space_block block = take_from_slab(space, units * GRANULE - 1);
        assert_int_equal(block.requested, units * GRANULE - 1);
        assert_true(block.bytes >= units * GRANULE);
        assert_true(4 * block.bytes <= 5 * units * GRANULE);
        assert_true(SLAB_BYTES % block.bytes <= SLAB_BYTES / 8);
        assert_true((block.offset % SLAB_BYTES) % block.bytes == 0);
        space_destroy(space);
    }
}

static void a_larger_block_is_in_no_slab(void **state)
{
    (void)state;
    struct space *space = make_with_slabs();
    struct space_block block;
    for (int i = 0; i < 100; i++)
        assert_ok(try_take(space, 65 * GRANULE, &block));
    assert_int_equal(space->slabs.count, 0);
    space_destroy(space);
}

static void requests_for_a_place_are_in_no_slab(void **state)
{
    (void)state;
    struct space *space = make_with_slabs();
    take_from_slab(space, 1);
    struct space_request request = {.bytes = 1, .alignment = 2 * GRANULE};
    struct space_block block;
    assert_ok(space_allocate(space, &request, &block));
    assert_false(block.handle & SLOT_HANDLE);
    request = (struct space_request){.bytes = 1, .placement = SPACE_PLACE_HIGH};
    assert_ok(space_allocate(space, &request, &block));
    assert_int_equal(block.offset, RANGE - GRANULE);
    assert_ok(space_check(space));
    space_destroy(space);
}

/* ---- one block ------------------------------------------------------------------------------ */

static void expect_no_block(struct space *space, size_t offset)
{
    struct space_block found;
    size_t bytes;
    assert_status(RAFFIA_ERROR_BAD_ADDRESS, space_find(space, offset, &found));
    assert_status(RAFFIA_ERROR_BAD_ADDRESS, space_free_held(space, offset, 0, &bytes));
}

static void a_block_is_found_and_what_is_none_is_refused(void **state)
{
    (void)state;
    struct space *space = make_with_slabs();
    const struct space_block block = take_from_slab(space, 5 * GRANULE);
    struct space_block found;
    size_t bytes;
    assert_ok(space_find(space, block.offset, &found));
    assert_same_block(&found, &block);
    assert_ok(space_containing(space, block.offset + 2 * GRANULE + 3, &found));
    assert_same_block(&found, &block);
    expect_no_block(space, block.offset + GRANULE);     /* inside */
    expect_no_block(space, block.offset + block.bytes); /* a free slot */
    expect_no_block(space, block.offset + 1);
    expect_no_block(space,
                    block.offset / SLAB_BYTES * SLAB_BYTES + 51 * 5 * GRANULE); /* the rest */
    assert_int_equal(space_requested(space, block.handle), 5 * GRANULE);
    assert_status(RAFFIA_ERROR_BAD_ADDRESS,
                  space_free_held(space, block.offset, 5 * GRANULE - 1, &bytes));
    assert_ok(space_free_held(space, block.offset, 5 * GRANULE, &bytes));
    assert_int_equal(bytes, block.bytes);
    expect_no_block(space, block.offset); /* a second free */
    assert_status(RAFFIA_ERROR_BAD_ADDRESS, space_free(space, block.handle));
    assert_status(RAFFIA_ERROR_BAD_ADDRESS, space_set_state(space, block.handle, SPACE_PENDING));
    assert_ok(space_check(space));
    space_destroy(space);
}

static void an_old_handle_does_not_name_what_came_after_it(void **state)
{
    (void)state;
    struct space *space = make_with_slabs();
    const struct space_block old = take_from_slab(space, 100);
    struct space_block block;
    assert_ok(space_free(space, old.handle));
    assert_ok(try_take(space, 100, &block));
    assert_int_equal(block.offset, old.offset);
    assert_status(RAFFIA_ERROR_BAD_ADDRESS, space_free(space, old.handle));
    assert_ok(space_free(space, block.handle));
    space_drain(space);
    assert_int_equal(space->slabs.count, 0);
    assert_status(RAFFIA_ERROR_BAD_ADDRESS, space_free(space, old.handle));
    /* In another slab, at the same place. */
    const struct space_block again = take_from_slab(space, 100);
    assert_int_equal(again.offset / SLAB_BYTES, old.offset / SLAB_BYTES);
    assert_status(RAFFIA_ERROR_BAD_ADDRESS, space_free(space, old.handle));
    assert_status(RAFFIA_ERROR_BAD_ADDRESS, space_free(space, block.handle));
    space_destroy(space);
}

static void states_are_counted_as_those_of_other_blocks(void **state)
{
    (void)state;
    struct space *space = make_with_slabs();
    const struct space_block block = take_from_slab(space, 1000);
    const size_t bytes = block.bytes;
    assert_int_equal(query(space).state_bytes[SPACE_HELD], bytes);
    assert_int_equal(query(space).requested_bytes, 1000);
    assert_int_equal(query(space).free_bytes, RANGE - bytes);
    assert_ok(space_set_state(space, block.handle, SPACE_PENDING));
    assert_int_equal(query(space).state_bytes[SPACE_PENDING], bytes);
    assert_int_equal(query(space).requested_bytes, 0);
    expect_no_block(space, block.offset + GRANULE);
    size_t freed;
    assert_status(RAFFIA_ERROR_BAD_ADDRESS, space_free_held(space, block.offset, 0, &freed));
    assert_ok(space_reuse(space, block.handle, 900));
    assert_int_equal(query(space).requested_bytes, 900);
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, space_reuse(space, block.handle, bytes + 1));
    assert_ok(space_set_state(space, block.handle, SPACE_CACHED));
    assert_int_equal(query(space).state_bytes[SPACE_CACHED], bytes);
    assert_ok(space_check(space));
    assert_ok(space_free(space, block.handle));
    assert_int_equal(query(space).free_bytes, RANGE);
    assert_int_equal(query(space).blocks, 0);
    assert_ok(space_check(space));
    space_destroy(space);
}

static void a_block_resizes_within_its_slot(void **state)
{
    (void)state;
    struct space *space = make_with_slabs();
    const struct space_block block = take_from_slab(space, 9 * GRANULE);
    struct space_block found;
    assert_int_equal(block.bytes, 10 * GRANULE);
    assert_ok(space_resize(space, block.handle, 10 * GRANULE));
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, space_resize(space, block.handle, 10 * GRANULE + 1));
    assert_ok(space_resize(space, block.handle, 1));
    assert_ok(space_find(space, block.offset, &found));
    assert_int_equal(found.bytes, 10 * GRANULE);
    assert_int_equal(found.requested, 1);
    assert_ok(space_check(space));
    space_destroy(space);
}

/* ---- slabs that go -------------------------------------------------------------------------- */

static void an_empty_slab_is_free_space_for_those_who_look(void **state)
{
    (void)state;
    struct space *space = make_with_slabs();
    const struct space_block block = take_from_slab(space, 1);
    assert_ok(space_free(space, block.handle));
    assert_int_equal(space->slabs.count, 1);
    assert_true(space_is_free(space, 0, RANGE));
    assert_int_equal(space->slabs.count, 0);
    assert_int_equal(query(space).largest_free, RANGE);
    space_destroy(space);
}

static void an_empty_slab_is_in_nobody_s_way(void **state)
{
    (void)state;
    struct space *space = make_with_slabs();
    const struct space_block small = take_from_slab(space, 1);
    assert_ok(space_free(space, small.handle));
    struct space_request request = {.bytes = RANGE};
    struct space_block block;
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, space_allocate(space, &request, &block));
    request.thorough = true;
    assert_ok(space_allocate(space, &request, &block));
    assert_ok(space_free(space, block.handle));
    const struct space_block again = take_from_slab(space, 1);
    assert_status(RAFFIA_ERROR_BUSY, space_remove(space, 0, RANGE));
    assert_ok(space_free(space, again.handle));
    assert_ok(space_remove(space, 0, RANGE));
    assert_ok(space_check(space));
    space_destroy(space);
}

static void the_last_small_request_gets_any_slot(void **state)
{
    (void)state;
    struct space *space = make_with_slabs();
    const struct space_block kept = take_from_slab(space, 64 * GRANULE);
    struct space_block block;
    struct space_request request = {.bytes = GRANULE, .alignment = GRANULE};
    while (query(space).largest_free) {
        request.bytes = query(space).largest_free;
        assert_ok(space_allocate(space, &request, &block));
    }
    request.bytes = 1;
    const enum space_placement placements[] = {SPACE_PLACE_ANY, SPACE_PLACE_LOW, SPACE_PLACE_HIGH};
    for (size_t i = 0; i < sizeof placements / sizeof *placements; i++) {
        request.placement = placements[i];
        request.thorough = false;
        assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, space_allocate(space, &request, &block));
        request.thorough = true;
        assert_ok(space_allocate(space, &request, &block));
        assert_int_equal(block.offset / SLAB_BYTES, kept.offset / SLAB_BYTES);
        assert_int_equal(block.requested, 1);
    }
    assert_ok(space_check(space));
    space_destroy(space);
}

static void a_block_grows_over_empty_slabs(void **state)
{
    (void)state;
    struct space *space = make_with_slabs();
    const struct space_block small = take_from_slab(space, 1);
    const struct space_block other = take_from_slab(space, 64 * GRANULE);
    const size_t first = small.offset / SLAB_BYTES, second = other.offset / SLAB_BYTES;
    assert_true(first > 0 && second > first);
    /* All that is in front of the first. */
    const struct space_request request = {.bytes = first * SLAB_BYTES,
                                          .placement = SPACE_PLACE_LOW};
    struct space_block block;
    assert_ok(space_allocate(space, &request, &block));
    assert_int_equal(block.offset, 0);
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, space_resize(space, block.handle, RANGE));
    assert_ok(space_free(space, small.handle));
    assert_int_equal(space->slabs.count, 2);
    /* A slab with a block is in the way, and then the other is not taken away for nothing. */
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, space_resize(space, block.handle, RANGE));
    assert_int_equal(space->slabs.count, 2);
    assert_ok(space_resize(space, block.handle, second * SLAB_BYTES));
    assert_ok(space_check(space));
    assert_ok(space_free(space, other.handle));
    assert_ok(space_resize(space, block.handle, RANGE));
    assert_int_equal(query(space).free_bytes, 0);
    assert_ok(space_check(space));
    space_destroy(space);
}

static bool note_item(void *context, const struct space_block *block)
{
    struct space_block *items = context;
    while (items->bytes)
        items++;
    *items = *block;
    return true;
}

static void walks_see_into_slabs_or_do_not(void **state)
{
    (void)state;
    struct space *space = make_with_slabs();
    const struct space_block block = take_from_slab(space, 5 * GRANULE);
    struct space_block items[8] = {0}, places[8] = {0};
    space_walk(space, note_item, items);
    space_walk_places(space, note_item, places);
    size_t at = 0, inside = 0;
    for (size_t i = 0; items[i].bytes; i++) {
        assert_int_equal(items[i].offset, at);
        at += items[i].bytes;
        inside += items[i].state == SPACE_HELD;
        if (items[i].state == SPACE_HELD)
            assert_same_block(&items[i], &block);
    }
    assert_int_equal(at, RANGE);
    assert_int_equal(inside, 1);
    size_t slabs = 0;
    for (size_t i = 0; places[i].bytes; i++) {
        slabs += places[i].state == SPACE_CACHED;
        assert_true(places[i].state == SPACE_FREE || places[i].bytes == SLAB_BYTES);
    }
    assert_int_equal(slabs, 1);
    space_destroy(space);
}

/* ---- at random ------------------------------------------------------------------------------ */

enum { BLOCKS = 4000, STEPS = 60000, CHECK_EVERY = 2000, CHUNKS = 8 };
#define CHUNK (RANGE / CHUNKS)

struct trial {
    struct space *space;
    struct test_random *random;
    struct space_block blocks[BLOCKS];
    size_t count, live_bytes, present_bytes, refused, in_slabs;
    unsigned char owners[UNITS]; /* whose each granule is: 0 nobody's */
    bool present[CHUNKS];
};

static void own(struct trial *trial, const struct space_block *block, bool taken)
{
    for (size_t i = 0; i < block->bytes / GRANULE; i++) {
        unsigned char *owner = &trial->owners[block->offset / GRANULE + i];
        assert_int_equal(*owner, !taken);
        *owner = taken;
    }
    trial->live_bytes += taken ? block->bytes : 0 - block->bytes;
}

static void allocate(struct trial *trial)
{
    static const size_t most[] = {GRANULE, 8 * GRANULE, 64 * GRANULE, 8192 * GRANULE};
    const struct space_request request = {
        .bytes = 1 + test_random_below(trial->random, most[test_random_below(trial->random, 4)]),
        .thorough = test_random_below(trial->random, 8) == 0};
    struct space_block *block = &trial->blocks[trial->count];
    if (trial->count == BLOCKS)
        return;
    raffia_status status = space_allocate(trial->space, &request, block);
    trial->refused += status != RAFFIA_OK;
    if (status)
        return;
    assert_int_equal(block->requested, request.bytes);
    assert_true(block->bytes >= request.bytes);
    trial->in_slabs += (block->handle & SLOT_HANDLE) != 0;
    own(trial, block, true);
    trial->count++;
}

static void release(struct trial *trial)
{
    if (!trial->count)
        return;
    struct space_block *block = &trial->blocks[test_random_below(trial->random, trial->count)];
    size_t bytes;
    own(trial, block, false);
    if (test_random_below(trial->random, 2)) {
        assert_ok(space_free(trial->space, block->handle));
    } else {
        assert_ok(space_free_held(trial->space, block->offset, block->requested, &bytes));
        assert_int_equal(bytes, block->bytes);
    }
    assert_status(RAFFIA_ERROR_BAD_ADDRESS, space_free(trial->space, block->handle));
    *block = trial->blocks[--trial->count];
}

static void add_or_remove(struct trial *trial)
{
    const size_t chunk = test_random_below(trial->random, CHUNKS);
    bool free = true;
    for (size_t i = 0; i < CHUNK / GRANULE; i++)
        free = free && !trial->owners[chunk * CHUNK / GRANULE + i];
    if (!trial->present[chunk]) {
        trial->present[chunk] = !space_add(trial->space, chunk * CHUNK, CHUNK);
        trial->present_bytes += trial->present[chunk] ? CHUNK : 0;
        return;
    }
    /* A slab that has a block elsewhere is all of one chunk. */
    raffia_status status = space_remove(trial->space, chunk * CHUNK, CHUNK);
    assert_true(status == RAFFIA_ERROR_OUT_OF_HOST_MEMORY || (status == RAFFIA_OK) == free);
    trial->present[chunk] = status != RAFFIA_OK;
    trial->present_bytes -= status ? 0 : CHUNK;
}

static void compare(struct trial *trial)
{
    assert_ok(space_check(trial->space));
    const struct space_stats stats = query(trial->space);
    assert_int_equal(stats.present_bytes, trial->present_bytes);
    assert_int_equal(stats.free_bytes, trial->present_bytes - trial->live_bytes);
    assert_int_equal(stats.blocks, trial->count);
    for (size_t i = 0; i < trial->count; i++) {
        struct space_block found;
        assert_ok(space_find(trial->space, trial->blocks[i].offset, &found));
        assert_same_block(&found, &trial->blocks[i]);
    }
}

/* Everything moves to another space, as when arenas are gathered. */
static void move(struct trial *trial)
{
    const struct space_options options = {.range_bytes = RANGE, .granule = GRANULE, .slabs = true};
    struct space *other;
    core_fault_disarm();
    assert_ok(space_create(&options, &other));
    space_slabs_start(other);
    for (size_t i = 0; i < CHUNKS; i++)
        if (trial->present[i])
            assert_ok(space_add(other, i * CHUNK, CHUNK));
    assert_ok(space_prepare_absorb(other, trial->space));
    space_absorb(other, trial->space);
    assert_ok(space_check(trial->space));
    assert_int_equal(query(trial->space).present_bytes, 0);
    space_destroy(trial->space);
    trial->space = other;
    for (size_t i = 0; i < trial->count; i++) {
        struct space_block *block = &trial->blocks[i];
        const struct space_block before = *block;
        assert_ok(space_find(other, before.offset, block));
        assert_int_equal(block->bytes, before.bytes);
        assert_int_equal(block->requested, before.requested);
    }
}

static void run(struct trial *trial, bool faults)
{
    for (int i = 0; i < STEPS; i++) {
        const bool fills = i / (STEPS / 6) % 2 == 0;
        const uint64_t choice = test_random_below(trial->random, 200);
        if (faults && test_random_below(trial->random, 4) == 0)
            core_fault_arm(1 + (long)test_random_below(trial->random, 2));
        if (choice == 0)
            add_or_remove(trial);
        else if (choice < (fills ? 130u : 80u))
            allocate(trial);
        else
            release(trial);
        core_fault_disarm();
        if (i % CHECK_EVERY == 0)
            compare(trial);
        if (i % (STEPS / 5) == STEPS / 10)
            move(trial);
    }
    compare(trial);
    while (trial->count)
        release(trial);
    compare(trial);
    assert_int_equal(trial->space->slabs.count, 0);
    assert_int_equal(query(trial->space).free_bytes, trial->present_bytes);
}

static void random_steps(const char *name, bool faults)
{
    struct test_random random = test_random_seeded(name);
    struct trial *trial = calloc(1, sizeof *trial);
    assert_non_null(trial);
    trial->random = &random;
    trial->space = make_with_slabs();
    trial->present_bytes = RANGE;
    for (size_t i = 0; i < CHUNKS; i++)
        trial->present[i] = true;
    run(trial, faults);
    assert_true(trial->in_slabs > STEPS / 10);
    assert_true(trial->refused > 0);
    space_destroy(trial->space);
    free(trial);
    assert_int_equal(core_memory_live(), 0);
}

static void blocks_never_overlap_and_no_space_is_lost(void **state)
{
    (void)state;
    random_steps("blocks_never_overlap_and_no_space_is_lost", false);
}

static void failing_host_memory_costs_a_slab_at_most(void **state)
{
    (void)state;
    random_steps("failing_host_memory_costs_a_slab_at_most", true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_small_blocks_get_no_slab),
        cmocka_unit_test(many_small_blocks_get_slabs),
        cmocka_unit_test(spaces_that_are_too_small_or_coarse_have_none),
        cmocka_unit_test(each_size_has_a_slot_that_is_little_larger),
        cmocka_unit_test(a_larger_block_is_in_no_slab),
        cmocka_unit_test(requests_for_a_place_are_in_no_slab),
        cmocka_unit_test(a_block_is_found_and_what_is_none_is_refused),
        cmocka_unit_test(an_old_handle_does_not_name_what_came_after_it),
        cmocka_unit_test(states_are_counted_as_those_of_other_blocks),
        cmocka_unit_test(a_block_resizes_within_its_slot),
        cmocka_unit_test(an_empty_slab_is_free_space_for_those_who_look),
        cmocka_unit_test(an_empty_slab_is_in_nobody_s_way),
        cmocka_unit_test(the_last_small_request_gets_any_slot),
        cmocka_unit_test(a_block_grows_over_empty_slabs),
        cmocka_unit_test(walks_see_into_slabs_or_do_not),
        cmocka_unit_test(blocks_never_overlap_and_no_space_is_lost),
        cmocka_unit_test(failing_host_memory_costs_a_slab_at_most),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
