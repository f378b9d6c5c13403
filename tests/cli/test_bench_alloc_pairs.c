/* Pairs of allocation and free, with a way of getting memory that only keeps the books. */
#include "cli/bench_alloc_pairs.h"
#include "cli/interrupt.h"
#include "core/error.h"
#include "core/memory.h"
#include "support/cmocka.h"

#include <signal.h>
#include <string.h>

#define PAIRS 1000

/* Blocks are numbers from 1 on; what is alive is watched. */
struct books {
    size_t taken, given, alive, bytes;
    size_t most_alive, most_bytes;
    size_t room;         /* bytes that may be alive; 0 = any */
    size_t refusals;     /* of take() */
    size_t fail_at_take; /* fails for good at this one, counted from 1; 0 = never */
};

static raffia_status take(void *context, size_t bytes, void **block_p)
{
    struct books *books = context;
    if (books->taken + 1 == books->fail_at_take)
        return core_error(RAFFIA_ERROR_CORRUPT, "damaged");
    if (books->room && books->bytes + bytes > books->room) {
        books->refusals++;
        return core_error(RAFFIA_ERROR_OUT_OF_MEMORY, "full");
    }
    books->alive++;
    books->bytes += bytes;
    if (books->alive > books->most_alive)
        books->most_alive = books->alive;
    if (books->bytes > books->most_bytes)
        books->most_bytes = books->bytes;
    *block_p = (void *)(uintptr_t)++books->taken;
    return RAFFIA_OK;
}

static raffia_status give(void *context, void *block, size_t bytes)
{
    struct books *books = context;
    assert_int_equal((uintptr_t)block, ++books->given); /* first in, first out */
    books->alive--;
    books->bytes -= bytes;
    return RAFFIA_OK;
}

static size_t sizes[PAIRS];

static struct pair_load load_of(size_t live_max, size_t live_bytes_max)
{
    pair_sizes_make(sizes, PAIRS, PAIR_BYTES_MAX);
    return (struct pair_load){sizes, PAIRS, live_max, live_bytes_max};
}

static void b18_sizes_are_every_step_from_2_to_64_mib(void **state)
{
    bool seen[PAIR_BYTES_MAX / PAIR_STEP_BYTES + 1] = {false};
    pair_sizes_make(sizes, PAIRS, PAIR_BYTES_MAX);
    for (size_t i = 0; i < PAIRS; i++) {
        assert_int_equal(sizes[i] % PAIR_STEP_BYTES, 0);
        assert_in_range(sizes[i], PAIR_STEP_BYTES, PAIR_BYTES_MAX);
        seen[sizes[i] / PAIR_STEP_BYTES] = true;
    }
    for (size_t step = 1; step <= PAIR_BYTES_MAX / PAIR_STEP_BYTES; step++)
        assert_true(seen[step]);
    pair_sizes_make(sizes, PAIRS, PAIR_STEP_BYTES);
    for (size_t i = 0; i < PAIRS; i++)
        assert_int_equal(sizes[i], PAIR_STEP_BYTES);
    (void)state;
}

static void b18_each_block_is_taken_and_given_once_with_64_alive(void **state)
{
    struct books books = {0};
    struct pair_way way = {&books, take, give};
    struct pair_load load = load_of(PAIR_LIVE_MAX, SIZE_MAX);
    struct pair_result result;
    assert_int_equal(pairs_run(&way, &load, &result, NULL), RAFFIA_OK);
    assert_int_equal(books.taken, PAIRS);
    assert_int_equal(books.given, PAIRS);
    assert_int_equal(books.most_alive, PAIR_LIVE_MAX);
    assert_int_equal(result.refused, 0);
    (void)state;
}

static void no_more_is_alive_than_allowed(void **state)
{
    struct books books = {0};
    struct pair_way way = {&books, take, give};
    struct pair_load load = load_of(PAIR_LIVE_MAX, 2 * PAIR_BYTES_MAX);
    struct pair_result result;
    assert_int_equal(pairs_run(&way, &load, &result, NULL), RAFFIA_OK);
    assert_in_range(books.most_bytes, PAIR_BYTES_MAX, 2 * PAIR_BYTES_MAX);
    books = (struct books){0};
    load = load_of(1, 1); /* a block that is alone may be larger */
    assert_int_equal(pairs_run(&way, &load, &result, NULL), RAFFIA_OK);
    assert_int_equal(books.given, PAIRS);
    assert_int_equal(books.most_alive, 1);
    (void)state;
}

static void a_refused_block_waits_for_older_ones_to_go(void **state)
{
    struct books books = {.room = 3 * PAIR_BYTES_MAX / 2};
    struct pair_way way = {&books, take, give};
    struct pair_load load = load_of(PAIR_LIVE_MAX, SIZE_MAX);
    struct pair_result result;
    assert_int_equal(pairs_run(&way, &load, &result, NULL), RAFFIA_OK);
    assert_int_equal(books.given, PAIRS);
    assert_true(books.refusals > 0);
    assert_int_equal(result.refused, books.refusals);
    (void)state;
}

static void what_cannot_be_had_at_all_is_an_error(void **state)
{
    struct books books = {.room = PAIR_STEP_BYTES / 2};
    struct pair_way way = {&books, take, give};
    struct pair_load load = load_of(PAIR_LIVE_MAX, SIZE_MAX);
    struct pair_result result;
    assert_int_equal(pairs_run(&way, &load, &result, NULL), RAFFIA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(books.given, 0);
    (void)state;
}

static void after_a_failure_nothing_stays_alive(void **state)
{
    struct books books = {.fail_at_take = 30};
    struct pair_way way = {&books, take, give};
    struct pair_load load = load_of(PAIR_LIVE_MAX, SIZE_MAX);
    struct pair_result result;
    assert_int_equal(pairs_run(&way, &load, &result, NULL), RAFFIA_ERROR_CORRUPT);
    assert_int_equal(books.given, 29);
    assert_int_equal(books.alive, 0);
    (void)state;
}

static void each_call_is_timed_by_itself(void **state)
{
    struct books books = {0};
    struct pair_way way = {&books, take, give};
    struct pair_load load = load_of(PAIR_LIVE_MAX, SIZE_MAX);
    struct pair_result result;
    static double taking[PAIRS], giving[PAIRS];
    struct pair_times times = {taking, giving};
    for (size_t i = 0; i < PAIRS; i++)
        taking[i] = giving[i] = -1;
    assert_int_equal(pairs_run(&way, &load, &result, &times), RAFFIA_OK);
    double sum = 0;
    for (size_t i = 0; i < PAIRS; i++) {
        assert_true(taking[i] >= 0 && giving[i] >= 0);
        sum += taking[i] + giving[i];
    }
    assert_true(sum <= result.seconds * (1 + 1e-6));
    (void)state;
}

static void pairs_leave_a_pool_room_to_spare(void **state)
{
    const size_t pools[] = {2 * PAIR_STEP_BYTES, 5 * PAIR_STEP_BYTES, (size_t)1 << 28,
                            (size_t)1 << 33};
    for (size_t i = 0; i < sizeof pools / sizeof *pools; i++) {
        struct pair_load load;
        struct pair_result result;
        struct books books = {0};
        const struct pair_way way = {&books, take, give};
        assert_ok(pair_load_make(pools[i], PAIRS, &load));
        assert_ok(pairs_run(&way, &load, &result, NULL));
        assert_true(books.most_bytes <= pools[i] / 2);
        for (size_t pair = 0; pair < load.pairs; pair++)
            assert_true(load.sizes[pair] == PAIR_STEP_BYTES || load.sizes[pair] <= pools[i] / 8);
        core_free(load.sizes);
    }
    (void)state;
}

static raffia_status take_and_interrupt(void *context, size_t bytes, void **block_p)
{
    const struct books *books = context;
    if (books->taken == PAIRS / 2)
        raise(SIGINT);
    return take(context, bytes, block_p);
}

/* The last of the tests: what was interrupted stays so. */
static void an_interrupt_ends_a_pass_soon_with_nothing_alive(void **state)
{
    struct books books = {0};
    struct pair_way way = {&books, take_and_interrupt, give};
    struct pair_load load = load_of(PAIR_LIVE_MAX, SIZE_MAX);
    struct pair_result result;
    cli_interrupt_catch();
    assert_status(RAFFIA_ERROR_CANCELLED, pairs_run(&way, &load, &result, NULL));
    assert_error_mentions("interrupted");
    assert_in_range(books.taken, PAIRS / 2, PAIRS - 1);
    assert_int_equal(books.given, books.taken);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(b18_sizes_are_every_step_from_2_to_64_mib),
        cmocka_unit_test(pairs_leave_a_pool_room_to_spare),
        cmocka_unit_test(b18_each_block_is_taken_and_given_once_with_64_alive),
        cmocka_unit_test(no_more_is_alive_than_allowed),
        cmocka_unit_test(a_refused_block_waits_for_older_ones_to_go),
        cmocka_unit_test(what_cannot_be_had_at_all_is_an_error),
        cmocka_unit_test(after_a_failure_nothing_stays_alive),
        cmocka_unit_test(each_call_is_timed_by_itself),
        cmocka_unit_test(an_interrupt_ends_a_pass_soon_with_nothing_alive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
