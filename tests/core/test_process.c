/* Fork generations: what a child sees of them. */
#include "core/fault.h"
#include "core/process.h"
#include "support/cmocka.h"

#include <raffia/config.h>
#include <raffia/log.h>
#include <raffia/pages.h>

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs `body` in a forked child and returns what it returned. */
static int in_child(int (*body)(unsigned long parents), unsigned long parents)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(body(parents));
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

enum { AS_EXPECTED = 0, CHANGED_BY_ITSELF, NOT_CHANGED_BY_FORK, ZERO, CHILD_FAILED, NOT_FAULTED };

static int is_stable_and_new(unsigned long parents)
{
    unsigned long own = core_fork_generation();
    if (own == 0)
        return ZERO;
    if (own == parents)
        return NOT_CHANGED_BY_FORK;
    return core_fork_generation() == own ? AS_EXPECTED : CHANGED_BY_ITSELF;
}

static int is_new_to_its_own_child_too(unsigned long parents)
{
    int status = is_stable_and_new(parents);
    if (status)
        return status;
    unsigned long own = core_fork_generation();
    pid_t child = fork();
    if (child < 0)
        return CHILD_FAILED;
    if (child == 0) {
        status = is_stable_and_new(parents);
        _exit(status ? status : is_stable_and_new(own));
    }
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status))
        return CHILD_FAILED;
    return WEXITSTATUS(status);
}

static int works_without_a_fork_handler(unsigned long nobody)
{
    core_fault_arm(1);
    unsigned long own = core_fork_generation();
    if (!core_fault_disarm())
        return NOT_FAULTED;
    int status = is_stable_and_new(nobody);
    return status ? status : is_new_to_its_own_child_too(own - 1);
}

/* Must be the first test: it is about the first call of a process. */
static void the_process_number_stands_in_for_a_fork_handler(void **state)
{
    (void)state;
    assert_int_equal(in_child(works_without_a_fork_handler, 0), AS_EXPECTED);
}

static void the_generation_changes_only_by_fork(void **state)
{
    (void)state;
    unsigned long own = core_fork_generation();
    assert_true(own != 0);
    assert_true(core_fork_generation() == own);
    assert_int_equal(in_child(is_stable_and_new, own), AS_EXPECTED);
    assert_true(core_fork_generation() == own);
}

static void a_grandchild_differs_from_both_ancestors(void **state)
{
    (void)state;
    unsigned long own = core_fork_generation();
    assert_int_equal(in_child(is_new_to_its_own_child_too, own), AS_EXPECTED);
}

static void *read_generation(void *generation_p)
{
    *(unsigned long *)generation_p = core_fork_generation();
    return NULL;
}

static void all_threads_see_the_same_generation(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    unsigned long seen[THREADS] = {0};
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, read_generation, &seen[i]), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++)
        assert_true(seen[i] == core_fork_generation());
}

enum { FORKS = 200, HANG_SECONDS = 10 };

static atomic_bool enough;

static void *use_the_tables(void *nothing)
{
    char text[64];
    while (!atomic_load(&enough)) {
        (void)!raffia_config_get("pages", text, sizeof text);
        (void)raffia_fallbacks(NULL, 0);
        raffia_log_set_sink(NULL, NULL);
    }
    return nothing;
}

static int uses_the_tables_too(unsigned long nobody)
{
    char text[64];
    (void)nobody;
    alarm(HANG_SECONDS); /* a lock that nobody will open ends it */
    raffia_log_set_sink(NULL, NULL);
    (void)raffia_fallbacks(NULL, 0);
    return raffia_config_get("pages", text, sizeof text) ? CHILD_FAILED : AS_EXPECTED;
}

static void a_child_never_inherits_a_lock_that_is_held(void **state)
{
    (void)state;
    pthread_t thread;
    atomic_store(&enough, false);
    assert_int_equal(pthread_create(&thread, NULL, use_the_tables, NULL), 0);
    for (int i = 0; i < FORKS; i++)
        assert_int_equal(in_child(uses_the_tables_too, 0), AS_EXPECTED);
    atomic_store(&enough, true);
    pthread_join(thread, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_process_number_stands_in_for_a_fork_handler),
        cmocka_unit_test(the_generation_changes_only_by_fork),
        cmocka_unit_test(a_grandchild_differs_from_both_ancestors),
        cmocka_unit_test(all_threads_see_the_same_generation),
        cmocka_unit_test(a_child_never_inherits_a_lock_that_is_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
