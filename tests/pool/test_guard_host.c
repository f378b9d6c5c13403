/* Guards on the host: pages that cannot be written to, and the look at exit (SPEC B9). */
#include "core/fault.h"
#include "core/sys.h"
#include "driver/host/host.h"
#include "pool/pool_fixture.h"
#include "support/cmocka.h"
#include "support/fault_loop.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define HOST_PAGE ((size_t)4096)

/* A child that hangs is ended by the kernel. */
#define CHILD_SECONDS 60

static struct pool_plan host_plan(void)
{
    struct pool_plan plan = small_plan();
    plan.device.driver = &host_driver;
    plan.name = "host pool";
    plan.kind = plan.asked_kind = RAFFIA_PAGE_REGULAR;
    plan.page_size = plan.asked_size = plan.granule = HOST_PAGE;
    plan.initial_bytes = plan.maximum_bytes = TEST_CHUNK;
    plan.flags = RAFFIA_POOL_GUARD;
    return plan;
}

/* Here because it wants the host driver. */
static void advice_counts_every_chunk_that_is_missing(void **state)
{
    (void)state;
    uint64_t set_aside;
    if (!sys_read_number("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", &set_aside) &&
        set_aside)
        skip(); /* the first chunks would be had */
    const size_t page = 2 * MIB;
    struct pool_plan plan = host_plan();
    raffia_pool *pool = NULL;
    raffia_fallback_reason reason;
    plan.kind = plan.asked_kind = RAFFIA_PAGE_HUGETLB;
    plan.page_size = plan.asked_size = page;
    plan.flags = 0;
    plan.granule = TEST_GRANULE;
    plan.chunk_bytes = 128 * page;
    plan.initial_bytes = plan.maximum_bytes = 512 * page;
    if (access("/sys/kernel/mm/hugepages/hugepages-2048kB", F_OK) != 0)
        skip();
    if (pool_create(&plan, &pool, &reason) == RAFFIA_OK) {
        raffia_pool_release(pool); /* the machine has so many set aside */
        skip();
    }
    if (reason != RAFFIA_REASON_POOL_EMPTY)
        skip();
    assert_error_mentions("needs 1 GiB at once");
    assert_error_mentions("hugetlb 2 MiB pages: 512 asked");
}

static raffia_pool *make_host_pool(void)
{
    struct pool_plan plan = host_plan();
    return make_pool(&plan);
}

/* Runs `work` in a child, with what it writes to standard error caught in `output`. Returns its
 * wait status. */
static int run_in_child(void (*work)(void), char *output, size_t room)
{
    int pipe_ends[2];
    assert_int_equal(pipe(pipe_ends), 0);
    fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(CHILD_SECONDS);
        signal(SIGSEGV, SIG_DFL); /* sanitizers would make an exit of it */
        dup2(pipe_ends[1], STDERR_FILENO);
        close(pipe_ends[0]);
        close(pipe_ends[1]);
        work();
        exit(0);
    }
    close(pipe_ends[1]);
    size_t filled = 0;
    ssize_t got;
    while (filled < room - 1 && (got = read(pipe_ends[0], output + filled, room - 1 - filled)) > 0)
        filled += (size_t)got;
    output[filled] = '\0';
    close(pipe_ends[0]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void write_behind_a_whole_block(void)
{
    volatile char *block = must_alloc(make_host_pool(), 2 * HOST_PAGE);
    block[2 * HOST_PAGE - 1] = 'x';
    block[2 * HOST_PAGE] = 'x';
}

static void b9_a_write_behind_a_block_of_whole_pages_faults_at_once(void **state)
{
    (void)state;
    char output[4096];
    const int status = run_in_child(write_behind_a_whole_block, output, sizeof output);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGSEGV);
}

static void what_was_protected_is_writable_for_the_next_owner(void **state)
{
    (void)state;
    raffia_pool *pool = make_host_pool();
    for (size_t pages = 1; pages < TEST_CHUNK / HOST_PAGE; pages += 7) {
        char *block = must_alloc(pool, pages * HOST_PAGE);
        memset(block, 1, pages * HOST_PAGE);
        assert_ok(raffia_pool_check(pool));
        assert_ok(raffia_pool_resize(pool, block, (pages + 1) / 2 * HOST_PAGE));
        memset(block, 2, (pages + 1) / 2 * HOST_PAGE);
        assert_ok(raffia_pool_resize(pool, block, pages * HOST_PAGE));
        memset(block, 3, pages * HOST_PAGE);
        must_free(pool, block);
        char *all = must_alloc(pool, TEST_CHUNK - 1);
        memset(all, 4, TEST_CHUNK - 1);
        must_free(pool, all);
    }
    raffia_pool_release(pool);
}

static void where_pages_cannot_be_protected_the_pattern_does(void **state)
{
    (void)state;
    raffia_pool *pool = make_host_pool();
    void *address = NULL;
    must_free(pool, must_alloc(pool, 1)); /* what takes memory only once has it now */
    core_fault_arm(1);
    assert_ok(raffia_pool_alloc(pool, HOST_PAGE, 0, &address));
    assert_string_equal(core_fault_disarm(), "mprotect");
    char *block = address;
    block[HOST_PAGE + 10] = 'x';
    assert_status(RAFFIA_ERROR_CORRUPT, raffia_pool_free(pool, block));
    assert_error_mentions("first 10 bytes behind it");
    raffia_pool_release(pool);
}

/* Below whole pages nothing can be protected without touching the neighbours. */
static void small_granules_have_the_pattern_alone(void **state)
{
    (void)state;
    struct pool_plan plan = host_plan();
    plan.granule = TEST_GRANULE;
    raffia_pool *pool = make_pool(&plan);
    char *block = must_alloc(pool, TEST_GRANULE);
    block[TEST_GRANULE] = 'x';
    assert_status(RAFFIA_ERROR_CORRUPT, raffia_pool_free(pool, block));
    raffia_pool_release(pool);
}

static void overrun_and_exit(void)
{
    raffia_pool *pool = make_host_pool();
    char *good = must_alloc(pool, 100), *bad = must_alloc(pool, 200);
    memset(good, 1, 100);
    memset(bad, 1, 203);
    fprintf(stderr, "the bad block is at %p\n", (void *)bad);
}

static void b9_damage_is_told_at_exit_and_names_the_block(void **state)
{
    (void)state;
    char output[4096], *told = NULL;
    const int status = run_in_child(overrun_and_exit, output, sizeof output);
    assert_true(WIFEXITED(status));
    void *bad = NULL;
    assert_int_equal(sscanf(output, "the bad block is at %p\n", &bad), 1);
    char expected[160];
    snprintf(expected, sizeof expected,
             "raffia: error: pool 'host pool': at exit, the block of 200 bytes at %p", bad);
    told = strstr(output, expected);
    if (!told)
        fail_msg("'%s' does not mention '%s'", output, expected);
    assert_non_null(strstr(told, "first 0 bytes behind it"));
    assert_null(strstr(told + strlen(expected), "at exit"));
}

static void overrun_many_and_exit(void)
{
    struct pool_plan plan = host_plan();
    plan.granule = TEST_GRANULE;
    raffia_pool *pool = make_pool(&plan);
    for (int i = 0; i < 40; i++)
        ((char *)must_alloc(pool, 100))[100] = 'x';
    raffia_pool_release(pool); /* which its blocks keep alive */
}

static void b9_at_exit_some_blocks_are_named_and_the_others_counted(void **state)
{
    (void)state;
    char output[16384];
    assert_true(WIFEXITED(run_in_child(overrun_many_and_exit, output, sizeof output)));
    int lines = 0;
    for (const char *at = output; (at = strstr(at, "at exit")); at++)
        lines++;
    assert_int_equal(lines, 16);
    assert_non_null(strstr(output, "24 more blocks"));
}

static void overrun_on_the_device_and_exit(void)
{
    fresh_device(NULL);
    struct pool_plan plan = small_plan();
    plan.flags = RAFFIA_POOL_GUARD;
    ((char *)must_alloc(make_pool(&plan), 100))[100] = 'x';
}

static void b9_damage_in_device_memory_is_told_at_exit(void **state)
{
    (void)state;
    char output[4096];
    assert_true(WIFEXITED(run_in_child(overrun_on_the_device_and_exit, output, sizeof output)));
    assert_non_null(strstr(output, "pool 'small': at exit, the block of 100 bytes"));
}

static bool stay_inside(void *context, const raffia_block *block)
{
    (void)block;
    atomic_store((atomic_bool *)context, true);
    for (;;)
        pause();
    return true;
}

static raffia_pool *busy_pool;
static atomic_bool inside;

static void *walk_for_ever(void *argument)
{
    (void)argument;
    (void)!raffia_pool_walk(busy_pool, stay_inside, &inside);
    return NULL;
}

static void exit_while_a_thread_holds_the_pool(void)
{
    pthread_t thread;
    busy_pool = make_host_pool();
    ((char *)must_alloc(busy_pool, 100))[100] = 'x';
    assert_int_equal(pthread_create(&thread, NULL, walk_for_ever, NULL), 0);
    while (!atomic_load(&inside))
        usleep(100);
}

static void b9_exit_does_not_wait_for_a_pool_that_another_thread_holds(void **state)
{
    (void)state;
    char output[4096];
    assert_true(WIFEXITED(run_in_child(exit_while_a_thread_holds_the_pool, output, sizeof output)));
    assert_null(strstr(output, "at exit"));
}

static raffia_status life_with_walls(void *context)
{
    (void)context;
    raffia_pool *pool = NULL;
    raffia_fallback_reason reason;
    struct pool_plan plan = host_plan();
    char *blocks[3] = {NULL};
    raffia_status status = pool_create(&plan, &pool, &reason);
    if (status)
        return status;
    for (int i = 0; i < 3 && !status; i++) {
        void *block = NULL;
        status = raffia_pool_alloc(pool, 2 * HOST_PAGE, 0, &block);
        blocks[i] = block;
        if (block)
            memset(block, 1, 2 * HOST_PAGE);
    }
    if (!status)
        status = raffia_pool_resize(pool, blocks[1], HOST_PAGE);
    assert_ok(raffia_pool_check(pool));
    for (int i = 0; i < 3; i++)
        must_free(pool, blocks[i]);
    raffia_pool_release(pool);
    return status;
}

static void any_call_of_a_life_with_walls_may_fail(void **state)
{
    (void)state;
    assert_true(fault_loop(life_with_walls, NULL, 500) > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(advice_counts_every_chunk_that_is_missing),
        cmocka_unit_test(b9_a_write_behind_a_block_of_whole_pages_faults_at_once),
        cmocka_unit_test(what_was_protected_is_writable_for_the_next_owner),
        cmocka_unit_test(where_pages_cannot_be_protected_the_pattern_does),
        cmocka_unit_test(small_granules_have_the_pattern_alone),
        cmocka_unit_test(b9_damage_is_told_at_exit_and_names_the_block),
        cmocka_unit_test(b9_at_exit_some_blocks_are_named_and_the_others_counted),
        cmocka_unit_test(b9_damage_in_device_memory_is_told_at_exit),
        cmocka_unit_test(b9_exit_does_not_wait_for_a_pool_that_another_thread_holds),
        cmocka_unit_test(any_call_of_a_life_with_walls_may_fail),
    };
    return cmocka_run_group_tests_name("guards on the host", tests, NULL, NULL);
}
