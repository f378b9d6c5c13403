/* Where tensors go, and how files are cut into windows. */
#include "load/options.h"
#include "load/plan.h"
#include "support/cmocka.h"
#include "support/random.h"

#include <stdlib.h>

/* A selection of whole tensors made by hand. */
struct fixture {
    struct catalog_tensor *tensors;
    struct load_selected *selected;
    struct load_selection selection;
};

static void make(struct fixture *fixture, size_t count)
{
    fixture->tensors = calloc(count, sizeof *fixture->tensors);
    fixture->selected = calloc(count, sizeof *fixture->selected);
    assert_non_null(fixture->tensors);
    assert_non_null(fixture->selected);
    fixture->selection = (struct load_selection){.tensors = fixture->selected, .count = count};
}

static void set(struct fixture *fixture, size_t i, size_t file, uint64_t offset, uint64_t bytes)
{
    fixture->tensors[i] =
        (struct catalog_tensor){.name = "t", .file = file, .offset = offset, .bytes = bytes};
    fixture->selected[i] = (struct load_selected){.tensor = &fixture->tensors[i],
                                                  .bytes = bytes,
                                                  .file_offset = offset,
                                                  .piece_bytes = bytes,
                                                  .piece_stride = bytes};
    fixture->selection.bytes += bytes;
}

static void plan_and_cut(const struct fixture *fixture, size_t window_bytes, struct load_plan *plan)
{
    assert_ok(load_plan_make(&fixture->selection, plan));
    assert_ok(load_plan_cut(plan, window_bytes, window_bytes));
}

static void drop(struct fixture *fixture)
{
    free(fixture->tensors);
    free(fixture->selected);
}

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

static void a_hundred_thousand_small_tensors_take_few_windows(void **state)
{
    (void)state;
    enum { COUNT = 100000, BYTES = 64 };
    struct fixture fixture;
    struct load_plan plan;
    make(&fixture, COUNT);
    /* In the file they lie in another order than by name. */
    for (size_t i = 0; i < COUNT; i++)
        set(&fixture, i, 0, 1000 + (i * 7919 % COUNT) * BYTES, BYTES);
    plan_and_cut(&fixture, 4 * MIB, &plan);
    assert_int_equal(plan.item_count, COUNT);
    assert_in_range(plan.window_count, 1, COUNT / LOAD_WINDOW_PIECES_MAX + 3);
    assert_int_equal(plan.needed, (COUNT - 1) * RAFFIA_TENSOR_ALIGNMENT + BYTES);
    load_plan_free(&plan);
    drop(&fixture);
}

static void long_tensors_agree_with_the_file_where_they_can(void **state)
{
    (void)state;
    struct fixture fixture;
    struct load_plan plan;
    make(&fixture, 4);
    set(&fixture, 0, 0, 512, 64 * KIB);
    set(&fixture, 1, 0, 512 + 64 * KIB, 64 * KIB - 256);
    set(&fixture, 2, 0, 256 + 128 * KIB, MIB);
    set(&fixture, 3, 0, 8 + 128 * KIB + 2 * MIB, MIB);
    plan_and_cut(&fixture, 4 * MIB, &plan);
    assert_int_equal(plan.items[0].offset % LOAD_CONGRUENCE, 512);
    assert_int_equal(plan.items[1].offset, plan.items[0].offset + 64 * KIB);
    assert_int_equal(plan.items[2].offset % LOAD_CONGRUENCE, 256);
    assert_int_equal(plan.items[3].offset, plan.items[2].offset + MIB);
    load_plan_free(&plan);
    drop(&fixture);
}

static void long_tensors_are_cut_at_round_offsets(void **state)
{
    (void)state;
    struct fixture fixture;
    struct load_plan plan;
    make(&fixture, 1);
    set(&fixture, 0, 0, 1000, 10 * MIB);
    plan_and_cut(&fixture, 4 * MIB, &plan);
    assert_int_equal(plan.window_count, 3);
    assert_int_equal(plan.windows[0].file_offset, 1000);
    assert_int_equal(plan.windows[1].file_offset, 4 * MIB);
    assert_int_equal(plan.windows[2].file_offset, 8 * MIB);
    load_plan_free(&plan);
    drop(&fixture);
}

static void gaps_of_a_page_or_more_are_not_read(void **state)
{
    (void)state;
    struct fixture fixture;
    struct load_plan plan;
    make(&fixture, 3);
    set(&fixture, 0, 0, 0, 100);
    set(&fixture, 1, 0, 100 + LOAD_GAP_BYTES_MAX, 100);
    set(&fixture, 2, 0, 200 + 2 * LOAD_GAP_BYTES_MAX + 1, 100);
    plan_and_cut(&fixture, 4 * MIB, &plan);
    assert_int_equal(plan.window_count, 2);
    assert_int_equal(plan.windows[0].bytes, 200 + LOAD_GAP_BYTES_MAX);
    assert_int_equal(plan.windows[0].payload, 200);
    load_plan_free(&plan);
    drop(&fixture);
}

static void a_model_beyond_the_address_space_is_refused(void **state)
{
    (void)state;
    struct fixture fixture;
    struct load_plan plan;
    make(&fixture, 2);
    set(&fixture, 0, 0, 0, UINT64_MAX / 2 + 1);
    set(&fixture, 1, 1, 0, UINT64_MAX / 2 + 1);
    assert_status(RAFFIA_ERROR_OVERFLOW, load_plan_make(&fixture.selection, &plan));
    drop(&fixture);
}

static void the_first_windows_are_short(void **state)
{
    (void)state;
    struct fixture fixture;
    struct load_plan plan;
    make(&fixture, 1);
    set(&fixture, 0, 0, 1000, 64 * MIB);
    assert_ok(load_plan_make(&fixture.selection, &plan));
    assert_ok(load_plan_cut(&plan, 2 * MIB, 16 * MIB));
    static const size_t ends[] = {2 * MIB, 6 * MIB, 14 * MIB, 30 * MIB, 46 * MIB, 62 * MIB};
    assert_int_equal(plan.window_count, 7);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        assert_int_equal(plan.windows[i].file_offset + plan.windows[i].bytes, ends[i]);
    load_plan_free(&plan);
    drop(&fixture);
}

/* Every byte of every item is in exactly one window, in order, and windows keep their promises. */
static void check_windows(const struct load_plan *plan, size_t window_bytes)
{
    struct load_cursor expected = {0};
    for (size_t w = 0; w < plan->window_count; w++) {
        const struct load_window *window = &plan->windows[w];
        struct load_cursor cursor = window->cursor;
        assert_int_equal(cursor.item, expected.item);
        assert_int_equal(cursor.position, expected.position);
        uint64_t at = window->file_offset, end = at + window->bytes;
        uint64_t first = at / LOAD_STAGING_UNIT * LOAD_STAGING_UNIT;
        assert_true(end <= first + window_bytes);
        size_t pieces = 0, payload = 0;
        while (at < end) {
            struct load_piece piece = load_piece_next(plan, &cursor, end);
            assert_int_equal(plan->items[piece.item].file, window->file);
            assert_in_range(piece.file_offset, at, at + LOAD_GAP_BYTES_MAX);
            pieces += piece.file_offset > at ? 2 : 1;
            payload += (size_t)piece.bytes;
            at = piece.file_offset + piece.bytes;
        }
        assert_int_equal(at, end);
        assert_in_range(pieces, 1, LOAD_WINDOW_PIECES_MAX);
        assert_int_equal(payload, window->payload);
        expected = cursor;
    }
    assert_int_equal(expected.item, plan->item_count);
}

static void check_places(const struct load_plan *plan)
{
    size_t end = 0;
    for (size_t i = 0; i < plan->item_count; i++) {
        const struct load_item *item = &plan->items[i];
        assert_int_equal(item->offset % RAFFIA_TENSOR_ALIGNMENT, 0);
        assert_in_range(item->offset, end, end + RAFFIA_TENSOR_ALIGNMENT + LOAD_CONGRUENCE);
        end = item->offset + (size_t)item->bytes;
    }
    assert_int_equal(plan->needed, end);
}

static void any_model_is_covered_once(void **state)
{
    (void)state;
    enum { ROUNDS = 200, COUNT_MAX = 3000, FILES = 3 };
    struct test_random random = test_random_seeded(__func__);
    for (int round = 0; round < ROUNDS; round++) {
        size_t count = test_random_size(&random, COUNT_MAX);
        size_t window_bytes = LOAD_STAGING_UNIT * test_random_size(&random, 64);
        uint64_t ends[FILES] = {test_random_below(&random, 5000), 8, 4096};
        struct fixture fixture;
        struct load_plan plan;
        make(&fixture, count);
        for (size_t i = 0; i < count; i++) {
            size_t file = test_random_below(&random, FILES);
            uint64_t gap = test_random_below(&random, 4) ? 0 : test_random_size(&random, 9000);
            uint64_t bytes = test_random_below(&random, 20) ? test_random_size(&random, MIB) : 0;
            set(&fixture, i, file, ends[file] + gap, bytes);
            ends[file] += gap + bytes;
        }
        plan_and_cut(&fixture, window_bytes, &plan);
        check_windows(&plan, window_bytes);
        check_places(&plan);
        load_plan_free(&plan);
        drop(&fixture);
    }
}

static void tensors_that_share_bytes_are_each_read(void **state)
{
    (void)state;
    struct fixture fixture;
    struct load_plan plan;
    make(&fixture, 2);
    set(&fixture, 0, 0, 0, 1000);
    set(&fixture, 1, 0, 500, 1000);
    plan_and_cut(&fixture, 4 * MIB, &plan);
    check_windows(&plan, 4 * MIB);
    assert_int_equal(plan.window_count, 2);
    load_plan_free(&plan);
    drop(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hundred_thousand_small_tensors_take_few_windows),
        cmocka_unit_test(the_first_windows_are_short),
        cmocka_unit_test(long_tensors_agree_with_the_file_where_they_can),
        cmocka_unit_test(long_tensors_are_cut_at_round_offsets),
        cmocka_unit_test(gaps_of_a_page_or_more_are_not_read),
        cmocka_unit_test(a_model_beyond_the_address_space_is_refused),
        cmocka_unit_test(any_model_is_covered_once),
        cmocka_unit_test(tensors_that_share_bytes_are_each_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
