/*
 * Loads into a real GPU: every byte in its place, nothing left afterwards, and what goes wrong goes
 * wrong cleanly.
 */
#include "core/memory.h"
#include "core/sys.h"
#include "driver/gpu_test.h"
#include "life/child.h"
#include "load_fixture.h"
#include "support/cmocka.h"
#include "support/process_memory.h"

#include <raffia/log.h>
#include <raffia/pool.h>

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define DEVICE "cuda:0"

/* What the context and its streams may take or keep for themselves beside the loads. */
#define SLACK_BYTES (32 * MIB)

static struct test_directory directory;
static struct test_path path, tiny;

/* Larger than a ring of slots, with one tensor that begins and ends in the middle of one. */
static struct model_file_tensor tensors[] = {
    {.name = "large", .dtype = RAFFIA_DTYPE_U8, .rank = 1, .shape = {100 * 1000 * 1000}},
    {.name = "odd", .dtype = RAFFIA_DTYPE_U8, .rank = 2, .shape = {3, 333}},
    {.name = "middle", .dtype = RAFFIA_DTYPE_U8, .rank = 1, .shape = {17 * 1000 * 1000 + 1}},
    {.name = "empty", .dtype = RAFFIA_DTYPE_U8, .rank = 1, .shape = {0}},
};
static struct model_file_tensor tiny_tensor;

enum { TENSORS = sizeof tensors / sizeof tensors[0] };

static int make_models(void **state)
{
    (void)state;
    raffia_log_set_level(RAFFIA_LOG_OFF);
    test_directory_make(&directory);
    path = test_path_in(&directory, "model.safetensors");
    tiny = test_path_in(&directory, "tiny.safetensors");
    model_file_write(path.text, tensors, TENSORS, 4096, 0, 0);
    tiny_tensor = model_file_bytes("one", 3 * MIB + 5);
    model_file_write(tiny.text, &tiny_tensor, 1, 4096, 0, 0);
    return 0;
}

static int remove_models(void **state)
{
    (void)state;
    raffia_load_release_staging();
    test_directory_remove(&directory);
    return 0;
}

static void check(const raffia_model *model, const struct model_file_tensor *written)
{
    const raffia_tensor *tensor = raffia_model_tensor(model, written->name);
    assert_non_null(tensor);
    assert_int_equal(tensor->bytes, written->bytes);
    unsigned char *copy = malloc(written->bytes + 1);
    assert_non_null(copy);
    assert_ok(raffia_model_read(model, tensor, 0, copy, written->bytes));
    for (size_t i = 0; i < written->bytes; i++)
        if (copy[i] != model_file_byte(written->offset + i, 0))
            fail_msg("tensor '%s': byte %zu of %zu is wrong", written->name, i, written->bytes);
    free(copy);
}

static size_t device_free(void)
{
    raffia_device_info info;
    assert_ok(cuda_driver.device_info(0, &info));
    return info.free_bytes;
}

/* ---- every way ------------------------------------------------------------------------------ */

static void load_and_check(raffia_load_options options)
{
    raffia_model *model;
    assert_ok(raffia_model_load(path.text, &options, &model));
    for (size_t i = 0; i < TENSORS; i++)
        check(model, &tensors[i]);
    const raffia_load_report *report = raffia_model_report(model);
    assert_string_equal(report->pinned, "registered");
    assert_int_equal(report->bytes_buffered + report->bytes_direct, report->bytes_total);
    raffia_model_release(model);
}

/* The same memory again and again would pass a load that does nothing. */
static void spoil(raffia_pool *pool, size_t bytes)
{
    void *block;
    assert_ok(raffia_pool_alloc(pool, bytes, 0, &block));
    assert_ok(cuda_driver.fill(0, NULL, block, 0xa5, bytes));
    assert_ok(cuda_driver.stream_wait(0, NULL));
    assert_ok(raffia_pool_free(pool, block));
}

static void every_kind_of_load_puts_each_byte_in_its_place(void **state)
{
    static const raffia_reader readers[] = {RAFFIA_READER_AUTO, RAFFIA_READER_BUFFERED,
                                            RAFFIA_READER_DIRECT};
    static const raffia_pages_mode modes[] = {RAFFIA_PAGES_OFF, RAFFIA_PAGES_TRY};
    const size_t room = 128 * MIB;
    raffia_pool *pool;
    (void)state;
    assert_ok(raffia_pool_create(&(raffia_pool_options){.struct_size = sizeof(raffia_pool_options),
                                                        .device = DEVICE,
                                                        .initial_bytes = room},
                                 &pool));
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++) {
        for (size_t k = 0; k < sizeof modes / sizeof *modes; k++)
            load_and_check(LOAD_OPTIONS(.device = DEVICE, .pages = modes[k], .reader = readers[i]));
        spoil(pool, room);
        load_and_check(LOAD_OPTIONS(.pool = pool, .reader = readers[i]));
        (void)model_file_chill(path.text); /* the next one finds it cold, where that can be had */
        spoil(pool, room);
        load_and_check(LOAD_OPTIONS(.pool = pool, .reader = readers[i], .threads = 3,
                                    .budget_bytes = 5 * MIB));
    }
    raffia_pool_release(pool);
}

/* ---- again and again ------------------------------------------------------------------------ */

static void load_tiny(int round)
{
    raffia_model *model;
    assert_ok(raffia_model_load(
        tiny.text, &LOAD_OPTIONS(.device = DEVICE, .pages = RAFFIA_PAGES_TRY), &model));
    if (round % 50 == 0)
        check(model, &tiny_tensor);
    raffia_model_release(model);
}

static void a_thousand_loads_leave_memory_where_it_was(void **state)
{
    enum { WARM_UP = 20, LOADS = 1000 };
    (void)state;
    for (int i = 0; i < WARM_UP; i++)
        load_tiny(i);
    const size_t device = device_free(), host = process_memory("RssAnon");
    const long live = core_memory_live();
    for (int i = 0; i < LOADS; i++)
        load_tiny(i);
    const size_t device_after = device_free(), host_after = process_memory("RssAnon");
    printf("free on the device %zu before, %zu after; anonymous memory %zu before, %zu after\n",
           device, device_after, host, host_after);
    assert_int_equal(core_memory_live(), live);
    assert_true(device_after + MIB > device);
    assert_true(host_after < host + 4 * MIB);
}

/* ---- what goes wrong ------------------------------------------------------------------------ */

/* Takes all of the device but for less than the model needs. */
static driver_chunk occupy(size_t leave)
{
    raffia_device_info info;
    raffia_fallback_reason reason;
    driver_chunk chunk;
    assert_ok(cuda_driver.device_info(0, &info));
    const size_t page = info.pages[0].size;
    const struct driver_chunk_spec spec = {.bytes = (info.free_bytes - leave) / page * page,
                                           .page_size = page,
                                           .kind = RAFFIA_PAGE_DEVICE,
                                           .numa_node = -1,
                                           .threads = 1};
    assert_ok(cuda_driver.chunk_create(0, &spec, &chunk, &reason));
    return chunk;
}

static void a_full_device_refuses_a_load_and_loses_nothing(void **state)
{
    (void)state;
    load_tiny(0); /* the ring stands */
    const driver_chunk chunk = occupy(64 * MIB);
    const size_t before = device_free();
    for (int mode = 0; mode < 2; mode++) {
        raffia_model *model = NULL;
        const raffia_load_options options =
            LOAD_OPTIONS(.device = DEVICE, .pages = mode ? RAFFIA_PAGES_TRY : RAFFIA_PAGES_OFF);
        assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, raffia_model_load(path.text, &options, &model));
        printf("%s\n", raffia_last_error());
        assert_null(model);
        assert_true(device_free() + MIB > before);
        load_tiny(0); /* what fits is served */
    }
    assert_ok(cuda_driver.chunk_destroy(0, chunk));
    load_and_check(LOAD_OPTIONS(.device = DEVICE));
}

static void a_device_that_is_not_there_is_named(void **state)
{
    raffia_model *model = NULL;
    (void)state;
    assert_status(RAFFIA_ERROR_NOT_FOUND,
                  raffia_model_load(path.text, &LOAD_OPTIONS(.device = "cuda:77"), &model));
    assert_error_mentions("cuda:77");
    assert_null(model);
}

static int load_in_child(void *context)
{
    (void)context;
    raffia_model *model = NULL;
    EXPECT(raffia_model_load(path.text, &LOAD_OPTIONS(.device = DEVICE), &model) ==
           RAFFIA_ERROR_FORKED);
    EXPECT(!model);
    raffia_load_release_staging();
    EXPECT(!raffia_model_load(path.text, &LOAD_OPTIONS(.device = "host"), &model));
    raffia_model_release(model);
    return 0;
}

static void a_forked_child_is_refused_and_harms_nothing(void **state)
{
    raffia_model *model;
    (void)state;
    assert_ok(raffia_model_load(path.text, &LOAD_OPTIONS(.device = DEVICE), &model));
    assert_int_equal(child_run(load_in_child, NULL), 0);
    check(model, &tensors[2]);
    raffia_model_release(model);
    load_and_check(LOAD_OPTIONS(.device = DEVICE));
}

/* Shared with the child that is killed. */
static atomic_uint *reads;

static int stop_at_the_fourth_read(int fd, off_t offset, size_t *bytes)
{
    (void)fd, (void)offset, (void)bytes;
    if (atomic_fetch_add(reads, 1) >= 3)
        for (;;)
            pause();
    return 0;
}

static const char victim_word[] = "be-killed";

/* Fresh, since what a fork inherits of CUDA is of no use. Its counter is its standard input. */
static int be_the_victim(void)
{
    reads = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, STDIN_FILENO, 0);
    const char *model_path = getenv("GPU_LOAD_MODEL");
    raffia_model *model;
    if (reads == MAP_FAILED || !model_path)
        return 1;
    sys_set_read_hook(stop_at_the_fourth_read);
    (void)!raffia_model_load(
        model_path, &LOAD_OPTIONS(.device = DEVICE, .pages = RAFFIA_PAGES_TRY, .threads = 4),
        &model);
    return 2;
}

static int start_the_victim(void *context)
{
    EXPECT(dup2(*(int *)context, STDIN_FILENO) == STDIN_FILENO);
    EXPECT(!setenv("GPU_LOAD_MODEL", path.text, 1));
    return child_become(victim_word);
}

static void a_load_that_is_killed_leaves_nothing_on_the_device(void **state)
{
    enum { TRIES = 500, PAUSE_US = 20000 };
    (void)state;
    int counter = memfd_create("reads", 0);
    assert_true(counter >= 0);
    assert_int_equal(ftruncate(counter, 4096), 0);
    reads = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, counter, 0);
    assert_true(reads != MAP_FAILED);
    const size_t before = device_free();
    const pid_t child = child_start(start_the_victim, &counter);
    for (int i = 0; atomic_load(reads) < 6 && i < TRIES; i++)
        usleep(PAUSE_US);
    assert_true(atomic_load(reads) >= 6);
    assert_true(device_free() + 100 * MIB < before); /* it has the model's memory */
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(child_wait(child), -SIGKILL);
    for (int i = 0; device_free() + SLACK_BYTES < before && i < TRIES; i++)
        usleep(PAUSE_US);
    assert_true(device_free() + SLACK_BYTES >= before);
    munmap(reads, 4096);
    close(counter);
    load_and_check(LOAD_OPTIONS(.device = DEVICE));
}

int main(int count, char **arguments)
{
    if (!gpu_test_has_device())
        return GPU_TEST_SKIPPED;
    if (count == 2 && !strcmp(arguments[1], victim_word))
        return be_the_victim();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_load_puts_each_byte_in_its_place),
        cmocka_unit_test(a_thousand_loads_leave_memory_where_it_was),
        cmocka_unit_test(a_full_device_refuses_a_load_and_loses_nothing),
        cmocka_unit_test(a_device_that_is_not_there_is_named),
        cmocka_unit_test(a_forked_child_is_refused_and_harms_nothing),
        cmocka_unit_test(a_load_that_is_killed_leaves_nothing_on_the_device),
    };
    return cmocka_run_group_tests_name("loads into a GPU", tests, make_models, remove_models) ? 1
                                                                                              : 0;
}
