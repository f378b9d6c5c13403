/* SPEC A4: a free of what is not a resource's block never counts as an owner's leaving. */
#include "resource/makers.h"

#include <raffia/current_resource.h>

#include <pthread.h>
#include <string.h>

static bool say_no(size_t bytes, void *argument)
{
    (void)bytes;
    (void)argument;
    return false;
}

static void drop_row(void *context, const char *row)
{
    (void)context;
    (void)row;
}

static raffia_status make_failure_callback(raffia_resource_ref below, raffia_resource **resource_p)
{
    return raffia_failure_callback_resource_create(
        below,
        &(raffia_failure_callback_options){.struct_size = sizeof(raffia_failure_callback_options),
                                           .callback = say_no},
        resource_p);
}

static raffia_status make_logging(raffia_resource_ref below, raffia_resource **resource_p)
{
    return raffia_logging_resource_create(
        below,
        &(raffia_logging_options){.struct_size = sizeof(raffia_logging_options), .sink = drop_row},
        resource_p);
}

static raffia_status make_limiting(raffia_resource_ref below, raffia_resource **resource_p)
{
    return raffia_limiting_resource_create(below, MIB, resource_p);
}

static raffia_status make_aligned(raffia_resource_ref below, raffia_resource **resource_p)
{
    return raffia_aligned_resource_create(below, NULL, resource_p);
}

static raffia_status make_tracking(raffia_resource_ref below, raffia_resource **resource_p)
{
    return raffia_tracking_resource_create(below, NULL, resource_p);
}

static raffia_status make_binning(raffia_resource_ref below, raffia_resource **resource_p)
{
    return raffia_binning_resource_create(below, NULL, resource_p);
}

static raffia_status make_owner(raffia_resource_ref below, raffia_resource **resource_p)
{
    return raffia_resource_create(below.ops, below.context, resource_p);
}

static raffia_status (*const adaptors[])(raffia_resource_ref, raffia_resource **) = {
    raffia_statistics_resource_create,
    raffia_thread_safe_resource_create,
    make_failure_callback,
    make_logging,
    make_limiting,
    make_aligned,
    make_tracking,
    make_binning,
    make_owner,
};
#define ADAPTORS (sizeof adaptors / sizeof *adaptors)

static void *get(raffia_resource_ref ref)
{
    void *block;
    assert_ok(raffia_allocate(ref, NULL, 100, 0, &block));
    return block;
}

static void assert_refused(raffia_resource_ref ref, void *block)
{
    assert_status(RAFFIA_ERROR_BAD_ADDRESS, raffia_deallocate(ref, NULL, block, 100, 0));
    assert_true(raffia_last_error()[0]);
}

/* Whether it still works, and still counts. */
static void assert_whole(raffia_resource *resource)
{
    void *block = get(raffia_ref(resource));
    assert_true(raffia_resource_properties_of(raffia_ref(resource)) & RAFFIA_DEVICE_ACCESSIBLE);
    assert_ok(raffia_deallocate(raffia_ref(resource), NULL, block, 100, 0));
}

static void a4_an_adaptor_without_live_blocks_refuses_anothers(void **state)
{
    (void)state;
    struct users_resource users = {.properties = RAFFIA_HOST_ACCESSIBLE | RAFFIA_DEVICE_ACCESSIBLE};
    for (size_t i = 0; i < ADAPTORS; i++) {
        raffia_resource *resource;
        assert_ok(adaptors[i](users_ref(&users), &resource));
        void *theirs = get(users_ref(&users));
        assert_refused(raffia_ref(resource), theirs);
        assert_int_equal(users.live, 1);
        assert_ok(raffia_deallocate(raffia_ref(resource), NULL, NULL, 0, 0));
        assert_whole(resource);
        raffia_resource_release(resource);
        assert_ok(raffia_deallocate(users_ref(&users), NULL, theirs, 100, 0));
        assert_int_equal(users.live, 0);
    }
}

static void a4_an_adaptor_lives_until_its_last_block_is_freed(void **state)
{
    (void)state;
    struct users_resource users = {.properties = RAFFIA_HOST_ACCESSIBLE | RAFFIA_DEVICE_ACCESSIBLE};
    for (size_t i = 0; i < ADAPTORS; i++) {
        raffia_resource *resource;
        assert_ok(adaptors[i](users_ref(&users), &resource));
        const raffia_resource_ref ref = raffia_ref(resource);
        void *first = get(ref), *second = get(ref);
        raffia_resource_release(resource);
        assert_ok(raffia_deallocate(ref, NULL, first, 100, 0));
        assert_ok(raffia_deallocate(ref, NULL, second, 100, 0));
        assert_int_equal(users.live, 0);
    }
}

static raffia_resource *must_make_pool(raffia_pool **pool_p)
{
    raffia_resource *resource;
    const raffia_pool_options options = {.struct_size = sizeof options,
                                         .device = "sim:0",
                                         .pages = RAFFIA_PAGES_OFF,
                                         .initial_bytes = 4 * MIB,
                                         .threads = 1};
    assert_ok(raffia_pool_create(&options, pool_p));
    assert_ok(raffia_pool_resource_from_pool(*pool_p, &resource));
    return resource;
}

static void a4_a_block_of_the_pool_alone_is_not_its_resources(void **state)
{
    (void)state;
    raffia_pool *pool;
    raffia_resource *resource = must_make_pool(&pool);
    void *block;
    assert_ok(raffia_pool_alloc(pool, 100, 0, &block));
    assert_refused(raffia_ref(resource), block);
    assert_ok(raffia_pool_free(pool, block));
    assert_whole(resource);
    raffia_resource_release(resource);
    raffia_pool_release(pool);
}

static void a4_a_bins_own_block_is_not_the_binnings(void **state)
{
    (void)state;
    raffia_pool *pool;
    raffia_resource *resource = must_make_pool(&pool), *bin, *binning;
    const raffia_fixed_size_resource_options options = {
        .struct_size = sizeof options, .block_bytes = 4096, .blocks_per_chunk = 4};
    assert_ok(raffia_fixed_size_resource_create(raffia_ref(resource), &options, &bin));
    assert_ok(raffia_binning_resource_create(raffia_ref(resource), NULL, &binning));
    assert_ok(raffia_binning_add_bin(raffia_ref(binning), 4096, raffia_ref(bin)));
    void *block = get(raffia_ref(bin));
    assert_refused(raffia_ref(binning), block);
    assert_ok(raffia_deallocate(raffia_ref(bin), NULL, block, 100, 0));
    assert_whole(binning);
    raffia_resource_release(binning);
    raffia_resource_release(bin);
    raffia_resource_release(resource);
    raffia_pool_release(pool);
}

/* ---- what stands on what ----------------------------------------------------------------------
 */

static void a10_a_bin_that_stands_on_its_binning_is_refused(void **state)
{
    (void)state;
    struct users_resource users = {.properties = RAFFIA_HOST_ACCESSIBLE | RAFFIA_DEVICE_ACCESSIBLE};
    raffia_resource *first, *second, *between, *around;
    assert_ok(raffia_binning_resource_create(users_ref(&users), NULL, &first));
    assert_ok(raffia_statistics_resource_create(raffia_ref(first), &between));
    assert_ok(raffia_binning_resource_create(users_ref(&users), NULL, &second));
    assert_ok(raffia_binning_add_bin(raffia_ref(second), 4096, raffia_ref(between)));
    assert_ok(raffia_tracking_resource_create(raffia_ref(second), NULL, &around));
    raffia_resource *const bad[] = {first, between, second, around};
    for (int i = 0; i < 4; i++) {
        assert_status(RAFFIA_ERROR_INVALID_ARGUMENT,
                      raffia_binning_add_bin(raffia_ref(first), 4096, raffia_ref(bad[i])));
        assert_error_mentions("stands on it");
    }
    assert_whole(first);
    assert_whole(around);
    raffia_resource_release(around);
    raffia_resource_release(second);
    raffia_resource_release(between);
    raffia_resource_release(first);
    assert_int_equal(users.live, 0);
}

static void a10_a_stack_beyond_what_is_followed_is_refused(void **state)
{
    (void)state;
    raffia_resource *top = must_make_device("sim:0"), *binning;
    char name[RAFFIA_DEVICE_NAME_MAX];
    for (unsigned i = 1; i < RAFFIA_RESOURCE_DEPTH_MAX; i++) {
        raffia_resource *next;
        assert_ok(raffia_statistics_resource_create(raffia_ref(top), &next));
        raffia_resource_release(top);
        top = next;
    }
    assert_ok(raffia_resource_device(raffia_ref(top), name));
    assert_string_equal(name, "sim:0");
    for (size_t i = 0; i < ADAPTORS - 1; i++) { /* an owner is none */
        raffia_resource *more;
        assert_status(RAFFIA_ERROR_LIMIT, adaptors[i](raffia_ref(top), &more));
        assert_error_mentions("one above the other");
    }
    raffia_resource *device = must_make_device("sim:0");
    assert_ok(raffia_binning_resource_create(raffia_ref(device), NULL, &binning));
    assert_status(RAFFIA_ERROR_LIMIT,
                  raffia_binning_add_bin(raffia_ref(binning), 4096, raffia_ref(top)));
    raffia_resource_release(binning);
    raffia_resource_release(device);
    assert_whole(top);
    raffia_resource_release(top);
}

static void a4_a_current_resource_is_of_its_device(void **state)
{
    (void)state;
    raffia_resource *sim = must_make_device("sim:0"), *statistics, *pinned, *callback;
    struct users_resource users = {.properties = RAFFIA_HOST_ACCESSIBLE | RAFFIA_DEVICE_ACCESSIBLE};
    assert_ok(raffia_statistics_resource_create(raffia_ref(sim), &statistics));
    const char *const others[] = {"host", "sim:1", NULL};
    for (int i = 0; i < 3; i++) {
        assert_status(RAFFIA_ERROR_INVALID_ARGUMENT,
                      raffia_current_resource_set(others[i], statistics, NULL));
        assert_error_mentions("its memory is of 'sim:0'");
    }
    assert_ok(raffia_current_resource_set("sim:0", statistics, NULL));
    assert_ok(raffia_current_resource_reset("sim:0", NULL));
    assert_ok(raffia_pinned_host_resource_create(
        &(raffia_device_resource_options){.struct_size = sizeof(raffia_device_resource_options),
                                          .device = "sim:0"},
        &pinned));
    assert_ok(raffia_current_resource_set("sim:0", pinned, NULL));
    assert_ok(raffia_current_resource_reset("sim:0", NULL));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT,
                  raffia_current_resource_set("sim:1", pinned, NULL));
    assert_ok(raffia_resource_create(users_ref(&users).ops, &users, &callback));
    assert_ok(raffia_current_resource_set("sim:1", callback, NULL)); /* it does not say */
    assert_ok(raffia_current_resource_reset("sim:1", NULL));
    raffia_resource_release(callback);
    raffia_resource_release(pinned);
    raffia_resource_release(statistics);
    raffia_resource_release(sim);
}

/* ---- what a resource does not say -------------------------------------------------------------
 */

static raffia_status refuse_allocate(void *context, raffia_stream stream, size_t bytes,
                                     size_t alignment, void **address_p)
{
    (void)context, (void)stream, (void)bytes, (void)alignment, (void)address_p;
    return RAFFIA_ERROR_BAD_ADDRESS;
}

static raffia_status refuse_free(void *context, raffia_stream stream, void *address, size_t bytes,
                                 size_t alignment)
{
    (void)context, (void)stream, (void)address, (void)bytes, (void)alignment;
    return RAFFIA_ERROR_BAD_ADDRESS;
}

static unsigned no_properties(void *context)
{
    (void)context;
    return 0;
}

static bool never_equal(void *context, void *other)
{
    (void)context, (void)other;
    return false;
}

static raffia_status refuse_size(void *context, const void *address, size_t *bytes_p)
{
    (void)context, (void)address, (void)bytes_p;
    return RAFFIA_ERROR_BAD_ADDRESS;
}

static raffia_status refuse_resize(void *context, raffia_stream stream, void *address, size_t bytes,
                                   size_t new_bytes, size_t alignment)
{
    (void)context, (void)stream, (void)address, (void)bytes, (void)new_bytes, (void)alignment;
    return RAFFIA_ERROR_BAD_ADDRESS;
}

static raffia_status refuse_find(void *context, const void *address, raffia_block *block)
{
    (void)context, (void)address, (void)block;
    return RAFFIA_ERROR_BAD_ADDRESS;
}

static raffia_status refuse_walk(void *context, raffia_block_visitor visitor, void *argument)
{
    (void)context, (void)visitor, (void)argument;
    return RAFFIA_ERROR_BAD_ADDRESS;
}

static bool visit_none(void *context, const raffia_block *block)
{
    (void)context, (void)block;
    return false;
}

/* A failure of the same kind that was recorded before. */
static void fail_before(void)
{
    raffia_resource *host = must_make_device("host");
    char block[256];
    assert_status(RAFFIA_ERROR_BAD_ADDRESS,
                  raffia_deallocate(raffia_ref(host), NULL, block, 256, 0));
    raffia_resource_release(host);
}

static void a_failure_without_a_sentence_is_not_explained_by_an_earlier_one(void **state)
{
    (void)state;
    static const raffia_resource_ops ops = {.struct_size = sizeof ops,
                                            .allocate = refuse_allocate,
                                            .deallocate = refuse_free,
                                            .properties = no_properties,
                                            .is_equal = never_equal,
                                            .usable_size = refuse_size,
                                            .resize = refuse_resize,
                                            .find = refuse_find,
                                            .walk = refuse_walk};
    const raffia_resource_ref ref = {&ops, NULL};
    void *address;
    size_t bytes;
    raffia_block block;
    char memory[8];
#define CHECK(call, what)                                                                          \
    do {                                                                                           \
        fail_before();                                                                             \
        assert_status(RAFFIA_ERROR_BAD_ADDRESS, call);                                             \
        assert_error_mentions("a resource was asked to " what);                                    \
    } while (0)
    CHECK(raffia_allocate(ref, NULL, 7, 0, &address), "allocate 7 bytes");
    CHECK(raffia_deallocate(ref, NULL, memory, 8, 0), "free 8 bytes");
    CHECK(raffia_resize(ref, NULL, memory, 8, 9, 0), "resize a block to 9 bytes");
    CHECK(raffia_resource_usable_size(ref, memory, &bytes), "tell the usable size");
    CHECK(raffia_resource_find(ref, memory, &block), "tell whose block");
    CHECK(raffia_resource_walk(ref, visit_none, NULL), "list its blocks");
}

/* ---- threads -------------------------------------------------------------------------------- */

struct race {
    raffia_resource_ref ref;
    void *block;
};

static void *free_and_own(void *argument)
{
    struct race *race = argument;
    raffia_resource *owner;
    for (int i = 0; i < 2000; i++) {
        assert_ok(raffia_resource_from_ref(race->ref, &owner));
        void *block = get(race->ref);
        assert_ok(raffia_deallocate(race->ref, NULL, block, 100, 0));
        raffia_resource_release(owner);
    }
    assert_ok(raffia_deallocate(race->ref, NULL, race->block, 100, 0));
    return NULL;
}

/* The last of the blocks ends the resource, whichever thread frees it. */
static void a11_owners_and_blocks_are_counted_by_threads_at_once(void **state)
{
    (void)state;
    struct users_resource users = {.properties = RAFFIA_HOST_ACCESSIBLE | RAFFIA_DEVICE_ACCESSIBLE};
    raffia_resource *resource;
    pthread_t threads[4];
    struct race races[4];
    assert_ok(raffia_thread_safe_resource_create(users_ref(&users), &resource));
    for (int i = 0; i < 4; i++)
        races[i] = (struct race){raffia_ref(resource), get(raffia_ref(resource))};
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, free_and_own, &races[i]), 0);
    raffia_resource_release(resource);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(users.live, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a4_an_adaptor_without_live_blocks_refuses_anothers),
        cmocka_unit_test(a4_an_adaptor_lives_until_its_last_block_is_freed),
        cmocka_unit_test(a4_a_block_of_the_pool_alone_is_not_its_resources),
        cmocka_unit_test(a4_a_bins_own_block_is_not_the_binnings),
        cmocka_unit_test(a10_a_bin_that_stands_on_its_binning_is_refused),
        cmocka_unit_test(a10_a_stack_beyond_what_is_followed_is_refused),
        cmocka_unit_test(a4_a_current_resource_is_of_its_device),
        cmocka_unit_test(a_failure_without_a_sentence_is_not_explained_by_an_earlier_one),
        cmocka_unit_test(a11_owners_and_blocks_are_counted_by_threads_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
