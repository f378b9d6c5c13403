/* space_check() sees damage: each kind is done to a sound space, seen, and undone. */
#include "space/index.h"
#include "support/cmocka.h"

#include <string.h>

#define GRANULE ((size_t)4096)

/* Blocks at 0 and 4, free space between and behind them. */
struct fixture {
    struct space *space;
    space_place held, hole, second, tail;
};

static struct fixture make(void)
{
    struct space_options options = {.range_bytes = 64 * GRANULE, .granule = GRANULE};
    struct space_request request = {.bytes = 2 * GRANULE, .placement = SPACE_PLACE_LOW};
    struct fixture fixture = {0};
    struct space_block first, gap, second;
    assert_ok(space_create(&options, &fixture.space));
    assert_ok(space_add(fixture.space, 0, 32 * GRANULE));
    assert_ok(space_allocate(fixture.space, &request, &first));
    assert_ok(space_allocate(fixture.space, &request, &gap));
    assert_ok(space_allocate(fixture.space, &request, &second));
    assert_ok(space_free(fixture.space, gap.handle));
    assert_ok(space_check(fixture.space));
    fixture.held = space_records_below(fixture.space, 0);
    fixture.hole = space_records_below(fixture.space, 2 * GRANULE);
    fixture.second = space_records_below(fixture.space, 4 * GRANULE);
    fixture.tail = space_records_below(fixture.space, 6 * GRANULE);
    return fixture;
}

static void expect_damage(struct space *space, const char *mention, int line)
{
    if (space_check(space) != RAFFIA_ERROR_CORRUPT)
        fail_msg("the damage of line %d is not seen", line);
    if (!strstr(raffia_last_error(), mention))
        fail_msg("line %d: '%s' does not mention '%s'", line, raffia_last_error(), mention);
}

/* Sets something to a wrong value, expects a sentence that mentions a word, and puts it back. */
#define DAMAGE(space, lvalue, value, mention)                                                      \
    do {                                                                                           \
        __typeof__(lvalue) sound = (lvalue);                                                       \
        (lvalue) = (value);                                                                        \
        expect_damage((space), (mention), __LINE__);                                               \
        (lvalue) = sound;                                                                          \
        assert_ok(space_check(space));                                                             \
    } while (0)

static void damaged_records_are_seen(void **state)
{
    (void)state;
    struct fixture f = make();
    struct space *s = f.space;
    DAMAGE(s, space_at(s, f.held)->bytes, 0, "whole granules");
    DAMAGE(s, space_at(s, f.held)->bytes, 2 * GRANULE + 1, "whole granules");
    DAMAGE(s, space_at(s, f.held)->bytes, GRANULE, "asked for");
    DAMAGE(s, space_at(s, f.held)->requested, 0, "asked for");
    DAMAGE(s, space_at(s, f.hole)->bytes, 3 * GRANULE, "reaches into");
    DAMAGE(s, space_at(s, f.second)->offset, 3 * GRANULE, "reaches into");
    DAMAGE(s, space_at(s, f.tail)->bytes, 64 * GRANULE, "outside");
    DAMAGE(s, space_at(s, f.tail)->bytes, (size_t)0 - GRANULE, "outside");
    DAMAGE(s, space_at(s, f.tail)->bytes, GRANULE, "differ");
    DAMAGE(s, space_at(s, f.second)->offset, 5 * GRANULE, "not found by its offset");
    DAMAGE(s, space_at(s, f.held)->state, SPACE_STATES, "state");
    DAMAGE(s, space_at(s, f.held)->state, SPACE_FREE, "not merged");
    DAMAGE(s, space_at(s, f.hole)->state, SPACE_HELD, "not found by its offset");
    DAMAGE(s, space_at(s, f.held)->state, SPACE_CACHED, "differ");
    space_destroy(s);
}

static void damaged_lists_are_seen(void **state)
{
    (void)state;
    struct fixture f = make();
    struct space *s = f.space;
    DAMAGE(s, space_at(s, f.hole)->previous, f.tail, "the one before");
    DAMAGE(s, space_at(s, f.tail)->next, f.held, "the one before");
    DAMAGE(s, space_at(s, f.hole)->next, 1000000, "does not end");
    DAMAGE(s, space_at(s, f.second)->next, 0, "end of its list");
    DAMAGE(s, s->last, f.second, "end of its list");
    DAMAGE(s, s->first, f.hole, "the one before");
    DAMAGE(s, s->spare_count, 3, "spare");
    DAMAGE(s, s->spares, 0, "spare");
    DAMAGE(s, s->spares, f.hole, "in use");
    DAMAGE(s, space_at(s, s->spares)->next, s->spares, "does not end");
    space_destroy(s);
}

static void damaged_bins_are_seen(void **state)
{
    (void)state;
    struct fixture f = make();
    struct space *s = f.space;
    unsigned hole = space_bin_of(s, 2 * GRANULE), tail = space_bin_of(s, 26 * GRANULE);
    assert_true(hole != tail);
    DAMAGE(s, s->bins[hole], f.tail, "has no place");
    DAMAGE(s, s->bins[tail], f.held, "has no place");
    DAMAGE(s, s->bins[hole], 0, "marked in use");
    DAMAGE(s, s->bins[0], s->record_capacity, "more than");
    DAMAGE(s, s->bins_in_use[0], s->bins_in_use[0] & ~((uint64_t)1 << hole), "marked empty");
    DAMAGE(s, s->bins_in_use[SPACE_BIN_WORDS - 1], 1, "marked in use");
    DAMAGE(s, space_at(s, f.hole)->bin_previous, f.tail, "has no place");
    DAMAGE(s, space_at(s, f.hole)->bin_next, f.hole, "has no place");
    space_destroy(s);
}

static void a_stretch_missing_from_its_bin_is_seen(void **state)
{
    (void)state;
    struct fixture f = make();
    struct space *s = f.space;
    unsigned bin = space_bin_of(s, 2 * GRANULE);
    s->bins[bin] = 0;
    s->bins_in_use[bin / 64] &= ~((uint64_t)1 << bin % 64);
    expect_damage(s, "bins hold", __LINE__);
    space_destroy(s);
}

static void a_damaged_table_is_seen(void **state)
{
    (void)state;
    struct fixture f = make();
    struct space *s = f.space;
    uint32_t taken = 0, empty = 0;
    while (s->slots[taken] != f.held)
        taken++;
    while (s->slots[empty] != 0)
        empty++;
    DAMAGE(s, s->slots[taken], 0, "entries");
    DAMAGE(s, s->slots[empty], f.tail, "entries");
    DAMAGE(s, s->slots[taken], s->record_capacity, "names no record");
    DAMAGE(s, s->slots[taken], f.hole, "not found by its offset");
    DAMAGE(s, space_at(s, f.held)->slot, empty, "wrong place");
    DAMAGE(s, space_at(s, f.held)->slot, s->slot_count, "wrong place");
    space_destroy(s);
}

static void damaged_counters_are_seen(void **state)
{
    (void)state;
    struct fixture f = make();
    struct space *s = f.space;
    DAMAGE(s, s->stats.present_bytes, 1, "counters");
    DAMAGE(s, s->stats.free_bytes, 1, "counters");
    DAMAGE(s, s->stats.free_blocks, 1, "counters");
    DAMAGE(s, s->stats.requested_bytes, 1, "counters");
    DAMAGE(s, s->stats.state_bytes[SPACE_HELD], 1, "counters");
    DAMAGE(s, s->stats.state_bytes[SPACE_PENDING], 1, "counters");
    DAMAGE(s, s->stats.blocks, 1, "entries");
    space_destroy(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damaged_records_are_seen),
        cmocka_unit_test(damaged_lists_are_seen),
        cmocka_unit_test(damaged_bins_are_seen),
        cmocka_unit_test(a_stretch_missing_from_its_bin_is_seen),
        cmocka_unit_test(a_damaged_table_is_seen),
        cmocka_unit_test(damaged_counters_are_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
