/*
 * Arenas. What gives a thread its seat is meeting others at a lock; most tests here say that they
 * were met, so that what follows is the same each time.
 */
#include "core/memory.h"
#include "pool/arena.h"
#include "pool/pool_fixture.h"
#include "pool/registry.h"
#include "support/cmocka.h"
#include "support/fault_loop.h"

#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* More than gives a seat. */
#define MEETINGS 16

/* What a pool of the fixture leases at a time. */
#define LEASE (TEST_MAXIMUM / 32)

static void take_seat(raffia_pool *pool)
{
    for (int i = 0; i < MEETINGS; i++)
        pool_arena_met(pool, false);
}

static bool is_leased(raffia_pool *pool, const void *address)
{
    const struct pool_arenas *arenas = pool_arenas_of(pool);
    const size_t offset = (size_t)((const char *)address - pool->base);
    return arenas && atomic_load(&arenas->owners[offset >> arenas->lease_shift]);
}

static raffia_pool *make_fixed(size_t bytes)
{
    struct pool_plan plan = small_plan();
    plan.initial_bytes = plan.maximum_bytes = bytes;
    plan.flags = RAFFIA_POOL_FIXED;
    return make_pool(&plan);
}

static void a_pool_that_nobody_waits_for_has_no_arenas(void **state)
{
    (void)state;
    raffia_pool *pool = make_fixed(TEST_MAXIMUM);
    for (int i = 0; i < 100; i++)
        must_free(pool, must_alloc(pool, 1000));
    assert_null(pool_arenas_of(pool));
    drop_pool(pool);
}

struct visitor {
    raffia_pool *pool;
    bool leased;
    raffia_status status;
    atomic_bool done;
};

/* Until it has a seat, or ever so long. */
static void *come_and_go(void *argument)
{
    struct visitor *visitor = argument;
    for (int i = 0; i < 10000000 && !visitor->leased && !visitor->status; i++) {
        void *block = NULL;
        visitor->status = raffia_pool_alloc(visitor->pool, 1000, 0, &block);
        visitor->leased = !visitor->status && is_leased(visitor->pool, block);
        if (!visitor->status)
            visitor->status = raffia_pool_free(visitor->pool, block);
    }
    atomic_store(&visitor->done, true);
    return NULL;
}

static void a_thread_that_finds_the_lock_taken_gets_a_seat(void **state)
{
    (void)state;
    raffia_pool *pool = make_fixed(TEST_MAXIMUM);
    struct visitor visitor = {.pool = pool};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, come_and_go, &visitor), 0);
    while (!atomic_load(&visitor.done)) {
        core_lock_take(&pool->lock);
        usleep(1000);
        core_lock_leave(&pool->lock);
        usleep(10);
    }
    pthread_join(thread, NULL);
    assert_ok(visitor.status);
    assert_true(visitor.leased);
    drop_pool(pool);
}

static void a_thread_with_a_seat_takes_small_blocks_from_a_lease(void **state)
{
    (void)state;
    raffia_pool *pool = make_fixed(TEST_MAXIMUM);
    take_seat(pool);
    void *small = must_alloc(pool, 100), *large = must_alloc(pool, LEASE);
    assert_true(is_leased(pool, small));
    assert_false(is_leased(pool, large));
    assert_int_equal(pool_arenas_of(pool)->lease_bytes, LEASE);
    void *aligned;
    assert_ok(raffia_pool_alloc(pool, 100, LEASE / 4, &aligned));
    assert_true(is_leased(pool, aligned));
    assert_int_equal((uintptr_t)aligned % (LEASE / 4), 0);
    must_free(pool, small);
    must_free(pool, large);
    must_free(pool, aligned);
    drop_pool(pool);
}

static void pools_with_guards_or_streams_have_no_arenas(void **state)
{
    (void)state;
    struct pool_plan plan = small_plan();
    plan.initial_bytes = TEST_MAXIMUM;
    plan.flags = RAFFIA_POOL_GUARD;
    raffia_pool *pool = make_pool(&plan);
    take_seat(pool);
    assert_null(pool_arenas_of(pool));
    raffia_pool_release(pool);
    fresh_device(NULL);
    plan.flags = 0;
    pool = make_pool(&plan);
    take_seat(pool);
    assert_null(pool_arenas_of(pool));
    drop_pool(pool);
}

static bool count_live(void *context, const raffia_block *block)
{
    *(size_t *)context += block->live;
    return true;
}

static void figures_and_walks_include_what_arenas_hold(void **state)
{
    (void)state;
    raffia_pool *pool = make_fixed(TEST_MAXIMUM);
    void *own = must_alloc(pool, 1000);
    take_seat(pool);
    void *leased = must_alloc(pool, 1000);
    const raffia_pool_stats stats = stats_of(pool);
    assert_true(is_leased(pool, leased));
    assert_int_equal(stats.live_blocks, 2);
    assert_int_equal(stats.in_use_bytes, 2 * 1024);
    assert_int_equal(stats.peak_in_use_bytes, 2 * 1024);
    assert_int_equal(stats.requested_bytes, 2 * 1000);
    assert_int_equal(stats.free_bytes, TEST_MAXIMUM - 2 * 1024);
    assert_int_equal(stats.hits, 2);
    assert_int_equal(pool_live_blocks(pool), 2);
    raffia_block block;
    assert_ok(raffia_pool_find(pool, (char *)leased + 5, &block));
    assert_ptr_equal(block.address, leased);
    assert_int_equal(block.requested_bytes, 1000);
    size_t live = 0;
    assert_ok(raffia_pool_check(pool));
    assert_ok(raffia_pool_walk(pool, count_live, &live));
    assert_int_equal(live, 2);
    must_free(pool, own);
    must_free(pool, leased);
    assert_int_equal(stats_of(pool).frees, 2);
    drop_pool(pool);
}

static void what_is_no_block_of_an_arena_is_refused(void **state)
{
    (void)state;
    raffia_pool *pool = make_fixed(TEST_MAXIMUM);
    take_seat(pool);
    char *block = must_alloc(pool, 1000);
    assert_true(is_leased(pool, block));
    assert_int_equal(raffia_pool_free(pool, block + TEST_GRANULE), RAFFIA_ERROR_BAD_ADDRESS);
    assert_non_null(strstr(raffia_last_error(), "inside the block of 1024 bytes"));
    assert_int_equal(raffia_pool_free(pool, block + 1024), RAFFIA_ERROR_BAD_ADDRESS);
    assert_non_null(strstr(raffia_last_error(), "free space"));
    assert_int_equal(pool_free_sized(pool, NULL, block, 1024), RAFFIA_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(raffia_last_error(), "has 1000"));
    assert_int_equal(pool_resize_sized(pool, block, 1024, 5), RAFFIA_ERROR_INVALID_ARGUMENT);
    assert_ok(pool_resize_sized(pool, block, 1000, 900));
    assert_ok(pool_free_sized(pool, NULL, block, 900));
    assert_int_equal(raffia_pool_free(pool, block), RAFFIA_ERROR_BAD_ADDRESS);
    assert_int_equal(raffia_pool_resize(pool, block, 5), RAFFIA_ERROR_BAD_ADDRESS);
    assert_int_equal(stats_of(pool).bad_frees, 4);
    drop_pool(pool);
}

static void a_block_of_an_arena_is_resized_where_it_is(void **state)
{
    (void)state;
    raffia_pool *pool = make_fixed(TEST_MAXIMUM);
    take_seat(pool);
    void *block = must_alloc(pool, 1000);
    assert_ok(raffia_pool_resize(pool, block, LEASE));
    assert_int_equal(stats_of(pool).in_use_bytes, LEASE);
    assert_ok(raffia_pool_resize(pool, block, 10));
    assert_true(is_leased(pool, block));
    assert_int_equal(stats_of(pool).in_use_bytes, TEST_GRANULE);
    /* Another block of the arena is in the way, and nothing need be gathered to see that. */
    void *behind = must_alloc(pool, 10);
    assert_int_equal(raffia_pool_resize(pool, block, 1000), RAFFIA_ERROR_OUT_OF_MEMORY);
    assert_true(is_leased(pool, block));
    must_free(pool, behind);
    /* What lies behind the lease is the pool's. */
    assert_ok(raffia_pool_resize(pool, block, 2 * LEASE));
    assert_false(is_leased(pool, block));
    assert_ok(raffia_pool_check(pool));
    must_free(pool, block);
    drop_pool(pool);
}

static void a_block_grows_out_of_its_lease_into_what_others_leased(void **state)
{
    (void)state;
    raffia_pool *pool = make_fixed(TEST_MAXIMUM);
    take_seat(pool);
    void *blocks[6];
    for (int i = 0; i < 6; i++) /* two leases, the second one below the first */
        blocks[i] = must_alloc(pool, LEASE / 4);
    void *low = blocks[4];
    for (int i = 0; i < 6; i++)
        if (i != 4)
            must_free(pool, blocks[i]);
    assert_true(is_leased(pool, low));
    assert_ok(raffia_pool_resize(pool, low, 2 * LEASE - 1));
    assert_int_equal(stats_of(pool).requested_bytes, 2 * LEASE - 1);
    assert_ok(raffia_pool_check(pool));
    must_free(pool, low);
    drop_pool(pool);
}

static void what_is_leased_is_gathered_before_a_request_is_refused(void **state)
{
    (void)state;
    raffia_pool *pool = make_fixed(TEST_MAXIMUM);
    take_seat(pool);
    void *small = must_alloc(pool, 100);
    const size_t offset = (size_t)((char *)small - pool->base);
    must_free(pool, small);
    assert_true(is_leased(pool, small)); /* one idle lease is kept */
    void *all = must_alloc(pool, TEST_MAXIMUM);
    must_free(pool, all);
    /* And around a block that stays. */
    small = must_alloc(pool, 100);
    for (int i = 0; !is_leased(pool, small) && i < 1000; i++) {
        must_free(pool, small);
        small = must_alloc(pool, 100);
    }
    assert_true(is_leased(pool, small));
    assert_int_equal((size_t)((char *)small - pool->base), offset);
    void *before = offset ? must_alloc(pool, offset) : NULL;
    void *behind = must_alloc(pool, TEST_MAXIMUM - offset - TEST_GRANULE);
    assert_ok(raffia_pool_free(pool, before));
    must_free(pool, behind);
    must_free(pool, small);
    drop_pool(pool);
}

static void what_is_leased_is_gathered_before_the_pool_grows(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(TEST_CHUNK, TEST_MAXIMUM);
    take_seat(pool);
    must_free(pool, must_alloc(pool, 100));
    assert_int_not_equal(pool_arenas_of(pool)->leased_bytes, 0);
    void *chunk = must_alloc(pool, TEST_CHUNK);
    assert_int_equal(stats_of(pool).reserved_bytes, TEST_CHUNK);
    must_free(pool, chunk);
    drop_pool(pool);
}

static void a_trim_gives_back_what_arenas_hold_idle(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(TEST_MAXIMUM, TEST_MAXIMUM);
    size_t released;
    take_seat(pool);
    must_free(pool, must_alloc(pool, 100));
    assert_int_not_equal(pool_arenas_of(pool)->leased_bytes, 0);
    assert_ok(raffia_pool_trim(pool, 0, &released));
    assert_int_equal(released, TEST_MAXIMUM);
    drop_pool(pool);
}

static void an_arena_keeps_one_lease_that_is_idle(void **state)
{
    (void)state;
    raffia_pool *pool = make_fixed(TEST_MAXIMUM);
    void *blocks[40];
    take_seat(pool);
    for (int i = 0; i < 40; i++)
        blocks[i] = must_alloc(pool, LEASE / 4);
    assert_int_equal(pool_arenas_of(pool)->leased_bytes, 10 * LEASE);
    for (int i = 0; i < 40; i++)
        must_free(pool, blocks[i]);
    assert_int_equal(pool_arenas_of(pool)->leased_bytes, LEASE);
    drop_pool(pool);
}

static void leases_leave_room_for_what_arenas_cannot_serve(void **state)
{
    (void)state;
    raffia_pool *pool = make_fixed(TEST_MAXIMUM);
    void *blocks[128];
    take_seat(pool);
    for (int i = 0; i < 128; i++)
        blocks[i] = must_alloc(pool, LEASE / 4);
    assert_int_equal(pool_arenas_of(pool)->leased_bytes, TEST_MAXIMUM / 16 * 15);
    assert_int_equal(stats_of(pool).free_bytes, 0);
    for (int i = 0; i < 128; i++)
        must_free(pool, blocks[i]);
    drop_pool(pool);
}

static void the_last_free_in_an_arena_tears_a_released_pool_down(void **state)
{
    (void)state;
    const long memory = core_memory_live();
    raffia_pool *pool = make_fixed(TEST_MAXIMUM);
    take_seat(pool);
    void *blocks[3];
    for (int i = 0; i < 3; i++)
        blocks[i] = must_alloc(pool, 1000);
    assert_true(is_leased(pool, blocks[0]));
    void *own = must_alloc(pool, LEASE);
    raffia_pool_release(pool);
    for (int i = 0; i < 3; i++)
        must_free(pool, blocks[i]);
    assert_false(sim_is_idle());
    must_free(pool, own);
    assert_true(sim_is_idle());
    assert_int_equal(core_memory_live(), memory);

    pool = make_fixed(TEST_MAXIMUM);
    take_seat(pool);
    blocks[0] = must_alloc(pool, 1000);
    assert_true(is_leased(pool, blocks[0]));
    raffia_pool_release(pool);
    assert_false(sim_is_idle());
    must_free(pool, blocks[0]);
    assert_true(sim_is_idle());
    assert_int_equal(core_memory_live(), memory);
}

static void a_released_pool_is_gathered_for_others_and_goes_all_the_same(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool_of(TEST_MAXIMUM, TEST_MAXIMUM);
    take_seat(pool);
    void *blocks[2] = {must_alloc(pool, 1000), must_alloc(pool, 1000)};
    assert_true(is_leased(pool, blocks[0]));
    raffia_pool_release(pool);
    must_free(pool, blocks[0]);
    assert_int_equal(pool_registry_idle_bytes(pool_device(pool)), TEST_MAXIMUM - TEST_CHUNK);
    assert_false(is_leased(pool, blocks[1]));
    must_free(pool, blocks[1]);
    assert_true(sim_is_idle());
}

/* What a child of fork() sees of a pool whose arena another thread had locked. */
static int use_in_child(raffia_pool *pool, void *block)
{
    void *other;
    raffia_pool_stats stats;
    const bool refused = raffia_pool_alloc(pool, 100, 0, &other) == RAFFIA_ERROR_FORKED &&
                         raffia_pool_query(pool, &stats) == RAFFIA_ERROR_FORKED;
    const bool ignored = !raffia_pool_free(pool, block);
    raffia_pool_release(pool);
    return refused && ignored ? 0 : 1;
}

static void a_forked_child_touches_no_lock_of_an_arena(void **state)
{
    (void)state;
    raffia_pool *pool = make_fixed(TEST_MAXIMUM);
    take_seat(pool);
    void *block = must_alloc(pool, 1000);
    assert_true(is_leased(pool, block));
    struct pool_arenas *arenas = pool_arenas_of(pool);
    for (int i = 0; i < POOL_ARENAS; i++)
        core_lock_take(&arenas->arenas[i].lock);
    const pid_t child = fork();
    if (child == 0)
        _exit(use_in_child(pool, block));
    for (int i = 0; i < POOL_ARENAS; i++)
        core_lock_leave(&arenas->arenas[i].lock);
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    must_free(pool, block);
    drop_pool(pool);
}

/* Damages one thing, sees that the check says so, and repairs it. */
static void assert_check_sees(raffia_pool *pool, const char *what, const char *words)
{
    if (raffia_pool_check(pool) != RAFFIA_ERROR_CORRUPT)
        fail_msg("a check does not see damage: %s", what);
    assert_non_null(strstr(raffia_last_error(), words));
    atomic_store(&pool->frozen, false);
}

static void a_check_sees_what_is_wrong_with_an_arena(void **state)
{
    (void)state;
    raffia_pool *pool = make_fixed(TEST_MAXIMUM);
    take_seat(pool);
    void *block = must_alloc(pool, 100);
    struct pool_arenas *arenas = pool_arenas_of(pool);
    const size_t lease = (size_t)((char *)block - pool->base) / LEASE;
    const unsigned owner = atomic_load(&arenas->owners[lease]);
    struct pool_arena *arena = &arenas->arenas[owner - 1];
    arenas->leases[lease].blocks++;
    assert_check_sees(pool, "a count of blocks", "the blocks of a lease");
    arenas->leases[lease].blocks--;
    arena->leases++;
    assert_check_sees(pool, "a count of leases", "the leases of an arena");
    arena->leases--;
    arena->idle_leases++;
    assert_check_sees(pool, "a count of idle leases", "idle leases");
    arena->idle_leases--;
    arena->live_blocks++;
    assert_check_sees(pool, "live blocks", "the blocks of an arena");
    arena->live_blocks--;
    atomic_fetch_add(&arena->in_use_bytes, 1);
    assert_check_sees(pool, "bytes in use", "the bytes of an arena");
    atomic_fetch_sub(&arena->in_use_bytes, 1);
    arenas->leased_bytes++;
    assert_check_sees(pool, "bytes leased", "what is leased");
    arenas->leased_bytes--;
    atomic_store(&arenas->owners[lease], (unsigned char)(owner % POOL_ARENAS + 1));
    assert_check_sees(pool, "an owner", "outside of its leases");
    atomic_store(&arenas->owners[lease], (unsigned char)owner);
    assert_ok(raffia_pool_check(pool));
    must_free(pool, block);
    drop_pool(pool);
}

static raffia_status note(raffia_status *first, raffia_status status)
{
    *first = *first ? *first : status;
    return status;
}

/* Takes and frees in two arenas, with all that gathers in between. */
static raffia_status live_through_faults(void *context)
{
    (void)context;
    struct pool_plan plan = small_plan();
    raffia_pool *pool;
    raffia_fallback_reason reason;
    raffia_status first = RAFFIA_OK;
    void *blocks[80] = {NULL};
    size_t live = 0;
    plan.initial_bytes = TEST_MAXIMUM;
    if (note(&first, pool_create(&plan, &pool, &reason)))
        return first;
    for (int i = 0; i < 80; i++) {
        if (i % 40 == 0)
            take_seat(pool);
        if (note(&first, raffia_pool_alloc(pool, 300, 0, &blocks[i])))
            blocks[i] = NULL;
        if (i % 50 == 30) {
            note(&first, raffia_pool_walk(pool, count_live, &live));
            note(&first, raffia_pool_check(pool));
        }
    }
    for (int i = 0; i < 80; i += 3)
        if (blocks[i])
            note(&first, raffia_pool_resize(pool, blocks[i], 700));
    void *large;
    if (!note(&first, raffia_pool_alloc(pool, TEST_MAXIMUM / 16 * 15, 0, &large)))
        must_free(pool, large);
    for (int i = 0; i < 80; i++)
        if (blocks[i])
            must_free(pool, blocks[i]);
    note(&first, raffia_pool_check(pool));
    assert_int_equal(pool_live_blocks(pool), 0);
    raffia_pool_release(pool);
    assert_true(sim_is_idle());
    /* What is behind a block may be taken: that is no fault. */
    return first == RAFFIA_ERROR_OUT_OF_MEMORY ? RAFFIA_OK : first;
}

static void each_fault_leaves_arenas_whole(void **state)
{
    (void)state;
    assert_true(fault_loop(live_through_faults, NULL, 1000) > 10);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, set_up_plain_device)
    const struct CMUnitTest tests[] = {
        TEST(a_pool_that_nobody_waits_for_has_no_arenas),
        TEST(a_thread_that_finds_the_lock_taken_gets_a_seat),
        TEST(a_thread_with_a_seat_takes_small_blocks_from_a_lease),
        TEST(pools_with_guards_or_streams_have_no_arenas),
        TEST(figures_and_walks_include_what_arenas_hold),
        TEST(what_is_no_block_of_an_arena_is_refused),
        TEST(a_block_of_an_arena_is_resized_where_it_is),
        TEST(a_block_grows_out_of_its_lease_into_what_others_leased),
        TEST(what_is_leased_is_gathered_before_a_request_is_refused),
        TEST(what_is_leased_is_gathered_before_the_pool_grows),
        TEST(a_trim_gives_back_what_arenas_hold_idle),
        TEST(an_arena_keeps_one_lease_that_is_idle),
        TEST(leases_leave_room_for_what_arenas_cannot_serve),
        TEST(the_last_free_in_an_arena_tears_a_released_pool_down),
        TEST(a_released_pool_is_gathered_for_others_and_goes_all_the_same),
        TEST(a_forked_child_touches_no_lock_of_an_arena),
        TEST(a_check_sees_what_is_wrong_with_an_arena),
        TEST(each_fault_leaves_arenas_whole),
    };
    return cmocka_run_group_tests_name("pool arenas", tests, NULL, NULL);
}
