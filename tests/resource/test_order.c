/* SPEC A11: memory that one stream gave back is another's only behind it, whatever lies between. */
#include "driver/sim/sim.h"
#include "resource/makers.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#define OLD 0xAA
#define NEW 0xBB

#define CHUNK ((size_t)4 * 4096)
#define ARENA (8 * MIB)

static raffia_pool *pool;
static raffia_resource *below;
static driver_stream a, b;

static int set_up(void **state)
{
    (void)state;
    sim_reset();
    const raffia_pool_options options = {.struct_size = sizeof options,
                                         .device = "sim:0",
                                         .initial_bytes = 16 * MIB,
                                         .maximum_bytes = 16 * MIB};
    assert_ok(raffia_pool_create(&options, &pool));
    assert_ok(raffia_pool_resource_from_pool(pool, &below));
    assert_ok(sim_driver.stream_create(0, &a));
    assert_ok(sim_driver.stream_create(0, &b));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    raffia_resource_release(below);
    raffia_pool_release(pool);
    assert_ok(sim_driver.stream_destroy(0, a));
    assert_ok(sim_driver.stream_destroy(0, b));
    assert_true(sim_is_idle());
    return 0;
}

/* So much has been used on the stream, which is held: what it does comes later. The pool gives it
 * to the same stream again first. */
static void leave_work_on(driver_stream stream, size_t bytes)
{
    void *block;
    assert_ok(raffia_pool_alloc_on(pool, stream, bytes, 0, &block));
    assert_ok(sim_stream_hold(0, stream));
    assert_ok(sim_driver.fill(0, stream, block, OLD, bytes));
    assert_ok(raffia_pool_free_on(pool, stream, block));
}

static void *must_allocate(raffia_resource *resource, driver_stream stream)
{
    void *block;
    assert_ok(raffia_allocate(raffia_ref(resource), stream, 4096, 0, &block));
    return block;
}

static void must_free(raffia_resource *resource, driver_stream stream, void *block)
{
    assert_ok(raffia_deallocate(raffia_ref(resource), stream, block, 4096, 0));
}

static bool is_new(const void *block)
{
    const unsigned char *bytes = sim_view(block);
    return bytes[0] == NEW && bytes[4095] == NEW;
}

static raffia_resource *make_lazy(void)
{
    raffia_resource *fixed;
    const raffia_fixed_size_resource_options options = {
        .struct_size = sizeof options, .block_bytes = 4096, .blocks_per_chunk = 4, .lazy = true};
    assert_ok(raffia_fixed_size_resource_create(raffia_ref(below), &options, &fixed));
    return fixed;
}

static void a11_a_chunk_taken_for_one_stream_is_anothers_only_behind_it(void **state)
{
    (void)state;
    raffia_resource *fixed = make_lazy();
    leave_work_on(a, CHUNK);
    void *first = must_allocate(fixed, a), *second = must_allocate(fixed, b);
    assert_ok(sim_driver.fill(0, b, second, NEW, 4096));
    assert_ok(sim_driver.fill(0, a, first, NEW, 4096));
    size_t pending;
    assert_ok(sim_stream_pending(0, b, &pending));
    assert_true(pending > 0);
    assert_ok(sim_stream_resume(0, a));
    assert_ok(sim_driver.stream_wait(0, a));
    assert_ok(sim_driver.stream_wait(0, b));
    assert_true(is_new(first));
    assert_true(is_new(second));
    must_free(fixed, a, first);
    must_free(fixed, b, second);
    raffia_resource_release(fixed);
}

/* The block that the first stream took goes on, too, and so does one that was never used. */
static void a11_a_blocks_second_use_comes_behind_the_first(void **state)
{
    (void)state;
    raffia_resource *fixed = make_lazy();
    leave_work_on(a, CHUNK);
    void *blocks[4];
    for (int i = 0; i < 3; i++)
        blocks[i] = must_allocate(fixed, a);
    for (int i = 0; i < 3; i++)
        must_free(fixed, a, blocks[i]);
    for (int i = 0; i < 4; i++) {
        blocks[i] = must_allocate(fixed, b);
        assert_ok(sim_driver.fill(0, b, blocks[i], NEW, 4096));
    }
    assert_ok(sim_stream_resume(0, a));
    assert_ok(sim_driver.stream_wait(0, a));
    assert_ok(sim_driver.stream_wait(0, b));
    for (int i = 0; i < 4; i++) {
        assert_true(is_new(blocks[i]));
        must_free(fixed, b, blocks[i]);
    }
    raffia_resource_release(fixed);
}

static void a11_a_chunk_may_be_taken_for_a_stream_that_is_being_captured(void **state)
{
    (void)state;
    raffia_resource *fixed = make_lazy();
    assert_ok(sim_stream_capture_begin(0, a));
    void *first = must_allocate(fixed, a), *second = must_allocate(fixed, b);
    assert_ok(sim_stream_capture_end(0, a, false));
    must_free(fixed, a, first);
    must_free(fixed, b, second);
    raffia_resource_release(fixed);
}

static void *resume_soon(void *argument)
{
    usleep(20000);
    assert_ok(sim_stream_resume(0, NULL));
    return argument;
}

static raffia_resource *make_arena(void)
{
    raffia_resource *arena;
    assert_ok(raffia_arena_resource_create(
        raffia_ref(below),
        &(raffia_arena_resource_options){.struct_size = sizeof(raffia_arena_resource_options),
                                         .arena_bytes = ARENA},
        &arena));
    return arena;
}

static raffia_resource *make_eager(void)
{
    raffia_resource *fixed;
    const raffia_fixed_size_resource_options options = {
        .struct_size = sizeof options, .block_bytes = 4096, .blocks_per_chunk = 4};
    assert_ok(raffia_fixed_size_resource_create(raffia_ref(below), &options, &fixed));
    return fixed;
}

/* What is taken when a resource is made is every stream's at once, so that making it waits. */
static void check_made_behind(raffia_resource *(*make)(void), size_t bytes)
{
    pthread_t thread;
    leave_work_on(NULL, bytes);
    assert_int_equal(pthread_create(&thread, NULL, resume_soon, NULL), 0);
    raffia_resource *resource = make();
    size_t pending;
    assert_ok(sim_stream_pending(0, NULL, &pending));
    assert_int_equal(pending, 0);
    void *block = must_allocate(resource, b);
    assert_ok(sim_driver.fill(0, b, block, NEW, 4096));
    assert_ok(sim_driver.stream_wait(0, b));
    pthread_join(thread, NULL);
    assert_ok(sim_driver.stream_wait(0, NULL));
    assert_true(is_new(block));
    must_free(resource, b, block);
    raffia_resource_release(resource);
}

static void a11_an_arena_is_made_behind_the_default_stream(void **state)
{
    (void)state;
    check_made_behind(make_arena, ARENA);
}

static void a11_a_first_chunk_is_taken_behind_the_default_stream(void **state)
{
    (void)state;
    check_made_behind(make_eager, CHUNK);
}

/* Programs make and drop streams without end; an arena tells only so many apart. */
static void a11_an_arena_serves_any_number_of_streams_without_waiting(void **state)
{
    (void)state;
    raffia_resource *arena = make_arena();
    void *kept = must_allocate(arena, b);
    const long waits = sim_calls("stream_wait"), events = sim_calls("event_wait");
    for (int i = 0; i < 600; i++) {
        driver_stream stream;
        assert_ok(sim_driver.stream_create(0, &stream));
        void *block = must_allocate(arena, stream);
        must_free(arena, stream, block);
        assert_ok(sim_driver.stream_retire(0, stream));
        assert_ok(sim_driver.stream_destroy(0, stream));
    }
    assert_int_equal(sim_calls("stream_wait"), waits);
    assert_int_equal(sim_calls("event_wait"), events);
    must_free(arena, b, kept);
    raffia_resource_release(arena);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a11_a_chunk_taken_for_one_stream_is_anothers_only_behind_it),
        TEST(a11_a_blocks_second_use_comes_behind_the_first),
        TEST(a11_a_chunk_may_be_taken_for_a_stream_that_is_being_captured),
        TEST(a11_an_arena_is_made_behind_the_default_stream),
        TEST(a11_an_arena_serves_any_number_of_streams_without_waiting),
        TEST(a11_a_first_chunk_is_taken_behind_the_default_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
