/* Requests that must be refused, with the reason and before any harm. */
#include "core/memory.h"
#include "driver/fake_root.h"
#include "driver/host/facts.h"
#include "driver/host/host.h"
#include "driver/host_piece.h"
#include "support/cmocka.h"
#include "support/huge_requests.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct driver *driver = &host_driver;

static void expect_refusal(const struct driver_chunk_spec *spec, raffia_status status,
                           raffia_fallback_reason reason, const char *mentions)
{
    struct host_piece piece;
    assert_status(status, host_piece_get(&piece, spec));
    if (piece.reason != reason)
        fail_msg("refused for '%s', expected '%s': %s", raffia_fallback_reason_name(piece.reason),
                 raffia_fallback_reason_name(reason), raffia_last_error());
    assert_error_mentions(mentions);
}

static void fake_transparent(const char *enabled)
{
    fake_root_write("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "2097152\n");
    fake_root_write("/sys/kernel/mm/transparent_hugepage/enabled", "%s\n", enabled);
}

static void more_than_the_machine_has_is_refused(void **state)
{
    (void)state;
    fake_root_write("/proc/meminfo", "MemTotal: 9216 kB\nMemAvailable: 3072 kB\n");
    struct driver_chunk_spec spec = host_piece_spec(RAFFIA_PAGE_REGULAR, 1);
    spec.bytes = (size_t)1 << 20; /* page tables do not fit beside it and what is left to others */
    for (int remappable = 0; remappable < 2; remappable++) {
        spec.remappable = remappable;
        expect_refusal(&spec, RAFFIA_ERROR_OUT_OF_MEMORY, RAFFIA_REASON_MEMORY, "MemAvailable");
        assert_error_mentions("3 MiB available of 9 MiB");
    }
    spec.bytes /= 2;
    struct host_piece piece;
    assert_ok(host_piece_get(&piece, &spec));
    assert_ok(host_piece_put(&piece));
}

static void refused_memory_was_never_touched(void **state)
{
    (void)state;
    fake_root_write("/proc/meminfo", "MemTotal: 4096 kB\nMemAvailable: 1024 kB\n");
    struct driver_chunk_spec spec = host_piece_spec(RAFFIA_PAGE_REGULAR, 1024);
    spec.handle = DRIVER_HANDLE_FD;
    void *base;
    driver_chunk chunk;
    raffia_fallback_reason reason;
    uint64_t handle[DRIVER_HANDLE_WORDS];
    struct stat status;
    assert_ok(driver->range_reserve(0, spec.bytes, spec.page_size, &base));
    assert_ok(driver->chunk_create(0, &spec, &chunk, &reason));
    assert_ok(driver->chunk_export(0, chunk, DRIVER_HANDLE_FD, handle));
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, driver->chunk_map(0, chunk, base, &reason));
    assert_int_equal(fstat((int)handle[0], &status), 0);
    assert_int_equal(status.st_blocks, 0);
    assert_int_equal(host_piece_in_child(host_piece_read, base), -SIGSEGV);

    /* Memory that a chunk holds already is not counted again. */
    fake_root_write("/proc/meminfo", "MemTotal: 8192 kB\nMemAvailable: 8192 kB\n");
    assert_ok(driver->chunk_map(0, chunk, base, &reason));
    assert_ok(driver->chunk_unmap(0, chunk, base));
    fake_root_write("/proc/meminfo", "MemTotal: 8192 kB\nMemAvailable: 0 kB\n");
    assert_ok(driver->chunk_map(0, chunk, base, &reason));
    assert_ok(driver->chunk_unmap(0, chunk, base));
    assert_ok(driver->chunk_destroy(0, chunk));
    assert_ok(driver->range_release(0, base, spec.bytes));
    close((int)handle[0]);
}

static void more_than_the_group_allows_is_refused(void **state)
{
    (void)state;
    fake_root_write("/proc/meminfo", "MemTotal: 4194304 kB\nMemAvailable: 4194304 kB\n");
    fake_root_write("/proc/self/mountinfo", "30 22 0:26 / /cg rw - cgroup2 cgroup2 rw\n");
    fake_root_write("/proc/self/cgroup", "0::/box\n");
    fake_root_write("/cg/box/memory.max", "4194304\n");
    fake_root_write("/cg/box/memory.current", "2097152\n");
    fake_transparent("always [madvise] never");
    struct driver_chunk_spec spec = host_piece_spec(RAFFIA_PAGE_TRANSPARENT, 2);
    expect_refusal(&spec, RAFFIA_ERROR_OUT_OF_MEMORY, RAFFIA_REASON_CGROUP, "/cg/box/memory.max");
    assert_error_mentions("allows 4 MiB, of which 2 MiB are used");
}

static bool write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    if (!file)
        return false;
    bool written = fputs(text, file) >= 0;
    return fclose(file) == 0 && written;
}

#define REAL_GROUP "/sys/fs/cgroup/memory/raffia-test"

/* Asks for more than the group has: killed, if the check were not there. Then for less. */
static int ask_in_real_group(void *context)
{
    const struct driver_chunk_spec *spec = context;
    struct host_piece piece;
    if (!write_text(REAL_GROUP "/cgroup.procs", "0"))
        return 10;
    if (host_piece_get(&piece, spec) != RAFFIA_ERROR_OUT_OF_MEMORY)
        return 1;
    if (piece.reason != RAFFIA_REASON_CGROUP ||
        !strstr(raffia_last_error(), REAL_GROUP "/memory.limit_in_bytes"))
        return 2;
    struct driver_chunk_spec small = *spec;
    small.bytes /= 16;
    if (host_piece_get(&piece, &small))
        return 3;
    return host_piece_put(&piece) ? 4 : 0;
}

static void a_real_group_kills_nobody(void **state)
{
    (void)state;
    bool made = mkdir(REAL_GROUP, 0700) == 0;
    if (!made || !write_text(REAL_GROUP "/memory.limit_in_bytes", "67108864")) {
        if (made)
            rmdir(REAL_GROUP);
        print_message("no version 1 memory group can be made\n");
        skip();
    }
    struct driver_chunk_spec spec = host_piece_spec(RAFFIA_PAGE_REGULAR, 1);
    spec.bytes = (size_t)256 << 20;
    int result = host_piece_in_child(ask_in_real_group, &spec);
    for (int attempt = 0; attempt < 1000 && rmdir(REAL_GROUP); attempt++)
        usleep(1000); /* the child may still be counted */
    assert_int_equal(result, 0);
}

static void more_than_the_node_has_is_refused(void **state)
{
    (void)state;
    struct driver_chunk_spec spec = host_piece_spec(RAFFIA_PAGE_REGULAR, 16);
    spec.numa_node = 0;
    fake_root_write("/sys/devices/system/node/node0/meminfo", "Node 0 MemFree: 16 kB\n");
    expect_refusal(&spec, RAFFIA_ERROR_OUT_OF_MEMORY, RAFFIA_REASON_NODE, "NUMA node 0 has 16 KiB");
}

static void a_node_that_does_not_exist_is_refused(void **state)
{
    (void)state;
    struct driver_chunk_spec spec = host_piece_spec(RAFFIA_PAGE_REGULAR, 16);
    struct host_piece piece;
    spec.numa_node = 999;
    expect_refusal(&spec, RAFFIA_ERROR_NOT_FOUND, RAFFIA_REASON_NONE, "there is no NUMA node 999");
    spec.numa_node = 0;
    assert_ok(host_piece_get(&piece, &spec));
    assert_ok(host_piece_put(&piece));
}

static void never_is_honoured(void **state)
{
    (void)state;
    fake_transparent("always madvise [never]");
    struct driver_chunk_spec spec = host_piece_spec(RAFFIA_PAGE_TRANSPARENT, 1);
    expect_refusal(&spec, RAFFIA_ERROR_UNSUPPORTED, RAFFIA_REASON_DISABLED,
                   "/sys/kernel/mm/transparent_hugepage/enabled");
    fake_transparent("[always] madvise never");
    fake_root_write("/sys/kernel/mm/transparent_hugepage/hugepages-2048kB/enabled",
                    "always inherit madvise [never]\n");
    expect_refusal(&spec, RAFFIA_ERROR_UNSUPPORTED, RAFFIA_REASON_DISABLED,
                   "hugepages-2048kB/enabled");
}

static void deny_is_about_shared_memory(void **state)
{
    (void)state;
    fake_transparent("[always] madvise never");
    fake_root_write("/sys/kernel/mm/transparent_hugepage/shmem_enabled",
                    "always within_size advise never [deny] force\n");
    struct driver_chunk_spec spec = host_piece_spec(RAFFIA_PAGE_TRANSPARENT, 1);
    spec.remappable = true;
    expect_refusal(&spec, RAFFIA_ERROR_UNSUPPORTED, RAFFIA_REASON_DISABLED, "shmem_enabled");
}

static void kinds_the_machine_lacks_are_refused(void **state)
{
    (void)state;
    struct driver_chunk_spec spec = host_piece_spec(RAFFIA_PAGE_TRANSPARENT, 1);
    expect_refusal(&spec, RAFFIA_ERROR_UNSUPPORTED, RAFFIA_REASON_UNSUPPORTED, "is missing");
    fake_transparent("[always] madvise never");
    spec.page_size = (size_t)32 << 20;
    spec.bytes = spec.page_size;
    expect_refusal(&spec, RAFFIA_ERROR_UNSUPPORTED, RAFFIA_REASON_UNSUPPORTED, "are 2 MiB large");
    spec = host_piece_spec(RAFFIA_PAGE_REGULAR, 2);
    spec.page_size *= 2;
    expect_refusal(&spec, RAFFIA_ERROR_UNSUPPORTED, RAFFIA_REASON_UNSUPPORTED, "large on this");
    spec = host_piece_spec(RAFFIA_PAGE_REGULAR, 1);
    spec.kind = RAFFIA_PAGE_DEVICE;
    expect_refusal(&spec, RAFFIA_ERROR_UNSUPPORTED, RAFFIA_REASON_UNSUPPORTED, "'device'");
    spec.kind = RAFFIA_PAGE_REGULAR;
    spec.handle = DRIVER_HANDLE_FABRIC;
    expect_refusal(&spec, RAFFIA_ERROR_UNSUPPORTED, RAFFIA_REASON_UNSUPPORTED, "descriptors only");
}

static int ask_with_huge_pages_disabled(void *context)
{
    const struct driver_chunk_spec *spec = context;
    struct host_piece piece;
    if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0))
        return 10;
    if (host_piece_get(&piece, spec) != RAFFIA_ERROR_UNSUPPORTED)
        return 1;
    return piece.reason == RAFFIA_REASON_DISABLED &&
                   strstr(raffia_last_error(), "PR_SET_THP_DISABLE")
               ? 0
               : 2;
}

static void a_process_without_huge_pages_is_told(void **state)
{
    (void)state;
    if (!host_piece_transparent_works())
        skip();
    struct driver_chunk_spec spec = host_piece_spec(RAFFIA_PAGE_TRANSPARENT, 1);
    assert_int_equal(host_piece_in_child(ask_with_huge_pages_disabled, &spec), 0);
}

static int ask_without_descriptors(void *context)
{
    struct driver_chunk_spec *spec = context;
    struct rlimit none = {0, 0};
    struct host_piece piece;
    if (setrlimit(RLIMIT_NOFILE, &none))
        return 10;
    if (host_piece_get(&piece, spec) != RAFFIA_ERROR_LIMIT)
        return 1;
    return piece.reason == RAFFIA_REASON_LIMIT && strstr(raffia_last_error(), "ulimit -n") ? 0 : 2;
}

static void the_limit_of_open_files_is_named(void **state)
{
    (void)state;
    struct driver_chunk_spec spec = host_piece_spec(RAFFIA_PAGE_REGULAR, 1);
    spec.remappable = true;
    assert_int_equal(host_piece_in_child(ask_without_descriptors, &spec), 0);
}

/* A limit of the process, and what runs into it. */
struct limited {
    int resource;
    uint64_t room; /* beyond what is used now, bytes */
    raffia_status (*ask)(struct driver_chunk_spec *spec);
    struct driver_chunk_spec spec;
    const char *mentions;
};

static raffia_status ask_for_chunk(struct driver_chunk_spec *spec)
{
    struct host_piece piece;
    return host_piece_get(&piece, spec);
}

static raffia_status ask_for_addresses(struct driver_chunk_spec *spec)
{
    void *base;
    return driver->range_reserve(0, spec->bytes, spec->page_size, &base);
}

static raffia_status ask_for_regular_memory(struct driver_chunk_spec *spec)
{
    void *address;
    return driver->mem_alloc(0, spec->bytes, &address);
}

static uint64_t used_now(const char *key)
{
    uint64_t bytes = 0;
    char *text = host_read_whole("/proc/self/status");
    if (text)
        (void)host_find_kilobytes(text, key, &bytes);
    core_free(text);
    return bytes;
}

static int ask_below_limit(void *context)
{
    struct limited *limited = context;
    const uint64_t used = used_now(limited->resource == RLIMIT_AS ? "VmSize:" : "VmData:");
    const struct rlimit room = {used + limited->room, used + limited->room};
    if (!used || setrlimit(limited->resource, &room))
        return 10;
    if (!limited->ask(&limited->spec))
        return 1;
    if (strstr(raffia_last_error(), limited->mentions) && strstr(raffia_last_error(), "are used"))
        return 0;
    fprintf(stderr, "no word of %s: %s\n", limited->mentions, raffia_last_error());
    return 2;
}

static void the_limit_of_memory_that_is_exceeded_is_named(void **state)
{
    enum { MIB = 1 << 20 };
    (void)state;
    struct limited limited = {.resource = RLIMIT_DATA,
                              .room = 8 * MIB,
                              .ask = ask_for_chunk,
                              .spec = host_piece_spec(RAFFIA_PAGE_REGULAR, 1),
                              .mentions = "ulimit -d"};
    limited.spec.bytes = (size_t)64 * MIB;
    assert_int_equal(host_piece_in_child(ask_below_limit, &limited), 0);
    limited.ask = ask_for_regular_memory;
    assert_int_equal(host_piece_in_child(ask_below_limit, &limited), 0);
    limited.resource = RLIMIT_AS;
    limited.mentions = "ulimit -v";
    assert_int_equal(host_piece_in_child(ask_below_limit, &limited), 0);
    limited.ask = ask_for_addresses;
    assert_int_equal(host_piece_in_child(ask_below_limit, &limited), 0);
    /* Addresses that no process has are not laid on a limit. */
    limited.spec.bytes = (size_t)1 << 60;
    assert_status(RAFFIA_ERROR_LIMIT, ask_for_addresses(&limited.spec));
    assert_error_mentions("max_map_count");
}

static int map_without_evidence(void *context)
{
    struct host_piece *piece = context;
    struct rlimit none = {0, 0};
    if (setrlimit(RLIMIT_NOFILE, &none))
        return 10;
    if (driver->chunk_map(0, piece->chunk, piece->at, &piece->reason) == RAFFIA_OK)
        return 1;
    return piece->reason == RAFFIA_REASON_SMALLER &&
                   strstr(raffia_last_error(), "cannot be read back")
               ? 0
               : 2;
}

/* A process whose /proc files cannot be opened gets no transparent pages, since they would be a
 * promise that nobody checked; regular pages need no check. */
static void what_cannot_be_verified_is_not_promised(void **state)
{
    (void)state;
    if (!host_piece_transparent_works())
        skip();
    struct driver_chunk_spec spec = host_piece_spec(RAFFIA_PAGE_TRANSPARENT, 1);
    struct host_piece piece;
    assert_ok(host_piece_get(&piece, &spec));
    assert_ok(driver->chunk_unmap(0, piece.chunk, piece.at));
    assert_int_equal(host_piece_in_child(map_without_evidence, &piece), 0);
    assert_ok(driver->chunk_map(0, piece.chunk, piece.at, &piece.reason));
    assert_ok(host_piece_put(&piece));
    spec = host_piece_spec(RAFFIA_PAGE_REGULAR, 1);
    assert_ok(host_piece_get(&piece, &spec));
    assert_ok(driver->chunk_unmap(0, piece.chunk, piece.at));
    assert_int_equal(host_piece_in_child(map_without_evidence, &piece), 1);
    assert_ok(driver->chunk_map(0, piece.chunk, piece.at, &piece.reason));
    assert_ok(host_piece_put(&piece));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fake_root_test(more_than_the_machine_has_is_refused),
        fake_root_test(refused_memory_was_never_touched),
        fake_root_test(more_than_the_group_allows_is_refused),
        cmocka_unit_test(a_real_group_kills_nobody),
        fake_root_test(more_than_the_node_has_is_refused),
        cmocka_unit_test(a_node_that_does_not_exist_is_refused),
        fake_root_test(never_is_honoured),
        fake_root_test(deny_is_about_shared_memory),
        fake_root_test(kinds_the_machine_lacks_are_refused),
        cmocka_unit_test(a_process_without_huge_pages_is_told),
        cmocka_unit_test(the_limit_of_open_files_is_named),
        cmocka_unit_test(the_limit_of_memory_that_is_exceeded_is_named),
        cmocka_unit_test(what_cannot_be_verified_is_not_promised),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
