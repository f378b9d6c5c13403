/* What the host driver reads of a machine, real and fake. */
#include "driver/fake_root.h"
#include "driver/host/claims.h"
#include "driver/host/facts.h"
#include "driver/host/host.h"
#include "driver/host_piece.h"
#include "support/cmocka.h"

#include <string.h>
#include <unistd.h>

static struct host_facts facts;

static void an_empty_machine_has_no_facts(void **state)
{
    (void)state;
    host_facts_read(&facts);
    assert_string_equal(facts.kernel_release, "");
    assert_int_equal(facts.pool_count, 0);
    assert_false(facts.thp.present);
    assert_int_equal(facts.node_count, 1);
    assert_true(facts.memory.total == HOST_UNLIMITED);
    assert_true(host_memory_room(&facts.memory) == HOST_UNLIMITED);
    assert_true(facts.locked_memory_limit == HOST_UNLIMITED);
    raffia_device_info info;
    assert_ok(host_driver.device_info(0, &info));
    assert_int_equal(info.page_count, 1);
    assert_int_equal(info.pages[0].kind, RAFFIA_PAGE_REGULAR);
    assert_int_equal(info.total_bytes, 0);
    assert_string_equal(info.model, "unknown processor");
}

static void every_fact_is_read(void **state)
{
    (void)state;
    fake_root_write("/proc/sys/kernel/osrelease", "6.1.0-rt\n");
    fake_root_write("/proc/meminfo", "MemTotal:       1000 kB\nMemFree: 1 kB\n"
                                     "MemAvailable:    600 kB\n");
    fake_root_write("/proc/self/limits",
                    "Limit                     Soft Limit           Hard Limit           Units\n"
                    "Max open files            1024                 4096                 files\n"
                    "Max locked memory         65536                65536                bytes\n");
    fake_root_write("/proc/self/status", "Name:\tx\nTHP_enabled:\t0\n");
    fake_root_write("/proc/buddyinfo", "Node 0, zone      DMA      9 9 9 9 9 9 9 9 9 0 0\n"
                                       "Node 0, zone   Normal      1 1 1 1 1 1 1 1 1 3 2\n");
    fake_root_write("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "%zu\n",
                    (size_t)512 * host_base_page_size());
    fake_root_write("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    fake_root_write("/sys/kernel/mm/transparent_hugepage/defrag",
                    "always defer [defer+madvise] madvise never\n");
    fake_root_write("/sys/kernel/mm/transparent_hugepage/shmem_enabled",
                    "always within_size advise [never] deny force\n");
    fake_root_write("/sys/devices/system/node/online", "0-1,4\n");
    fake_root_add_pool(2048);
    fake_root_write("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "10\n");
    fake_root_write("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "8\n");
    fake_root_write("/sys/kernel/mm/hugepages/hugepages-2048kB/resv_hugepages", "3\n");
    fake_root_write("/sys/kernel/mm/hugepages/hugepages-2048kB/surplus_hugepages", "1\n");
    fake_root_write("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_overcommit_hugepages", "5\n");
    fake_root_write("/sys/devices/system/node/node4/hugepages/hugepages-2048kB/nr_hugepages",
                    "10\n");
    fake_root_write("/sys/devices/system/node/node4/hugepages/hugepages-2048kB/free_hugepages",
                    "8\n");
    fake_root_write("/sys/devices/system/node/node4/meminfo",
                    "Node 4 MemTotal:       500 kB\nNode 4 MemFree:        100 kB\n"
                    "Node 4 Active(file):    20 kB\nNode 4 Inactive(file):   3 kB\n");
    host_facts_read(&facts);
    assert_string_equal(facts.kernel_release, "6.1.0-rt");
    assert_true(facts.memory.total == 1000 * 1024);
    assert_true(host_memory_room(&facts.memory) == 600 * 1024);
    assert_true(facts.open_files_limit == 1024 && facts.locked_memory_limit == 65536);
    assert_true(facts.thp.present && facts.thp.process_disabled);
    assert_string_equal(facts.thp.anonymous, "madvise");
    assert_string_equal(facts.thp.shared, "never");
    assert_string_equal(facts.thp.defrag, "defer+madvise");
    /* Order 9 is 512 base pages, order 10 twice that. */
    assert_true(facts.huge_blocks_bytes == (3 + 2 * 2) * 512 * host_base_page_size());
    assert_int_equal(facts.node_count, 3);
    assert_int_equal(facts.pool_count, 1);
    const struct host_hugetlb_pool *pool = &facts.pools[0];
    assert_true(pool->total == 10 && pool->free == 8 && pool->reserved == 3);
    assert_true(host_hugetlb_available(pool) == 9);
    assert_int_equal(pool->node_count, 3);
    assert_int_equal(pool->nodes[2].node, 4);
    assert_true(pool->nodes[2].total == 10 && pool->nodes[2].free == 8);
    assert_true(pool->nodes[0].total == 0);
    assert_true(host_node_room(4) == 123 * 1024);
    assert_true(host_node_room(0) == HOST_UNLIMITED);
}

static void expect_offer(const raffia_device_info *info, size_t at, raffia_page_kind kind,
                         size_t size)
{
    assert_int_equal(info->pages[at].kind, kind);
    assert_int_equal(info->pages[at].size, size);
}

static void page_sizes_are_those_of_the_machine(void **state)
{
    (void)state;
    fake_root_add_pool(2048);
    fake_root_add_pool(16777216);
    fake_root_add_pool(524288);
    fake_root_write("/sys/kernel/mm/hugepages/hugepages-3kB/nr_hugepages", "1\n");
    fake_root_write("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "536870912\n");
    raffia_device_info info;
    assert_ok(host_driver.device_info(0, &info));
    assert_int_equal(info.page_count, 5);
    expect_offer(&info, 0, RAFFIA_PAGE_HUGETLB, (size_t)16 << 30);
    expect_offer(&info, 1, RAFFIA_PAGE_HUGETLB, (size_t)512 << 20);
    expect_offer(&info, 2, RAFFIA_PAGE_TRANSPARENT, (size_t)512 << 20);
    expect_offer(&info, 3, RAFFIA_PAGE_HUGETLB, (size_t)2 << 20);
    expect_offer(&info, 4, RAFFIA_PAGE_REGULAR, host_base_page_size());
}

static void too_many_page_sizes_lose_the_smallest(void **state)
{
    (void)state;
    for (unsigned long kb = 64; kb <= 64u << 9; kb *= 2)
        fake_root_add_pool(kb);
    fake_root_write("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "2097152\n");
    raffia_device_info info;
    assert_ok(host_driver.device_info(0, &info));
    assert_int_equal(info.page_count, RAFFIA_PAGE_SIZES_MAX);
    expect_offer(&info, 0, RAFFIA_PAGE_HUGETLB, (size_t)32 << 20);
    expect_offer(&info, RAFFIA_PAGE_SIZES_MAX - 1, RAFFIA_PAGE_REGULAR, host_base_page_size());
    host_facts_read(&facts);
    assert_int_equal(facts.pool_count, HOST_POOLS_MAX);
}

static void the_mode_of_a_size_beats_the_mode_of_all(void **state)
{
    (void)state;
    fake_root_write("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "2097152\n");
    fake_root_write("/sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n");
    struct host_thp thp;
    host_thp_read(&thp);
    assert_string_equal(thp.anonymous, "always");
    fake_root_write("/sys/kernel/mm/transparent_hugepage/hugepages-2048kB/enabled",
                    "always [inherit] madvise never\n");
    host_thp_read(&thp);
    assert_string_equal(thp.anonymous, "always");
    assert_string_equal(thp.anonymous_path, "/sys/kernel/mm/transparent_hugepage/enabled");
    fake_root_write("/sys/kernel/mm/transparent_hugepage/hugepages-2048kB/enabled",
                    "always inherit madvise [never]\n");
    host_thp_read(&thp);
    assert_string_equal(thp.anonymous, "never");
    assert_string_equal(thp.anonymous_path,
                        "/sys/kernel/mm/transparent_hugepage/hugepages-2048kB/enabled");
}

static void the_device_is_no_larger_than_its_group(void **state)
{
    (void)state;
    fake_root_write("/proc/cpuinfo", "processor\t: 0\nmodel name\t: Abacus 9000\nflags : x\n");
    fake_root_write("/proc/meminfo", "MemTotal: 10000 kB\nMemAvailable: 9000 kB\n");
    fake_root_write("/proc/self/mountinfo", "30 22 0:26 / /cg rw - cgroup2 cgroup2 rw\n");
    fake_root_write("/proc/self/cgroup", "0::/\n");
    fake_root_write("/cg/memory.max", "5120000\n");
    fake_root_write("/cg/memory.current", "120000\n");
    raffia_device_info info;
    assert_ok(host_driver.device_info(0, &info));
    assert_string_equal(info.name, "host");
    assert_string_equal(info.model, "Abacus 9000");
    assert_int_equal(info.total_bytes, 5120000);
    assert_int_equal(info.free_bytes, host_fillable(5000000));
    fake_root_write("/cg/memory.max", "max\n");
    assert_ok(host_driver.device_info(0, &info));
    assert_int_equal(info.total_bytes, 10000 * 1024);
    assert_int_equal(info.free_bytes, host_fillable(9000 * 1024));
}

static void not_all_room_can_be_filled(void **state)
{
    (void)state;
    assert_true(host_fillable(HOST_UNLIMITED) == HOST_UNLIMITED);
    assert_int_equal(host_fillable(1 << 20), 0);
    for (uint64_t room = 4 << 20; room < (uint64_t)1 << 40; room += room / 3) {
        uint64_t bytes = host_fillable(room), tables = bytes / 512;
        assert_in_range(room - bytes - tables, 2 << 20, (2 << 20) + 1);
    }
}

static int is_nothing_claimed(void *unused)
{
    (void)unused;
    return host_claims_bytes() != 0;
}

static void what_is_about_to_be_filled_counts_as_used(void **state)
{
    (void)state;
    struct host_memory before, now;
    struct host_claim claim = {0}, other = {0};
    fake_root_write("/proc/meminfo", "MemTotal: 10000 kB\nMemAvailable: 9000 kB\n");
    host_memory_read(&before);
    host_claims_lock();
    host_claim_make(&claim, 3000);
    host_claim_make(&other, 500);
    host_claims_unlock();
    host_memory_read(&now);
    assert_int_equal(now.available, before.available - 3500);
    host_claim_settle(&claim, 1000);
    assert_int_equal(host_claims_bytes(), 2500);
    assert_int_equal(host_piece_in_child(is_nothing_claimed, NULL), 0);
    host_claim_settle(&claim, 2500);
    assert_int_equal(host_claims_bytes(), 500);
    host_claim_end(&claim);
    host_claim_end(&other);
    host_memory_read(&now);
    assert_int_equal(now.available, before.available);
}

static void files_longer_than_the_buffer_are_read_whole(void **state)
{
    (void)state;
    static char padding[100000];
    memset(padding, 'x', sizeof padding - 1);
    fake_root_write("/proc/meminfo", "%s\nMemTotal: 7 kB\n", padding);
    struct host_memory memory;
    host_memory_read(&memory);
    assert_true(memory.total == 7 * 1024);
}

static void this_machine_has_facts(void **state)
{
    (void)state;
    host_facts_read(&facts);
    assert_true(facts.kernel_release[0] != '\0');
    assert_true(facts.memory.total != HOST_UNLIMITED && facts.memory.total > 0);
    raffia_device_info info;
    assert_ok(host_driver.device_info(0, &info));
    assert_true(info.free_bytes > 0 && info.free_bytes <= info.total_bytes);
    assert_true(info.total_bytes <= facts.memory.total);
    assert_true(info.cpu_accessible && !info.asynchronous);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fake_root_test(an_empty_machine_has_no_facts),
        fake_root_test(every_fact_is_read),
        fake_root_test(page_sizes_are_those_of_the_machine),
        fake_root_test(too_many_page_sizes_lose_the_smallest),
        fake_root_test(the_mode_of_a_size_beats_the_mode_of_all),
        fake_root_test(the_device_is_no_larger_than_its_group),
        cmocka_unit_test(not_all_room_can_be_filled),
        fake_root_test(what_is_about_to_be_filled_counts_as_used),
        fake_root_test(files_longer_than_the_buffer_are_read_whole),
        cmocka_unit_test(this_machine_has_facts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
