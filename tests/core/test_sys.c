#include "core/fault.h"
#include "core/sys.h"
#include "support/cmocka.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static char folder[] = "/tmp/raffia-test-sys-XXXXXX";

static void write_file(const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int make_folder(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(folder));
    sys_set_root(folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    sys_set_root(NULL);
    char path[128];
    snprintf(path, sizeof path, "%s/file", folder);
    unlink(path);
    return rmdir(folder);
}

static void numbers_in_files_are_read_strictly(void **state)
{
    (void)state;
    assert_string_equal(sys_root(), folder);
    uint64_t value = 4711;
    static const char *const bad[] = {"", "x", "12x", "-1", "99999999999999999999999", "1 2"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_file("file", bad[i]);
        assert_int_equal(sys_read_number("/file", &value), -1);
        assert_int_equal(errno, EINVAL);
    }
    assert_int_equal(sys_read_number("/missing", &value), -1);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(value, 4711);
    write_file("file", "18446744073709551615\n");
    assert_int_equal(sys_read_number("/file", &value), 0);
    assert_true(value == UINT64_MAX);
}

static void long_files_are_cut_and_long_paths_refused(void **state)
{
    (void)state;
    write_file("file", "0123456789");
    char buffer[5];
    assert_int_equal(sys_read_text("/file", buffer, sizeof buffer), 4);
    assert_string_equal(buffer, "0123");
    char path[600];
    memset(path, '/', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    assert_int_equal(sys_read_text(path, buffer, sizeof buffer), -1);
    assert_int_equal(errno, ENAMETOOLONG);
}

static void files_and_mappings_work(void **state)
{
    (void)state;
    enum { BYTES = 1 << 16 };
    int fd = sys_memfd_create("raffia-test", 0);
    assert_true(fd >= 0);
    assert_int_equal(sys_ftruncate(fd, BYTES), 0);
    char *map = sys_mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(map, MAP_FAILED);
    memset(map, 'm', BYTES);
    assert_int_equal(sys_madvise(map, BYTES, MADV_NORMAL), 0);
    char got[2] = "";
    struct iovec piece = {got, 2};
    assert_int_equal(sys_pread(fd, got, 2, 5), 2);
    assert_int_equal(got[1], 'm');
    assert_int_equal(sys_preadv(fd, &piece, 1, 5), 2);
    assert_int_equal(sys_preadv2(fd, &piece, 1, 5, 0), 2);
    struct stat status;
    assert_int_equal(sys_fstat(fd, &status), 0);
    assert_int_equal(status.st_size, BYTES);
    struct statfs system;
    assert_int_equal(sys_fstatfs(fd, &system), 0);
    assert_int_equal(sys_ioctl(fd, 0, NULL), -1);
    uint64_t cached = 0;
    if (sys_cachestat(fd, 0, 0, &cached) == 0)
        assert_true(cached > 0);
    else
        assert_true(errno == ENOSYS || errno == EOPNOTSUPP || errno == EPERM);
    size_t memory = 0, offset = 0;
    if (sys_direct_alignment(fd, &memory, &offset))
        assert_true(errno == ENOSYS || errno == EPERM);
    assert_int_equal(sys_mbind(map, BYTES, -1), -1);
    assert_int_equal(sys_mbind(map, BYTES, 1 << 20), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(sys_munmap(map, BYTES), 0);
    assert_int_equal(sys_close(fd), 0);
}

static void *do_nothing(void *argument)
{
    return argument;
}

#define FAILS(failure, expected_errno, call)                                                       \
    do {                                                                                           \
        core_fault_arm(1);                                                                         \
        errno = 0;                                                                                 \
        assert_true((call) == (failure));                                                          \
        assert_int_equal(errno, (expected_errno));                                                 \
        assert_non_null(core_fault_disarm());                                                      \
    } while (0)

static void every_call_can_be_made_to_fail(void **state)
{
    (void)state;
    struct stat status;
    struct statfs system;
    struct iovec piece = {NULL, 0};
    uint64_t number;
    size_t a, b;
    char text[8];
    write_file("file", "12");
    FAILS(MAP_FAILED, ENOMEM, sys_mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    FAILS(-1, ENOMEM, sys_madvise(NULL, 0, MADV_NORMAL));
    FAILS(-1, EMFILE, sys_memfd_create("raffia-test", 0));
    FAILS(-1, ENOSPC, sys_ftruncate(-1, 0));
    FAILS(-1, EINVAL, sys_mbind(NULL, 0, 0));
    FAILS(-1, EMFILE, sys_open("/", O_RDONLY));
    FAILS(-1, EIO, sys_fstat(0, &status));
    FAILS(-1, EIO, sys_fstatfs(0, &system));
    FAILS(-1, EIO, sys_pread(0, text, 0, 0));
    FAILS(-1, EIO, sys_preadv(0, &piece, 1, 0));
    FAILS(-1, EOPNOTSUPP, sys_preadv2(0, &piece, 1, 0, 0));
    FAILS(-1, ENOTTY, sys_ioctl(0, 0, NULL));
    FAILS(-1, ENOSYS, sys_cachestat(0, 0, 0, &number));
    FAILS(-1, ENOSYS, sys_direct_alignment(0, &a, &b));
    FAILS(-1, EMFILE, sys_read_text("/file", text, sizeof text));
    pthread_t thread;
    core_fault_arm(1);
    assert_int_equal(sys_thread_create(&thread, do_nothing, NULL), EAGAIN);
    assert_string_equal(core_fault_disarm(), "pthread_create");
    core_fault_arm(2);
    assert_int_equal(sys_read_text("/file", text, sizeof text), -1);
    assert_int_equal(errno, EIO);
    assert_string_equal(core_fault_disarm(), "read");
    assert_int_equal(sys_read_text("/file", text, sizeof text), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_in_files_are_read_strictly),
        cmocka_unit_test(long_files_are_cut_and_long_paths_refused),
        cmocka_unit_test(files_and_mappings_work),
        cmocka_unit_test(every_call_can_be_made_to_fail),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
