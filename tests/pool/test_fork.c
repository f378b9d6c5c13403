/* Forked children and the pools they inherit. */
#include "pool/pool_fixture.h"
#include "pool/pool_internal.h"
#include "support/cmocka.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILD_TIMEOUT_SECONDS 20

static bool visit(void *context, const raffia_block *block)
{
    (void)context;
    (void)block;
    return true;
}

/* A pool that the child makes for itself is as good as any. */
static int use_an_own_pool(void)
{
    const struct pool_plan plan = small_plan();
    raffia_pool *pool;
    raffia_fallback_reason reason;
    void *block;
    fresh_device(NULL);
    if (pool_create(&plan, &pool, &reason))
        return 103;
    if (raffia_pool_alloc(pool, 1000, 0, &block) || raffia_pool_free(pool, block))
        return 104;
    raffia_pool_release(pool);
    return sim_is_idle() ? 0 : 105;
}

/* Runs in the child: the number of the first expectation that fails, or 0. */
static int use_an_inherited_pool(raffia_pool *pool, void *block)
{
    void *none = NULL;
    raffia_pool_stats stats;
    raffia_block found;
    raffia_page_report report;
    const raffia_status forked[] = {
        raffia_pool_alloc(pool, 1, 0, &none),
        raffia_pool_alloc(pool, 2 * TEST_CHUNK, 0, &none),
        raffia_pool_alloc_on(pool, NULL, 1, 0, &none),
        raffia_pool_resize(pool, block, 1),
        raffia_pool_trim(pool, 0, NULL),
        raffia_pool_set_maximum(pool, 0),
        raffia_pool_query(pool, &stats),
        raffia_pool_find(pool, block, &found),
        raffia_pool_walk(pool, visit, NULL),
        raffia_pool_verify(pool, &report),
        raffia_pool_check(pool),
    };
    const int count = (int)(sizeof forked / sizeof *forked);
    for (int i = 0; i < count; i++)
        if (forked[i] != RAFFIA_ERROR_FORKED)
            return i + 1;
    if (none)
        return 100;
    if (raffia_pool_free(pool, block) || raffia_pool_free(pool, block))
        return 101;
    if (raffia_pool_free_on(pool, NULL, block))
        return 102;
    raffia_pool_release(raffia_pool_retain(pool));
    raffia_pool_release(pool);
    raffia_pool_release(pool);
    return use_an_own_pool();
}

static void run_child(raffia_pool *pool, void *block)
{
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(CHILD_TIMEOUT_SECONDS); /* a deadlock ends it */
        _exit(use_an_inherited_pool(pool, block));
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void a_child_leaves_its_parents_pool_alone(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_MAXIMUM);
    char *block = must_alloc(pool, 1000);
    block[999] = 8;
    const raffia_pool_stats before = stats_of(pool);
    run_child(pool, block);
    const raffia_pool_stats after = stats_of(pool);
    assert_int_equal(after.frees, before.frees);
    assert_int_equal(after.live_blocks, 1);
    assert_int_equal(after.driver_calls, before.driver_calls);
    assert_int_equal(block[999], 8);
    must_free(pool, block);
    drop_pool(pool);
}

static void a_child_does_not_hang_on_locks_its_parent_held(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_MAXIMUM);
    void *block = must_alloc(pool, 1000);
    pthread_mutex_lock(&pool->growth_lock);
    core_lock_take(&pool->lock);
    run_child(pool, block);
    core_lock_leave(&pool->lock);
    pthread_mutex_unlock(&pool->growth_lock);
    must_free(pool, block);
    drop_pool(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_child_leaves_its_parents_pool_alone, set_up_device),
        cmocka_unit_test_setup(a_child_does_not_hang_on_locks_its_parent_held, set_up_device),
    };
    return cmocka_run_group_tests_name("pool fork", tests, NULL, NULL);
}
