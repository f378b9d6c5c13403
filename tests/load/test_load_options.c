/* Options of a load: what is refused, and how defaults fit the budget. */
#include "load/options.h"
#include "load_fixture.h"
#include "support/cmocka.h"

#include <raffia/config.h>

#include <string.h>

static void refuses(raffia_load_options options, const char *mention)
{
    raffia_load_options resolved;
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, load_options_resolve(&options, &resolved));
    assert_error_mentions(mention);
}

static void contradictions_are_refused(void **state)
{
    (void)state;
    static char memory[1];
    struct test_resource resource = {0};
    const char *names[] = {"a", NULL};
    raffia_tensor_slice nameless = {0};
    refuses(LOAD_OPTIONS(.memory = memory, .resource = test_resource_ref(&resource)), "exclude");
    refuses(LOAD_OPTIONS(.memory_bytes = 1), "memory_bytes");
    refuses(LOAD_OPTIONS(.resource = {NULL, memory}), "operations");
    refuses(LOAD_OPTIONS(.names = names), "name_count");
    refuses(LOAD_OPTIONS(.name_count = 1), "name_count");
    refuses(LOAD_OPTIONS(.names = names, .name_count = 2), "names[1]");
    refuses(LOAD_OPTIONS(.slice_count = 1), "slice_count");
    refuses(LOAD_OPTIONS(.slices = &nameless, .slice_count = 1), "slices[0]");
}

static void unknown_values_are_refused(void **state)
{
    (void)state;
    refuses(LOAD_OPTIONS(.reader = (raffia_reader)3), "reader");
    refuses(LOAD_OPTIONS(.reader = (raffia_reader)-1), "reader");
    refuses(LOAD_OPTIONS(.checksum = (raffia_checksum)2), "checksum");
    refuses(LOAD_OPTIONS(.pages = (raffia_pages_mode)4), "pages");
    refuses(LOAD_OPTIONS(.threads = 1025), "threads");
    refuses(LOAD_OPTIONS(.header_limit_bytes = 100000001), "header_limit_bytes");
    refuses(LOAD_OPTIONS(.window_bytes = SIZE_MAX), "window_bytes");
    refuses(LOAD_OPTIONS(.budget_bytes = 65535), "65536");
}

static void defaults_are_filled_in(void **state)
{
    (void)state;
    raffia_load_options resolved;
    assert_ok(load_options_resolve(NULL, &resolved));
    assert_in_range(resolved.threads, 1, 16);
    assert_int_equal(resolved.window_bytes, 4 * MIB);
    assert_int_equal(resolved.budget_bytes, 64 * MIB);
    assert_int_equal(resolved.header_limit_bytes, 32 * MIB);
}

static void pages_follow_the_process_setting(void **state)
{
    (void)state;
    raffia_load_options resolved;
    assert_ok(load_options_resolve(NULL, &resolved));
    assert_int_equal(resolved.pages, RAFFIA_PAGES_OFF);
    assert_ok(raffia_config_set("pages", "on"));
    assert_ok(load_options_resolve(NULL, &resolved));
    assert_int_equal(resolved.pages, RAFFIA_PAGES_ON);
    assert_ok(load_options_resolve(&LOAD_OPTIONS(.pages = RAFFIA_PAGES_TRY), &resolved));
    assert_int_equal(resolved.pages, RAFFIA_PAGES_TRY);
    assert_ok(raffia_config_set("pages", NULL));
}

static void budgets_hold(void **state)
{
    (void)state;
    static const struct {
        unsigned threads;
        size_t budget, window;
        unsigned threads_expected;
        size_t window_expected;
    } cases[] = {
        {16, 0, 0, 16, 4 * MIB},
        {16, 32 * MIB, 0, 16, 2 * MIB},
        {16, 4 * MIB, 0, 4, MIB},
        {16, MIB - 1, 0, 1, MIB - 64 * KIB},
        {16, 64 * KIB, 0, 1, 64 * KIB},
        {16, 4 * MIB, 64 * KIB, 16, 64 * KIB},
        {16, 512 * KIB, 64 * KIB, 8, 64 * KIB},
        {1, 0, 100, 1, 64 * KIB},
        {1, 0, 64 * KIB + 1, 1, 128 * KIB},
        {3, 10 * MIB, 0, 3, 3 * MIB + 320 * KIB},
        {1, 16 * MIB, 1024 * MIB, 1, 16 * MIB},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        raffia_load_options resolved;
        assert_ok(load_options_resolve(&LOAD_OPTIONS(.threads = cases[i].threads,
                                                     .budget_bytes = cases[i].budget,
                                                     .window_bytes = cases[i].window),
                                       &resolved));
        assert_int_equal(resolved.threads, cases[i].threads_expected);
        assert_int_equal(resolved.window_bytes, cases[i].window_expected);
        assert_true(resolved.threads * resolved.window_bytes <= resolved.budget_bytes);
    }
}

static void staging_makes_do_with_the_room_there_is(void **state)
{
    (void)state;
    static const struct {
        size_t room;
        unsigned threads_expected;
        size_t window_expected;
    } cases[] = {
        {SIZE_MAX, 16, 4 * MIB}, {128 * MIB, 16, 4 * MIB}, {64 * MIB, 16, 2 * MIB},
        {12 * MIB, 6, MIB},      {MIB, 1, 512 * KIB},      {0, 1, 64 * KIB},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        raffia_load_options resolved;
        assert_ok(load_options_resolve(&LOAD_OPTIONS(.threads = 16), &resolved));
        load_options_fit_room(&resolved, cases[i].room);
        assert_int_equal(resolved.threads, cases[i].threads_expected);
        assert_int_equal(resolved.window_bytes, cases[i].window_expected);
    }
    /* What was asked for stays where there is room for it. */
    raffia_load_options resolved;
    assert_ok(
        load_options_resolve(&LOAD_OPTIONS(.threads = 2, .window_bytes = 64 * KIB), &resolved));
    load_options_fit_room(&resolved, MIB);
    assert_int_equal(resolved.threads, 2);
    assert_int_equal(resolved.window_bytes, 64 * KIB);
}

static void options_of_a_newer_program_are_refused_if_used(void **state)
{
    (void)state;
    struct {
        raffia_load_options options;
        int news;
    } newer = {.options.struct_size = sizeof newer};
    raffia_load_options resolved;
    assert_ok(load_options_resolve(&newer.options, &resolved));
    newer.news = 1;
    assert_status(RAFFIA_ERROR_UNSUPPORTED, load_options_resolve(&newer.options, &resolved));
}

static struct load_shape shape_of(raffia_load_options given, size_t room)
{
    raffia_load_options resolved;
    assert_ok(load_options_resolve(&given, &resolved));
    struct load_shape shape = load_options_shape(&given, &resolved, room);
    assert_true(shape.slot_bytes >= LOAD_STAGING_UNIT && shape.slot_count >= 1);
    assert_int_equal(shape.slot_bytes % LOAD_STAGING_UNIT, 0);
    assert_int_equal(shape.piece_bytes % LOAD_STAGING_UNIT, 0);
    assert_true(shape.piece_bytes >= LOAD_STAGING_UNIT && shape.piece_bytes <= shape.slot_bytes);
    assert_true(shape.slot_count * shape.slot_bytes <= resolved.budget_bytes);
    return shape;
}

static void a_ring_has_four_slots_by_default(void **state)
{
    (void)state;
    struct load_shape shape = shape_of(LOAD_OPTIONS(.threads = 0), SIZE_MAX);
    assert_int_equal(shape.slot_bytes, 16 * MIB);
    assert_int_equal(shape.slot_count, 4);
    assert_in_range(shape.threads, 1, 14);
    assert_in_range(shape.first_bytes, LOAD_STAGING_UNIT, shape.slot_bytes);
    assert_in_range(shape.piece_bytes, MIB, 2 * MIB);
}

static void a_ring_fits_budget_and_room(void **state)
{
    (void)state;
    for (size_t budget = 64 * KIB; budget < 300 * MIB; budget = budget * 5 / 3 + 1) {
        struct load_shape shape = shape_of(LOAD_OPTIONS(.budget_bytes = budget), SIZE_MAX);
        assert_true(budget < 128 * KIB ? shape.slot_count == 1 : shape.slot_count >= 2);
        assert_true(shape.slot_count <= 8);
    }
    /* Half of what is left is left to others. */
    struct load_shape shape = shape_of(LOAD_OPTIONS(.threads = 0), 20 * MIB);
    assert_true(shape.slot_count * shape.slot_bytes <= 10 * MIB);
    assert_int_equal(shape_of(LOAD_OPTIONS(.threads = 0), 0).slot_count, 1);
}

static void what_the_caller_says_of_reads_holds_for_rings(void **state)
{
    (void)state;
    struct load_shape shape =
        shape_of(LOAD_OPTIONS(.threads = 40, .window_bytes = 100 * KIB), SIZE_MAX);
    assert_int_equal(shape.threads, 40);
    assert_int_equal(shape.piece_bytes, 128 * KIB);
    assert_int_equal(shape_of(LOAD_OPTIONS(.window_bytes = 900 * MIB), SIZE_MAX).piece_bytes,
                     16 * MIB);
    assert_ok(raffia_config_set("threads", "15"));
    assert_int_equal(shape_of(LOAD_OPTIONS(.threads = 0), SIZE_MAX).threads, 15);
    assert_ok(raffia_config_set("threads", NULL));
    assert_ok(raffia_config_set("load_slot", "1000KiB"));
    shape = shape_of(LOAD_OPTIONS(.threads = 0), SIZE_MAX);
    assert_int_equal(shape.slot_bytes, MIB);
    assert_int_equal(shape.slot_count, 8);
    assert_ok(raffia_config_set("load_slot", NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contradictions_are_refused),
        cmocka_unit_test(unknown_values_are_refused),
        cmocka_unit_test(defaults_are_filled_in),
        cmocka_unit_test(pages_follow_the_process_setting),
        cmocka_unit_test(budgets_hold),
        cmocka_unit_test(staging_makes_do_with_the_room_there_is),
        cmocka_unit_test(options_of_a_newer_program_are_refused_if_used),
        cmocka_unit_test(a_ring_has_four_slots_by_default),
        cmocka_unit_test(a_ring_fits_budget_and_room),
        cmocka_unit_test(what_the_caller_says_of_reads_holds_for_rings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
