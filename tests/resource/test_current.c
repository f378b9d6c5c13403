/* SPEC A1 to A4: current resources, pairs of resources, owners. */
#include "core/memory.h"
#include "driver/sim/sim.h"
#include "resource/makers.h"
#include "support/fault_loop.h"
#include "support/log_capture.h"

#include <raffia/config.h>
#include <raffia/current_resource.h>
#include <raffia/load.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int set_up(void **state)
{
    (void)state;
    log_capture_start();
    assert_ok(raffia_config_set("driver", "host"));
    assert_ok(raffia_config_set("pages", NULL));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    assert_ok(raffia_current_resource_reset("host", NULL));
    assert_ok(raffia_config_set("pages", NULL));
    assert_ok(raffia_config_set("pool_maximum", NULL));
    assert_ok(raffia_config_set("driver", NULL));
    log_capture_stop();
    return 0;
}

static raffia_resource_ref current(const char *device)
{
    raffia_resource_ref ref;
    assert_ok(raffia_current_resource_get(device, &ref));
    return ref;
}

static bool is_current(const char *device, raffia_resource *resource)
{
    return current(device).context == raffia_ref(resource).context;
}

static raffia_resource *make_users(struct users_resource *users)
{
    raffia_resource *resource;
    users->properties |= RAFFIA_DEVICE_ACCESSIBLE | RAFFIA_HOST_ACCESSIBLE;
    const raffia_resource_ref ref = users_ref(users);
    assert_ok(raffia_resource_create(ref.ops, ref.context, &resource));
    return resource;
}

static void a1_set_returns_the_previous_owner_and_reset_the_initial(void **state)
{
    (void)state;
    struct users_resource users[2] = {{0}, {0}};
    raffia_resource *first = make_users(&users[0]), *second = make_users(&users[1]);
    raffia_resource *initial, *previous;
    assert_ok(raffia_current_resource_acquire(NULL, &initial));
    assert_ok(raffia_current_resource_set(NULL, first, &previous));
    assert_ptr_equal(previous, initial);
    raffia_resource_release(previous);
    assert_true(is_current("host", first));
    assert_ok(raffia_current_resource_set("host", second, &previous));
    assert_ptr_equal(previous, first);
    raffia_resource_release(previous);
    assert_ok(raffia_current_resource_reset(NULL, &previous));
    assert_ptr_equal(previous, second);
    raffia_resource_release(previous);
    assert_true(is_current(NULL, initial));
    raffia_resource_release(initial);
    raffia_resource_release(first);
    raffia_resource_release(second);
}

static void a1_the_registry_keeps_what_it_was_given(void **state)
{
    (void)state;
    struct users_resource users = {0};
    raffia_resource *resource = make_users(&users), *kept;
    assert_ok(raffia_current_resource_set(NULL, resource, NULL));
    raffia_resource_release(resource); /* the registry's owner is the only one now */
    void *block;
    assert_ok(raffia_allocate(current(NULL), NULL, 100, 0, &block));
    assert_int_equal(users.live, 1);
    assert_ok(raffia_current_resource_acquire(NULL, &kept));
    assert_ok(raffia_current_resource_reset(NULL, NULL));
    assert_ok(raffia_deallocate(raffia_ref(kept), NULL, block, 100, 0));
    assert_int_equal(users.live, 0);
    raffia_resource_release(kept);
}

static void a1_set_refuses_what_is_not_device_accessible(void **state)
{
    (void)state;
    struct users_resource users = {.properties = RAFFIA_HOST_ACCESSIBLE};
    const raffia_resource_ref ref = users_ref(&users);
    const raffia_resource_ref before = current(NULL);
    raffia_resource *resource, *previous = NULL;
    assert_ok(raffia_resource_create(ref.ops, ref.context, &resource));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT,
                  raffia_current_resource_set(NULL, resource, &previous));
    assert_error_mentions("not accessible");
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, raffia_current_resource_set(NULL, NULL, NULL));
    assert_error_mentions("reset");
    assert_null(previous);
    assert_ptr_equal(current(NULL).context, before.context);
    raffia_resource_release(resource);
    assert_ok(raffia_current_resource_acquire(NULL, &resource));
    assert_status(RAFFIA_ERROR_NOT_FOUND, raffia_current_resource_set("no such", resource, NULL));
    raffia_resource_release(resource);
}

static void a1_each_device_has_its_own(void **state)
{
    (void)state;
    struct users_resource users = {0};
    raffia_resource *resource = make_users(&users);
    const raffia_resource_ref host = current("host"), sim = current("sim:1");
    assert_ptr_not_equal(host.context, sim.context);
    assert_ptr_equal(current("sim:0").context, current("sim").context);
    assert_ok(raffia_current_resource_set("sim:1", resource, NULL));
    assert_true(is_current("sim:1", resource));
    assert_ptr_equal(current("host").context, host.context);
    assert_ok(raffia_current_resource_reset("sim:1", NULL));
    assert_ptr_equal(current("sim:1").context, sim.context);
    raffia_resource_release(resource);
}

static void a1_the_initial_resource_goes_through_policy(void **state)
{
    (void)state;
    const raffia_resource_ref ref = current("sim:0");
    struct sim_usage usage;
    void *large, *small;
    assert_ok(sim_configure(0, &(struct sim_config){.capacity_bytes = 4 * GIB}));
    assert_ok(raffia_config_set("pool_maximum", "128MiB"));
    /* Off: regular memory, whatever the size. */
    assert_ok(raffia_allocate(ref, NULL, 32 * MIB, 0, &large));
    sim_query(0, &usage);
    assert_int_equal(usage.blocks, 1);
    assert_int_equal(usage.chunks, 0);
    /* Try: above the threshold from a pool, below it regular. */
    assert_ok(raffia_config_set("pages", "try"));
    void *huge;
    assert_ok(raffia_allocate(ref, NULL, 32 * MIB, 0, &huge));
    assert_ok(raffia_allocate(ref, NULL, 16 * MIB, 0, &small));
    sim_query(0, &usage);
    assert_true(usage.chunks > 0);
    assert_int_equal(usage.blocks, 2);
    /* The pool is too small: whole from regular memory, and counted. */
    raffia_fallback_count rows[32];
    const size_t before = raffia_fallbacks(rows, 32);
    void *beyond;
    assert_ok(raffia_allocate(ref, NULL, GIB, 0, &beyond));
    assert_true(raffia_fallbacks(rows, 32) > before);
    assert_ok(raffia_deallocate(ref, NULL, beyond, GIB, 0));
    /* On: a failure with the reason. */
    assert_ok(raffia_config_set("pages", "on"));
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, raffia_allocate(ref, NULL, GIB, 0, &beyond));
    /* Frees find their way, whatever the setting is now. */
    assert_ok(raffia_config_set("pages", NULL));
    assert_ok(raffia_deallocate(ref, NULL, large, 32 * MIB, 0));
    assert_ok(raffia_deallocate(ref, NULL, huge, 32 * MIB, 0));
    assert_ok(raffia_deallocate(ref, NULL, small, 16 * MIB, 0));
    assert_status(RAFFIA_ERROR_BAD_ADDRESS, raffia_deallocate(ref, NULL, huge, 32 * MIB, 0));
    sim_query(0, &usage);
    assert_int_equal(usage.blocks, 0);
    assert_string_equal(usage.first_misuse, "");
}

/* ---- threads -------------------------------------------------------------------------------- */

enum { SWAPS = 2000, READERS = 3 };

static atomic_bool stop;

static void *read_on(void *argument)
{
    (void)argument;
    while (!atomic_load(&stop)) {
        raffia_resource *resource;
        void *block;
        if (raffia_current_resource_acquire("host", &resource) ||
            raffia_allocate(raffia_ref(resource), NULL, 100, 0, &block) ||
            raffia_deallocate(raffia_ref(resource), NULL, block, 100, 0))
            return "failed";
        raffia_resource_release(resource);
    }
    return NULL;
}

static void a1_acquire_is_safe_against_a_set_in_another_thread(void **state)
{
    (void)state;
    pthread_t threads[READERS];
    struct users_resource users = {0};
    atomic_store(&stop, false);
    for (int i = 0; i < READERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, read_on, NULL), 0);
    for (int i = 0; i < SWAPS; i++) {
        raffia_resource *resource = make_users(&users);
        assert_ok(raffia_current_resource_set("host", resource, NULL));
        raffia_resource_release(resource);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < READERS; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        assert_null(wrong);
    }
    assert_ok(raffia_current_resource_reset("host", NULL));
    assert_int_equal(users.live, 0);
}

/* ---- scopes --------------------------------------------------------------------------------- */

static raffia_status use_scope(raffia_resource *resource, bool leave_early)
{
    RAFFIA_SCOPED_RESOURCE(scope);
    raffia_status status = raffia_resource_scope_begin(NULL, resource, &scope);
    if (status)
        return status;
    assert_true(is_current(NULL, resource));
    if (leave_early)
        return RAFFIA_ERROR_CANCELLED;
    raffia_resource_scope_end(&scope);
    raffia_resource_scope_end(&scope);
    return RAFFIA_OK;
}

static void a1_a_scope_restores_however_it_is_left(void **state)
{
    (void)state;
    struct users_resource users[2] = {{0}, {.failure = RAFFIA_ERROR_OUT_OF_MEMORY}};
    raffia_resource *outer = make_users(&users[0]), *inner = make_users(&users[1]);
    assert_ok(raffia_current_resource_set(NULL, outer, NULL));
    assert_ok(use_scope(inner, false));
    assert_true(is_current(NULL, outer));
    assert_status(RAFFIA_ERROR_CANCELLED, use_scope(inner, true));
    assert_true(is_current(NULL, outer));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, use_scope(NULL, true));
    assert_true(is_current(NULL, outer));
    raffia_resource_release(inner);
    raffia_resource_release(outer);
}

/* A resource that fails as the current one shows who falls back to it. */
static void a3_a_failing_current_resource_is_met_only_by_who_asks_for_it(void **state)
{
    (void)state;
    struct users_resource failing = {.failure = RAFFIA_ERROR_OUT_OF_MEMORY}, good = {0};
    raffia_resource *bad = make_users(&failing), *fine = make_users(&good);
    RAFFIA_SCOPED_RESOURCE(scope);
    assert_ok(raffia_resource_scope_begin(NULL, bad, &scope));
    void *block;
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, raffia_allocate(current(NULL), NULL, 1, 0, &block));
    raffia_memory_resources both = RAFFIA_MEMORY_RESOURCES(fine, fine);
    assert_ok(raffia_allocate(both.temporary, NULL, 1, 0, &block));
    assert_ok(raffia_deallocate(both.temporary, NULL, block, 1, 0));
    raffia_memory_resources one = RAFFIA_MEMORY_RESOURCES(fine);
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, raffia_allocate(one.temporary, NULL, 1, 0, &block));
    raffia_resource_release(bad);
    raffia_resource_release(fine);
}

/* ---- pairs ---------------------------------------------------------------------------------- */

static void a3_one_resource_captures_the_current_one_then(void **state)
{
    (void)state;
    struct users_resource users[3] = {{0}, {0}, {0}};
    raffia_resource *output = make_users(&users[0]), *then = make_users(&users[1]),
                    *later = make_users(&users[2]);
    assert_ok(raffia_current_resource_set(NULL, then, NULL));
    const raffia_memory_resources from_owner = RAFFIA_MEMORY_RESOURCES(output);
    const raffia_memory_resources from_ref = RAFFIA_MEMORY_RESOURCES(raffia_ref(output));
    assert_ok(raffia_current_resource_set(NULL, later, NULL));
    assert_ptr_equal(from_owner.output.context, raffia_ref(output).context);
    assert_ptr_equal(from_owner.temporary.context, raffia_ref(then).context);
    assert_memory_equal(&from_owner, &from_ref, sizeof from_ref);
    const raffia_memory_resources copy = from_owner;
    assert_memory_equal(&copy, &from_owner, sizeof copy);
    raffia_resource_release(output);
    raffia_resource_release(then);
    raffia_resource_release(later);
}

static void a3_two_resources_ignore_the_current_one(void **state)
{
    (void)state;
    struct users_resource users[3] = {{0}, {0}, {0}};
    raffia_resource *output = make_users(&users[0]), *temporary = make_users(&users[1]),
                    *other = make_users(&users[2]);
    assert_ok(raffia_current_resource_set(NULL, other, NULL));
    const raffia_memory_resources pair = RAFFIA_MEMORY_RESOURCES(output, raffia_ref(temporary));
    assert_ptr_equal(pair.output.context, raffia_ref(output).context);
    assert_ptr_equal(pair.temporary.context, raffia_ref(temporary).context);
    raffia_resource_release(output);
    raffia_resource_release(temporary);
    raffia_resource_release(other);
}

/* ---- owners and refs ------------------------------------------------------------------------ */

static void count_release(void *context)
{
    ((struct users_resource *)context)->released++;
}

static void a4_an_owner_of_a_programs_resource_ends_it_when_the_last_block_is_freed(void **state)
{
    (void)state;
    struct users_resource users = {.properties = RAFFIA_DEVICE_ACCESSIBLE};
    raffia_resource_ops ops = *users_ref(&users).ops;
    ops.release = count_release;
    raffia_resource *resource;
    void *block;
    assert_ok(raffia_resource_create(&ops, &users, &resource));
    const raffia_resource_ref ref = raffia_ref(resource);
    assert_ok(raffia_allocate(ref, NULL, 100, 0, &block));
    raffia_resource_release(resource);
    assert_int_equal(users.released, 0);
    assert_ok(raffia_deallocate(ref, NULL, block, 100, 0));
    assert_int_equal(users.released, 1);
}

static void a4_an_owner_made_from_a_ref_keeps_the_resource(void **state)
{
    (void)state;
    raffia_resource *device = must_make_device("host"), *again, *borrowed;
    const raffia_resource_ref ref = raffia_ref(device);
    assert_ok(raffia_resource_from_ref(ref, &again));
    assert_ptr_equal(again, device);
    raffia_resource_release(device);
    void *block;
    assert_ok(raffia_allocate(ref, NULL, 100, 0, &block));
    assert_ok(raffia_deallocate(ref, NULL, block, 100, 0));
    raffia_resource_release(again);
    struct users_resource users = {0};
    assert_ok(raffia_resource_from_ref(users_ref(&users), &borrowed));
    assert_true(raffia_resource_is_equal(raffia_ref(borrowed), raffia_ref(borrowed)));
    raffia_resource_release(borrowed);
    assert_int_equal(users.released, 0);
}

static void a4_resources_on_one_device_are_equal_and_free_for_each_other(void **state)
{
    (void)state;
    raffia_resource *a = must_make_device("host"), *b = must_make_device("host"),
                    *sim = must_make_device("sim:0");
    void *block;
    assert_true(raffia_resource_is_equal(raffia_ref(a), raffia_ref(b)));
    assert_false(raffia_resource_is_equal(raffia_ref(a), raffia_ref(sim)));
    assert_true(raffia_resource_is_equal((raffia_resource_ref){0}, (raffia_resource_ref){0}));
    assert_false(raffia_resource_is_equal(raffia_ref(a), (raffia_resource_ref){0}));
    assert_ok(raffia_allocate(raffia_ref(a), NULL, 100, 0, &block));
    assert_status(RAFFIA_ERROR_BAD_ADDRESS,
                  raffia_deallocate(raffia_ref(sim), NULL, block, 100, 0));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT,
                  raffia_deallocate(raffia_ref(b), NULL, block, 101, 0));
    assert_ok(raffia_deallocate(raffia_ref(b), NULL, block, 100, 0));
    raffia_resource_release(a);
    raffia_resource_release(b);
    raffia_resource_release(sim);
}

/* What is allocated through one owner of a ref and freed through another is counted once. */
static void a4_owners_of_one_ref_are_one(void **state)
{
    (void)state;
    struct users_resource users = {0};
    raffia_resource *owners[2];
    void *block;
    for (int i = 0; i < 2; i++)
        assert_ok(raffia_resource_from_ref(users_ref(&users), &owners[i]));
    assert_ptr_equal(owners[0], owners[1]);
    assert_ok(raffia_allocate(raffia_ref(owners[0]), NULL, 10, 0, &block));
    raffia_resource_release(owners[0]);
    assert_ok(raffia_deallocate(raffia_ref(owners[1]), NULL, block, 10, 0));
    raffia_resource_release(owners[1]);
    assert_ok(raffia_resource_from_ref(users_ref(&users), &owners[0])); /* there was none left */
    raffia_resource_release(owners[0]);
}

static void incomplete_tables_are_refused(void **state)
{
    (void)state;
    struct users_resource users = {0};
    raffia_resource_ops ops = *users_ref(&users).ops;
    const raffia_resource_ref ref = {&ops, &users};
    raffia_resource *resource;
    void *block;
    ops.is_equal = NULL;
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, raffia_allocate(ref, NULL, 1, 0, &block));
    ops = *users_ref(&users).ops;
    ops.struct_size = 8;
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, raffia_resource_from_ref(ref, &resource));
    assert_error_mentions("struct_size is 8");
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, raffia_resource_create(&ops, NULL, &resource));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT,
                  raffia_allocate((raffia_resource_ref){0}, NULL, 1, 0, &block));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT,
                  raffia_limiting_resource_create(ref, 1, &resource));
    /* A table from older headers: its optional entries are not there to be read. */
    ops = *users_ref(&users).ops;
    ops.struct_size = offsetof(raffia_resource_ops, retain);
    ops.describe = (void (*)(void *, char *, size_t))(uintptr_t)1;
    char line[64];
    assert_non_null(strstr(raffia_resource_describe(ref, line, sizeof line), "program"));
    assert_ok(raffia_allocate(ref, NULL, 1, 0, &block));
    assert_ok(raffia_deallocate(ref, NULL, block, 1, 0));
}

/* ---- deprecated ----------------------------------------------------------------------------- */

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static void a2_the_ref_variants_work_and_do_not_own(void **state)
{
    (void)state;
    struct users_resource users = {.properties = RAFFIA_DEVICE_ACCESSIBLE};
    raffia_resource *initial, *previous;
    void *block;
    assert_ok(raffia_current_resource_acquire(NULL, &initial));
    assert_ok(raffia_current_resource_set_ref(NULL, users_ref(&users), &previous));
    assert_ptr_equal(previous, initial);
    raffia_resource_release(previous);
    assert_ok(raffia_allocate(current(NULL), NULL, 10, 0, &block));
    assert_int_equal(users.live, 1);
    assert_ok(raffia_deallocate(current(NULL), NULL, block, 10, 0));
    assert_ok(raffia_current_resource_reset_ref(NULL, NULL));
    assert_int_equal(users.released, 0);
    assert_true(is_current(NULL, initial));
    raffia_resource_release(initial);
    users.properties = RAFFIA_HOST_ACCESSIBLE;
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT,
                  raffia_current_resource_set_ref(NULL, users_ref(&users), NULL));
}
#pragma GCC diagnostic pop

/* ---- fork and exit -------------------------------------------------------------------------- */

static int be_a_child(void)
{
    raffia_resource *resource;
    void *block;
    char line[RAFFIA_RESOURCE_TEXT_MAX];
    if (raffia_current_resource_acquire("host", &resource))
        return 1;
    if (!strstr(raffia_resource_describe(raffia_ref(resource), line, sizeof line), "initial"))
        return 2;
    if (raffia_allocate(raffia_ref(resource), NULL, 100, 0, &block) ||
        raffia_deallocate(raffia_ref(resource), NULL, block, 100, 0))
        return 3;
    raffia_resource_release(resource);
    return 0;
}

static void *keep_setting(void *argument)
{
    struct users_resource users = {0};
    (void)argument;
    while (!atomic_load(&stop)) {
        raffia_resource *resource = make_users(&users);
        (void)!raffia_current_resource_set("host", resource, NULL);
        raffia_resource_release(resource);
    }
    (void)!raffia_current_resource_reset("host", NULL);
    return NULL;
}

static void a1_children_start_with_the_initial_resource(void **state)
{
    (void)state;
    pthread_t thread;
    atomic_store(&stop, false);
    assert_int_equal(pthread_create(&thread, NULL, keep_setting, NULL), 0);
    for (int i = 0; i < 20; i++) {
        const pid_t child = fork(); /* maybe while the other thread is inside the registry */
        assert_true(child >= 0);
        if (child == 0)
            _exit(be_a_child());
        int how;
        assert_int_equal(waitpid(child, &how, 0), child);
        assert_true(WIFEXITED(how));
        assert_int_equal(WEXITSTATUS(how), 0);
    }
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
}

static void use_it_late(void)
{
    raffia_resource_ref ref;
    void *block;
    if (raffia_current_resource_get("host", &ref) || raffia_allocate(ref, NULL, 100, 0, &block) ||
        raffia_deallocate(ref, NULL, block, 100, 0) || raffia_current_resource_reset("host", NULL))
        _exit(9);
}

static void a1_the_registry_is_there_until_the_process_ends(void **state)
{
    (void)state;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        atexit(use_it_late); /* runs after what the registry may register from now on */
        struct users_resource *users = calloc(1, sizeof *users);
        raffia_resource *resource = make_users(users);
        if (raffia_current_resource_set("host", resource, NULL))
            _exit(1);
        raffia_resource_release(resource);
        fclose(stdout);
        exit(0);
    }
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), 0);
}

/* ---- failures ------------------------------------------------------------------------------- */

static raffia_status set_and_restore(void *context)
{
    struct users_resource users = {.properties = RAFFIA_DEVICE_ACCESSIBLE};
    raffia_resource *borrowed;
    (void)context;
    raffia_status status = raffia_resource_from_ref(users_ref(&users), &borrowed);
    if (status)
        return status;
    RAFFIA_SCOPED_RESOURCE(scope);
    status = raffia_resource_scope_begin("sim:2", borrowed, &scope);
    raffia_resource_release(borrowed);
    return status;
}

static void setting_may_fail_and_changes_nothing_then(void **state)
{
    (void)state;
    assert_ok(sim_set_devices(3));
    assert_true(fault_loop(set_and_restore, NULL, 100) > 0);
}

/* ---- stacks --------------------------------------------------------------------------------- */

static bool note(void *context, size_t depth, raffia_resource_ref ref)
{
    size_t *depths = context;
    (void)ref;
    depths[depth]++;
    return depth < 2;
}

static void a10_the_stack_is_walked_from_the_top(void **state)
{
    (void)state;
    raffia_resource *device = must_make_device("host"), *limiting, *top;
    assert_ok(raffia_limiting_resource_create(raffia_ref(device), MIB, &limiting));
    assert_ok(raffia_statistics_resource_create(raffia_ref(limiting), &top));
    raffia_resource_release(device);
    raffia_resource_release(limiting);
    size_t depths[8] = {0};
    raffia_resource_walk_stack(raffia_ref(top), note, depths);
    assert_int_equal(depths[0] + depths[1] + depths[2], 3);
    char text[1024], name[RAFFIA_DEVICE_NAME_MAX];
    raffia_resource_print_stack(raffia_ref(top), text, sizeof text);
    const char *first = strstr(text, "statistics adaptor"), *second = strstr(text, "\n  limiting"),
               *third = strstr(text, "\n    device memory on host\n");
    assert_true(first == text && second > first && third > second);
    assert_ok(raffia_resource_device(raffia_ref(top), name));
    assert_string_equal(name, "host");
    raffia_resource_release(top);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a1_the_registry_is_there_until_the_process_ends),
        TEST(a1_set_returns_the_previous_owner_and_reset_the_initial),
        TEST(a1_the_registry_keeps_what_it_was_given),
        TEST(a1_set_refuses_what_is_not_device_accessible),
        TEST(a1_each_device_has_its_own),
        TEST(a1_the_initial_resource_goes_through_policy),
        TEST(a1_acquire_is_safe_against_a_set_in_another_thread),
        TEST(a1_a_scope_restores_however_it_is_left),
        TEST(a1_children_start_with_the_initial_resource),
        TEST(a2_the_ref_variants_work_and_do_not_own),
        TEST(a3_one_resource_captures_the_current_one_then),
        TEST(a3_two_resources_ignore_the_current_one),
        TEST(a3_a_failing_current_resource_is_met_only_by_who_asks_for_it),
        TEST(a4_an_owner_of_a_programs_resource_ends_it_when_the_last_block_is_freed),
        TEST(a4_an_owner_made_from_a_ref_keeps_the_resource),
        TEST(a4_resources_on_one_device_are_equal_and_free_for_each_other),
        TEST(a4_owners_of_one_ref_are_one),
        TEST(incomplete_tables_are_refused),
        TEST(setting_may_fail_and_changes_nothing_then),
        TEST(a10_the_stack_is_walked_from_the_top),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
