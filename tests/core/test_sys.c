/* System calls: the injected failures, and the small files of /proc and /sys. */
#include "core/fault.h"
#include "core/sys.h"
#include "support/cmocka.h"
#include "support/directory.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct test_directory root;

static int make_root(void **state)
{
    (void)state;
    test_directory_make(&root);
    return 0;
}

static int remove_root(void **state)
{
    (void)state;
    sys_set_root(NULL);
    test_directory_remove(&root);
    return 0;
}

static void write_file(const char *content, size_t bytes)
{
    test_file_write(test_path_in(&root, "file").text, content, bytes);
}

static void files_are_read_below_the_root(void **state)
{
    (void)state;
    char text[32] = "";
    write_file("hello\n", 6);
    sys_set_root(root.path);
    assert_int_equal(sys_read_text("/file", text, sizeof text), 6);
    assert_string_equal(text, "hello\n");
    assert_int_equal(sys_read_text("/missing", text, sizeof text), -1);
    assert_int_equal(errno, ENOENT);
    sys_set_root(NULL);
    assert_int_equal(sys_read_text("/file", text, sizeof text), -1);
    assert_true(sys_read_text("/proc/self/stat", text, sizeof text) > 0);
}

static void long_files_are_cut(void **state)
{
    (void)state;
    char text[5];
    write_file("abcdefgh", 8);
    sys_set_root(root.path);
    assert_int_equal(sys_read_text("/file", text, sizeof text), 4);
    assert_string_equal(text, "abcd");
    assert_int_equal(sys_read_text("/file", text, 1), 0);
    assert_string_equal(text, "");
    write_file("", 0);
    assert_int_equal(sys_read_text("/file", text, sizeof text), 0);
    assert_string_equal(text, "");
}

static void paths_and_kinds_that_cannot_be_read_fail(void **state)
{
    (void)state;
    char text[32], path[700];
    memset(path, 'p', sizeof path - 1);
    path[0] = '/';
    path[sizeof path - 1] = '\0';
    assert_int_equal(sys_read_text(path, text, sizeof text), -1);
    assert_int_equal(errno, ENAMETOOLONG);
    assert_int_equal(sys_read_text("/proc", text, sizeof text), -1);
    assert_int_equal(errno, EISDIR);
}

static void reading_can_fail_at_each_call(void **state)
{
    (void)state;
    char text[32];
    uint64_t value = 4711;
    write_file("12", 2);
    sys_set_root(root.path);
    static const struct {
        int error_number;
        const char *call;
    } rows[] = {{EMFILE, "open"}, {EIO, "read"}, {EIO, "read"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        core_fault_arm((long)i + 1);
        assert_int_equal(sys_read_text("/file", text, sizeof text), -1);
        assert_int_equal(errno, rows[i].error_number);
        assert_string_equal(core_fault_disarm(), rows[i].call);
        core_fault_arm((long)i + 1);
        assert_int_equal(sys_read_number("/file", &value), -1);
        core_fault_disarm();
    }
    assert_int_equal(value, 4711);
    assert_int_equal(sys_read_number("/file", &value), 0);
    assert_int_equal(value, 12);
}

static void numbers_are_read_strictly(void **state)
{
    (void)state;
    static const struct {
        const char *content;
        uint64_t value;
    } good[] = {
        {"0\n", 0},
        {"42", 42},
        {"00042\n", 42},
        {"18446744073709551615\n", UINT64_MAX},
    };
    uint64_t value = 0;
    sys_set_root(root.path);
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        write_file(good[i].content, strlen(good[i].content));
        assert_int_equal(sys_read_number("/file", &value), 0);
        assert_true(value == good[i].value);
    }
    static const char *const bad[] = {
        "",     "\n",   "max\n", "-1\n", " -1\n", "+1\n",  " 1\n",
        "1 kB", "1\n2", "1\n\n", "0x10", "12a\n", "1.5\n", "18446744073709551616\n"};
    value = 4711;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_file(bad[i], strlen(bad[i]));
        if (sys_read_number("/file", &value) != -1)
            fail_msg("'%s' was taken for a number", bad[i]);
        assert_int_equal(errno, EINVAL);
    }
    assert_int_equal(value, 4711);
    assert_int_equal(sys_read_number("/missing", &value), -1);
    assert_int_equal(errno, ENOENT);
}

/* Calls with arguments that would do: all that fails is what was asked to fail. */
static int call_memory(int which)
{
    switch (which) {
    case 0:
        return sys_mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED
                   ? -1
                   : 0;
    case 1:
        return sys_madvise(NULL, 0, MADV_NORMAL);
    case 2:
        return sys_memfd_create("test", 0);
    case 3:
        return sys_mbind(NULL, 0, 0);
    default:
        return sys_ftruncate(-1, 0);
    }
}

static void memory_calls_fail_when_asked_to(void **state)
{
    (void)state;
    static const int errors[] = {ENOMEM, ENOMEM, EMFILE, EINVAL, ENOSPC};
    for (int i = 0; i < 5; i++) {
        core_fault_arm(1);
        errno = 0;
        assert_int_equal(call_memory(i), -1);
        assert_int_equal(errno, errors[i]);
        assert_non_null(core_fault_disarm());
    }
}

static int call_file(int which, int fd)
{
    struct stat status;
    struct statfs filesystem;
    char buffer[4];
    struct iovec piece = {buffer, sizeof buffer};
    uint64_t pages;
    size_t memory, offset;
    int flags;
    switch (which) {
    case 0:
        return sys_fstat(fd, &status);
    case 1:
        return sys_fstatfs(fd, &filesystem);
    case 2:
        return (int)sys_pread(fd, buffer, sizeof buffer, 0);
    case 3:
        return (int)sys_preadv(fd, &piece, 1, 0);
    case 4:
        return (int)sys_preadv2(fd, &piece, 1, 0, 0);
    case 5:
        return sys_ioctl(fd, FS_IOC_GETFLAGS, &flags);
    case 6:
        return sys_cachestat(fd, 0, 0, &pages);
    default:
        return sys_direct_alignment(fd, &memory, &offset);
    }
}

static void file_calls_fail_when_asked_to(void **state)
{
    (void)state;
    static const int errors[] = {EIO, EIO, EIO, EIO, EOPNOTSUPP, ENOTTY, ENOSYS, ENOSYS};
    write_file("data", 4);
    struct test_path path = test_path_in(&root, "file");
    int fd = sys_open(path.text, O_RDONLY);
    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    for (int i = 0; i < 8; i++) {
        core_fault_arm(1);
        errno = 0;
        assert_int_equal(call_file(i, fd), -1);
        assert_int_equal(errno, errors[i]);
        assert_non_null(core_fault_disarm());
    }
    for (int i = 0; i < 2; i++)
        assert_int_equal(call_file(i, fd), 0);
    for (int i = 2; i < 5; i++)
        assert_int_equal(call_file(i, fd), 4);
    assert_int_equal(sys_close(fd), 0);
    assert_int_equal(call_file(0, fd), -1);
    assert_int_equal(errno, EBADF);
}

/* Newer calls answer, or say that they are not there. */
static void newer_calls_answer_or_are_missing(void **state)
{
    (void)state;
    write_file("data", 4);
    struct test_path path = test_path_in(&root, "file");
    int fd = sys_open(path.text, O_RDONLY);
    assert_true(fd >= 0);
    uint64_t pages = 4711;
    size_t memory = 4711, offset = 4711;
    if (sys_cachestat(fd, 0, 0, &pages))
        assert_int_equal(pages, 4711);
    else
        assert_true(pages <= 1);
    if (sys_direct_alignment(fd, &memory, &offset))
        assert_int_equal(memory, 4711);
    else
        assert_true((memory == 0) == (offset == 0));
    sys_close(fd);
}

static void memory_can_be_mapped_and_filled(void **state)
{
    (void)state;
    int fd = sys_memfd_create("raffia-test", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(sys_ftruncate(fd, 8192), 0);
    char *at = sys_mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(at != MAP_FAILED);
    at[8191] = 1;
    assert_int_equal(sys_madvise(at, 8192, MADV_NORMAL), 0);
    assert_int_equal(sys_munmap(at, 8192), 0);
    sys_close(fd);
    assert_int_equal(sys_mbind(NULL, 0, -1), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(sys_mbind(NULL, 0, 1 << 20), -1);
    assert_int_equal(errno, EINVAL);
}

static void *nothing(void *argument)
{
    return argument;
}

static void threads_can_be_refused(void **state)
{
    (void)state;
    pthread_t thread;
    core_fault_arm(1);
    assert_int_equal(sys_thread_create(&thread, nothing, NULL), EAGAIN);
    assert_string_equal(core_fault_disarm(), "pthread_create");
    assert_int_equal(sys_thread_create(&thread, nothing, NULL), 0);
    pthread_join(thread, NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_root, remove_root)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(files_are_read_below_the_root),
        TEST(long_files_are_cut),
        TEST(paths_and_kinds_that_cannot_be_read_fail),
        TEST(reading_can_fail_at_each_call),
        TEST(numbers_are_read_strictly),
        TEST(memory_calls_fail_when_asked_to),
        TEST(file_calls_fail_when_asked_to),
        TEST(newer_calls_answer_or_are_missing),
        TEST(memory_can_be_mapped_and_filled),
        TEST(threads_can_be_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
