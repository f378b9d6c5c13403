/* Opening models: files that are none, directories, reads that are interrupted, cut or refused. */
#include "catalog_invariants.h"
#include "core/sys.h"
#include "load/catalog.h"
#include "support/cmocka.h"
#include "support/directory.h"
#include "support/fault_loop.h"
#include "support/safetensors_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static struct test_directory directory;

static int make_directory(void **state)
{
    (void)state;
    test_directory_make(&directory);
    return 0;
}

static int remove_directory(void **state)
{
    (void)state;
    test_directory_remove(&directory);
    return 0;
}

/* How the next reads misbehave. The linker sends the library's calls here. */
static struct {
    bool interrupt_each;  /* EINTR before each read */
    size_t bytes_max;     /* no read gives more; 0 = no bound */
    off_t end;            /* the file seems to end here; 0 = where it does */
    bool interrupted_now; /* the last call was interrupted */
} reads;

ssize_t __real_sys_pread(int fd, void *buffer, size_t bytes, off_t offset);
ssize_t __wrap_sys_pread(int fd, void *buffer, size_t bytes, off_t offset);

ssize_t __wrap_sys_pread(int fd, void *buffer, size_t bytes, off_t offset)
{
    reads.interrupted_now = reads.interrupt_each && !reads.interrupted_now;
    if (reads.interrupted_now) {
        errno = EINTR;
        return -1;
    }
    if (reads.end && offset >= reads.end)
        return 0;
    if (reads.bytes_max && bytes > reads.bytes_max)
        bytes = reads.bytes_max;
    return __real_sys_pread(fd, buffer, bytes, offset);
}

static const char one_tensor[] = "{\"w\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]}}";

static void write_model(const char *name)
{
    test_safetensors_write(test_path_in(&directory, name).text, one_tensor, 3);
}

static void opens_one_tensor(const char *path, const char *file)
{
    struct catalog *catalog;
    assert_ok(catalog_open(path, NULL, &catalog));
    assert_int_equal(catalog->tensor_count, 1);
    assert_null(catalog_broken_promise(catalog, 0));
    const char *name = strrchr(catalog->files[0].path, '/') + 1;
    assert_string_equal(name, file);
    catalog_close(catalog);
}

static void refuses(raffia_status expected, const char *path, const char *words)
{
    struct catalog *catalog = NULL;
    assert_status(expected, catalog_open(path, NULL, &catalog));
    assert_null(catalog);
    assert_error_mentions(words);
    if (path)
        assert_error_mentions(path);
}

static void what_cannot_be_a_model_is_refused_at_once(void **state)
{
    (void)state;
    struct catalog *catalog;
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, catalog_open(NULL, NULL, &catalog));
    refuses(RAFFIA_ERROR_NOT_FOUND, "", "cannot open");
    refuses(RAFFIA_ERROR_NOT_FOUND, test_path_in(&directory, "absent").text, "No such file");
    assert_string_equal(raffia_last_native_error(), "ENOENT");
    refuses(RAFFIA_ERROR_INVALID_ARGUMENT, "/dev/null", "not a regular file");
    refuses(RAFFIA_ERROR_INVALID_ARGUMENT, "/dev/zero", "not a regular file");

    /* Opening a pipe without a writer would wait for one. */
    struct test_path pipe = test_path_in(&directory, "pipe");
    assert_int_equal(mkfifo(pipe.text, 0600), 0);
    refuses(RAFFIA_ERROR_INVALID_ARGUMENT, pipe.text, "not a regular file");

    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct test_path socket_path = test_path_in(&directory, "socket");
    assert_in_range(strlen(socket_path.text), 1, sizeof address.sun_path - 1);
    memcpy(address.sun_path, socket_path.text, strlen(socket_path.text));
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    refuses(RAFFIA_ERROR_INVALID_ARGUMENT, socket_path.text, "not a regular file");
    close(fd);

    struct test_path loop = test_path_in(&directory, "loop");
    assert_int_equal(symlink("loop", loop.text), 0);
    refuses(RAFFIA_ERROR_IO, loop.text, "symbolic links");
    catalog_close(NULL);
}

static void an_unreadable_file_is_a_matter_of_permission(void **state)
{
    (void)state;
    enum { NOBODY = 65534 };
    write_model("secret");
    struct test_path path = test_path_in(&directory, "secret");
    assert_int_equal(chmod(path.text, 0), 0);
    assert_int_equal(chmod(directory.path, 0755), 0);
    uid_t user = geteuid();
    if (user == 0)
        assert_int_equal(seteuid(NOBODY), 0);
    struct catalog *catalog;
    raffia_status status = catalog_open(path.text, NULL, &catalog);
    if (user == 0)
        assert_int_equal(seteuid(0), 0);
    assert_int_equal(status, RAFFIA_ERROR_PERMISSION);
    assert_error_mentions(path.text);
}

static void interrupted_and_short_reads_are_continued(void **state)
{
    (void)state;
    write_model("slow");
    struct test_path path = test_path_in(&directory, "slow");
    for (size_t bytes = 1; bytes < 12; bytes++) {
        reads.interrupt_each = true;
        reads.bytes_max = bytes;
        opens_one_tensor(path.text, "slow");
    }
    memset(&reads, 0, sizeof reads);
}

static void a_file_that_shrinks_is_noticed(void **state)
{
    (void)state;
    write_model("shrinking");
    struct test_path path = test_path_in(&directory, "shrinking");
    for (off_t end = 1; end < (off_t)sizeof one_tensor + 7; end++) {
        reads.end = end;
        reads.bytes_max = 1;
        refuses(RAFFIA_ERROR_CHANGED, path.text, "ended at offset");
    }
    memset(&reads, 0, sizeof reads);
}

static void long_and_odd_paths_are_cut_and_escaped(void **state)
{
    (void)state;
    char name[250];
    memset(name, '\n', sizeof name);
    memcpy(name + sizeof name - 8, "the_end", 8);
    struct catalog *catalog;
    assert_status(RAFFIA_ERROR_NOT_FOUND,
                  catalog_open(test_path_in(&directory, name).text, NULL, &catalog));
    assert_null(strchr(raffia_last_error(), '\n'));
    assert_error_mentions("\\x0a");
    assert_error_mentions("cannot open");
}

static void make_subdirectory(const char *name, struct test_directory *below)
{
    struct test_path path = test_path_in(&directory, name);
    assert_int_equal(mkdir(path.text, 0755), 0);
    snprintf(below->path, sizeof below->path, "%.250s", path.text);
}

static void write_in(const struct test_directory *below, const char *name)
{
    test_safetensors_write(test_path_in(below, name).text, one_tensor, 3);
}

static void a_directory_stands_for_its_model(void **state)
{
    (void)state;
    struct test_directory below;
    make_subdirectory("models", &below);
    refuses(RAFFIA_ERROR_NOT_FOUND, below.path, "no *.safetensors file");

    write_in(&below, ".hidden.safetensors");
    write_in(&below, ".safetensors");
    write_in(&below, "notes.txt");
    refuses(RAFFIA_ERROR_NOT_FOUND, below.path, "no *.safetensors file");

    write_in(&below, "only.safetensors");
    opens_one_tensor(below.path, "only.safetensors");
    char slashed[300];
    snprintf(slashed, sizeof slashed, "%s/", below.path);
    opens_one_tensor(slashed, "only.safetensors");

    write_in(&below, "other.safetensors");
    refuses(RAFFIA_ERROR_INVALID_ARGUMENT, below.path, "only.safetensors");
    assert_error_mentions("other.safetensors");
    for (char name[] = "a.safetensors"; name[0] < 'g'; name[0]++)
        write_in(&below, name);
    refuses(RAFFIA_ERROR_INVALID_ARGUMENT, below.path, "and 4 more");

    write_in(&below, "model.safetensors");
    opens_one_tensor(below.path, "model.safetensors");

    static const char index[] = "{\"weight_map\":{\"w\":\"other.safetensors\"}}";
    test_file_write(test_path_in(&below, "model.safetensors.index.json").text, index,
                    strlen(index));
    opens_one_tensor(below.path, "other.safetensors");
}

static void what_a_directory_names_must_be_a_file(void **state)
{
    (void)state;
    struct test_directory below;
    make_subdirectory("nested", &below);
    struct test_path path = test_path_in(&below, "model.safetensors");
    assert_int_equal(mkdir(path.text, 0755), 0);
    refuses(RAFFIA_ERROR_INVALID_ARGUMENT, below.path, "not a regular file");
    assert_int_equal(rmdir(path.text), 0);
    assert_int_equal(symlink("nowhere", path.text), 0);
    refuses(RAFFIA_ERROR_NOT_FOUND, below.path, "model.safetensors");
}

static raffia_status open_directory(void *context)
{
    struct catalog *catalog = NULL;
    raffia_status status = catalog_open(context, NULL, &catalog);
    if (!status) {
        assert_int_equal(catalog->tensor_count, 1);
        catalog_close(catalog);
    }
    return status;
}

static void any_call_may_fail_while_a_directory_is_opened(void **state)
{
    (void)state;
    struct test_directory below;
    make_subdirectory("faults", &below);
    write_in(&below, "only.safetensors");
    assert_in_range(fault_loop(open_directory, below.path, 1000), 12, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_cannot_be_a_model_is_refused_at_once),
        cmocka_unit_test(an_unreadable_file_is_a_matter_of_permission),
        cmocka_unit_test(interrupted_and_short_reads_are_continued),
        cmocka_unit_test(a_file_that_shrinks_is_noticed),
        cmocka_unit_test(long_and_odd_paths_are_cut_and_escaped),
        cmocka_unit_test(a_directory_stands_for_its_model),
        cmocka_unit_test(what_a_directory_names_must_be_a_file),
        cmocka_unit_test(any_call_may_fail_while_a_directory_is_opened),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
