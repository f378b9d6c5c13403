/* Files that change while they are read, and file systems that refuse O_DIRECT. */
#include "core/sys.h"
#include "load_fixture.h"
#include "support/cmocka.h"
#include "support/log_capture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DATA_OFFSET 4096
#define HOST        .device = "host", .pages = RAFFIA_PAGES_OFF

static struct test_directory directory;
static struct test_path path;
static struct model_file_tensor tensor;

/* What happens to the file when its data are first read. */
static void (*mischief)(void);
static atomic_flag done = ATOMIC_FLAG_INIT;

static int mischief_hook(int fd, off_t offset, size_t *bytes)
{
    (void)fd;
    (void)bytes;
    if (offset >= DATA_OFFSET && !atomic_flag_test_and_set(&done))
        mischief();
    return 0;
}

static raffia_status load_with(void (*what)(void), raffia_reader reader)
{
    raffia_model *model = NULL;
    tensor = model_file_bytes("t", 3 * MIB);
    model_file_write(path.text, &tensor, 1, DATA_OFFSET, 0, 0);
    mischief = what;
    atomic_flag_clear(&done);
    sys_set_read_hook(mischief_hook);
    raffia_status status = raffia_model_load(
        path.text, &LOAD_OPTIONS(HOST, .reader = reader, .threads = 2, .window_bytes = 64 * KIB),
        &model);
    sys_set_read_hook(NULL);
    raffia_model_release(model);
    return status;
}

static void cut_file(void)
{
    if (truncate(path.text, DATA_OFFSET + MIB + 77))
        abort();
}

static void append_to_file(void)
{
    FILE *file = fopen(path.text, "ab");
    if (!file || fputc('x', file) == EOF || fclose(file))
        abort();
}

static void write_into_file(void)
{
    /* Timestamps move in ticks of the kernel's clock: wait for the next one. */
    usleep(20000);
    int fd = open(path.text, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || pwrite(fd, "x", 1, DATA_OFFSET + MIB) != 1 || close(fd))
        abort();
}

static void replace_file(void)
{
    /* Another file takes its name; the one that is open stays as it was. */
    if (unlink(path.text))
        abort();
    struct model_file_tensor other = model_file_bytes("t", 10);
    model_file_write(path.text, &other, 1, DATA_OFFSET, 0, 7);
}

static void every_change_is_noticed(void **state)
{
    (void)state;
    static const raffia_reader readers[] = {RAFFIA_READER_BUFFERED, RAFFIA_READER_DIRECT};
    for (size_t i = 0; i < 2; i++) {
        assert_status(RAFFIA_ERROR_CHANGED, load_with(cut_file, readers[i]));
        assert_error_mentions(path.text);
        assert_status(RAFFIA_ERROR_CHANGED, load_with(append_to_file, readers[i]));
        assert_error_mentions("changed while it was read");
        assert_status(RAFFIA_ERROR_CHANGED, load_with(write_into_file, readers[i]));
        assert_error_mentions("written to while it was read");
    }
}

static void a_file_replaced_by_another_is_read_as_it_was(void **state)
{
    (void)state;
    assert_ok(load_with(replace_file, RAFFIA_READER_BUFFERED));
    assert_ok(load_with(replace_file, RAFFIA_READER_DIRECT));
}

static int refuse_direct(int fd, off_t offset, size_t *bytes)
{
    (void)offset;
    (void)bytes;
    return test_is_direct(fd) ? EINVAL : 0;
}

static void a_refusal_is_counted_and_told_once(void **state)
{
    (void)state;
    tensor = model_file_bytes("t", 3 * MIB);
    model_file_write(path.text, &tensor, 1, DATA_OFFSET, 0, 0);
    raffia_model *model;
    sys_set_read_hook(refuse_direct);
    log_capture_start_at(RAFFIA_LOG_WARN);
    raffia_status status = raffia_model_load(
        path.text,
        &LOAD_OPTIONS(HOST, .reader = RAFFIA_READER_DIRECT, .threads = 1, .window_bytes = MIB),
        &model);
    log_capture_stop();
    sys_set_read_hook(NULL);
    assert_ok(status);
    assert_int_equal(log_capture_count(), 1);
    assert_non_null(strstr(log_capture_last(), "O_DIRECT"));
    const raffia_load_report *report = raffia_model_report(model);
    assert_int_equal(report->direct_refusals, report->windows);
    assert_int_equal(report->bytes_buffered, report->bytes_total);
    model_file_check(raffia_model_tensor(model, "t"), tensor.offset, tensor.bytes, 0);
    raffia_model_release(model);
}

static void memory_file_systems_can_be_loaded_from(void **state)
{
    (void)state;
    char shared[] = "/dev/shm/raffia-test-XXXXXX";
    int fd = mkstemp(shared);
    if (fd < 0) {
        print_message("there is no /dev/shm\n");
        skip();
    }
    close(fd);
    tensor = model_file_bytes("t", MIB);
    model_file_write(shared, &tensor, 1, DATA_OFFSET, 0, 0);
    raffia_model *model = NULL;
    raffia_status status =
        raffia_model_load(shared, &LOAD_OPTIONS(HOST, .reader = RAFFIA_READER_DIRECT), &model);
    unlink(shared);
    assert_ok(status);
    model_file_check(raffia_model_tensor(model, "t"), tensor.offset, tensor.bytes, 0);
    raffia_model_release(model);
}

static int make_directory(void **state)
{
    (void)state;
    test_directory_make(&directory);
    path = test_path_in(&directory, "model.safetensors");
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
        cmocka_unit_test(every_change_is_noticed),
        cmocka_unit_test(a_file_replaced_by_another_is_read_as_it_was),
        cmocka_unit_test(a_refusal_is_counted_and_told_once),
        cmocka_unit_test(memory_file_systems_can_be_loaded_from),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
