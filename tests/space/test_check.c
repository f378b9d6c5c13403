/* space_check() sees damage: each kind is done to a sound space, seen, and undone. */
#include "space/recent.h"
#include "space/slab.h"
#include "support/cmocka.h"

#include <string.h>

#define GRANULE ((size_t)4096)

/* Blocks at 0 and 4, free space between and behind them, and nothing from 32 on. */
struct fixture {
    struct space *space;
    space_link held, hole, second, tail, absent;
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
    fixture.held = space_lookup_below(fixture.space, 0);
    fixture.hole = space_lookup_below(fixture.space, 2);
    fixture.second = space_lookup_below(fixture.space, 4);
    fixture.tail = space_lookup_below(fixture.space, 6);
    fixture.absent = space_lookup_below(fixture.space, 32);
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

/* A state in the place of another; the generation stays. */
static uint32_t tag_of(const struct space *space, space_link link, enum space_state state)
{
    return (space_at(space, link)->tag & ~SPACE_STATE_MASK) | (uint32_t)state;
}

static void damaged_records_are_seen(void **state)
{
    (void)state;
    struct fixture f = make();
    struct space *s = f.space;
    DAMAGE(s, space_at(s, f.held)->units, 0, "no place in slot");
    DAMAGE(s, space_at(s, f.hole)->units, 0, "of nothing");
    DAMAGE(s, space_at(s, f.held)->units, 3, "does not end where");
    DAMAGE(s, space_at(s, f.hole)->units, 1, "does not end where");
    DAMAGE(s, space_at(s, f.tail)->units, 64, "outside");
    DAMAGE(s, space_at(s, f.tail)->units, UINT32_MAX, "outside");
    DAMAGE(s, space_at(s, f.absent)->units, 31, "does not end where");
    DAMAGE(s, space_at(s, f.second)->offset, 5, "no place in slot");
    DAMAGE(s, space_at(s, f.held)->slack, 2 * GRANULE, "not asked for");
    DAMAGE(s, space_at(s, f.held)->slack, 1, "differ");
    DAMAGE(s, space_at(s, f.held)->tag, tag_of(s, f.held, SPACE_CACHED), "differ");
    DAMAGE(s, space_at(s, f.held)->tag, tag_of(s, f.held, SPACE_FREE), "no place in slot");
    DAMAGE(s, space_at(s, f.hole)->tag, tag_of(s, f.hole, SPACE_HELD), "wrong place in a ring");
    DAMAGE(s, space_at(s, f.absent)->tag, SPACE_SLAB + 1, "state");
    DAMAGE(s, space_at(s, f.absent)->tag, SPACE_SLAB, "no slab");
    DAMAGE(s, space_at(s, 0)->offset, 0, "dummy");
    DAMAGE(s, space_at(s, 0)->tag, SPACE_HELD, "dummy");
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
    DAMAGE(s, space_at(s, f.hole)->next, f.second + 1, "does not end");
    DAMAGE(s, space_at(s, f.second)->next, s->wall, "the one before");
    DAMAGE(s, s->wall, f.second, "wall");
    DAMAGE(s, s->wall, 0, "wall");
    DAMAGE(s, space_at(s, s->wall)->offset, 63, "wall");
    DAMAGE(s, space_at(s, s->wall)->next, f.hole, "the one before");
    DAMAGE(s, space_at(s, s->wall)->previous, f.hole, "the one before");
    space_destroy(s);
}

/* Two parts of one kind side by side, each sound in itself. */
static void parts_that_are_not_merged_are_seen(void **state)
{
    (void)state;
    struct fixture f = make();
    space_records_split(f.space, f.absent, 40);
    expect_damage(f.space, "absent part at unit 32 is not merged", __LINE__);
    space_destroy(f.space);
    f = make();
    space_cell_remove(f.space, f.tail);
    space_link behind = space_records_split(f.space, f.tail, 20);
    space_cell_insert(f.space, f.tail);
    space_cell_insert(f.space, behind);
    expect_damage(f.space, "free space at unit 6 is not merged", __LINE__);
    space_destroy(f.space);
}

static void damaged_spares_are_seen(void **state)
{
    (void)state;
    struct fixture f = make();
    struct space *s = f.space;
    DAMAGE(s, s->spare_count, 3, "spare");
    DAMAGE(s, s->spare_count, UINT32_MAX, "spare");
    DAMAGE(s, s->spares[0], f.hole, "in use");
    DAMAGE(s, s->spares[0], s->wall, "in use");
    DAMAGE(s, s->spares[0], 1, "is none");
    DAMAGE(s, s->spares[0], s->spares[1], "not those");
    DAMAGE(s, space_at(s, s->spares[0])->units, 1, "in use");
    DAMAGE(s, space_at(s, s->spares[0])->tag, SPACE_HELD, "in use");
    space_destroy(s);
}

static void damaged_cells_are_seen(void **state)
{
    (void)state;
    struct fixture f = make();
    struct space *s = f.space;
    uint32_t hole = space_cell_of(s, 2, 2), tail = space_cell_of(s, 6, 26);
    assert_true(hole != tail);
    DAMAGE(s, space_ring_at(s, hole)->next, f.tail, "has no place");
    DAMAGE(s, space_ring_at(s, tail)->next, f.held, "has no place");
    DAMAGE(s, space_ring_at(s, hole)->next, hole, "has no place");
    DAMAGE(s, space_ring_at(s, hole)->previous, hole, "has no place");
    DAMAGE(s, space_ring_at(s, SPACE_ZONES)->next, 4, "more than");
    DAMAGE(s, s->cells[hole / 64], s->cells[hole / 64] & ~((uint64_t)1 << hole % 64),
           "marked empty");
    DAMAGE(s, s->cells[4], 1, "marked in use");
    DAMAGE(s, s->cells[0], s->cells[0] | 1, "that are none");
    DAMAGE(s, s->cells[SPACE_GUARD_CELL / 64], 0, "guard is not");
    DAMAGE(s, space_at(s, f.hole)->ring.previous, f.tail, "has no place");
    DAMAGE(s, space_at(s, f.hole)->ring.next, f.hole, "has no place");
    DAMAGE(s, space_at(s, f.hole)->ring.next, 0, "wrong place in a ring");
    DAMAGE(s, space_at(s, f.held)->ring.next, hole, "wrong place in a ring");
    DAMAGE(s, space_at(s, f.absent)->ring.previous, hole, "wrong place in a ring");
    space_destroy(s);
}

static void a_stretch_missing_from_its_cell_is_seen(void **state)
{
    (void)state;
    struct fixture f = make();
    space_cell_unlink(f.space, space_at(f.space, f.hole));
    expect_damage(f.space, "cells hold", __LINE__);
    space_destroy(f.space);
}

static void a_damaged_table_is_seen(void **state)
{
    (void)state;
    struct fixture f = make();
    struct space *s = f.space;
    space_link *taken = space_table_slot(s, 0), *empty = space_table_slot(s, 1);
    assert_true(*taken == f.held && *empty == 0);
    DAMAGE(s, *taken, 0, "entries");
    DAMAGE(s, *empty, f.tail, "no place in slot");
    DAMAGE(s, *empty, f.held, "no place in slot");
    DAMAGE(s, *taken, SPACE_FIRST_LINK + s->record_count * SPACE_RECORD_WORDS, "names no record");
    DAMAGE(s, *taken, f.hole, "no place in slot");
    DAMAGE(s, *taken, f.second, "no place in slot");
    DAMAGE(s, space_at(s, f.held)->ring.previous, f.held, "more entries");
    space_destroy(s);
}

static void damaged_counters_are_seen(void **state)
{
    (void)state;
    struct fixture f = make();
    struct space *s = f.space;
    DAMAGE(s, s->present_units, 1, "counters");
    DAMAGE(s, s->free_units, 1, "counters");
    DAMAGE(s, s->cached_units, 1, "counters");
    DAMAGE(s, s->pending_units, 1, "counters");
    DAMAGE(s, s->slack_bytes, 1, "counters");
    DAMAGE(s, s->absent_records, 0, "counters");
    DAMAGE(s, s->blocks, 1, "entries");
    DAMAGE(s, s->blocks, 3, "entries");
    space_destroy(s);
}

/* A block that is taken and given back leaves a loose stretch. */
static void a_damaged_loose_stretch_is_seen(void **state)
{
    (void)state;
    struct fixture f = make();
    struct space *s = f.space;
    const struct space_request request = {.bytes = 8 * GRANULE};
    struct space_block block;
    assert_ok(space_allocate(s, &request, &block));
    assert_ok(space_check(s));
    DAMAGE(s, s->recent, f.hole, "no recent block");
    DAMAGE(s, s->recent, f.held + 1, "recent block is none");
    DAMAGE(s, s->recent, 1000000, "recent block is none");
    assert_ok(space_free(s, block.handle));
    assert_true(space_loose(s) == f.tail && s->loose == SPACE_LOOSE_WHOLE);
    assert_ok(space_check(s));
    DAMAGE(s, s->loose, SPACE_LOOSE_REST + 1, "recent block is none");
    DAMAGE(s, s->loose, SPACE_LOOSE_NONE, "no recent block");
    DAMAGE(s, s->loose, SPACE_LOOSE_REST, "no recent block");
    DAMAGE(s, s->recent, 0, "recent block is none");
    DAMAGE(s, s->recent, f.hole, "not that of its recent block");
    DAMAGE(s, s->recent_bytes, 0, "not that of its recent block");
    DAMAGE(s, s->recent_bytes, 27 * GRANULE, "not that of its recent block");
    DAMAGE(s, s->recent_bytes, GRANULE + 1, "not that of its recent block");
    DAMAGE(s, space_at(s, f.tail)->ring.next, space_cell_of(s, 6, 26), "not that of its recent");
    DAMAGE(s, space_at(s, f.tail)->ring.previous, 0, "wrong place in a ring");
    DAMAGE(s, space_at(s, f.hole)->ring.next, SPACE_LOOSE_RING, "wrong place in a ring");
    const uint32_t cell = space_cell_of(s, 6, 26);
    DAMAGE(s, s->cells[cell / 64], s->cells[cell / 64] | (uint64_t)1 << cell % 64, "not alone");
    assert_ok(space_allocate(s, &request, &block));
    const space_link rest = space_loose(s);
    assert_true(s->loose == SPACE_LOOSE_REST && rest == space_at(s, f.tail)->next);
    DAMAGE(s, s->loose, SPACE_LOOSE_NONE, "wrong place in a ring");
    DAMAGE(s, space_at(s, rest)->ring.next, SPACE_ZONES, "is not loose");
    space_destroy(s);
}

/* A slab with one slot taken, made where there is room for it. */
static struct space_slab *make_slab(struct space **space_p)
{
    const size_t bytes = (size_t)SPACE_SLABS_SPARE_SHARE * SPACE_SLAB_UNITS * 256 * 2;
    const struct space_options options = {.range_bytes = bytes, .granule = 256, .slabs = true};
    const struct space_request request = {.bytes = 64 * options.granule};
    struct space_block block;
    assert_ok(space_create(&options, space_p));
    assert_ok(space_add(*space_p, 0, bytes));
    space_slabs_start(*space_p);
    do
        assert_ok(space_allocate(*space_p, &request, &block));
    while (!(block.handle & SLOT_HANDLE));
    assert_ok(space_check(*space_p));
    return space_slab_at(*space_p, (uint32_t)(block.offset / options.granule));
}

static void damaged_slabs_are_seen(void **state)
{
    (void)state;
    struct space *s;
    struct space_slab *slab = make_slab(&s);
    DAMAGE(s, slab->used, 2, "slots are free");
    DAMAGE(s, slab->spare, 0, "not those that are free");
    DAMAGE(s, slab->spare, 2, "slots are free");
    DAMAGE(s, slab->tags[2], slab->tags[2] | SPACE_HELD, "not those that are free");
    DAMAGE(s, slab->offset, slab->offset + SPACE_SLAB_UNITS, "no place");
    DAMAGE(s, slab->link, s->wall, "no place");
    DAMAGE(s, slab->class, 1, "of no class");
    DAMAGE(s, slab->slots, 3, "of no class");
    DAMAGE(s, s->slabs.classes[slab->class].open, NULL, "counts");
    DAMAGE(s, s->slabs.count, 2, "counts");
    DAMAGE(s, s->slabs.empty, 1, "counts");
    DAMAGE(s, s->slabs.blocks, 2, "counts");
    DAMAGE(s, s->slabs.used_units, 1, "counts");
    DAMAGE(s, s->slabs.slot_units, 1, "counts");
    DAMAGE(s, s->slack_bytes, 1, "counters");
    space_destroy(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damaged_records_are_seen),
        cmocka_unit_test(damaged_lists_are_seen),
        cmocka_unit_test(parts_that_are_not_merged_are_seen),
        cmocka_unit_test(damaged_spares_are_seen),
        cmocka_unit_test(damaged_cells_are_seen),
        cmocka_unit_test(a_stretch_missing_from_its_cell_is_seen),
        cmocka_unit_test(a_damaged_table_is_seen),
        cmocka_unit_test(damaged_counters_are_seen),
        cmocka_unit_test(a_damaged_loose_stretch_is_seen),
        cmocka_unit_test(damaged_slabs_are_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
