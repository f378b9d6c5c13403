/* Loads into a device that meet with something, and end early. */
#include "core/memory.h"
#include "core/sys.h"
#include "device_fixture.h"
#include "support/cmocka.h"

#include <errno.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

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

/* Memory that is lost with its device, and nobody's worry then. */
static raffia_status resource_allocate(void *context, raffia_stream stream, size_t bytes,
                                       size_t alignment, void **address_p)
{
    (void)stream, (void)context;
    return alignment > 256 ? RAFFIA_ERROR_UNSUPPORTED : sim_driver.mem_alloc(0, bytes, address_p);
}

static raffia_status resource_deallocate(void *context, raffia_stream stream, void *address,
                                         size_t bytes, size_t alignment)
{
    (void)stream, (void)context, (void)alignment;
    return sim_driver.mem_free(0, address, bytes);
}

static unsigned resource_properties(void *context)
{
    (void)context;
    return RAFFIA_DEVICE_ACCESSIBLE;
}

static bool resource_is_equal(void *context, void *other)
{
    return context == other;
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
    static const raffia_resource_ops ops = {.struct_size = sizeof ops,
                                            .allocate = resource_allocate,
                                            .deallocate = resource_deallocate,
                                            .properties = resource_properties,
                                            .is_equal = resource_is_equal};
    raffia_model *model = NULL;
    sys_set_read_hook(lose_device);
    raffia_status status =
        raffia_model_load(path.text,
                          &LOAD_OPTIONS(.device = "sim:0", .resource = {&ops, NULL}, .threads = 3,
                                        .budget_bytes = 256 * KIB),
                          &model);
    sys_set_read_hook(NULL);
    assert_int_equal(status, RAFFIA_ERROR_DRIVER);
    assert_error_mentions("context is lost");
    assert_null(model);
    /* The other device is none the worse. */
    load_and_check(&LOAD_OPTIONS(.device = "sim:1"), &model);
    raffia_model_release(model);
}

/* Nothing but a copy looks at a ring that was kept. */
static void a_device_that_was_lost_before_ends_the_load(void **state)
{
    (void)state;
    raffia_model *model = NULL;
    load_and_check(&LOAD_OPTIONS(.device = "sim:0"), &model);
    sim_poison(0);
    raffia_model *second = NULL;
    for (int i = 0; i < 2; i++) {
        assert_status(RAFFIA_ERROR_DRIVER,
                      raffia_model_load(path.text, &LOAD_OPTIONS(.device = "sim:0"), &second));
        assert_error_mentions("context is lost");
        assert_null(second);
    }
    raffia_model_release(model);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_device_that_is_full_says_so),
        TEST(a_failed_copy_ends_the_load),
        TEST(short_reads_and_interruptions_are_gone_on_from),
        TEST(a_failed_read_ends_the_load),
        TEST(a_file_that_is_cut_meanwhile_is_noticed),
        TEST(a_cancelled_load_leaves_nothing),
        cmocka_unit_test_setup_teardown(a_device_that_is_lost_meanwhile_ends_the_load, hide_memory,
                                        left_anyhow),
        cmocka_unit_test_setup_teardown(a_device_that_was_lost_before_ends_the_load, hide_memory,
                                        left_anyhow),
        TEST(a_stalled_load_is_left_behind),
    };
    return cmocka_run_group_tests_name("ends of loads into a device", tests, make_directory,
                                       remove_directory);
}
