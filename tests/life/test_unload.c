/*
 * The shared library as a plugin meets it: opened and closed again and again, from several threads,
 * and loaded twice from two paths. This program is not linked with the library.
 */
#include "support/cmocka.h"
#include "support/directory.h"
#include "support/safetensors_writer.h"

#include <raffia/config.h>
#include <raffia/load.h>
#include <raffia/pool.h>
#include <raffia/version.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

enum { THREADS = 4, OPENINGS = 50 };

/* The library through one handle. */
struct library {
    void *handle;
    __typeof__(raffia_pool_create) *pool_create;
    __typeof__(raffia_pool_alloc) *pool_alloc;
    __typeof__(raffia_pool_free) *pool_free;
    __typeof__(raffia_pool_check) *pool_check;
    __typeof__(raffia_pool_release) *pool_release;
    __typeof__(raffia_model_load) *model_load;
    __typeof__(raffia_model_tensor) *model_tensor;
    __typeof__(raffia_model_release) *model_release;
    __typeof__(raffia_config_set) *config_set;
    __typeof__(raffia_last_error) *last_error;
    __typeof__(raffia_version) *version;
};

static struct test_directory directory;

/* False, with nothing opened, if the library or a function is missing. */
static bool open_library(const char *path, struct library *library)
{
    library->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library->handle) {
        fprintf(stderr, "%s\n", dlerror());
        return false;
    }
#define FIND(name) ((library->name = dlsym(library->handle, "raffia_" #name)) != NULL)
    if (FIND(pool_create) && FIND(pool_alloc) && FIND(pool_free) && FIND(pool_check) &&
        FIND(pool_release) && FIND(model_load) && FIND(model_tensor) && FIND(model_release) &&
        FIND(config_set) && FIND(last_error) && FIND(version))
        return true;
#undef FIND
    dlclose(library->handle);
    return false;
}

static raffia_pool_options small_pool(void)
{
    return (raffia_pool_options){.struct_size = sizeof(raffia_pool_options),
                                 .device = "host",
                                 .pages = RAFFIA_PAGES_OFF,
                                 .initial_bytes = MIB};
}

/* Makes, uses and drops a pool, and leaves an error behind. Returns what failed, or NULL. */
static const char *use_library(const struct library *library)
{
    const raffia_pool_options options = small_pool();
    raffia_pool *pool;
    void *block;
    if (library->version() != RAFFIA_VERSION)
        return "the version is another";
    if (library->pool_create(&options, &pool))
        return "no pool can be made";
    if (library->pool_alloc(pool, 1000, 0, &block))
        return "no block can be had";
    memset(block, 1, 1000);
    if (library->pool_free(pool, block) || library->pool_check(pool))
        return "the block cannot be freed";
    if (library->pool_free(pool, block) != RAFFIA_ERROR_BAD_ADDRESS)
        return "a second free went through";
    library->pool_release(pool);
    return strstr(library->last_error(), "free") ? NULL : "the error is not recorded";
}

static void *open_and_close(void *argument)
{
    const char *wrong = NULL;
    (void)argument;
    for (int i = 0; i < OPENINGS && !wrong; i++) {
        struct library library;
        if (!open_library(LIFE_LIBRARY, &library))
            return "the library cannot be opened";
        wrong = use_library(&library);
        if (dlclose(library.handle))
            wrong = "it cannot be closed";
    }
    return (void *)(uintptr_t)wrong; /* the thread ends while it holds an error */
}

static void b8_threads_open_and_close_the_library_and_end_with_errors(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, open_and_close, NULL), 0);
    for (int i = 0; i < THREADS; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        if (wrong)
            fail_msg("thread %d: %s", i, (const char *)wrong);
    }
}

/* "nodelete": a pool outlives the handle it was made through. */
static void b8_objects_outlive_the_handle(void **state)
{
    (void)state;
    const raffia_pool_options options = small_pool();
    struct library library, again;
    raffia_pool *pool;
    void *block;
    assert_true(open_library(LIFE_LIBRARY, &library));
    assert_int_equal(library.pool_create(&options, &pool), RAFFIA_OK);
    assert_int_equal(dlclose(library.handle), 0);
    assert_int_equal(library.pool_alloc(pool, 1000, 0, &block), RAFFIA_OK);
    assert_true(open_library(LIFE_LIBRARY, &again));
    assert_ptr_equal(again.pool_free, library.pool_free);
    assert_int_equal(again.pool_free(pool, block), RAFFIA_OK);
    again.pool_release(pool);
    dlclose(again.handle);
}

static void copy_file(const char *from, const char *to)
{
    FILE *source = fopen(from, "rb");
    assert_non_null(source);
    struct stat facts;
    assert_int_equal(fstat(fileno(source), &facts), 0);
    void *content = malloc((size_t)facts.st_size);
    assert_non_null(content);
    assert_int_equal(fread(content, 1, (size_t)facts.st_size, source), facts.st_size);
    fclose(source);
    test_file_write(to, content, (size_t)facts.st_size);
    free(content);
}

static int use_both(const struct library *one, const struct library *two)
{
    return use_library(one) != NULL || use_library(two) != NULL;
}

static int use_both_in_a_child(const struct library *one, const struct library *two)
{
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(60);
        _exit(use_both(one, two));
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void load_model(const struct library *library, const char *path)
{
    const raffia_load_options options = {
        .struct_size = sizeof options, .device = "host", .threads = 2};
    raffia_model *model;
    assert_int_equal(library->model_load(path, &options, &model), RAFFIA_OK);
    const raffia_tensor *tensor = library->model_tensor(model, "a");
    assert_non_null(tensor);
    assert_int_equal(((const unsigned char *)tensor->data)[8], test_pattern(8));
    library->model_release(model);
}

/* As two plugins bring it, each its own. They share no state, and do not take each other's blocks
 * for their own. */
static void b8_two_copies_work_side_by_side(void **state)
{
    (void)state;
    const struct test_path copy = test_path_in(&directory, "libraffia-copy.so");
    const struct test_path path = test_path_in(&directory, "model.safetensors");
    struct library one, two;
    copy_file(LIFE_LIBRARY, copy.text);
    test_safetensors_write(path.text,
                           "{\"a\":{\"dtype\":\"U8\",\"shape\":[9],\"data_offsets\":[0,9]}}", 9);
    assert_true(open_library(LIFE_LIBRARY, &one));
    assert_true(open_library(copy.text, &two));
    assert_ptr_not_equal(one.pool_free, two.pool_free);
    assert_int_equal(use_both(&one, &two), 0);

    const raffia_pool_options options = small_pool();
    raffia_pool *pool_of_one, *pool_of_two;
    void *block;
    assert_int_equal(one.pool_create(&options, &pool_of_one), RAFFIA_OK);
    assert_int_equal(two.pool_create(&options, &pool_of_two), RAFFIA_OK);
    assert_int_equal(one.pool_alloc(pool_of_one, 1000, 0, &block), RAFFIA_OK);
    assert_int_equal(two.pool_free(pool_of_two, block), RAFFIA_ERROR_BAD_ADDRESS);
    assert_int_equal(one.pool_free(pool_of_one, block), RAFFIA_OK);
    load_model(&one, path.text);
    load_model(&two, path.text);
    assert_int_equal(use_both_in_a_child(&one, &two), 0);
    one.pool_release(pool_of_one);
    two.pool_release(pool_of_two);

    assert_int_equal(one.config_set("pages", "perhaps"), RAFFIA_ERROR_INVALID_ARGUMENT);
    assert_null(strstr(two.last_error(), "perhaps"));
    dlclose(one.handle);
    dlclose(two.handle);
}

static int make_directory(void **state)
{
    (void)state;
    test_directory_make(&directory);
    return 0;
}

static int remove_directory(void **state)
{
    (void)state;
    test_directory_remove(&directory);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(b8_threads_open_and_close_the_library_and_end_with_errors),
        cmocka_unit_test(b8_objects_outlive_the_handle),
        cmocka_unit_test(b8_two_copies_work_side_by_side),
    };
    return cmocka_run_group_tests_name("life unload", tests, make_directory, remove_directory);
}
