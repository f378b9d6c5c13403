/* Options structures of older and newer callers. */
#include "core/options.h"
#include "support/cmocka.h"

#include <string.h>

/* The structure as three versions of the headers know it; ours is the second. */
struct old_options {
    size_t struct_size;
    int a;
    int b;
};

struct our_options {
    size_t struct_size;
    int a;
    int b;
    size_t c;
};

struct new_options {
    size_t struct_size;
    int a;
    int b;
    size_t c;
    char d[16];
};

static void no_options_are_all_defaults(void **state)
{
    (void)state;
    struct our_options copy;
    memset(&copy, 0xff, sizeof copy);
    assert_ok(core_options_copy(&copy, sizeof copy, NULL, "our_options"));
    assert_int_equal(copy.struct_size, sizeof copy);
    assert_int_equal(copy.a, 0);
    assert_int_equal(copy.b, 0);
    assert_int_equal(copy.c, 0);
}

static void options_are_copied(void **state)
{
    (void)state;
    struct our_options given = {sizeof given, 1, 2, 3}, copy;
    assert_ok(core_options_copy(&copy, sizeof copy, &given, "our_options"));
    assert_memory_equal(&copy, &given, sizeof copy);
}

static void what_an_older_caller_does_not_know_is_default(void **state)
{
    (void)state;
    struct {
        struct old_options old;
        size_t behind;
    } given = {{sizeof given.old, 1, 2}, 4711};
    struct our_options copy;
    assert_ok(core_options_copy(&copy, sizeof copy, &given.old, "our_options"));
    assert_int_equal(copy.struct_size, sizeof copy);
    assert_int_equal(copy.a, 1);
    assert_int_equal(copy.b, 2);
    assert_int_equal(copy.c, 0);
}

static void a_caller_may_know_nothing_but_the_size(void **state)
{
    (void)state;
    size_t given = sizeof given;
    struct our_options copy;
    assert_ok(core_options_copy(&copy, sizeof copy, &given, "our_options"));
    assert_int_equal(copy.struct_size, sizeof copy);
    assert_int_equal(copy.a, 0);
}

static void a_newer_caller_may_not_use_what_we_do_not_know(void **state)
{
    (void)state;
    struct new_options given = {.struct_size = sizeof given, .a = 1, .c = 3};
    struct our_options copy;
    assert_ok(core_options_copy(&copy, sizeof copy, &given, "our_options"));
    assert_int_equal(copy.struct_size, sizeof copy);
    assert_int_equal(copy.a, 1);
    assert_int_equal(copy.c, 3);
    for (size_t i = 0; i < sizeof given.d; i++) {
        given.d[i] = 1;
        assert_status(RAFFIA_ERROR_UNSUPPORTED,
                      core_options_copy(&copy, sizeof copy, &given, "our_options"));
        assert_error_mentions("our_options");
        given.d[i] = 0;
    }
    assert_ok(core_options_copy(&copy, sizeof copy, &given, "our_options"));
}

static void a_size_that_was_not_set_is_refused(void **state)
{
    (void)state;
    struct our_options copy;
    for (size_t size = 0; size < sizeof size; size++) {
        struct our_options given = {.struct_size = size};
        assert_status(RAFFIA_ERROR_INVALID_ARGUMENT,
                      core_options_copy(&copy, sizeof copy, &given, "our_options"));
        assert_error_mentions("sizeof(our_options)");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_options_are_all_defaults),
        cmocka_unit_test(options_are_copied),
        cmocka_unit_test(what_an_older_caller_does_not_know_is_default),
        cmocka_unit_test(a_caller_may_know_nothing_but_the_size),
        cmocka_unit_test(a_newer_caller_may_not_use_what_we_do_not_know),
        cmocka_unit_test(a_size_that_was_not_set_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
