/*
 * SIGKILL in the middle of things. Nothing that the library makes outlives its process: no page of
 * the machine's pool, no shared memory, no file.
 */
#include "child.h"
#include "core/sys.h"
#include "driver/hugetlb_pages.h"
#include "models.h"
#include "support/cmocka.h"
#include "support/random.h"

#include <raffia/log.h>

#include <dirent.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGES = 24, MODEL_PAGES = 6, KILLS = 12, SETTLE_TRIES = 500, SETTLE_US = 10000 };

static struct test_directory directory;
static struct life_model model;

/* Shared with the children. */
static struct shared {
    atomic_uint reads; /* begun */
    atomic_uint pools; /* begun */
} * shared;

static size_t entries(const char *path)
{
    DIR *listing = opendir(path);
    size_t count = 0;
    while (listing && readdir(listing))
        count++;
    if (listing)
        closedir(listing);
    return count;
}

struct machine {
    size_t shared_memory, files, pages;
};

/* While it is not ours alone the pool of pages tells nothing. */
static bool pages_are_ours;

static struct machine look(void)
{
    return (struct machine){entries("/dev/shm"), entries(directory.path),
                            pages_are_ours ? hugetlb_pages_available() : 0};
}

/* The kernel may still be taking the process apart when its end is reported. */
static void expect_all_back(const struct machine *before)
{
    struct machine now = look();
    for (int i = 0; i < SETTLE_TRIES && memcmp(&now, before, sizeof now) != 0; i++) {
        usleep(SETTLE_US);
        now = look();
    }
    assert_int_equal(now.pages, before->pages);
    assert_int_equal(now.shared_memory, before->shared_memory);
    assert_int_equal(now.files, before->files);
}

static void kill_and_look(pid_t child, const struct machine *before)
{
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(child_wait(child), -SIGKILL);
    expect_all_back(before);
}

static void wait_for(atomic_uint *counter, unsigned value)
{
    while (atomic_load(counter) < value)
        usleep(100);
}

/* ---- loading -------------------------------------------------------------------------------- */

#define WINDOW_BYTES (256 * KIB)

/* Readers stop at the third window, with memory in hand and half of the model in it. */
static int stop_at_the_third_read(int fd, off_t offset, size_t *bytes)
{
    (void)fd;
    (void)offset;
    (void)bytes;
    if (atomic_fetch_add(&shared->reads, 1) >= 2)
        for (;;)
            pause();
    return 0;
}

static int load(void *options)
{
    sys_set_read_hook(stop_at_the_third_read);
    EXPECT(!life_load_once(&model, options));
    return 0;
}

static void kill_a_load(raffia_pages_mode pages, raffia_reader reader)
{
    raffia_load_options options =
        LOAD_OPTIONS(.pages = pages, .reader = reader, .threads = 2, .window_bytes = WINDOW_BYTES);
    const struct machine before = look();
    atomic_store(&shared->reads, 0);
    const pid_t child = child_start(load, &options);
    wait_for(&shared->reads, 4); /* both readers are held */
    kill_and_look(child, &before);
}

static void b8_a_load_that_is_killed_leaves_nothing(void **state)
{
    (void)state;
    kill_a_load(RAFFIA_PAGES_OFF, RAFFIA_READER_BUFFERED);
    kill_a_load(RAFFIA_PAGES_OFF, RAFFIA_READER_DIRECT);
}

static void need_pages(void)
{
    pages_are_ours = hugetlb_pages_set(PAGES);
    if (!pages_are_ours) {
        print_message("the machine's pool of 2 MiB pages cannot be set to %d pages\n", PAGES);
        skip();
    }
}

static int restore_pages(void **state)
{
    (void)state;
    pages_are_ours = false;
    hugetlb_pages_restore();
    return 0;
}

static void b8_a_load_into_reserved_pages_that_is_killed_gives_them_back(void **state)
{
    (void)state;
    need_pages();
    kill_a_load(RAFFIA_PAGES_ON, RAFFIA_READER_BUFFERED);
    kill_a_load(RAFFIA_PAGES_ON, RAFFIA_READER_DIRECT);
}

/* ---- building a pool ------------------------------------------------------------------------ */

static int build_pools(void *options)
{
    for (;;) {
        raffia_pool *pool;
        atomic_fetch_add(&shared->pools, 1);
        EXPECT(!raffia_pool_create(options, &pool));
        raffia_pool_release(pool);
    }
}

/* Kills at a different moment each time. The last pools are then built by a process that has its
 * pages from the killed ones. */
static void kill_builders(const raffia_pool_options *options)
{
    struct test_random random = test_random_seeded("kill_builders");
    raffia_pool_options copy = *options;
    const struct machine before = look();
    for (int i = 0; i < KILLS; i++) {
        atomic_store(&shared->pools, 0);
        const pid_t child = child_start(build_pools, &copy);
        wait_for(&shared->pools, 1 + (unsigned)i % 3);
        usleep((useconds_t)test_random_below(&random, 8000));
        kill_and_look(child, &before);
    }
    life_pool_end(life_pool_make(options));
    expect_all_back(&before);
}

static void b8_building_a_pool_that_is_killed_gives_reserved_pages_back(void **state)
{
    (void)state;
    need_pages();
    kill_builders(&POOL_OPTIONS(.pages = RAFFIA_PAGES_ON, .initial_bytes = PAGES * 2 * MIB,
                                .chunk_bytes = 4 * MIB, .threads = 2));
}

static void b8_building_a_pool_to_share_that_is_killed_leaves_no_shared_memory(void **state)
{
    (void)state;
    kill_builders(&POOL_OPTIONS(.pages = RAFFIA_PAGES_OFF, .initial_bytes = 16 * MIB,
                                .chunk_bytes = 2 * MIB, .flags = RAFFIA_POOL_SHAREABLE));
}

static int prepare(void **state)
{
    (void)state;
    raffia_log_set_level(RAFFIA_LOG_ERROR);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    test_directory_make(&directory);
    life_model_make(&model, &directory, "model", MODEL_PAGES * 2 * MIB, 4);
    return shared == MAP_FAILED;
}

static int clean_up(void **state)
{
    (void)state;
    test_directory_remove(&directory);
    return munmap(shared, sizeof *shared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(b8_a_load_that_is_killed_leaves_nothing),
        cmocka_unit_test_teardown(b8_a_load_into_reserved_pages_that_is_killed_gives_them_back,
                                  restore_pages),
        cmocka_unit_test_teardown(b8_building_a_pool_that_is_killed_gives_reserved_pages_back,
                                  restore_pages),
        cmocka_unit_test(b8_building_a_pool_to_share_that_is_killed_leaves_no_shared_memory),
    };
    return cmocka_run_group_tests_name("life kill", tests, prepare, clean_up);
}
