#include "core/checked.h"
#include "core/error.h"
#include "core/fault.h"
#include "core/memory.h"
#include "core/parallel.h"
#include "support/cmocka.h"
#include "support/fault_loop.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static void size_arithmetic_never_wraps(void **state)
{
    (void)state;
    size_t result = 4711;
    assert_false(core_add(SIZE_MAX, 1, &result));
    assert_false(core_multiply(SIZE_MAX / 2, 3, &result));
    assert_false(core_align_up(SIZE_MAX - 1, 4096, &result));
    assert_int_equal(result, 4711);
    assert_true(core_add(SIZE_MAX - 1, 1, &result));
    assert_true(result == SIZE_MAX);
    assert_true(core_multiply(3, 5, &result));
    assert_int_equal(result, 15);
    assert_true(core_align_up(4097, 4096, &result));
    assert_int_equal(result, 8192);
    assert_int_equal(core_align_up_unchecked(4096, 4096), 4096);
    assert_int_equal(core_align_down(8191, 4096), 4096);
    assert_true(core_is_aligned(8192, 4096));
    assert_false(core_is_aligned(8193, 4096));
    assert_true(core_is_power_of_two(1));
    assert_false(core_is_power_of_two(0));
    assert_false(core_is_power_of_two(3));
    assert_int_equal(core_min(2, 3), 2);
    assert_int_equal(core_max(2, 3), 3);
}

static void blocks_are_counted_until_freed(void **state)
{
    (void)state;
    long before = core_memory_live();
    char *block = core_malloc(0), *zeros = core_calloc(4, 4), *copy = core_strdup("text");
    char *text = core_asprintf("%s-%d", copy, 7);
    assert_string_equal(text, "text-7");
    assert_memory_equal(zeros, (char[16]){0}, 16);
    block = core_reallocate(block, 100, 1);
    char *fresh = core_reallocate(NULL, 10, 1);
    assert_int_equal(core_memory_live(), before + 5);
    core_free(block);
    core_free(zeros);
    core_free(copy);
    core_free(text);
    core_free(fresh);
    core_free(NULL);
    assert_int_equal(core_memory_live(), before);
}

static void sizes_that_wrap_are_refused(void **state)
{
    (void)state;
    char *block = core_malloc(8);
    /* volatile: the compiler would warn of sizes it can see. */
    volatile size_t huge = SIZE_MAX / 2;
    assert_null(core_reallocate(block, huge, 3));
    assert_int_equal(raffia_last_status(), RAFFIA_ERROR_OUT_OF_HOST_MEMORY);
    core_free(block);
}

static raffia_status allocate_everything(void *context)
{
    (void)context;
    void *blocks[5] = {core_malloc(8), core_calloc(2, 8), core_reallocate(NULL, 8, 1),
                       core_strdup("x"), core_asprintf("%d", 1)};
    raffia_status status = RAFFIA_OK;
    for (size_t i = 0; i < 5; i++) {
        if (!blocks[i])
            status = RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
        core_free(blocks[i]);
    }
    return status;
}

static void every_allocation_can_be_made_to_fail(void **state)
{
    (void)state;
    assert_int_equal(fault_loop(allocate_everything, NULL, 20), 5);
    core_fault_arm(1);
    assert_null(core_malloc(1));
    assert_string_equal(core_fault_disarm(), "malloc");
    core_fault_arm(2);
    assert_null(core_fault_disarm());
}

enum { SHARES = 7 };

struct tally {
    atomic_int calls[SHARES];
    unsigned fail_from;
};

static raffia_status count_share(void *context, unsigned index, unsigned count)
{
    struct tally *tally = context;
    (void)count;
    tally->calls[index]++;
    if (index >= tally->fail_from)
        return core_error(RAFFIA_ERROR_IO, "share %u failed", index);
    return RAFFIA_OK;
}

static void each_share_runs_once_and_the_lowest_failure_is_told(void **state)
{
    (void)state;
    struct tally tally = {.fail_from = SHARES};
    assert_ok(core_parallel(SHARES, count_share, &tally));
    for (unsigned i = 0; i < SHARES; i++)
        assert_int_equal(tally.calls[i], 1);
    tally.fail_from = 3;
    assert_status(RAFFIA_ERROR_IO, core_parallel(SHARES, count_share, &tally));
    assert_string_equal(raffia_last_error(), "share 3 failed");
    assert_ok(core_parallel(0, count_share, &tally));
    assert_int_equal(tally.calls[0], 3);
}

/* Threads and bookkeeping may be refused, the work may not be left out. */
static raffia_status share_out(void *context)
{
    (void)context;
    struct tally tally = {.fail_from = SHARES};
    raffia_status status = core_parallel(SHARES, count_share, &tally);
    assert_int_equal(status, RAFFIA_OK);
    assert_int_equal(tally.calls[0], 1);
    return status;
}

static void work_is_done_without_threads_too(void **state)
{
    (void)state;
    assert_int_equal(fault_loop(share_out, NULL, 20), SHARES);
}

static void thread_counts_follow_the_setting(void **state)
{
    (void)state;
    assert_true(core_cpu_count() >= 1);
    assert_int_equal(core_thread_count(3), 3);
    unsigned chosen = core_thread_count(0);
    assert_true(chosen >= 1 && chosen <= 16);
    setenv("RAFFIA_THREADS", "21", 1);
    assert_int_equal(core_thread_count(0), 21);
    unsetenv("RAFFIA_THREADS");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(size_arithmetic_never_wraps),
        cmocka_unit_test(blocks_are_counted_until_freed),
        cmocka_unit_test(sizes_that_wrap_are_refused),
        cmocka_unit_test(every_allocation_can_be_made_to_fail),
        cmocka_unit_test(each_share_runs_once_and_the_lowest_failure_is_told),
        cmocka_unit_test(work_is_done_without_threads_too),
        cmocka_unit_test(thread_counts_follow_the_setting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
