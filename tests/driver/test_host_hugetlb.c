/* Pages of the machine's own hugetlb pool. Needs root and a few free 2 MiB blocks, else skips. */
#include "driver/host/facts.h"
#include "driver/host/host.h"
#include "driver/host/pagemap.h"
#include "driver/host_piece.h"
#include "driver/hugetlb_pages.h"
#include "support/cmocka.h"
#include "support/fault_loop.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const struct driver *driver = &host_driver;

/* As many calls as mapping, verifying and undoing make in the worst case. */
#define CALLS_MAX 300

static void need_pages(size_t pages)
{
    if (!hugetlb_pages_set(pages)) {
        print_message("the machine's pool of 2 MiB pages cannot be set to %zu pages\n", pages);
        skip();
    }
}

static int restore(void **state)
{
    (void)state;
    hugetlb_pages_restore();
    return 0;
}

static void pages_come_from_the_pool_and_return(void **state)
{
    (void)state;
    need_pages(4);
    struct driver_chunk_spec spec = host_piece_spec(RAFFIA_PAGE_HUGETLB, 3);
    for (int remappable = 0; remappable < 2; remappable++) {
        spec.remappable = remappable;
        struct host_piece piece;
        assert_ok(host_piece_get(&piece, &spec));
        host_piece_check(&piece);
        assert_int_equal(hugetlb_pages_available(), 1);
        struct driver_page_evidence evidence;
        assert_ok(
            driver->page_size_of(0, piece.at, spec.bytes, spec.kind, (size_t)1 << 30, &evidence));
        assert_int_equal(evidence.conforming, 0);
        assert_ok(host_piece_put(&piece));
        assert_int_equal(hugetlb_pages_available(), 4);
    }
}

static void sources_of_evidence_agree(void **state)
{
    (void)state;
    need_pages(2);
    struct driver_chunk_spec spec = host_piece_spec(RAFFIA_PAGE_HUGETLB, 2);
    struct host_piece piece;
    assert_ok(host_piece_get(&piece, &spec));
    struct host_mapped_sizes by_smaps, by_query;
    assert_true(host_mapped_sizes_by_smaps(piece.at, spec.bytes, spec.page_size, &by_smaps));
    assert_int_equal(by_smaps.smallest, spec.page_size);
    assert_int_equal(by_smaps.conforming, spec.bytes);
    if (host_mapped_sizes_by_query(piece.at, spec.bytes, spec.page_size, &by_query))
        assert_memory_equal(&by_query, &by_smaps, sizeof by_query);
    size_t huge;
    if (host_huge_bytes_by_scan(piece.at, spec.bytes, &huge))
        assert_int_equal(huge, spec.bytes);
    assert_ok(host_piece_put(&piece));
}

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

static void an_empty_pool_is_named_with_numbers(void **state)
{
    (void)state;
    need_pages(0);
    struct driver_chunk_spec spec = host_piece_spec(RAFFIA_PAGE_HUGETLB, 5);
    expect_refusal(&spec, RAFFIA_ERROR_OUT_OF_MEMORY, RAFFIA_REASON_POOL_EMPTY,
                   "5 asked, 0 free (0 of them reserved)");
    assert_error_mentions(
        "echo 5 | sudo tee /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages");
    spec.total_bytes = 4 * spec.bytes; /* a chunk is a part of what is wanted */
    expect_refusal(&spec, RAFFIA_ERROR_OUT_OF_MEMORY, RAFFIA_REASON_POOL_EMPTY,
                   "20 asked, 0 free (0 of them reserved)");
    assert_error_mentions("to have 20 more: echo 20 |");
}

static void a_pool_too_small_is_refused_whole(void **state)
{
    (void)state;
    need_pages(3);
    struct driver_chunk_spec spec = host_piece_spec(RAFFIA_PAGE_HUGETLB, 2);
    struct host_piece first;
    assert_ok(host_piece_get(&first, &spec));
    expect_refusal(&spec, RAFFIA_ERROR_OUT_OF_MEMORY, RAFFIA_REASON_POOL_EMPTY, "2 asked, 1 free");
    assert_error_mentions("to have 1 more");
    assert_int_equal(hugetlb_pages_available(), 1);
    assert_ok(host_piece_put(&first));
    assert_int_equal(hugetlb_pages_available(), 3);
}

static void sizes_the_kernel_lacks_are_refused(void **state)
{
    (void)state;
    struct driver_chunk_spec spec = host_piece_spec(RAFFIA_PAGE_HUGETLB, 8);
    spec.page_size *= 4;
    size_t sizes[8], count = host_hugetlb_sizes(sizes, 8);
    for (size_t i = 0; i < count; i++)
        if (sizes[i] == spec.page_size)
            skip();
    expect_refusal(&spec, RAFFIA_ERROR_UNSUPPORTED, RAFFIA_REASON_UNSUPPORTED, "8 MiB pages");
}

static void remapping_and_aliases_keep_the_content(void **state)
{
    (void)state;
    need_pages(2);
    struct driver_chunk_spec spec = host_piece_spec(RAFFIA_PAGE_HUGETLB, 2);
    spec.remappable = true;
    struct host_piece piece;
    void *base;
    assert_ok(host_piece_get(&piece, &spec));
    strcpy((char *)piece.at, "kept");
    assert_ok(driver->range_reserve(0, spec.bytes, spec.page_size, &base));
    assert_ok(driver->chunk_map(0, piece.chunk, base, &piece.reason));
    assert_string_equal(base, "kept");
    assert_ok(driver->chunk_unmap(0, piece.chunk, piece.at));
    assert_ok(driver->chunk_map(0, piece.chunk, piece.at, &piece.reason));
    assert_string_equal((char *)piece.at, "kept");
    assert_ok(driver->chunk_unmap(0, piece.chunk, base));
    assert_ok(driver->range_release(0, base, spec.bytes));
    assert_ok(host_piece_put(&piece));
}

static void an_exported_chunk_is_imported_as_what_it_is(void **state)
{
    (void)state;
    need_pages(2);
    struct driver_chunk_spec spec = host_piece_spec(RAFFIA_PAGE_HUGETLB, 2);
    spec.handle = DRIVER_HANDLE_FD;
    struct host_piece piece;
    uint64_t handle[DRIVER_HANDLE_WORDS];
    driver_chunk chunk;
    assert_ok(host_piece_get(&piece, &spec));
    assert_ok(driver->chunk_export(0, piece.chunk, DRIVER_HANDLE_FD, handle));
    struct driver_chunk_spec wrong = spec;
    wrong.kind = RAFFIA_PAGE_REGULAR;
    wrong.page_size = host_base_page_size();
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT,
                  driver->chunk_import(0, DRIVER_HANDLE_FD, handle, &wrong, &chunk));
    assert_ok(driver->chunk_import(0, DRIVER_HANDLE_FD, handle, &spec, &chunk));
    assert_ok(driver->chunk_destroy(0, chunk));
    close((int)handle[0]);
    assert_ok(host_piece_put(&piece));
}

/* With private hugetlb memory and the pool exhausted, a child's write is a SIGBUS. */
static void a_forked_child_writes_without_a_signal(void **state)
{
    (void)state;
    need_pages(1);
    struct driver_chunk_spec spec = host_piece_spec(RAFFIA_PAGE_HUGETLB, 1);
    struct host_piece piece;
    assert_ok(host_piece_get(&piece, &spec));
    assert_int_equal(host_piece_in_child(host_piece_write, piece.at), 0);
    assert_int_equal(piece.at[0], 77);
    assert_ok(host_piece_put(&piece));
}

struct group_case {
    char procs[256];
    struct driver_chunk_spec spec;
    const char *mentions;
};

static int ask_in_group(void *context)
{
    const struct group_case *group = context;
    int fd = open(group->procs, O_WRONLY);
    if (fd < 0 || write(fd, "0", 1) != 1)
        return 10;
    close(fd);
    struct host_piece piece;
    if (host_piece_get(&piece, &group->spec) != RAFFIA_ERROR_OUT_OF_MEMORY)
        return 1;
    if (piece.reason != RAFFIA_REASON_CGROUP || !strstr(raffia_last_error(), group->mentions)) {
        fprintf(stderr, "%s\n", raffia_last_error());
        return 2;
    }
    struct driver_chunk_spec small = host_piece_spec(RAFFIA_PAGE_HUGETLB, 1);
    if (host_piece_get(&piece, &small))
        return 3;
    piece.at[0] = 1;
    return host_piece_put(&piece) ? 4 : 0;
}

static void limited(const char *suffix, const char *mentions)
{
    need_pages(4);
    struct group_case group = {.spec = host_piece_spec(RAFFIA_PAGE_HUGETLB, 3),
                               .mentions = mentions};
    if (!hugetlb_group_make(suffix, (size_t)4 << 20, group.procs)) {
        print_message("no control group with a hugetlb limit can be made\n");
        skip();
    }
    int result = host_piece_in_child(ask_in_group, &group);
    hugetlb_group_remove();
    assert_int_equal(result, 0);
    assert_int_equal(hugetlb_pages_available(), 4);
}

static void a_group_limit_is_named_and_raises_no_signal(void **state)
{
    (void)state;
    limited("max", "raffia-test/hugetlb.2MB.max");
}

static void a_group_limit_of_reservations_is_named(void **state)
{
    (void)state;
    limited("rsvd.max", "raffia-test/hugetlb.2MB.rsvd.max");
}

/* Addresses that a thread tries to take, and whether it ever could. */
struct burglar {
    void *at;
    size_t bytes;
    atomic_bool stop, got_in;
};

static void *try_the_addresses(void *argument)
{
    struct burglar *burglar = argument;
    while (!atomic_load(&burglar->stop) && !atomic_load(&burglar->got_in))
        atomic_store(&burglar->got_in,
                     mmap(burglar->at, burglar->bytes, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == burglar->at);
    return NULL;
}

/* Else the undo would wipe out what another thread has mapped there since: its stack, say. */
static void a_refused_mapping_never_opens_its_addresses(void **state)
{
    (void)state;
    enum { ROUNDS = 3000 };
    /* Twice as many pages as the machine's memory has room for. */
    const size_t memory = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
    struct driver_chunk_spec spec = host_piece_spec(RAFFIA_PAGE_HUGETLB, memory >> 20);
    raffia_fallback_reason reason;
    driver_chunk chunk;
    struct burglar burglar = {.bytes = spec.bytes};
    assert_ok(driver->range_reserve(0, spec.bytes, spec.page_size, &burglar.at));
    assert_ok(driver->chunk_create(0, &spec, &chunk, &reason));
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, try_the_addresses, &burglar), 0);
    for (int i = 0; i < ROUNDS && !atomic_load(&burglar.got_in); i++)
        assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, driver->chunk_map(0, chunk, burglar.at, &reason));
    atomic_store(&burglar.stop, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_false(atomic_load(&burglar.got_in));
    assert_ok(driver->chunk_destroy(0, chunk));
    assert_ok(driver->range_release(0, burglar.at, spec.bytes));
}

static raffia_status map_and_unmap(void *context)
{
    struct host_piece piece;
    raffia_status status = host_piece_get(&piece, context);
    if (status) {
        if (piece.at)
            assert_int_not_equal(piece.reason, RAFFIA_REASON_NONE);
        return status;
    }
    piece.at[piece.spec.bytes - 1] = 1;
    return host_piece_put(&piece);
}

static void every_call_may_fail(void **state)
{
    (void)state;
    need_pages(2);
    struct driver_chunk_spec spec = host_piece_spec(RAFFIA_PAGE_HUGETLB, 2);
    spec.numa_node = 0;
    assert_true(fault_loop(map_and_unmap, &spec, CALLS_MAX) > 5);
    assert_int_equal(hugetlb_pages_available(), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(pages_come_from_the_pool_and_return, restore),
        cmocka_unit_test_teardown(sources_of_evidence_agree, restore),
        cmocka_unit_test_teardown(an_empty_pool_is_named_with_numbers, restore),
        cmocka_unit_test_teardown(a_pool_too_small_is_refused_whole, restore),
        cmocka_unit_test(sizes_the_kernel_lacks_are_refused),
        cmocka_unit_test_teardown(remapping_and_aliases_keep_the_content, restore),
        cmocka_unit_test_teardown(an_exported_chunk_is_imported_as_what_it_is, restore),
        cmocka_unit_test_teardown(a_forked_child_writes_without_a_signal, restore),
        cmocka_unit_test_teardown(a_group_limit_is_named_and_raises_no_signal, restore),
        cmocka_unit_test_teardown(a_group_limit_of_reservations_is_named, restore),
        cmocka_unit_test(a_refused_mapping_never_opens_its_addresses),
        cmocka_unit_test_teardown(every_call_may_fail, restore),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
