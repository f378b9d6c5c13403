/* What the kernel says of the page cache. */
#include "core/fault.h"
#include "load/residency.h"
#include "load_fixture.h"
#include "support/cmocka.h"

#include <fcntl.h>
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

static void a_file_just_written_is_cached_and_a_dropped_one_is_not(void **state)
{
    (void)state;
    struct test_path path = test_path_in(&directory, "model.safetensors");
    struct model_file_tensor tensor = model_file_bytes("t", 4 * MIB);
    model_file_write(path.text, &tensor, 1, 8, 0, 0);
    int fd = open(path.text, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_true(load_cached_share(fd, 0, 4 * MIB) > 0.9);
    /* Without cachestat(2) a few places are asked. */
    core_fault_arm(1);
    double sampled = load_cached_share(fd, 0, 4 * MIB);
    assert_string_equal(core_fault_disarm(), "cachestat");
    assert_true(sampled > 0.9 || sampled < 0);
    if (!model_file_chill(path.text)) {
        close(fd);
        print_message("the page cache cannot be emptied here\n");
        skip();
    }
    assert_true(load_cached_share(fd, MIB, MIB) < 0.1);
    /* What probes say of a cold file depends on the disk: a virtual one may fill the page before
     * the read that must not wait has looked. */
    core_fault_arm(1);
    sampled = load_cached_share(fd, MIB, MIB);
    assert_string_equal(core_fault_disarm(), "cachestat");
    assert_true(sampled <= 1);
    close(fd);
}

static void nothing_is_known_of_what_is_not_open(void **state)
{
    (void)state;
    assert_true(load_cached_share(-1, 0, 4096) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_just_written_is_cached_and_a_dropped_one_is_not),
        cmocka_unit_test(nothing_is_known_of_what_is_not_open),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
