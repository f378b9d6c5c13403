/* The list of all pools, and what they do for each other. */
#include "core/memory.h"
#include "pool/pool_fixture.h"
#include "pool/pool_internal.h"
#include "pool/registry.h"
#include "support/cmocka.h"
#include "support/fault_loop.h"

#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SEEN_MAX 16

struct seen {
    raffia_pool *pools[SEEN_MAX];
    size_t count;
    size_t wanted; /* stops after so many */
};

static bool note(void *context, raffia_pool *pool)
{
    struct seen *seen = context;
    if (seen->count < SEEN_MAX)
        seen->pools[seen->count] = pool;
    seen->count++;
    return seen->count < seen->wanted;
}

static struct seen visit(size_t wanted)
{
    struct seen seen = {.wanted = wanted};
    pool_registry_for_each(note, &seen);
    return seen;
}

static void pools_are_visited_from_birth_to_death_the_newest_first(void **state)
{
    (void)state;
    assert_int_equal(visit(SEEN_MAX).count, 0);
    raffia_pool *pools[3];
    for (int i = 0; i < 3; i++)
        pools[i] = make_pool_of(0, TEST_MAXIMUM);
    struct seen seen = visit(SEEN_MAX);
    assert_int_equal(seen.count, 3);
    for (int i = 0; i < 3; i++)
        assert_ptr_equal(seen.pools[i], pools[2 - i]);
    assert_int_equal(visit(2).count, 2);
    raffia_pool_release(pools[1]);
    seen = visit(SEEN_MAX);
    assert_int_equal(seen.count, 2);
    assert_ptr_equal(seen.pools[1], pools[0]);
    raffia_pool_release(pools[0]);
    raffia_pool_release(pools[2]);
    assert_int_equal(visit(SEEN_MAX).count, 0);
}

static void a_pool_that_was_left_with_blocks_is_still_listed(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_MAXIMUM);
    void *block = must_alloc(pool, 100);
    raffia_pool_release(pool);
    assert_int_equal(visit(SEEN_MAX).count, 1);
    must_free(pool, block);
    assert_int_equal(visit(SEEN_MAX).count, 0);
    assert_true(sim_is_idle());
}

static bool release_it(void *context, raffia_pool *pool)
{
    long *memory = context;
    raffia_pool_release(pool);
    /* It is doomed, but whole: this is its visitor. */
    assert_int_equal(pool->mapped_bytes, TEST_CHUNK);
    *memory = core_memory_live();
    assert_int_equal(visit(SEEN_MAX).count, 0);
    return true;
}

static void a_pool_released_during_a_visit_goes_when_the_visit_ends(void **state)
{
    (void)state;
    make_pool_of(TEST_CHUNK, TEST_MAXIMUM);
    long during = 0;
    pool_registry_for_each(release_it, &during);
    assert_true(core_memory_live() < during);
    assert_int_equal(visit(SEEN_MAX).count, 0);
    assert_true(sim_is_idle());
}

/* ---- idle memory ---------------------------------------------------------------------------- */

static void b4_growth_takes_what_another_pool_holds_idle(void **state)
{
    (void)state;
    fresh_device(&(struct sim_config){.capacity_bytes = 4 * TEST_CHUNK});
    raffia_pool *rich = make_pool_of(3 * TEST_CHUNK, TEST_MAXIMUM);
    raffia_pool *poor = make_pool_of(TEST_CHUNK, TEST_MAXIMUM);
    void *kept = must_alloc(rich, 100);
    void *block = must_alloc(poor, 2 * TEST_CHUNK);
    assert_int_equal(stats_of(rich).reserved_bytes, 2 * TEST_CHUNK);
    assert_int_equal(stats_of(poor).reserved_bytes, 2 * TEST_CHUNK);
    /* What is left idle is less than this needs: it stays where it is. */
    void *none = NULL;
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, raffia_pool_alloc(poor, 3 * TEST_CHUNK, 0, &none));
    assert_int_equal(stats_of(rich).reserved_bytes, 2 * TEST_CHUNK);
    assert_error_mentions("all pools hold 256 KiB idle");
    assert_error_mentions("pool_share");
    must_free(rich, kept);
    must_free(poor, block);
    raffia_pool_release(rich);
    drop_pool(poor);
}

static size_t trimmed_for(raffia_page_kind kind, size_t page_size, int device,
                          const raffia_pool *spared)
{
    const struct pool_need need = {
        {&sim_driver, device}, kind, page_size, TEST_CHUNK, spared, NULL};
    return pool_registry_trim(&need);
}

static void only_pools_that_can_help_are_trimmed(void **state)
{
    (void)state;
    fresh_device(&(struct sim_config){.page_count = 3,
                                      .pages = {{RAFFIA_PAGE_DEVICE, TEST_PAGE},
                                                {RAFFIA_PAGE_HUGETLB, TEST_PAGE},
                                                {RAFFIA_PAGE_REGULAR, SIM_BASE_PAGE}}});
    struct pool_plan plan = small_plan();
    plan.initial_bytes = 2 * TEST_CHUNK;
    raffia_pool *pool = make_pool(&plan);
    assert_int_equal(trimmed_for(RAFFIA_PAGE_DEVICE, TEST_PAGE, 1, NULL), 0);
    assert_int_equal(trimmed_for(RAFFIA_PAGE_DEVICE, TEST_PAGE, 0, pool), 0);
    assert_int_equal(trimmed_for(RAFFIA_PAGE_HUGETLB, TEST_PAGE, 0, NULL), 0);
    atomic_store(&pool->frozen, true);
    assert_int_equal(trimmed_for(RAFFIA_PAGE_REGULAR, SIM_BASE_PAGE, 0, NULL), 0);
    atomic_store(&pool->frozen, false);
    assert_int_equal(trimmed_for(RAFFIA_PAGE_REGULAR, SIM_BASE_PAGE, 0, NULL), TEST_CHUNK);
    assert_int_equal(stats_of(pool).reserved_bytes, TEST_CHUNK);
    drop_pool(pool);

    plan.kind = RAFFIA_PAGE_HUGETLB;
    pool = make_pool(&plan);
    assert_int_equal(trimmed_for(RAFFIA_PAGE_REGULAR, SIM_BASE_PAGE, 0, NULL), 0);
    assert_int_equal(trimmed_for(RAFFIA_PAGE_HUGETLB, 2 * TEST_PAGE, 0, NULL), 0);
    assert_int_equal(trimmed_for(RAFFIA_PAGE_HUGETLB, TEST_PAGE, 0, NULL), TEST_CHUNK);
    drop_pool(pool);

    /* A fixed pool could not grow again. */
    plan = small_plan();
    plan.initial_bytes = plan.maximum_bytes;
    plan.flags = RAFFIA_POOL_FIXED;
    pool = make_pool(&plan);
    assert_int_equal(trimmed_for(RAFFIA_PAGE_DEVICE, TEST_PAGE, 0, NULL), 0);
    drop_pool(pool);
}

static void chunks_kept_for_remapping_go_too(void **state)
{
    (void)state;
    struct pool_plan plan = small_plan();
    plan.initial_bytes = TEST_CHUNK;
    plan.flags = RAFFIA_POOL_REMAPPABLE;
    raffia_pool *pool = make_pool(&plan);
    assert_int_equal(trimmed_for(RAFFIA_PAGE_DEVICE, TEST_PAGE, 0, NULL), TEST_CHUNK);
    struct sim_usage usage;
    sim_query(0, &usage);
    assert_int_equal(usage.chunk_bytes, 0);
    drop_pool(pool);
}

static raffia_status life_beside_a_rich_pool(void *context)
{
    (void)context;
    raffia_pool *rich = NULL, *poor = NULL;
    raffia_fallback_reason reason;
    struct pool_plan plan = small_plan();
    void *block = NULL;
    plan.initial_bytes = 2 * TEST_CHUNK;
    raffia_status status = pool_create(&plan, &rich, &reason);
    plan.initial_bytes = TEST_CHUNK;
    if (!status)
        status = pool_create(&plan, &poor, &reason);
    if (!status)
        status = raffia_pool_alloc(poor, 3 * TEST_CHUNK, 0, &block);
    if (block)
        must_free(poor, block);
    if (rich)
        assert_ok(raffia_pool_check(rich));
    raffia_pool_release(poor);
    raffia_pool_release(rich);
    assert_true(sim_is_idle());
    return status;
}

static void any_call_may_fail_while_pools_help_each_other(void **state)
{
    (void)state;
    fresh_device(&(struct sim_config){.capacity_bytes = 3 * TEST_CHUNK});
    assert_true(fault_loop(life_beside_a_rich_pool, NULL, 500) > 20);
}

/* ---- processes and threads ------------------------------------------------------------------ */

static void a_child_does_not_visit_its_parents_pools(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_MAXIMUM);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (visit(SEEN_MAX).count != 0)
            _exit(1);
        sim_reset();
        const struct pool_plan plan = small_plan();
        raffia_pool *own;
        raffia_fallback_reason reason;
        fresh_device(NULL);
        if (pool_create(&plan, &own, &reason) || visit(SEEN_MAX).count != 1)
            _exit(2);
        raffia_pool_release(own);
        _exit(visit(SEEN_MAX).count == 0 ? 0 : 3);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(visit(SEEN_MAX).count, 1);
    drop_pool(pool);
}

#define THREADS 4
#define ROUNDS  60

struct worker {
    unsigned number;
    const char *complaint;
};

static void *live_and_trim(void *context)
{
    struct worker *worker = context;
    struct pool_plan plan = small_plan();
    plan.initial_bytes = TEST_CHUNK;
    for (int round = 0; round < ROUNDS; round++) {
        raffia_pool *pool;
        raffia_fallback_reason reason;
        void *block = NULL;
        if (pool_create(&plan, &pool, &reason)) {
            worker->complaint = "no pool";
            break;
        }
        if (raffia_pool_alloc(pool, TEST_CHUNK, 0, &block))
            worker->complaint = "no block";
        trimmed_for(RAFFIA_PAGE_DEVICE, TEST_PAGE, 0, NULL);
        pool_registry_idle_bytes(plan.device);
        if (block && raffia_pool_free(pool, block))
            worker->complaint = "no free";
        raffia_pool_release(pool);
    }
    return NULL;
}

static void pools_come_and_go_while_others_visit_them(void **state)
{
    (void)state;
    fresh_device(NULL);
    pthread_t threads[THREADS];
    struct worker workers[THREADS] = {{0}};
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, live_and_trim, &workers[i]), 0);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < THREADS; i++)
        if (workers[i].complaint)
            fail_msg("thread %u: %s", i, workers[i].complaint);
    assert_int_equal(visit(SEEN_MAX).count, 0);
    assert_true(sim_is_idle());
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, set_up_device)
    const struct CMUnitTest tests[] = {
        TEST(pools_are_visited_from_birth_to_death_the_newest_first),
        TEST(a_pool_that_was_left_with_blocks_is_still_listed),
        TEST(a_pool_released_during_a_visit_goes_when_the_visit_ends),
        TEST(b4_growth_takes_what_another_pool_holds_idle),
        TEST(only_pools_that_can_help_are_trimmed),
        TEST(chunks_kept_for_remapping_go_too),
        TEST(any_call_may_fail_while_pools_help_each_other),
        TEST(a_child_does_not_visit_its_parents_pools),
        TEST(pools_come_and_go_while_others_visit_them),
    };
    return cmocka_run_group_tests_name("pool registry", tests, NULL, NULL);
}
