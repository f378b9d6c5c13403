/* Limits of control groups, on machines that a fake root shows. */
#include "driver/fake_root.h"
#include "driver/host/cgroup.h"
#include "support/cmocka.h"

#include <string.h>

#define MIB 1048576ull

static void mount_version_2(void)
{
    fake_root_write("/proc/self/mountinfo",
                    "22 1 8:1 / / rw - ext4 /dev/sda rw\n"
                    "30 22 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n");
}

static void no_files_mean_no_limit(void **state)
{
    (void)state;
    struct host_limit memory, fault, reservation;
    host_memory_limit(&memory);
    host_hugetlb_limits((size_t)2 << 20, &fault, &reservation);
    assert_true(memory.limit == HOST_UNLIMITED && host_limit_room(&memory) == HOST_UNLIMITED);
    assert_string_equal(memory.path, "");
    assert_true(fault.limit == HOST_UNLIMITED && reservation.limit == HOST_UNLIMITED);
}

static void version_2_takes_the_tightest_ancestor(void **state)
{
    (void)state;
    mount_version_2();
    fake_root_write("/proc/self/cgroup", "0::/pod/box\n");
    fake_root_write("/sys/fs/cgroup/pod/box/memory.max", "max\n");
    fake_root_write("/sys/fs/cgroup/pod/box/memory.current", "%llu\n", 10 * MIB);
    fake_root_write("/sys/fs/cgroup/pod/memory.max", "%llu\n", 100 * MIB);
    fake_root_write("/sys/fs/cgroup/pod/memory.current", "%llu\n", 90 * MIB);
    fake_root_write("/sys/fs/cgroup/pod/memory.stat",
                    "anon 5\nfile 7\ninactive_file %llu\nactive_file %llu\nslab 1\n", 20 * MIB,
                    5 * MIB);
    struct host_limit limit;
    host_memory_limit(&limit);
    assert_string_equal(limit.path, "/sys/fs/cgroup/pod/memory.max");
    assert_true(limit.limit == 100 * MIB);
    assert_true(limit.usage == 65 * MIB);
    assert_true(host_limit_room(&limit) == 35 * MIB);

    fake_root_write("/sys/fs/cgroup/pod/box/memory.max", "%llu\n", 30 * MIB);
    host_memory_limit(&limit);
    assert_string_equal(limit.path, "/sys/fs/cgroup/pod/box/memory.max");
    assert_true(host_limit_room(&limit) == 20 * MIB);
}

static void usage_above_the_limit_leaves_no_room(void **state)
{
    (void)state;
    mount_version_2();
    fake_root_write("/proc/self/cgroup", "0::/\n");
    fake_root_write("/sys/fs/cgroup/memory.max", "4096\n");
    fake_root_write("/sys/fs/cgroup/memory.current", "8192\n");
    struct host_limit limit;
    host_memory_limit(&limit);
    assert_true(limit.limit == 4096 && host_limit_room(&limit) == 0);
}

static void version_1_memory_beside_a_unified_hierarchy(void **state)
{
    (void)state;
    fake_root_write("/proc/self/mountinfo",
                    "31 22 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
                    "35 31 0:32 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
                    "36 31 0:33 / /sys/fs/cgroup/my\\040memory rw - cgroup cgroup rw,memory\n"
                    "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
    fake_root_write("/proc/self/cgroup", "9:name=systemd:/x\n4:memory:/a/b\n1:cpu,cpuacct:/\n"
                                         "0::/u\n");
    fake_root_write("/sys/fs/cgroup/my memory/a/b/memory.limit_in_bytes", "9223372036854771712\n");
    fake_root_write("/sys/fs/cgroup/my memory/a/memory.limit_in_bytes", "%llu\n", 64 * MIB);
    fake_root_write("/sys/fs/cgroup/my memory/a/memory.usage_in_bytes", "%llu\n", 16 * MIB);
    fake_root_write("/sys/fs/cgroup/my memory/a/memory.stat",
                    "inactive_file 1\ntotal_inactive_file %llu\ntotal_active_file 0\n", 6 * MIB);
    struct host_limit limit;
    host_memory_limit(&limit);
    assert_string_equal(limit.path, "/sys/fs/cgroup/my memory/a/memory.limit_in_bytes");
    assert_true(host_limit_room(&limit) == 54 * MIB);

    fake_root_write("/sys/fs/cgroup/unified/u/hugetlb.2MB.max", "%llu\n", 8 * MIB);
    fake_root_write("/sys/fs/cgroup/unified/u/hugetlb.2MB.current", "%llu\n", 2 * MIB);
    fake_root_write("/sys/fs/cgroup/unified/hugetlb.2MB.rsvd.max", "0\n");
    struct host_limit fault, reservation;
    host_hugetlb_limits((size_t)2 << 20, &fault, &reservation);
    assert_string_equal(fault.path, "/sys/fs/cgroup/unified/u/hugetlb.2MB.max");
    assert_true(host_limit_room(&fault) == 6 * MIB);
    assert_string_equal(reservation.path, "/sys/fs/cgroup/unified/hugetlb.2MB.rsvd.max");
    assert_true(reservation.limit == 0 && host_limit_room(&reservation) == 0);
}

static void version_1_hugetlb_names_sizes_as_the_kernel_does(void **state)
{
    (void)state;
    fake_root_write("/proc/self/mountinfo",
                    "36 31 0:33 / /cg/hugetlb rw - cgroup cgroup rw,hugetlb\n");
    fake_root_write("/proc/self/cgroup", "4:hugetlb:/\n");
    fake_root_write("/cg/hugetlb/hugetlb.64KB.limit_in_bytes", "65536\n");
    fake_root_write("/cg/hugetlb/hugetlb.512MB.limit_in_bytes", "0\n");
    fake_root_write("/cg/hugetlb/hugetlb.16GB.rsvd.limit_in_bytes", "0\n");
    struct host_limit fault, reservation;
    host_hugetlb_limits((size_t)64 << 10, &fault, &reservation);
    assert_true(fault.limit == 65536 && reservation.limit == HOST_UNLIMITED);
    host_hugetlb_limits((size_t)512 << 20, &fault, &reservation);
    assert_true(fault.limit == 0);
    host_hugetlb_limits((size_t)16 << 30, &fault, &reservation);
    assert_true(fault.limit == HOST_UNLIMITED && reservation.limit == 0);
}

/* A container without a group namespace sees the host's path, and as its mount the group itself. */
static void a_mounted_subtree_is_the_own_group(void **state)
{
    (void)state;
    fake_root_write("/proc/self/mountinfo",
                    "30 22 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n");
    fake_root_write("/sys/fs/cgroup/memory.max", "1000\n");
    fake_root_write("/sys/fs/cgroup/deep/memory.max", "500\n");
    struct host_limit limit;
    fake_root_write("/proc/self/cgroup", "0::/docker/abc\n");
    host_memory_limit(&limit);
    assert_true(limit.limit == 1000);
    fake_root_write("/proc/self/cgroup", "0::/docker/abc/deep\n");
    host_memory_limit(&limit);
    assert_true(limit.limit == 500);
    /* Neither a neighbour with a longer name nor a path out of the namespace is inside. */
    fake_root_write("/proc/self/cgroup", "0::/docker/abcdef/deep\n");
    host_memory_limit(&limit);
    assert_true(limit.limit == 1000);
    fake_root_write("/proc/self/cgroup", "0::/../deep\n");
    host_memory_limit(&limit);
    assert_true(limit.limit == 1000);
}

static void the_mount_that_shows_the_group_is_preferred(void **state)
{
    (void)state;
    fake_root_write("/proc/self/mountinfo",
                    "30 22 0:26 /other /mnt/other rw - cgroup2 cgroup2 rw\n"
                    "31 22 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    fake_root_write("/proc/self/cgroup", "0::/mine\n");
    fake_root_write("/mnt/other/memory.max", "1\n");
    fake_root_write("/sys/fs/cgroup/mine/memory.max", "2000\n");
    struct host_limit limit;
    host_memory_limit(&limit);
    assert_true(limit.limit == 2000);
}

static void damaged_files_are_passed_over(void **state)
{
    (void)state;
    struct host_limit limit;
    fake_root_write("/proc/self/mountinfo", "30\n\n1 2 3 4 5\n - \n1 2 3 / /cg - cgroup2\n");
    fake_root_write("/proc/self/cgroup", "\n:\n::\n0:\n0::/a\n");
    host_memory_limit(&limit);
    assert_true(limit.limit == HOST_UNLIMITED);
    mount_version_2();
    fake_root_write("/sys/fs/cgroup/a/memory.max", "lots\n");
    host_memory_limit(&limit);
    assert_true(limit.limit == HOST_UNLIMITED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fake_root_test(no_files_mean_no_limit),
        fake_root_test(version_2_takes_the_tightest_ancestor),
        fake_root_test(usage_above_the_limit_leaves_no_room),
        fake_root_test(version_1_memory_beside_a_unified_hierarchy),
        fake_root_test(version_1_hugetlb_names_sizes_as_the_kernel_does),
        fake_root_test(a_mounted_subtree_is_the_own_group),
        fake_root_test(the_mount_that_shows_the_group_is_preferred),
        fake_root_test(damaged_files_are_passed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
