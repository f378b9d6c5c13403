/* Threads of the library in a program whose thread-local variables all but fill a stack of theirs.
 */
#include "core/sys.h"
#include "support/cmocka.h"

#include <string.h>

/* A little less than what sys_thread_create() gives where there are none. The C library takes them
 * from the stack, and refuses only if next to nothing would be left. */
static _Thread_local char variables[(1 << 20) - 8 * 1024];

static void *use_some(void *context)
{
    volatile char frame[256 * 1024];
    for (size_t i = 0; i < sizeof frame; i += 4096)
        frame[i] = 1;
    memset(variables, 2, sizeof variables);
    return frame[0] == 1 && variables[sizeof variables - 1] == 2 ? context : NULL;
}

static void variables_leave_a_thread_its_stack(void **state)
{
    (void)state;
    pthread_t thread;
    void *result = NULL;
    assert_int_equal(sys_thread_create(&thread, use_some, &result), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, &result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(variables_leave_a_thread_its_stack)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
