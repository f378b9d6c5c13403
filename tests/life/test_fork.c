/* fork(): children of busy processes, and worker processes as data loaders make them. */
#include "child.h"
#include "core/sys.h"
#include "models.h"
#include "support/cmocka.h"
#include "support/random.h"

#include <raffia/config.h>
#include <raffia/log.h>
#include <raffia/umd.h>

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FORKS = 12, EPOCHS = 3, WORKERS = 4, BUSY_THREADS = 5 };

#define MARK 0x5a

static struct test_directory directory;
static struct life_model small, other;

/* What children find. */
struct scene {
    raffia_pool *pool;
    unsigned char *block; /* of one page, filled with MARK */
    size_t block_bytes;
    raffia_model *model; /* may be NULL */
};

/* A child is a process like any other: all of the library works in it, with objects of its own. */
static int live(void)
{
    raffia_pool *pool;
    void *block;
    EXPECT(!raffia_pool_create(
        &POOL_OPTIONS(.pages = RAFFIA_PAGES_OFF, .initial_bytes = 4 * MIB, .threads = 2), &pool));
    EXPECT(!raffia_pool_alloc(pool, 100 * KIB, 0, &block));
    memset(block, 1, 100 * KIB);
    EXPECT(!life_load_once(&small, &LOAD_OPTIONS(.pool = pool, .threads = 2)));
    EXPECT(!raffia_pool_free(pool, block));
    EXPECT(raffia_pool_free(pool, block) == RAFFIA_ERROR_BAD_ADDRESS);
    EXPECT(!raffia_pool_check(pool));
    raffia_pool_release(pool);
    EXPECT(!umd_huge_page_pool_init(0, 4 * MIB));
    block = umd_huge_page_alloc(0, 2 * MIB, 0);
    EXPECT(block && !umd_huge_page_free(0, block));
    EXPECT(!umd_huge_page_pool_destroy(0));
    EXPECT(!raffia_config_set("threads", "2"));
    raffia_fallback_count row;
    (void)raffia_fallbacks(&row, 1);
    return 0;
}

/* The parent's memory may be read, and that is all. */
static int look_at_the_inheritance(const struct scene *scene)
{
    void *none = NULL;
    raffia_model *model = NULL;
    EXPECT(raffia_pool_alloc(scene->pool, 1, 0, &none) == RAFFIA_ERROR_FORKED && !none);
    EXPECT(strstr(raffia_last_error(), "parent"));
    EXPECT(raffia_model_load(small.path.text, &LOAD_OPTIONS(.pool = scene->pool), &model) ==
           RAFFIA_ERROR_FORKED);
    EXPECT(!model);
    for (size_t i = 0; i < scene->block_bytes; i++)
        EXPECT(scene->block[i] == MARK);
    EXPECT(!scene->model || life_model_is_whole(&other, scene->model));
    EXPECT(!raffia_pool_free(scene->pool, scene->block));
    EXPECT(!raffia_pool_free(scene->pool, scene->block));
    raffia_model_release(scene->model);
    raffia_pool_release(scene->pool);
    raffia_pool_release(scene->pool);
    return 0;
}

static int be_a_child(void *context)
{
    const int failed = look_at_the_inheritance(context);
    return failed ? failed : live();
}

static void scene_make(struct scene *scene)
{
    void *block;
    scene->pool = life_pool_make(&POOL_OPTIONS(.name = "parents", .pages = RAFFIA_PAGES_OFF,
                                               .initial_bytes = 2 * MIB, .maximum_bytes = 32 * MIB,
                                               .chunk_bytes = 2 * MIB));
    scene->block_bytes = 4 * KIB;
    assert_ok(raffia_pool_alloc(scene->pool, scene->block_bytes, 0, &block));
    scene->block = memset(block, MARK, scene->block_bytes);
}

static void scene_end(struct scene *scene)
{
    for (size_t i = 0; i < scene->block_bytes; i++)
        assert_int_equal(scene->block[i], MARK);
    assert_ok(raffia_pool_free(scene->pool, scene->block));
    life_pool_end(scene->pool);
}

/* ---- busy threads --------------------------------------------------------------------------- */

struct busy {
    raffia_pool *pool;
    unsigned number;
    bool failed;
    char complaint[1000];
};

static atomic_bool stop;

static void complain(struct busy *busy, const char *what)
{
    busy->failed = true;
    snprintf(busy->complaint, sizeof busy->complaint, "%s: %s", what, raffia_last_error());
}

static void allocate_and_trim(struct busy *busy, struct test_random *random)
{
    void *block;
    const size_t bytes = test_random_size(random, MIB);
    if (raffia_pool_alloc(busy->pool, bytes, 0, &block))
        complain(busy, "an allocation failed");
    else if (raffia_pool_free(busy->pool, block))
        complain(busy, "a free failed");
    if (test_random_below(random, 8) == 0 && raffia_pool_trim(busy->pool, 0, NULL))
        complain(busy, "a trim failed");
}

static void use_device_numbers(struct busy *busy)
{
    if (umd_huge_page_pool_init(0, 4 * MIB)) {
        complain(busy, "a pool by device number failed");
        return;
    }
    void *block = umd_huge_page_alloc(0, MIB, 0);
    if (!block || umd_huge_page_free(0, block) || umd_huge_page_pool_destroy(0))
        complain(busy, "a call by device number failed");
}

static void *keep_busy(void *argument)
{
    struct busy *busy = argument;
    struct test_random random = {busy->number};
    while (!atomic_load(&stop) && !busy->failed) {
        if (busy->number == 0) {
            if (life_load_once(&other, &LOAD_OPTIONS(.pool = busy->pool, .threads = 2)))
                complain(busy, "a load failed");
        } else if (busy->number == 1) {
            if (raffia_config_set("pages", "perhaps") != RAFFIA_ERROR_INVALID_ARGUMENT ||
                raffia_pool_free(busy->pool, &random) != RAFFIA_ERROR_BAD_ADDRESS)
                complain(busy, "a mistake went through");
        } else if (busy->number == 2) {
            use_device_numbers(busy);
        } else {
            allocate_and_trim(busy, &random);
        }
    }
    return NULL;
}

static void b8_children_of_busy_threads_neither_hang_nor_touch_the_pool(void **state)
{
    (void)state;
#ifdef __SANITIZE_ADDRESS__
    /* Its allocator does not let go of its locks in the child: malloc() then waits for ever. */
    print_message("AddressSanitizer cannot be forked while other threads allocate\n");
    skip();
#endif
    if (SANITIZED)
        skip();
    struct scene scene = {0};
    scene_make(&scene);
    pthread_t threads[BUSY_THREADS];
    struct busy busy[BUSY_THREADS];
    atomic_store(&stop, false);
    for (unsigned i = 0; i < BUSY_THREADS; i++) {
        busy[i] = (struct busy){.pool = scene.pool, .number = i};
        assert_int_equal(pthread_create(&threads[i], NULL, keep_busy, &busy[i]), 0);
    }
    int failed = 0;
    for (int i = 0; i < FORKS && !failed; i++)
        failed = child_run(be_a_child, &scene);
    atomic_store(&stop, true);
    for (unsigned i = 0; i < BUSY_THREADS; i++)
        pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < BUSY_THREADS; i++)
        if (busy[i].failed)
            fail_msg("thread %u: %s", i, busy[i].complaint);
    assert_int_equal(failed, 0);
    scene_end(&scene);
}

/* ---- a load under way ----------------------------------------------------------------------- */

static sem_t reading, go_on;

/* Holds the first read back until the children have come and gone. */
static int hold_a_read(int fd, off_t offset, size_t *bytes)
{
    (void)fd;
    (void)offset;
    (void)bytes;
    sys_set_read_hook(NULL);
    sem_post(&reading);
    while (sem_wait(&go_on))
        ;
    return 0;
}

static void *load_slowly(void *argument)
{
    return (void *)(intptr_t)life_load_once(&small, &LOAD_OPTIONS(.pool = argument, .threads = 1));
}

static void b8_a_child_forked_in_the_middle_of_a_load_loads_by_itself(void **state)
{
    (void)state;
    if (SANITIZED)
        skip();
    struct scene scene = {0};
    scene_make(&scene);
    sem_init(&reading, 0, 0);
    sem_init(&go_on, 0, 0);
    sys_set_read_hook(hold_a_read);
    pthread_t thread;
    void *result;
    assert_int_equal(pthread_create(&thread, NULL, load_slowly, scene.pool), 0);
    while (sem_wait(&reading))
        ;
    const int failed = child_run(be_a_child, &scene);
    sem_post(&go_on);
    pthread_join(thread, &result);
    assert_int_equal(failed, 0);
    assert_int_equal((intptr_t)result, RAFFIA_OK);
    scene_end(&scene);
}

/* ---- workers -------------------------------------------------------------------------------- */

static int be_a_nested_worker(void *context)
{
    raffia_pool *fathers = context;
    void *none;
    EXPECT(raffia_pool_alloc(fathers, 1, 0, &none) == RAFFIA_ERROR_FORKED);
    raffia_pool_release(fathers);
    return live();
}

struct work {
    struct scene *scene;
    int number;
};

/* The odd ones exit, which runs whatever libraries registered for it; the even ones do not, and let
 * go of all they inherited first. One of them forks again, with a pool of its own between it and
 * its parent's. */
static int be_a_worker(void *context)
{
    const struct work *work = context;
    int failed = !life_model_is_whole(&other, work->scene->model);
    raffia_pool *pool = NULL;
    if (!failed && work->number == 0) {
        failed = raffia_pool_create(&POOL_OPTIONS(.initial_bytes = 2 * MIB), &pool) != RAFFIA_OK ||
                 child_run(be_a_nested_worker, pool) != 0 || raffia_pool_check(pool) != RAFFIA_OK;
        raffia_pool_release(pool);
    }
    if (!failed && work->number % 2 == 0)
        failed = look_at_the_inheritance(work->scene);
    if (!failed)
        failed = live();
    if (work->number % 2)
        exit(failed);
    return failed;
}

static void use_workers(const raffia_load_options *options)
{
    struct scene scene = {0};
    scene_make(&scene);
    raffia_load_options into = *options;
    if (!into.pages)
        into.pool = scene.pool;
    assert_ok(life_load(&other, &into, &scene.model));
    const raffia_pool_stats before = life_pool_stats(scene.pool);
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        struct work work[WORKERS];
        pid_t workers[WORKERS];
        for (int i = 0; i < WORKERS; i++) {
            work[i] = (struct work){&scene, i};
            workers[i] = child_start(be_a_worker, &work[i]);
        }
        for (int i = 0; i < WORKERS; i++)
            assert_int_equal(child_wait(workers[i]), 0);
        assert_true(life_model_is_whole(&other, scene.model));
        assert_ok(raffia_pool_check(scene.pool));
    }
    const raffia_pool_stats after = life_pool_stats(scene.pool);
    assert_int_equal(after.live_blocks, before.live_blocks);
    assert_int_equal(after.frees, before.frees);
    assert_int_equal(after.driver_calls, before.driver_calls);
    raffia_model_release(scene.model);
    scene_end(&scene);
}

static void b8_workers_read_a_model_in_the_parents_pool(void **state)
{
    (void)state;
    use_workers(&LOAD_OPTIONS(.threads = 2));
}

static void b8_workers_read_a_model_with_a_pool_of_its_own(void **state)
{
    (void)state;
    use_workers(&LOAD_OPTIONS(.threads = 2, .pages = RAFFIA_PAGES_TRY));
}

static int make_models(void **state)
{
    (void)state;
    raffia_log_set_level(RAFFIA_LOG_ERROR);
    assert_ok(raffia_config_set("driver", "host"));
    assert_ok(raffia_config_set("pages", "off"));
    test_directory_make(&directory);
    life_model_make(&small, &directory, "small", 300 * KIB, 1);
    life_model_make(&other, &directory, "other", 3 * MIB, 2);
    return 0;
}

static int remove_models(void **state)
{
    (void)state;
    test_directory_remove(&directory);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(b8_children_of_busy_threads_neither_hang_nor_touch_the_pool),
        cmocka_unit_test(b8_a_child_forked_in_the_middle_of_a_load_loads_by_itself),
        cmocka_unit_test(b8_workers_read_a_model_in_the_parents_pool),
        cmocka_unit_test(b8_workers_read_a_model_with_a_pool_of_its_own),
    };
    return cmocka_run_group_tests_name("life fork", tests, make_models, remove_models);
}
