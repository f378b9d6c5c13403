/*
 * Limits of control groups, met in the middle of things: an error or a success, and nobody is
 * killed for it.
 */
#include "child.h"
#include "driver/hugetlb_pages.h"
#include "memory_group.h"
#include "models.h"
#include "support/cmocka.h"

#include <raffia/log.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { STEPS = 14, TOGETHER = 3, ROUNDS = 4, PAGES = 8, ALLOWED_PAGES = 3, COME_TRUE = 42 };

#define MODEL_BYTES (16 * MIB)

static struct test_directory directory;
static struct life_model models[TOGETHER];

/* COME_TRUE if the load worked, 0 if it was refused for want of memory. */
static int load_in_the_group(void *options)
{
    EXPECT(memory_group_enter());
    const raffia_status status = life_load_once(&models[0], options);
    EXPECT(!status || status == RAFFIA_ERROR_OUT_OF_MEMORY);
    EXPECT(!status || strstr(raffia_last_error(), "control group"));
    return status ? 0 : COME_TRUE;
}

static void need_group(void)
{
    if (memory_group_make())
        return;
    print_message("no control group with a memory limit can be made\n");
    skip();
}

static int remove_group(void **state)
{
    (void)state;
    hugetlb_pages_restore();
    memory_group_remove();
    return 0;
}

/* From too little for the model to enough for everything a load takes beside it. */
static void load_under_rising_limits(raffia_load_options options)
{
    int refused = 0, worked = 0, killed = 0;
    for (size_t i = 0; i < STEPS; i++) {
        const size_t limit = MODEL_BYTES - 2 * MIB + i * MIB / 2;
        assert_true(memory_group_limit(limit));
        const int end = child_run(load_in_the_group, &options);
        print_message("pages %d reader %d limit %zu: %d\n", options.pages, options.reader,
                      limit / KIB, end);
        if (end != 0 && end != COME_TRUE) {
            print_error("with a limit of %zu KiB the child ended with %d\n", limit / KIB, end);
            killed++;
        }
        refused += end == 0;
        worked += end == COME_TRUE;
    }
    assert_int_equal(killed, 0);
    assert_true(refused > 0 && worked > 0);
}

static void b8_a_load_at_the_memory_limit_fails_or_works_but_is_not_killed(void **state)
{
    (void)state;
    need_group();
    /* Reserved pages are no part of the group's memory. */
    (void)hugetlb_pages_set(0);
    for (int i = 0; i < 4; i++)
        load_under_rising_limits(
            LOAD_OPTIONS(.pages = i & 1 ? RAFFIA_PAGES_TRY : RAFFIA_PAGES_OFF,
                         .reader = i & 2 ? RAFFIA_READER_DIRECT : RAFFIA_READER_BUFFERED,
                         .threads = 4));
}

/* ---- several at once ------------------------------------------------------------------------ */

struct loader {
    pthread_t thread;
    const struct life_model *model;
    raffia_status status;
};

static void *load_often(void *argument)
{
    struct loader *loader = argument;
    const raffia_load_options options = LOAD_OPTIONS(.pages = RAFFIA_PAGES_OFF, .threads = 2);
    for (int i = 0; i < ROUNDS; i++) {
        loader->status = life_load_once(loader->model, &options);
        if (loader->status && loader->status != RAFFIA_ERROR_OUT_OF_MEMORY)
            break;
    }
    return NULL;
}

static int load_together_in_the_group(void *unused)
{
    (void)unused;
    struct loader loaders[TOGETHER];
    EXPECT(memory_group_enter());
    for (int i = 0; i < TOGETHER; i++) {
        loaders[i] = (struct loader){.model = &models[i]};
        EXPECT(pthread_create(&loaders[i].thread, NULL, load_often, &loaders[i]) == 0);
    }
    for (int i = 0; i < TOGETHER; i++) {
        pthread_join(loaders[i].thread, NULL);
        EXPECT(!loaders[i].status || loaders[i].status == RAFFIA_ERROR_OUT_OF_MEMORY);
    }
    return 0;
}

/* Each model fits into the limit, two do not: threads that look for room at the same moment all
 * find it. */
static void b13_loads_that_do_not_fit_together_are_refused_not_killed(void **state)
{
    (void)state;
    need_group();
    for (size_t more = 6; more <= 14; more += 2) {
        assert_true(memory_group_limit(MODEL_BYTES + more * MIB));
        assert_int_equal(child_run(load_together_in_the_group, NULL), 0);
    }
}

/* ---- reserved pages ------------------------------------------------------------------------- */

struct growth {
    char procs[256];
};

static int grow_in_the_group(void *context)
{
    const struct growth *growth = context;
    const int fd = open(growth->procs, O_WRONLY | O_CLOEXEC);
    EXPECT(fd >= 0 && write(fd, "0", 1) == 1);
    close(fd);
    raffia_pool *pool;
    void *blocks[ALLOWED_PAGES + 1] = {NULL};
    EXPECT(!raffia_pool_create(&POOL_OPTIONS(.pages = RAFFIA_PAGES_ON, .initial_bytes = 2 * MIB,
                                             .maximum_bytes = PAGES * 2 * MIB,
                                             .chunk_bytes = 2 * MIB, .granule = RAFFIA_NONE),
                               &pool));
    for (int i = 0; i < ALLOWED_PAGES; i++) {
        EXPECT(!raffia_pool_alloc(pool, 2 * MIB, 0, &blocks[i]));
        memset(blocks[i], 1, 2 * MIB);
    }
    EXPECT(raffia_pool_alloc(pool, 2 * MIB, 0, &blocks[ALLOWED_PAGES]) ==
           RAFFIA_ERROR_OUT_OF_MEMORY);
    EXPECT(strstr(raffia_last_error(), "control group"));
    EXPECT(!raffia_pool_check(pool));
    EXPECT(!raffia_pool_free(pool, blocks[0]));
    EXPECT(!raffia_pool_alloc(pool, 2 * MIB, 0, &blocks[0]));
    for (int i = 0; i < ALLOWED_PAGES; i++)
        EXPECT(!raffia_pool_free(pool, blocks[i]));
    EXPECT(!raffia_pool_check(pool));
    raffia_pool_release(pool);
    return 0;
}

static void grow_to_the_limit(const char *suffix)
{
    if (!hugetlb_pages_set(PAGES)) {
        print_message("the machine's pool of 2 MiB pages cannot be set to %d pages\n", PAGES);
        skip();
    }
    struct growth growth;
    if (!hugetlb_group_make(suffix, ALLOWED_PAGES * 2 * MIB, growth.procs)) {
        print_message("no control group with a hugetlb limit can be made\n");
        skip();
    }
    const int end = child_run(grow_in_the_group, &growth);
    hugetlb_group_remove();
    assert_int_equal(end, 0);
    assert_int_equal(hugetlb_pages_available(), PAGES);
}

static int restore_pages(void **state)
{
    (void)state;
    hugetlb_pages_restore();
    return 0;
}

static void b8_a_pool_that_grows_to_the_limit_of_pages_is_refused_more(void **state)
{
    (void)state;
    grow_to_the_limit("max");
}

static void b8_a_pool_that_grows_to_the_limit_of_reservations_is_refused_more(void **state)
{
    (void)state;
    grow_to_the_limit("rsvd.max");
}

static int make_models(void **state)
{
    (void)state;
    raffia_log_set_level(RAFFIA_LOG_OFF);
    test_directory_make(&directory);
    for (unsigned i = 0; i < TOGETHER; i++) {
        char name[32];
        snprintf(name, sizeof name, "model-%u", i);
        life_model_make(&models[i], &directory, name, MODEL_BYTES, i);
    }
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
        cmocka_unit_test_teardown(b8_a_load_at_the_memory_limit_fails_or_works_but_is_not_killed,
                                  remove_group),
        cmocka_unit_test_teardown(b13_loads_that_do_not_fit_together_are_refused_not_killed,
                                  remove_group),
        cmocka_unit_test_teardown(b8_a_pool_that_grows_to_the_limit_of_pages_is_refused_more,
                                  restore_pages),
        cmocka_unit_test_teardown(b8_a_pool_that_grows_to_the_limit_of_reservations_is_refused_more,
                                  restore_pages),
    };
    return cmocka_run_group_tests_name("life groups", tests, make_models, remove_models);
}
