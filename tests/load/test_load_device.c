/* Loads into memory that the CPU cannot touch: a stray access to it is a fault of this program. */
#include "copy/staging.h"
#include "core/fault.h"
#include "core/memory.h"
#include "core/sys.h"
#include "driver/sim/sim.h"
#include "load_fixture.h"
#include "support/cmocka.h"
#include "support/fault_loop.h"

#include <raffia/config.h>
#include <raffia/log.h>
#include <raffia/pool.h>

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define DATA_OFFSET 4096

enum { SMALL_MAX = 700 };

static struct test_directory directory;
static struct test_path path; /* of the model most tests load: one large tensor, some odd ones */
static struct model_file_tensor tensors[] = {
    {.name = "a", .dtype = RAFFIA_DTYPE_U8, .rank = 1, .shape = {1024 * 1024 + 256}},
    {.name = "b", .dtype = RAFFIA_DTYPE_U8, .rank = 2, .shape = {100, 700}},
    {.name = "c", .dtype = RAFFIA_DTYPE_U8, .rank = 1, .shape = {3}},
    {.name = "d", .dtype = RAFFIA_DTYPE_U8, .rank = 1, .shape = {0}},
    {.name = "e", .dtype = RAFFIA_DTYPE_U8, .rank = 1, .shape = {300 * 1024}},
};
enum { TENSORS = sizeof tensors / sizeof *tensors };

static void check_tensor(const raffia_model *model, const char *name, uint64_t offset, size_t bytes)
{
    const raffia_tensor *tensor = raffia_model_tensor(model, name);
    assert_non_null(tensor);
    assert_int_equal(tensor->bytes, bytes);
    if (bytes)
        assert_int_equal((uintptr_t)tensor->data % RAFFIA_TENSOR_ALIGNMENT, 0);
    unsigned char *copy = malloc(bytes + 1);
    assert_non_null(copy);
    copy[bytes] = 0x77;
    assert_ok(raffia_model_read(model, tensor, 0, copy, bytes));
    assert_int_equal(copy[bytes], 0x77);
    for (size_t i = 0; i < bytes; i++)
        if (copy[i] != model_file_byte(offset + i, 0))
            fail_msg("tensor '%s': byte %zu of %zu is wrong", name, i, bytes);
    free(copy);
}

static void check_all(const raffia_model *model)
{
    for (int i = 0; i < TENSORS; i++)
        check_tensor(model, tensors[i].name, tensors[i].offset, tensors[i].bytes);
}

static const raffia_load_report *load_and_check(const raffia_load_options *options,
                                                raffia_model **model_p)
{
    assert_ok(raffia_model_load(path.text, options, model_p));
    check_all(*model_p);
    const raffia_load_report *report = raffia_model_report(*model_p);
    assert_non_null(report->pinned);
    assert_true(report->bytes_copied >= report->bytes_total);
    assert_int_equal(report->bytes_buffered + report->bytes_direct, report->bytes_total);
    assert_int_equal(report->staging_bytes, report->slots * report->slot_bytes);
    return report;
}

static void every_way_of_reading_fills_the_device(void **state)
{
    (void)state;
    static const size_t budgets[] = {64 * KIB, 128 * KIB, 300 * KIB, 4 * MIB, 0};
    for (int reader = RAFFIA_READER_AUTO; reader <= RAFFIA_READER_DIRECT; reader++)
        for (unsigned threads = 1; threads <= 5; threads += 2)
            for (size_t i = 0; i < 5; i++) {
                raffia_model *model;
                const raffia_load_report *report =
                    load_and_check(&LOAD_OPTIONS(.device = "sim:0", .reader = (raffia_reader)reader,
                                                 .threads = threads, .budget_bytes = budgets[i],
                                                 .window_bytes = i % 2 ? 64 * KIB : 0),
                                   &model);
                assert_true(report->staging_bytes <= (budgets[i] ? budgets[i] : 64 * MIB));
                if (reader == RAFFIA_READER_DIRECT && test_direct_works(path.text))
                    assert_int_equal(report->bytes_direct, report->bytes_total);
                raffia_model_release(model);
            }
}

/* Tensors side by side, in the file as in memory, are one copy a slot. */
static void what_lies_together_is_copied_together(void **state)
{
    (void)state;
    struct test_path many = test_path_in(&directory, "many.safetensors");
    static struct model_file_tensor list[SMALL_MAX];
    for (int aligned = 0; aligned < 2; aligned++) {
        for (int i = 0; i < SMALL_MAX; i++) {
            char name[32];
            snprintf(name, sizeof name, "t%04d", i);
            list[i] = model_file_bytes(name, aligned ? 1024 : (size_t)(i * 13 % 1500 + 1));
        }
        model_file_write(many.text, list, SMALL_MAX, 4096, aligned ? 0 : 8, 0);
        raffia_model *model;
        assert_ok(raffia_model_load(
            many.text, &LOAD_OPTIONS(.device = "sim:0", .budget_bytes = 256 * KIB, .threads = 3),
            &model));
        for (int i = 0; i < SMALL_MAX; i++)
            check_tensor(model, list[i].name, list[i].offset, list[i].bytes);
        const raffia_load_report *report = raffia_model_report(model);
        if (aligned)
            assert_int_equal(report->copies, report->windows);
        else
            assert_true(report->copies <= SMALL_MAX + report->windows);
        raffia_model_release(model);
    }
}

static void slices_and_selections_get_there_too(void **state)
{
    (void)state;
    raffia_model *model;
    raffia_tensor_slice slice = {.name = "b", .dimension = 1, .begin = 3, .end = 400};
    const char *names[] = {"b", "c"};
    assert_ok(raffia_model_load(path.text,
                                &LOAD_OPTIONS(.device = "sim:0", .slices = &slice, .slice_count = 1,
                                              .names = names, .name_count = 2),
                                &model));
    const raffia_tensor *tensor = raffia_model_tensor(model, "b");
    assert_int_equal(tensor->bytes, 100 * 397);
    unsigned char row[397];
    for (size_t i = 0; i < 100; i++) {
        assert_ok(raffia_model_read(model, tensor, i * 397, row, 397));
        for (size_t k = 0; k < 397; k++)
            assert_int_equal(row[k], model_file_byte(tensors[1].offset + i * 700 + 3 + k, 0));
    }
    check_tensor(model, "c", tensors[2].offset, tensors[2].bytes);
    raffia_model_release(model);
}

static raffia_pool *make_pool(size_t bytes)
{
    raffia_pool *pool;
    assert_ok(raffia_pool_create(&(raffia_pool_options){.struct_size = sizeof(raffia_pool_options),
                                                        .device = "sim:0",
                                                        .initial_bytes = bytes,
                                                        .flags = RAFFIA_POOL_FIXED},
                                 &pool));
    return pool;
}

static void a_pool_of_the_caller_on_a_device_will_do(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool(4 * MIB);
    raffia_model *model;
    load_and_check(&LOAD_OPTIONS(.pool = pool), &model);
    raffia_model_release(model);
    /* No room in one piece: a block for each tensor, and nothing between them is written. */
    void *blocks[3];
    assert_ok(raffia_pool_alloc(pool, 1200 * KIB, 0, &blocks[0]));
    assert_ok(raffia_pool_alloc(pool, 1100 * KIB, 0, &blocks[1]));
    assert_ok(raffia_pool_alloc(pool, 1200 * KIB, 0, &blocks[2]));
    memset(sim_view(blocks[1]), 0x5c, 1100 * KIB);
    assert_ok(raffia_pool_free(pool, blocks[0]));
    assert_ok(raffia_pool_free(pool, blocks[2]));
    load_and_check(&LOAD_OPTIONS(.pool = pool, .threads = 3), &model);
    const unsigned char *untouched = sim_view(blocks[1]);
    for (size_t i = 0; i < 1100 * KIB; i++)
        assert_int_equal(untouched[i], 0x5c);
    raffia_model_release(model);
    assert_ok(raffia_pool_free(pool, blocks[1]));
    assert_ok(raffia_pool_check(pool));
    raffia_pool_release(pool);
}

/* A resource of device memory, as floor 5 will have them. */
static raffia_status resource_allocate(void *context, raffia_stream stream, size_t bytes,
                                       size_t alignment, void **address_p)
{
    (void)stream, (void)context;
    return alignment > 256 ? RAFFIA_ERROR_UNSUPPORTED : sim_driver.mem_alloc(0, bytes, address_p);
}

static void resource_deallocate(void *context, raffia_stream stream, void *address, size_t bytes,
                                size_t alignment)
{
    (void)stream, (void)context, (void)alignment;
    assert_ok(sim_driver.mem_free(0, address, bytes));
}

static unsigned resource_properties(void *context)
{
    (void)context;
    return RAFFIA_DEVICE_ACCESSIBLE;
}

static void a_resource_of_device_memory_will_do(void **state)
{
    (void)state;
    static const raffia_resource_ops ops = {.struct_size = sizeof ops,
                                            .allocate = resource_allocate,
                                            .deallocate = resource_deallocate,
                                            .properties = resource_properties};
    raffia_model *model;
    load_and_check(&LOAD_OPTIONS(.device = "sim:0", .resource = {&ops, NULL}), &model);
    raffia_model_release(model);
    assert_status(RAFFIA_ERROR_UNSUPPORTED,
                  raffia_model_load(path.text,
                                    &LOAD_OPTIONS(.device = "host", .resource = {&ops, NULL}),
                                    &model));
    assert_error_mentions("device 'host'");
}

static void checksums_are_those_of_the_same_model_on_the_host(void **state)
{
    (void)state;
    raffia_model *here, *there;
    assert_ok(raffia_model_load(
        path.text, &LOAD_OPTIONS(.device = "host", .checksum = RAFFIA_CHECKSUM_XXH3), &here));
    load_and_check(&LOAD_OPTIONS(.device = "sim:0", .checksum = RAFFIA_CHECKSUM_XXH3, .threads = 3,
                                 .budget_bytes = 256 * KIB),
                   &there);
    for (size_t i = 0; i < TENSORS; i++)
        assert_int_equal(raffia_model_tensor_at(here, i)->checksum,
                         raffia_model_tensor_at(there, i)->checksum);
    raffia_model_release(here);
    raffia_model_release(there);
}

/* SPEC L3: what is pinned and what is allocated stay below the budget, whatever the model's size.
 */
static void l3_host_memory_is_bounded_by_the_budget(void **state)
{
    (void)state;
    struct test_path large = test_path_in(&directory, "large.safetensors");
    struct model_file_tensor one = model_file_bytes("one", 40 * MIB);
    model_file_write(large.text, &one, 1, 4096, 0, 0);
    raffia_model *model;
    assert_ok(raffia_model_load(
        large.text, &LOAD_OPTIONS(.device = "sim:0", .budget_bytes = 2 * MIB, .threads = 8),
        &model));
    struct sim_usage usage;
    sim_query(0, &usage);
    assert_int_equal(usage.registered_bytes, 2 * MIB);
    assert_int_equal(raffia_model_report(model)->staging_bytes, 2 * MIB);
    check_tensor(model, "one", one.offset, one.bytes);
    raffia_model_release(model);
    unlink(large.text);
}

/* Of the process, in bytes. The sim's chunks are memory files, and so not among it. */
static size_t anonymous_memory(void)
{
    FILE *status = fopen("/proc/self/status", "r");
    assert_non_null(status);
    char line[256];
    size_t kb = 0;
    while (fgets(line, sizeof line, status))
        if (sscanf(line, "RssAnon: %zu kB", &kb) == 1)
            break;
    fclose(status);
    return kb * KIB;
}

static _Atomic size_t most_memory;
static atomic_uint reads_seen;

static int note_memory(int fd, off_t offset, size_t *bytes)
{
    (void)fd, (void)offset, (void)bytes;
    if (atomic_fetch_add(&reads_seen, 1) % 8 == 0) {
        size_t now = anonymous_memory();
        if (now > atomic_load(&most_memory))
            atomic_store(&most_memory, now);
    }
    return 0;
}

/* The same as the kernel counts it, with room for the stacks of threads and the heap. */
static void l3_the_process_grows_by_no_more_than_the_budget_and_a_little(void **state)
{
    (void)state;
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
    skip(); /* their own memory grows */
#endif
    struct test_path large = test_path_in(&directory, "large.safetensors");
    struct model_file_tensor one = model_file_bytes("one", 160 * MIB);
    model_file_write(large.text, &one, 1, 4096, 0, 0);
    raffia_model *model;
    size_t before = anonymous_memory();
    atomic_store(&most_memory, 0);
    sys_set_read_hook(note_memory);
    raffia_status status = raffia_model_load(
        large.text, &LOAD_OPTIONS(.device = "sim:0", .budget_bytes = 8 * MIB, .threads = 4),
        &model);
    sys_set_read_hook(NULL);
    unlink(large.text);
    assert_ok(status);
    assert_true(atomic_load(&reads_seen) > 80);
    assert_true(atomic_load(&most_memory) > 0);
    assert_true(atomic_load(&most_memory) < before + 8 * MIB + 64 * MIB);
    raffia_model_release(model);
}

static void the_slot_size_is_a_setting(void **state)
{
    (void)state;
    raffia_model *model;
    assert_ok(raffia_config_set("load_slot", "128KiB"));
    const raffia_load_report *report = load_and_check(&LOAD_OPTIONS(.device = "sim:0"), &model);
    assert_int_equal(report->slot_bytes, 128 * KIB);
    assert_int_equal(report->slots, 8);
    raffia_model_release(model);
    assert_ok(raffia_config_set("load_slot", NULL));
}

static void the_ring_is_kept_from_load_to_load(void **state)
{
    (void)state;
    raffia_model *model;
    const raffia_load_report *report = load_and_check(&LOAD_OPTIONS(.device = "sim:0"), &model);
    assert_true(report->ring_seconds > 0);
    raffia_model_release(model);
    long registered = sim_calls("host_register");
    report = load_and_check(&LOAD_OPTIONS(.device = "sim:0"), &model);
    assert_true(report->ring_seconds == 0);
    assert_int_equal(sim_calls("host_register"), registered);
    raffia_model_release(model);
    raffia_load_release_staging();
    assert_true(sim_is_idle());
}

static void a_thousand_loads_leave_nothing(void **state)
{
    (void)state;
    raffia_model *model;
    raffia_load_options options =
        LOAD_OPTIONS(.device = "sim:0", .threads = 2, .budget_bytes = 256 * KIB);
    long live = core_memory_live();
    for (int i = 0; i < 1000; i++) {
        assert_ok(raffia_model_load(path.text, &options, &model));
        if (i % 100 == 0)
            check_all(model);
        raffia_model_release(model);
        if (i % 300 == 299)
            raffia_load_release_staging();
    }
    raffia_load_release_staging();
    assert_true(sim_is_idle());
    assert_int_equal(core_memory_live(), live);
}

/* SPEC L4. */
static void l4_a_load_works_however_its_ring_is_pinned(void **state)
{
    (void)state;
    static const struct {
        struct sim_config config;
        const char *pinned;
    } ways[] = {
        {{.cpu_inaccessible = true}, "registered"},
        {{.cpu_inaccessible = true, .register_bytes_max = 2 * MIB}, "registered in smaller pieces"},
        {{.cpu_inaccessible = true, .register_bytes_max = 1}, "allocated by the driver"},
        {{.cpu_inaccessible = true, .register_bytes_max = 1, .refuses_host_alloc = true},
         "pageable"},
    };
    struct test_path large = test_path_in(&directory, "large.safetensors");
    struct model_file_tensor one = model_file_bytes("one", 7 * MIB);
    model_file_write(large.text, &one, 1, 4096, 0, 0);
    for (size_t i = 0; i < 4; i++) {
        raffia_load_release_staging();
        assert_ok(sim_configure(0, &ways[i].config));
        raffia_model *model;
        /* Slots of 4 MiB lie across two of the smaller pieces; a copy must not. */
        assert_ok(raffia_model_load(
            large.text, &LOAD_OPTIONS(.device = "sim:0", .threads = 3, .budget_bytes = 8 * MIB),
            &model));
        assert_string_equal(raffia_model_report(model)->pinned, ways[i].pinned);
        assert_int_equal(raffia_model_report(model)->slot_bytes, 4 * MIB);
        check_tensor(model, "one", one.offset, one.bytes);
        raffia_model_release(model);
    }
    unlink(large.text);
}

static void a_device_without_streams_is_filled(void **state)
{
    (void)state;
    assert_ok(
        sim_configure(0, &(struct sim_config){.cpu_inaccessible = true, .synchronous = true}));
    raffia_model *model;
    load_and_check(&LOAD_OPTIONS(.device = "sim:0", .threads = 3, .budget_bytes = 256 * KIB),
                   &model);
    raffia_model_release(model);
}

static void expect_failure(raffia_status expected, raffia_load_options options, const char *mention)
{
    raffia_model *model = NULL;
    assert_status(expected, raffia_model_load(path.text, &options, &model));
    assert_error_mentions(mention);
    assert_null(model);
    struct sim_usage usage;
    sim_query(0, &usage);
    assert_int_equal(usage.queued, 0);
    assert_int_equal(usage.chunks + usage.blocks, 0);
    assert_int_equal(usage.misuses, 0);
}

static void a_device_that_is_full_says_so(void **state)
{
    (void)state;
    assert_ok(
        sim_configure(0, &(struct sim_config){.cpu_inaccessible = true, .capacity_bytes = MIB}));
    expect_failure(RAFFIA_ERROR_OUT_OF_MEMORY,
                   LOAD_OPTIONS(.device = "sim:0", .pages = RAFFIA_PAGES_ON), "sim:0");
}

static void a_failed_copy_ends_the_load(void **state)
{
    (void)state;
    static const char *const verbs[] = {"copy",         "event_record",  "stream_wait",
                                        "event_create", "stream_create", "host_alloc"};
    for (size_t i = 0; i < 5; i++) {
        raffia_load_release_staging();
        sim_fail_next(verbs[i], RAFFIA_ERROR_DRIVER, RAFFIA_REASON_NONE);
        expect_failure(RAFFIA_ERROR_DRIVER,
                       LOAD_OPTIONS(.device = "sim:0", .threads = 3, .budget_bytes = 256 * KIB),
                       verbs[i]);
    }
    raffia_model *model;
    load_and_check(&LOAD_OPTIONS(.device = "sim:0"), &model);
    raffia_model_release(model);
}

/* ---- readers that meet with something ---------------------------------------------------------*/

static atomic_uint hook_calls;

static int give_little(int fd, off_t offset, size_t *bytes)
{
    (void)fd;
    unsigned call = atomic_fetch_add(&hook_calls, 1);
    if (offset < DATA_OFFSET)
        return 0;
    if (call % 5 == 0)
        return EINTR;
    if (*bytes > 8192)
        *bytes = 8192;
    return 0;
}

static int fail_late(int fd, off_t offset, size_t *bytes)
{
    (void)fd, (void)bytes;
    return offset >= DATA_OFFSET + (off_t)(512 * KIB) ? EIO : 0;
}

static void short_reads_and_interruptions_are_gone_on_from(void **state)
{
    (void)state;
    for (int reader = RAFFIA_READER_BUFFERED; reader <= RAFFIA_READER_DIRECT; reader++) {
        raffia_model *model;
        sys_set_read_hook(give_little);
        raffia_status status = raffia_model_load(path.text,
                                                 &LOAD_OPTIONS(.device = "sim:0", .threads = 3,
                                                               .reader = (raffia_reader)reader,
                                                               .budget_bytes = 512 * KIB),
                                                 &model);
        sys_set_read_hook(NULL);
        assert_ok(status);
        check_all(model);
        raffia_model_release(model);
    }
}

static void a_failed_read_ends_the_load(void **state)
{
    (void)state;
    for (unsigned threads = 1; threads < 5; threads++) {
        sys_set_read_hook(fail_late);
        expect_failure(
            RAFFIA_ERROR_IO,
            LOAD_OPTIONS(.device = "sim:0", .threads = threads, .budget_bytes = 256 * KIB),
            "cannot read");
        sys_set_read_hook(NULL);
    }
}

static int truncate_file(int fd, off_t offset, size_t *bytes)
{
    (void)fd, (void)bytes;
    if (offset >= DATA_OFFSET && atomic_fetch_add(&hook_calls, 1) == 0)
        assert_int_equal(truncate(path.text, DATA_OFFSET + 600 * 1024), 0);
    return 0;
}

static void a_file_that_is_cut_meanwhile_is_noticed(void **state)
{
    (void)state;
    atomic_store(&hook_calls, 0);
    sys_set_read_hook(truncate_file);
    expect_failure(RAFFIA_ERROR_CHANGED,
                   LOAD_OPTIONS(.device = "sim:0", .threads = 2, .budget_bytes = 256 * KIB,
                                .reader = RAFFIA_READER_BUFFERED),
                   "model.safetensors");
    sys_set_read_hook(NULL);
    model_file_write(path.text, tensors, TENSORS, DATA_OFFSET, 0, 0);
}

static volatile int cancelled;

static int cancel_late(int fd, off_t offset, size_t *bytes)
{
    (void)fd, (void)bytes;
    if (offset >= DATA_OFFSET + (off_t)(512 * KIB))
        __atomic_store_n(&cancelled, 1, __ATOMIC_RELAXED);
    if (offset >= DATA_OFFSET)
        usleep(20000);
    return 0;
}

static void a_cancelled_load_leaves_nothing(void **state)
{
    (void)state;
    cancelled = 0;
    sys_set_read_hook(cancel_late);
    expect_failure(RAFFIA_ERROR_CANCELLED,
                   LOAD_OPTIONS(.device = "sim:0", .threads = 2, .budget_bytes = 128 * KIB,
                                .window_bytes = 64 * KIB, .cancel = &cancelled),
                   "cancelled");
    sys_set_read_hook(NULL);
}

static int lose_device(int fd, off_t offset, size_t *bytes)
{
    (void)fd, (void)bytes;
    if (offset >= DATA_OFFSET + (off_t)(512 * KIB))
        sim_poison(0);
    return 0;
}

static void a_device_that_is_lost_meanwhile_ends_the_load(void **state)
{
    (void)state;
    raffia_model *model = NULL;
    sys_set_read_hook(lose_device);
    raffia_status status = raffia_model_load(
        path.text, &LOAD_OPTIONS(.device = "sim:0", .threads = 3, .budget_bytes = 256 * KIB),
        &model);
    sys_set_read_hook(NULL);
    assert_int_equal(status, RAFFIA_ERROR_DRIVER);
    assert_error_mentions("context is lost");
    assert_null(model);
    /* The other device is none the worse. */
    load_and_check(&LOAD_OPTIONS(.device = "sim:1"), &model);
    raffia_model_release(model);
}

static sem_t stalled;

static int stall(int fd, off_t offset, size_t *bytes)
{
    (void)fd, (void)bytes;
    if (offset >= DATA_OFFSET + (off_t)(512 * KIB))
        sem_wait(&stalled);
    return 0;
}

/* A reader that is stuck keeps ring and model until it comes back. */
static void a_stalled_load_is_left_behind(void **state)
{
    (void)state;
    raffia_model *model = NULL;
    assert_int_equal(sem_init(&stalled, 0, 0), 0);
    long live = core_memory_live();
    sys_set_read_hook(stall);
    assert_status(
        RAFFIA_ERROR_TIMED_OUT,
        raffia_model_load(path.text,
                          &LOAD_OPTIONS(.device = "sim:0", .threads = 3, .budget_bytes = 256 * KIB,
                                        .window_bytes = 64 * KIB, .stall_timeout_ms = 50),
                          &model));
    assert_null(model);
    for (int i = 0; i < 3; i++)
        sem_post(&stalled);
    for (int i = 0; i < 20000 && core_memory_live() > live; i++) {
        usleep(500);
        raffia_load_release_staging();
    }
    sys_set_read_hook(NULL);
    assert_true(sim_is_idle());
    assert_int_equal(core_memory_live(), live);
    sem_destroy(&stalled);
}

static unsigned reports;

static bool note_progress(void *context, const raffia_load_progress *progress)
{
    uint64_t *last = context;
    assert_true(progress->bytes_done >= *last && progress->bytes_done <= progress->bytes_total);
    *last = progress->bytes_done;
    reports++;
    return true;
}

static void progress_ends_at_the_whole(void **state)
{
    (void)state;
    uint64_t last = 0;
    raffia_model *model;
    load_and_check(&LOAD_OPTIONS(.device = "sim:0", .progress = note_progress,
                                 .progress_context = &last, .budget_bytes = 256 * KIB),
                   &model);
    assert_true(reports > 0);
    assert_int_equal(last, raffia_model_report(model)->bytes_total);
    raffia_model_release(model);
}

/* ---- faults, forks, threads -------------------------------------------------------------------*/

static raffia_status load_once(void *context)
{
    raffia_model *model;
    raffia_status status = raffia_model_load(path.text, context, &model);
    if (!status) {
        unsigned char copy[3];
        const raffia_tensor *tensor = raffia_model_tensor(model, "c");
        status = raffia_model_read(model, tensor, 0, copy, 3);
        for (size_t i = 0; !status && i < 3; i++)
            assert_int_equal(copy[i], model_file_byte(tensors[2].offset + i, 0));
        raffia_model_release(model);
    }
    raffia_load_release_staging();
    struct sim_usage usage;
    sim_query(0, &usage);
    assert_int_equal(usage.misuses, 0);
    return status;
}

static void a_load_survives_every_failure(void **state)
{
    (void)state;
    static const raffia_reader readers[] = {RAFFIA_READER_BUFFERED, RAFFIA_READER_DIRECT};
    for (size_t i = 0; i < 2; i++) {
        raffia_load_options options =
            LOAD_OPTIONS(.device = "sim:0", .threads = 2, .reader = readers[i],
                         .budget_bytes = 512 * KIB, .window_bytes = 128 * KIB,
                         .checksum = i ? RAFFIA_CHECKSUM_XXH3 : RAFFIA_CHECKSUM_NONE);
        assert_true(fault_loop(load_once, &options, 5000) > 50);
        assert_true(sim_is_idle());
    }
}

static void a_forked_child_is_refused(void **state)
{
    (void)state;
    raffia_model *model, *other;
    load_and_check(&LOAD_OPTIONS(.device = "sim:0"), &model);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        unsigned char byte;
        const raffia_tensor *tensor = raffia_model_tensor(model, "a");
        int code = raffia_model_read(model, tensor, 0, &byte, 1) == RAFFIA_ERROR_FORKED ? 0 : 1;
        if (raffia_model_load(path.text, &LOAD_OPTIONS(.device = "sim:0"), &other) !=
            RAFFIA_ERROR_FORKED)
            code |= 2;
        raffia_load_release_staging();
        raffia_model_release(model);
#ifndef __SANITIZE_THREAD__ /* which ends a forked child that starts threads */
        if (raffia_model_load(path.text, &LOAD_OPTIONS(.device = "host"), &other))
            code |= 4;
#endif
        _exit(code);
    }
    int how = 0;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), 0);
    check_all(model);
    raffia_model_release(model);
}

enum { LOADERS = 4, ROUNDS = 6 };

static void *load_often(void *argument)
{
    unsigned number = *(unsigned *)argument;
    for (unsigned round = 0; round < ROUNDS; round++) {
        raffia_model *model;
        unsigned char last;
        if (raffia_model_load(path.text,
                              &LOAD_OPTIONS(.device = number % 2 ? "sim:0" : "sim:1", .threads = 2,
                                            .budget_bytes = 256 * KIB),
                              &model))
            return "a load failed";
        const raffia_tensor *tensor = raffia_model_tensor(model, "e");
        raffia_status status = raffia_model_read(model, tensor, tensor->bytes - 1, &last, 1);
        raffia_model_release(model);
        if (status || last != model_file_byte(tensors[4].offset + tensors[4].bytes - 1, 0))
            return "a byte is wrong";
    }
    return NULL;
}

static void loads_at_once_have_rings_of_their_own(void **state)
{
    (void)state;
    pthread_t threads[LOADERS];
    unsigned numbers[LOADERS];
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
    raffia_load_release_staging();
    assert_true(sim_is_idle());
}

/* What a child finds whose parent had loads under way: it must not hang, nor get anything. */
static int look_from_child(const raffia_model *model)
{
    raffia_model *other;
    unsigned char byte;
    alarm(60);
    if (raffia_model_read(model, raffia_model_tensor(model, "a"), 0, &byte, 1) !=
        RAFFIA_ERROR_FORKED)
        return 1;
    if (raffia_model_load(path.text, &LOAD_OPTIONS(.device = "sim:0"), &other) !=
        RAFFIA_ERROR_FORKED)
        return 2;
    raffia_load_release_staging();
    return 0;
}

static void a_child_forked_among_loads_is_refused(void **state)
{
    (void)state;
    raffia_model *model;
    pthread_t threads[LOADERS];
    unsigned numbers[LOADERS];
    load_and_check(&LOAD_OPTIONS(.device = "sim:0"), &model);
    for (unsigned i = 0; i < LOADERS; i++) {
        numbers[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, load_often, &numbers[i]), 0);
    }
    for (int i = 0; i < 10; i++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            _exit(look_from_child(model));
        int how = 0;
        assert_int_equal(waitpid(child, &how, 0), child);
        assert_true(WIFEXITED(how));
        assert_int_equal(WEXITSTATUS(how), 0);
    }
    for (unsigned i = 0; i < LOADERS; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        assert_null(wrong);
    }
    raffia_model_release(model);
}

/* The CPU can touch it: files are read straight into place. */
static void pinned_memory_is_a_destination_as_any_of_the_host(void **state)
{
    (void)state;
    raffia_model *model;
    assert_ok(raffia_model_load(path.text, &LOAD_OPTIONS(.device = "pinned:sim:0"), &model));
    const raffia_load_report *report = raffia_model_report(model);
    assert_null(report->pinned);
    assert_int_equal(report->copies, 0);
    for (int i = 0; i < TENSORS; i++)
        model_file_check(raffia_model_tensor(model, tensors[i].name), tensors[i].offset,
                         tensors[i].bytes, 0);
    raffia_pinned_usage usage;
    assert_ok(raffia_pinned_query("sim:0", &usage));
    assert_true(usage.registered_bytes >= report->memory_bytes);
    raffia_model_release(model);
}

static void reading_back_refuses_what_is_not_there(void **state)
{
    (void)state;
    raffia_model *model;
    unsigned char bytes[8];
    load_and_check(&LOAD_OPTIONS(.device = "sim:0"), &model);
    const raffia_tensor *tensor = raffia_model_tensor(model, "c");
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, raffia_model_read(model, tensor, 1, bytes, 3));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT,
                  raffia_model_read(model, tensor, 4, bytes, SIZE_MAX - 1));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, raffia_model_read(model, tensor, 0, NULL, 1));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, raffia_model_read(NULL, tensor, 0, bytes, 1));
    assert_ok(raffia_model_read(model, tensor, 3, NULL, 0));
    raffia_model_release(model);
    assert_ok(raffia_model_inspect(path.text, NULL, &model));
    tensor = raffia_model_tensor(model, "c");
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, raffia_model_read(model, tensor, 0, bytes, 1));
    assert_error_mentions("inspected");
    raffia_model_release(model);
    assert_ok(raffia_model_load(path.text, &LOAD_OPTIONS(.device = "host"), &model));
    tensor = raffia_model_tensor(model, "c");
    assert_ok(raffia_model_read(model, tensor, 1, bytes, 2));
    assert_int_equal(bytes[1], model_file_byte(tensors[2].offset + 2, 0));
    raffia_model_release(model);
}

static int make_directory(void **state)
{
    (void)state;
    raffia_log_set_level(RAFFIA_LOG_OFF);
    test_directory_make(&directory);
    path = test_path_in(&directory, "model.safetensors");
    model_file_write(path.text, tensors, TENSORS, DATA_OFFSET, 0, 0);
    return 0;
}

static int remove_directory(void **state)
{
    (void)state;
    test_directory_remove(&directory);
    return 0;
}

static int hide_memory(void **state)
{
    (void)state;
    sim_reset();
    for (int i = 0; i < 2; i++)
        assert_ok(sim_configure(i, &(struct sim_config){.cpu_inaccessible = true}));
    return 0;
}

static int left_idle(void **state)
{
    (void)state;
    raffia_load_release_staging();
    bool idle = sim_is_idle();
    sim_reset();
    return idle ? 0 : -1;
}

static int left_anyhow(void **state)
{
    (void)state;
    raffia_load_release_staging();
    sim_reset();
    return 0;
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, hide_memory, left_idle)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_way_of_reading_fills_the_device),
        TEST(what_lies_together_is_copied_together),
        TEST(slices_and_selections_get_there_too),
        TEST(a_pool_of_the_caller_on_a_device_will_do),
        TEST(a_resource_of_device_memory_will_do),
        TEST(checksums_are_those_of_the_same_model_on_the_host),
        TEST(l3_host_memory_is_bounded_by_the_budget),
        TEST(l3_the_process_grows_by_no_more_than_the_budget_and_a_little),
        TEST(the_slot_size_is_a_setting),
        TEST(the_ring_is_kept_from_load_to_load),
        TEST(a_thousand_loads_leave_nothing),
        TEST(l4_a_load_works_however_its_ring_is_pinned),
        TEST(a_device_without_streams_is_filled),
        TEST(a_device_that_is_full_says_so),
        TEST(a_failed_copy_ends_the_load),
        TEST(short_reads_and_interruptions_are_gone_on_from),
        TEST(a_failed_read_ends_the_load),
        TEST(a_file_that_is_cut_meanwhile_is_noticed),
        TEST(a_cancelled_load_leaves_nothing),
        cmocka_unit_test_setup_teardown(a_device_that_is_lost_meanwhile_ends_the_load, hide_memory,
                                        left_anyhow),
        TEST(a_stalled_load_is_left_behind),
        TEST(progress_ends_at_the_whole),
        TEST(a_load_survives_every_failure),
        TEST(a_forked_child_is_refused),
        TEST(loads_at_once_have_rings_of_their_own),
        TEST(a_child_forked_among_loads_is_refused),
        TEST(pinned_memory_is_a_destination_as_any_of_the_host),
        TEST(reading_back_refuses_what_is_not_there),
    };
    return cmocka_run_group_tests_name("loads into a device", tests, make_directory,
                                       remove_directory);
}
