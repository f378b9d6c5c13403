/* Bookkeeping memory, and the fault injection that tests fail it with. */
#include "core/fault.h"
#include "core/memory.h"
#include "support/cmocka.h"
#include "support/fault_loop.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

static void memory_is_counted_until_freed(void **state)
{
    (void)state;
    long before = core_memory_live();
    char *block = core_malloc(10), *zeros = core_calloc(4, 5), *copy = core_strdup("text");
    char *text = core_asprintf("%s and %d", "one", 2), *none = core_malloc(0);
    assert_non_null(block);
    assert_non_null(zeros);
    assert_non_null(none);
    assert_string_equal(copy, "text");
    assert_string_equal(text, "one and 2");
    for (int i = 0; i < 20; i++)
        assert_int_equal(zeros[i], 0);
    assert_int_equal(core_memory_live(), before + 5);
    core_free(block);
    core_free(zeros);
    core_free(copy);
    core_free(text);
    core_free(none);
    core_free(NULL);
    assert_int_equal(core_memory_live(), before);
}

static void reallocation_keeps_content_and_count(void **state)
{
    (void)state;
    long before = core_memory_live();
    char *block = core_reallocate(NULL, 4, 1);
    assert_non_null(block);
    memcpy(block, "abc", 4);
    block = core_reallocate(block, 1000, 4);
    assert_non_null(block);
    assert_string_equal(block, "abc");
    assert_int_equal(core_memory_live(), before + 1);
    block = core_reallocate(block, 0, 4);
    assert_non_null(block);
    core_free(block);
    assert_int_equal(core_memory_live(), before);
}

static void sizes_that_overflow_are_refused(void **state)
{
    (void)state;
    /* Not constants, so that the compiler does not see them coming. */
    volatile size_t many = SIZE_MAX / 2 + 1, two = 2;
    long before = core_memory_live();
    assert_null(core_calloc(many, two));
    assert_int_equal(raffia_last_status(), RAFFIA_ERROR_OUT_OF_HOST_MEMORY);
    char *block = core_malloc(4);
    memcpy(block, "abc", 4);
    assert_null(core_reallocate(block, many, two));
    assert_string_equal(block, "abc");
    core_free(block);
    assert_int_equal(core_memory_live(), before);
}

static void each_call_can_fail(void **state)
{
    (void)state;
    char *block = core_malloc(4);
    memcpy(block, "abc", 4);
    long before = core_memory_live();
    for (int call = 0; call < 5; call++) {
        core_fault_arm(1);
        void *got = NULL;
        switch (call) {
        case 0:
            got = core_malloc(1);
            break;
        case 1:
            got = core_calloc(1, 1);
            break;
        case 2:
            got = core_reallocate(block, 100, 1);
            break;
        case 3:
            got = core_strdup("x");
            break;
        case 4:
            got = core_asprintf("x");
            break;
        }
        assert_non_null(core_fault_disarm());
        assert_null(got);
        assert_int_equal(raffia_last_status(), RAFFIA_ERROR_OUT_OF_HOST_MEMORY);
        assert_error_mentions("for bookkeeping");
        assert_int_equal(core_memory_live(), before);
    }
    assert_string_equal(block, "abc");
    core_free(block);
}

static void the_nth_call_fails_once(void **state)
{
    (void)state;
    core_fault_arm(3);
    assert_false(core_fault("first"));
    assert_false(core_fault("second"));
    assert_true(core_fault("third"));
    assert_false(core_fault("fourth"));
    assert_string_equal(core_fault_disarm(), "third");
    assert_false(core_fault("fifth"));
    core_fault_arm(2);
    assert_false(core_fault("first"));
    assert_null(core_fault_disarm());
    assert_false(core_fault("second"));
}

static void *call_faults(void *failures)
{
    for (int i = 0; i < 1000; i++)
        if (core_fault("a thread's call"))
            atomic_fetch_add((atomic_int *)failures, 1);
    return NULL;
}

static void one_call_fails_whatever_the_threads(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    atomic_int failures = 0;
    core_fault_arm(1234);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, call_faults, &failures), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_non_null(core_fault_disarm());
    assert_int_equal(atomic_load(&failures), 1);
}

static raffia_status allocate_thrice(void *context)
{
    (void)context;
    char *a = core_malloc(1), *b = a ? core_calloc(1, 1) : NULL, *c = b ? core_strdup("c") : NULL;
    core_free(a);
    core_free(b);
    core_free(c);
    return c ? RAFFIA_OK : RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
}

static void a_fault_loop_fails_each_call_of_a_scenario(void **state)
{
    (void)state;
    assert_int_equal(fault_loop(allocate_thrice, NULL, 10), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_counted_until_freed),
        cmocka_unit_test(reallocation_keeps_content_and_count),
        cmocka_unit_test(sizes_that_overflow_are_refused),
        cmocka_unit_test(each_call_can_fail),
        cmocka_unit_test(the_nth_call_fails_once),
        cmocka_unit_test(one_call_fails_whatever_the_threads),
        cmocka_unit_test(a_fault_loop_fails_each_call_of_a_scenario),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
