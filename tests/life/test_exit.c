/*
 * Ends of a process and of its threads. Each scenario runs in a program of its own: this one, begun
 * again with the scenario's name, so that main() really returns.
 */
#include "child.h"
#include "models.h"
#include "support/cmocka.h"
#include "support/random.h"

#include <raffia/config.h>
#include <raffia/log.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 4, SHORT_LIVES = 64, WAIT_US = 20000 };

/* Where a scenario finds the model: the directory is the parent's. */
#define DIRECTORY_VARIABLE "LIFE_DIRECTORY"

/* Not on the stack of main(), which some scenarios give up. */
static struct test_directory directory;
static struct life_model model;
static raffia_pool *pool;
static raffia_model *loaded;
static void *block;
static atomic_uint rounds;

static void *allocate(void *argument)
{
    struct test_random random = {(uintptr_t)argument};
    for (;; atomic_fetch_add(&rounds, 1)) {
        void *address;
        if (raffia_pool_alloc(pool, test_random_size(&random, MIB), 0, &address) == RAFFIA_OK &&
            raffia_pool_free(pool, address))
            _exit(10);
        if (test_random_below(&random, 16) == 0 && raffia_pool_trim(pool, 0, NULL))
            _exit(16);
    }
    return NULL;
}

static void *load(void *argument)
{
    (void)argument;
    for (;; atomic_fetch_add(&rounds, 1)) {
        raffia_status status =
            life_load_once(&model, &LOAD_OPTIONS(.pages = RAFFIA_PAGES_TRY, .threads = 2));
        if (status && status != RAFFIA_ERROR_OUT_OF_MEMORY)
            _exit(11);
    }
    return NULL;
}

/* Everything there is: a pool with a block, a model in it, one in a pool of its own, an error. */
static int make_objects(void)
{
    EXPECT(!raffia_pool_create(&POOL_OPTIONS(.initial_bytes = 2 * MIB, .maximum_bytes = 32 * MIB,
                                             .chunk_bytes = 2 * MIB, .pages = RAFFIA_PAGES_OFF,
                                             .flags = RAFFIA_POOL_GUARD),
                               &pool));
    EXPECT(!raffia_pool_alloc(pool, 1000, 0, &block));
    EXPECT(!life_load(&model, &LOAD_OPTIONS(.pages = RAFFIA_PAGES_TRY), &loaded));
    EXPECT(raffia_pool_free(pool, &pool) == RAFFIA_ERROR_BAD_ADDRESS);
    return 0;
}

/* Into memory that the CPU cannot touch, by way of a ring; one is kept between two loads. */
static void *load_into_a_device(void *argument)
{
    (void)argument;
    for (;; atomic_fetch_add(&rounds, 1)) {
        raffia_model *there;
        unsigned char byte;
        const raffia_load_options options = {.struct_size = sizeof options,
                                             .device = "sim:0",
                                             .threads = 2,
                                             .budget_bytes = 256 * KIB};
        if (raffia_model_load(model.path.text, &options, &there) ||
            raffia_model_read(there, raffia_model_tensor_at(there, 0), 0, &byte, 1))
            _exit(17);
        raffia_model_release(there);
    }
    return NULL;
}

/* Returns when all are at work. */
static int start_threads(void)
{
    for (uintptr_t i = 0; i < THREADS; i++) {
        pthread_t thread;
        EXPECT(pthread_create(&thread, NULL, i < 2 ? load : allocate, (void *)i) == 0);
        pthread_detach(thread);
    }
    while (atomic_load(&rounds) < 2 * THREADS)
        usleep(100);
    return 0;
}

/* ---- scenarios ------------------------------------------------------------------------------ */

static int return_from_main(void)
{
    return make_objects() || start_threads();
}

static int exit_among_threads(void)
{
    exit(make_objects() || start_threads());
}

static int quick_exit_among_threads(void)
{
    quick_exit(make_objects() || start_threads());
}

static int start_loads_into_a_device(void)
{
    EXPECT(setenv("RAFFIA_SIM_MEMORY", "hidden", 1) == 0);
    for (int i = 0; i < 2; i++) {
        pthread_t thread;
        EXPECT(pthread_create(&thread, NULL, load_into_a_device, NULL) == 0);
        pthread_detach(thread);
    }
    while (atomic_load(&rounds) < 4)
        usleep(100);
    return 0;
}

static int return_from_main_with_rings(void)
{
    return start_loads_into_a_device();
}

static void release_rings(void)
{
    raffia_load_release_staging();
}

static int release_rings_in_exit_handlers(void)
{
    atexit(release_rings);
    exit(start_loads_into_a_device());
}

static void *exit_here(void *argument)
{
    (void)argument;
    usleep(WAIT_US);
    exit(0);
}

/* main() ends as a thread; another ends the process while the rest are at work. */
static int end_main_as_a_thread(void)
{
    pthread_t thread;
    EXPECT(!make_objects() && !start_threads());
    EXPECT(pthread_create(&thread, NULL, exit_here, NULL) == 0);
    pthread_detach(thread);
    pthread_exit(NULL);
}

static void clean_up(void)
{
    raffia_model_release(loaded);
    if (raffia_pool_free(pool, block) || raffia_pool_check(pool))
        _exit(12);
    raffia_pool_release(pool);
    if (life_load_once(&model, &LOAD_OPTIONS(.pages = RAFFIA_PAGES_TRY)))
        _exit(13);
}

/* Handlers that were registered before the library was first used run after all of its own, if it
 * had any. */
static int use_it_in_exit_handlers(void)
{
    atexit(clean_up);
    EXPECT(!make_objects());
    exit(0);
}

static int make_a_mistake(void)
{
    EXPECT(raffia_config_set("pages", "perhaps") == RAFFIA_ERROR_INVALID_ARGUMENT);
    EXPECT(raffia_last_status() == RAFFIA_ERROR_INVALID_ARGUMENT);
    EXPECT(strstr(raffia_last_error(), "perhaps"));
    return 0;
}

static pthread_key_t key;
static atomic_uint mistakes;

/* Runs when the thread's error record may have been freed already. */
static void make_a_late_mistake(void *argument)
{
    (void)argument;
    (void)raffia_last_error();
    if (make_a_mistake())
        _exit(14);
    atomic_fetch_add(&mistakes, 1);
}

static void *live_shortly(void *argument)
{
    (void)argument;
    if (make_a_mistake() || pthread_setspecific(key, &key))
        _exit(15);
    return NULL;
}

/* One key is older than the library's, one younger: their destructors run before and after. */
static int end_threads_with_errors(void)
{
    EXPECT(pthread_key_create(&key, make_a_late_mistake) == 0);
    for (int age = 0; age < 2; age++) {
        for (int i = 0; i < SHORT_LIVES; i++) {
            pthread_t thread;
            EXPECT(pthread_create(&thread, NULL, live_shortly, NULL) == 0);
            EXPECT(pthread_join(thread, NULL) == 0);
        }
        EXPECT(!make_a_mistake());
        EXPECT(pthread_key_create(&key, make_a_late_mistake) == 0);
    }
    EXPECT(atomic_load(&mistakes) == 2 * SHORT_LIVES);
    return 0;
}

static const struct scenario {
    const char *name;
    int (*run)(void);
} scenarios[] = {
    {"return", return_from_main},
    {"exit", exit_among_threads},
    {"quick_exit", quick_exit_among_threads},
    {"pthread_exit", end_main_as_a_thread},
    {"handlers", use_it_in_exit_handlers},
    {"records", end_threads_with_errors},
    {"rings", return_from_main_with_rings},
    {"rings released", release_rings_in_exit_handlers},
};

static int run_scenario(const char *name)
{
    raffia_log_set_level(RAFFIA_LOG_ERROR);
    snprintf(directory.path, sizeof directory.path, "%s", getenv(DIRECTORY_VARIABLE));
    life_model_make(&model, &directory, name, 2 * MIB, 3);
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
        if (strcmp(scenarios[i].name, name) == 0)
            return scenarios[i].run();
    return child_complain(__FILE__, __LINE__, name);
}

/* ---- tests ---------------------------------------------------------------------------------- */

static int become(void *name)
{
    return child_become(name);
}

static void expect_success(const char *name)
{
    char argument[32];
    snprintf(argument, sizeof argument, "%s", name);
    assert_int_equal(child_run(become, argument), 0);
}

static void b8_main_may_return_with_threads_at_work(void **state)
{
    (void)state;
    expect_success("return");
}

static void b8_any_thread_may_exit_with_others_at_work(void **state)
{
    (void)state;
    expect_success("exit");
    expect_success("quick_exit");
    expect_success("pthread_exit");
}

static void b8_exit_handlers_may_use_the_library(void **state)
{
    (void)state;
    expect_success("handlers");
}

static void b8_the_process_may_end_with_rings_at_work(void **state)
{
    (void)state;
    expect_success("rings");
    expect_success("rings released");
}

static void threads_end_while_they_hold_errors(void **state)
{
    (void)state;
    expect_success("records");
}

static int make_directory(void **state)
{
    (void)state;
    test_directory_make(&directory);
    return setenv(DIRECTORY_VARIABLE, directory.path, 1);
}

static int remove_directory(void **state)
{
    (void)state;
    test_directory_remove(&directory);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(b8_main_may_return_with_threads_at_work),
        cmocka_unit_test(b8_any_thread_may_exit_with_others_at_work),
        cmocka_unit_test(b8_exit_handlers_may_use_the_library),
        cmocka_unit_test(b8_the_process_may_end_with_rings_at_work),
        cmocka_unit_test(threads_end_while_they_hold_errors),
    };
    if (argc == 2)
        return run_scenario(argv[1]);
    return cmocka_run_group_tests_name("life exit", tests, make_directory, remove_directory);
}
