/*
 * Blocks of one resource that lie in a block of another, and start where it starts: the size given
 * tells whose block is freed. Freed as the wrong one, memory would be handed out twice.
 */
#include "driver/sim/sim.h"
#include "pool/pool.h"
#include "resource/makers.h"

#include <string.h>

#define LOWER_BYTES (4 * MIB)

static raffia_status make_pool_of(const char *device, unsigned flags, raffia_resource **resource_p)
{
    const raffia_pool_options options = {.struct_size = sizeof options,
                                         .device = device,
                                         .pages = RAFFIA_PAGES_OFF,
                                         .initial_bytes = 16 * MIB,
                                         .maximum_bytes = 16 * MIB,
                                         .flags = flags,
                                         .threads = 1};
    return raffia_pool_resource_create(&options, resource_p);
}

/* ---- resources below: they have a block of LOWER_BYTES -------------------------------------- */

static raffia_status lower_pool(raffia_resource **resource_p)
{
    return make_pool_of("host", 0, resource_p);
}

static raffia_status lower_pool_with_guards(raffia_resource **resource_p)
{
    return make_pool_of("host", RAFFIA_POOL_GUARD, resource_p);
}

static raffia_status lower_pool_with_streams(raffia_resource **resource_p)
{
    return make_pool_of("sim:0", 0, resource_p);
}

static raffia_status lower_device(raffia_resource **resource_p)
{
    *resource_p = must_make_device("host");
    return RAFFIA_OK;
}

static raffia_status lower_arena(raffia_resource **resource_p)
{
    raffia_resource *device = must_make_device("host");
    const raffia_arena_resource_options options = {.struct_size = sizeof options,
                                                   .arena_bytes = 16 * MIB};
    raffia_status status = raffia_arena_resource_create(raffia_ref(device), &options, resource_p);
    raffia_resource_release(device);
    return status;
}

/* Its blocks are larger than what is asked of it. */
static raffia_status lower_fixed_size(raffia_resource **resource_p)
{
    raffia_resource *device = must_make_device("host");
    const raffia_fixed_size_resource_options options = {
        .struct_size = sizeof options, .block_bytes = 5 * MIB, .blocks_per_chunk = 2};
    raffia_status status =
        raffia_fixed_size_resource_create(raffia_ref(device), &options, resource_p);
    raffia_resource_release(device);
    return status;
}

static raffia_status lower_tracking(raffia_resource **resource_p)
{
    raffia_resource *pool;
    raffia_status status = lower_pool(&pool);
    if (status)
        return status;
    status = raffia_tracking_resource_create(raffia_ref(pool), NULL, resource_p);
    raffia_resource_release(pool);
    return status;
}

/* ---- resources above: their first block starts where that one starts ------------------------ */

static raffia_status upper_arena(raffia_resource_ref below, raffia_resource **resource_p)
{
    const raffia_arena_resource_options options = {.struct_size = sizeof options,
                                                   .arena_bytes = LOWER_BYTES};
    return raffia_arena_resource_create(below, &options, resource_p);
}

static raffia_status upper_fixed_size(raffia_resource_ref below, raffia_resource **resource_p)
{
    const raffia_fixed_size_resource_options options = {
        .struct_size = sizeof options, .block_bytes = MIB, .blocks_per_chunk = 4};
    return raffia_fixed_size_resource_create(below, &options, resource_p);
}

static const struct below {
    const char *name;
    raffia_status (*make)(raffia_resource **resource_p);
} lowers[] = {
    {"pool", lower_pool},
    {"pool with guards", lower_pool_with_guards},
    {"pool with streams", lower_pool_with_streams},
    {"device", lower_device},
    {"arena", lower_arena},
    {"fixed-size", lower_fixed_size},
    {"tracking", lower_tracking},
};

static raffia_status (*const uppers[])(raffia_resource_ref below, raffia_resource **resource_p) = {
    upper_arena, upper_fixed_size};

static void try_to_get_memory_twice(const struct below *below,
                                    raffia_status (*make_upper)(raffia_resource_ref,
                                                                raffia_resource **))
{
    raffia_resource *lower, *upper;
    char *inner, *other;
    assert_ok(below->make(&lower));
    assert_ok(make_upper(raffia_ref(lower), &upper));
    assert_ok(raffia_allocate(raffia_ref(upper), NULL, 1000, 0, (void **)&inner));
    memset(inner, 1, 1000);
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT,
                  raffia_deallocate(raffia_ref(lower), NULL, inner, 1000, 0));
    assert_error_mentions("as a block of 1000 bytes");
    raffia_status status = raffia_resize(raffia_ref(lower), NULL, inner, 1000, 2000, 0);
    assert_true(status == RAFFIA_ERROR_INVALID_ARGUMENT || status == RAFFIA_ERROR_UNSUPPORTED);
    assert_ok(raffia_allocate(raffia_ref(lower), NULL, MIB, 0, (void **)&other));
    assert_true(other + MIB <= inner || other >= inner + LOWER_BYTES);
    memset(other, 2, MIB);
    assert_int_equal(inner[999], 1);
    assert_ok(raffia_deallocate(raffia_ref(upper), NULL, inner, 1000, 0));
    assert_ok(raffia_deallocate(raffia_ref(lower), NULL, other, MIB, 0));
    raffia_resource_release(upper);
    raffia_resource_release(lower);
}

static void a4_a_block_above_is_not_taken_for_the_one_it_lies_in(void **state)
{
    (void)state;
    assert_ok(sim_configure(0, &(struct sim_config){.capacity_bytes = GIB}));
    for (size_t i = 0; i < sizeof lowers / sizeof *lowers; i++)
        for (size_t k = 0; k < sizeof uppers / sizeof *uppers; k++) {
            print_message("%s\n", lowers[i].name);
            try_to_get_memory_twice(&lowers[i], uppers[k]);
        }
}

/* ---- what the size of a block is ------------------------------------------------------------ */

/* The pool's size after a resize is the one it was resized to. */
static void follow_a_resize(raffia_resource_ref pool)
{
    void *block;
    assert_ok(raffia_allocate(pool, NULL, 1000, 0, &block));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, raffia_resize(pool, NULL, block, 999, 3000, 0));
    assert_error_mentions("cannot resize");
    assert_error_mentions("as a block of 999 bytes");
    assert_ok(raffia_resize(pool, NULL, block, 1000, 3000, 0));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, raffia_deallocate(pool, NULL, block, 1000, 0));
    assert_ok(raffia_resize(pool, NULL, block, 3000, 700, 0));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, raffia_deallocate(pool, NULL, block, 3000, 0));
    assert_ok(raffia_deallocate(pool, NULL, block, 700, 0));
    /* Nothing left of it, which the pool keeps a granule for. */
    assert_ok(raffia_allocate(pool, NULL, 1000, 0, &block));
    assert_ok(raffia_resize(pool, NULL, block, 1000, 0, 0));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, raffia_deallocate(pool, NULL, block, 1000, 0));
    assert_ok(raffia_deallocate(pool, NULL, block, 0, 0));
}

static void a_resized_block_has_its_new_size(void **state)
{
    (void)state;
    assert_ok(sim_configure(0, &(struct sim_config){.capacity_bytes = GIB}));
    for (size_t i = 0; i < 3; i++) {
        raffia_resource *pool;
        assert_ok(lowers[i].make(&pool));
        follow_a_resize(raffia_ref(pool));
        raffia_resource_release(pool);
    }
}

/* A block that a stream gets back is as large as it was, and of the size that it is asked for. */
static void a_block_that_is_handed_out_again_has_the_size_of_the_new_request(void **state)
{
    (void)state;
    raffia_resource *pool;
    driver_stream stream;
    void *first, *again;
    assert_ok(sim_configure(0, &(struct sim_config){.capacity_bytes = GIB}));
    assert_ok(lower_pool_with_streams(&pool));
    assert_ok(sim_driver.stream_create(0, &stream));
    assert_ok(sim_stream_hold(0, stream));
    assert_ok(sim_stream_delay(0, stream, 1));
    assert_ok(raffia_allocate(raffia_ref(pool), stream, MIB, 0, &first));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT,
                  raffia_deallocate(raffia_ref(pool), stream, first, MIB - 100, 0));
    assert_ok(raffia_deallocate(raffia_ref(pool), stream, first, MIB, 0));
    assert_ok(raffia_allocate(raffia_ref(pool), stream, MIB - 100, 0, &again));
    assert_ptr_equal(first, again);
    for (int ordered = 0; ordered < 2; ordered++) {
        assert_status(RAFFIA_ERROR_INVALID_ARGUMENT,
                      raffia_deallocate(raffia_ref(pool), ordered ? stream : NULL, again, MIB, 0));
        assert_error_mentions(" has 1048476");
    }
    assert_ok(raffia_deallocate(raffia_ref(pool), stream, again, MIB - 100, 0));
    assert_ok(sim_stream_resume(0, stream));
    assert_ok(raffia_stream_retire("sim:0", stream));
    assert_ok(sim_driver.stream_destroy(0, stream));
    raffia_resource_release(pool);
}

/* The pool's own calls know no sizes. */
static void the_pool_itself_frees_by_address_alone(void **state)
{
    (void)state;
    raffia_resource *resource;
    raffia_pool *pool;
    raffia_pool_stats stats;
    void *block;
    assert_ok(lower_pool(&resource));
    assert_ok(raffia_pool_resource_pool(raffia_ref(resource), &pool));
    assert_ok(raffia_pool_alloc(pool, 1000, 0, &block));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, pool_free_sized(pool, NULL, block, 1001));
    assert_ok(raffia_pool_query(pool, &stats));
    assert_int_equal(stats.bad_frees, 1);
    assert_ok(raffia_pool_free(pool, block));
    raffia_resource_release(resource);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a4_a_block_above_is_not_taken_for_the_one_it_lies_in),
        cmocka_unit_test(a_resized_block_has_its_new_size),
        cmocka_unit_test(a_block_that_is_handed_out_again_has_the_size_of_the_new_request),
        cmocka_unit_test(the_pool_itself_frees_by_address_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
