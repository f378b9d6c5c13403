/*
 * SPEC A1: one registry for the whole process, whichever copies of the library are in it. This
 * program has the library's objects in itself, and opens the shared library twice from two paths.
 */
#include "resource/makers.h"
#include "support/directory.h"

#include <raffia/current_resource.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct test_directory directory;

struct copy {
    void *handle;
    __typeof__(raffia_current_resource_acquire) *acquire;
    __typeof__(raffia_current_resource_set) *set;
    __typeof__(raffia_current_resource_reset) *reset;
    __typeof__(raffia_resource_release) *release;
    __typeof__(raffia_resource_as_ref) *as_ref;
    __typeof__(raffia_allocate) *allocate;
    __typeof__(raffia_deallocate) *deallocate;
    __typeof__(raffia_resource_create) *create;
    __typeof__(raffia_statistics_resource_create) *statistics;
};

static const struct copy own = {
    NULL,
    raffia_current_resource_acquire,
    raffia_current_resource_set,
    raffia_current_resource_reset,
    raffia_resource_release,
    raffia_resource_as_ref,
    raffia_allocate,
    raffia_deallocate,
    raffia_resource_create,
    raffia_statistics_resource_create,
};

static struct copy open_copy(const char *path)
{
    struct copy copy = {.handle = dlopen(path, RTLD_NOW | RTLD_LOCAL)};
    if (!copy.handle)
        fail_msg("%s", dlerror());
#define FIND(member, name)                                                                         \
    do {                                                                                           \
        copy.member = dlsym(copy.handle, name);                                                    \
        assert_non_null(copy.member);                                                              \
    } while (0)
    FIND(acquire, "raffia_current_resource_acquire");
    FIND(set, "raffia_current_resource_set");
    FIND(reset, "raffia_current_resource_reset");
    FIND(release, "raffia_resource_release");
    FIND(as_ref, "raffia_resource_as_ref");
    FIND(allocate, "raffia_allocate");
    FIND(deallocate, "raffia_deallocate");
    FIND(create, "raffia_resource_create");
    FIND(statistics, "raffia_statistics_resource_create");
    return copy;
}

static struct copy copies[3];

static int open_copies(void **state)
{
    (void)state;
    char path[512], command[1100];
    test_directory_make(&directory);
    snprintf(path, sizeof path, "%s/libraffia-too.so", directory.path);
    snprintf(command, sizeof command, "cp '%s' '%s'", LIBRARY, path);
    if (system(command))
        return -1;
    copies[0] = own;
    copies[1] = open_copy(LIBRARY);
    copies[2] = open_copy(path);
    /* They are three indeed. */
    return copies[1].acquire == copies[2].acquire || copies[0].acquire == copies[1].acquire;
}

static int close_copies(void **state)
{
    (void)state;
    test_directory_remove(&directory);
    return 0;
}

static void must(raffia_status status)
{
    assert_int_equal(status, RAFFIA_OK);
}

static void a1_what_one_copy_sets_the_others_get(void **state)
{
    (void)state;
    for (int setter = 0; setter < 3; setter++) {
        struct users_resource users = {.properties = RAFFIA_DEVICE_ACCESSIBLE};
        const raffia_resource_ref ref = users_ref(&users);
        raffia_resource *resource;
        must(copies[setter].create(ref.ops, ref.context, &resource));
        must(copies[setter].set("host", resource, NULL));
        copies[setter].release(resource);
        for (int getter = 0; getter < 3; getter++) {
            const struct copy *copy = &copies[getter];
            raffia_resource *found;
            void *block;
            must(copy->acquire("host", &found));
            must(copy->allocate(copy->as_ref(found), NULL, 100, 0, &block));
            assert_int_equal(users.live, 1);
            must(copy->deallocate(copy->as_ref(found), NULL, block, 100, 0));
            copy->release(found);
        }
        must(copies[(setter + 1) % 3].reset("host",
                                            NULL)); /* ended by a copy that did not make it */
        assert_int_equal(users.live, 0);
    }
}

static void a1_the_initial_resource_is_one_for_all(void **state)
{
    (void)state;
    raffia_resource *found[3];
    for (int i = 0; i < 3; i++)
        must(copies[i].acquire("host", &found[i]));
    assert_ptr_equal(found[0], found[1]);
    assert_ptr_equal(found[0], found[2]);
    for (int i = 0; i < 3; i++)
        copies[i].release(found[i]);
}

static void an_adaptor_of_one_copy_stands_on_a_resource_of_another(void **state)
{
    (void)state;
    raffia_resource *below, *top;
    void *block;
    must(copies[1].acquire("host", &below));
    must(copies[2].statistics(copies[1].as_ref(below), &top));
    copies[1].release(below);
    must(copies[0].allocate(copies[2].as_ref(top), NULL, 100, 0, &block));
    const raffia_resource_ref ref = copies[2].as_ref(top);
    copies[2].release(top);
    must(copies[0].deallocate(ref, NULL, block, 100, 0));
}

static void a1_a_child_of_three_copies_starts_afresh(void **state)
{
    (void)state;
    struct users_resource users = {.properties = RAFFIA_DEVICE_ACCESSIBLE};
    const raffia_resource_ref ref = users_ref(&users);
    raffia_resource *resource, *found;
    must(copies[1].create(ref.ops, ref.context, &resource));
    must(copies[1].set("host", resource, NULL));
    const pid_t child = fork();
    if (child == 0) {
        void *block;
        for (int i = 0; i < 3; i++) {
            if (copies[i].acquire("host", &found) || found == resource ||
                copies[i].allocate(copies[i].as_ref(found), NULL, 100, 0, &block) ||
                copies[i].deallocate(copies[i].as_ref(found), NULL, block, 100, 0))
                _exit(i + 1);
            copies[i].release(found);
        }
        _exit(0);
    }
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_int_equal(how, 0);
    must(copies[2].reset("host", NULL));
    copies[1].release(resource);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a1_what_one_copy_sets_the_others_get),
        cmocka_unit_test(a1_the_initial_resource_is_one_for_all),
        cmocka_unit_test(an_adaptor_of_one_copy_stands_on_a_resource_of_another),
        cmocka_unit_test(a1_a_child_of_three_copies_starts_afresh),
    };
    return cmocka_run_group_tests(tests, open_copies, close_copies);
}
