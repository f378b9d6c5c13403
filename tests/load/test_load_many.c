/* Several loads at once, from several threads, into memory of their own and into one pool. */
#include "load_fixture.h"
#include "support/cmocka.h"

#include <raffia/pool.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { LOADERS = 4, ROUNDS = 8, FILES = 3 };

static struct test_directory directory;
static struct model_file_tensor tensors[FILES][2];
static raffia_pool *shared_pool;
static atomic_uint refused, loaded;

static struct test_path path_of(unsigned file)
{
    char name[32];
    snprintf(name, sizeof name, "model-%u", file);
    return test_path_in(&directory, name);
}

/* Asserts of cmocka are for the main thread only: a loader says what it saw. */
static const char *load_once(unsigned file, bool own)
{
    raffia_model *model;
    raffia_load_options options =
        own ? LOAD_OPTIONS(.device = "host", .pages = RAFFIA_PAGES_OFF, .threads = 2)
            : LOAD_OPTIONS(.pool = shared_pool, .threads = 2);
    options.reader = file % 2 ? RAFFIA_READER_DIRECT : RAFFIA_READER_BUFFERED;
    raffia_status status = raffia_model_load(path_of(file).text, &options, &model);
    if (status == RAFFIA_ERROR_OUT_OF_MEMORY && !own) {
        atomic_fetch_add(&refused, 1);
        return NULL;
    }
    if (status)
        return "a load failed";
    const char *wrong = NULL;
    for (int t = 0; t < 2 && !wrong; t++) {
        const struct model_file_tensor *expected = &tensors[file][t];
        const raffia_tensor *tensor = raffia_model_tensor(model, expected->name);
        for (size_t i = 0; i < expected->bytes && !wrong; i += 97)
            if (((const unsigned char *)tensor->data)[i] !=
                model_file_byte(expected->offset + i, file))
                wrong = "a byte is wrong";
    }
    atomic_fetch_add(&loaded, 1);
    raffia_model_release(model);
    return wrong;
}

static void *load_often(void *argument)
{
    unsigned number = *(unsigned *)argument;
    const char *wrong = NULL;
    for (unsigned round = 0; round < ROUNDS && !wrong; round++)
        wrong = load_once((number + round) % FILES, (number + round) % 2);
    return (void *)(uintptr_t)wrong;
}

static void loads_do_not_disturb_each_other(void **state)
{
    (void)state;
    pthread_t threads[LOADERS];
    unsigned numbers[LOADERS];
    /* Room for about two models: some loads are refused whole, which is right. */
    assert_ok(raffia_pool_create(&(raffia_pool_options){.struct_size = sizeof(raffia_pool_options),
                                                        .device = "host",
                                                        .pages = RAFFIA_PAGES_OFF,
                                                        .initial_bytes = 5 * MIB,
                                                        .flags = RAFFIA_POOL_FIXED},
                                 &shared_pool));
    for (unsigned i = 0; i < LOADERS; i++) {
        numbers[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, load_often, &numbers[i]), 0);
    }
    for (unsigned i = 0; i < LOADERS; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        if (wrong)
            fail_msg("loader %u: %s", i, (const char *)wrong);
    }
    assert_int_equal(refused + loaded, LOADERS * ROUNDS);
    assert_true(loaded >= LOADERS * ROUNDS / 2);
    raffia_pool_stats stats;
    assert_ok(raffia_pool_query(shared_pool, &stats));
    assert_int_equal(stats.live_blocks, 0);
    assert_ok(raffia_pool_check(shared_pool));
    raffia_pool_release(shared_pool);
}

static int make_files(void **state)
{
    (void)state;
    test_directory_make(&directory);
    for (unsigned file = 0; file < FILES; file++) {
        tensors[file][0] = model_file_bytes("small", 1000 + file);
        tensors[file][1] = model_file_bytes("large", 2 * MIB + file * 4096);
        model_file_write(path_of(file).text, tensors[file], 2, file ? 8 : 4096, 0, file);
    }
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
        cmocka_unit_test(loads_do_not_disturb_each_other),
    };
    return cmocka_run_group_tests(tests, make_files, remove_directory);
}
