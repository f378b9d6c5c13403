/* Chunks of the host driver in real memory: made, mapped, read back, shared. */
#include "driver/host/facts.h"
#include "driver/host/host.h"
#include "driver/host/pagemap.h"
#include "driver/host_piece.h"
#include "support/cmocka.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const struct driver *driver = &host_driver;

static void need_transparent(void)
{
    if (!host_piece_transparent_works())
        skip();
}

static void use(const struct driver_chunk_spec *spec)
{
    struct host_piece piece;
    assert_ok(host_piece_get(&piece, spec));
    host_piece_check(&piece);
    assert_ok(driver->chunk_unmap(0, piece.chunk, piece.at));
    assert_int_equal(host_piece_in_child(host_piece_read, piece.at), -SIGSEGV);
    assert_ok(driver->chunk_map(0, piece.chunk, piece.at, &piece.reason));
    assert_int_equal(piece.at[0], spec->remappable ? 1 : 0);
    assert_ok(host_piece_put(&piece));
}

static void regular_pages_are_mapped_and_given_back(void **state)
{
    (void)state;
    for (int remappable = 0; remappable < 2; remappable++) {
        struct driver_chunk_spec spec = host_piece_spec(RAFFIA_PAGE_REGULAR, 1);
        spec.remappable = remappable;
        use(&spec);
        spec.bytes = 8193 * spec.page_size;
        use(&spec);
    }
}

static void transparent_pages_are_mapped_and_given_back(void **state)
{
    (void)state;
    need_transparent();
    for (int remappable = 0; remappable < 2; remappable++) {
        struct driver_chunk_spec spec = host_piece_spec(RAFFIA_PAGE_TRANSPARENT, 1);
        spec.remappable = remappable;
        use(&spec);
        spec.bytes = 13 * spec.page_size;
        use(&spec);
    }
}

static void many_threads_share_a_few_pages(void **state)
{
    (void)state;
    need_transparent();
    struct driver_chunk_spec spec = host_piece_spec(RAFFIA_PAGE_TRANSPARENT, 5);
    for (spec.threads = 0; spec.threads < 9; spec.threads += 4)
        use(&spec);
}

static void regular_pages_stay_small(void **state)
{
    (void)state;
    need_transparent();
    struct driver_chunk_spec spec = host_piece_spec(RAFFIA_PAGE_REGULAR, 2048);
    struct host_piece piece;
    assert_ok(host_piece_get(&piece, &spec));
    struct driver_page_evidence evidence;
    struct host_thp thp;
    host_thp_read(&thp);
    assert_ok(driver->page_size_of(0, piece.at, spec.bytes, RAFFIA_PAGE_TRANSPARENT, thp.page_size,
                                   &evidence));
    assert_true(evidence.verified);
    assert_int_equal(evidence.conforming, 0);
    assert_int_equal(evidence.smallest, spec.page_size);
    assert_ok(host_piece_put(&piece));
}

static void a_split_page_is_noticed(void **state)
{
    (void)state;
    need_transparent();
    struct driver_chunk_spec spec = host_piece_spec(RAFFIA_PAGE_TRANSPARENT, 4);
    struct host_piece piece;
    assert_ok(host_piece_get(&piece, &spec));
    assert_int_equal(madvise(piece.at + spec.page_size, host_base_page_size(), MADV_DONTNEED), 0);
    struct driver_page_evidence evidence;
    assert_ok(driver->page_size_of(0, piece.at, spec.bytes, spec.kind, spec.page_size, &evidence));
    assert_true(evidence.verified);
    assert_int_equal(evidence.conforming, 3 * spec.page_size);
    assert_int_equal(evidence.smallest, host_base_page_size());
    assert_ok(host_piece_put(&piece));
}

static void sources_of_evidence_agree(void **state)
{
    (void)state;
    need_transparent();
    struct driver_chunk_spec spec = host_piece_spec(RAFFIA_PAGE_TRANSPARENT, 6);
    for (int remappable = 0; remappable < 2; remappable++) {
        spec.remappable = remappable;
        struct host_piece piece;
        assert_ok(host_piece_get(&piece, &spec));
        size_t scanned, counted;
        assert_true(host_huge_bytes_by_smaps(piece.at, spec.bytes, &counted));
        assert_int_equal(counted, spec.bytes);
        if (host_huge_bytes_by_scan(piece.at, spec.bytes, &scanned))
            assert_int_equal(scanned, counted);
        /* A part of a mapping that is huge all over. */
        size_t part = spec.page_size;
        assert_true(host_huge_bytes_by_smaps(piece.at + part, part, &counted));
        assert_int_equal(counted, part);
        /* A part of a mapping that is not: never more than the truth. */
        assert_int_equal(munmap(piece.at, part), 0);
        assert_int_equal(mmap(piece.at, part, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED,
                         0);
        piece.at[0] = 1;
        assert_true(host_huge_bytes_by_smaps(piece.at, part, &counted));
        assert_int_equal(counted, 0);
        assert_ok(host_piece_put(&piece));
    }
}

static void mappings_tell_their_page_size(void **state)
{
    (void)state;
    struct driver_chunk_spec spec = host_piece_spec(RAFFIA_PAGE_REGULAR, 64);
    struct host_piece piece;
    assert_ok(host_piece_get(&piece, &spec));
    struct host_mapped_sizes by_smaps, by_query;
    assert_true(host_mapped_sizes_by_smaps(piece.at, spec.bytes, spec.page_size, &by_smaps));
    assert_int_equal(by_smaps.covered, spec.bytes);
    assert_int_equal(by_smaps.conforming, spec.bytes);
    assert_int_equal(by_smaps.smallest, spec.page_size);
    if (host_mapped_sizes_by_query(piece.at, spec.bytes, spec.page_size, &by_query))
        assert_memory_equal(&by_query, &by_smaps, sizeof by_query);
    assert_true(host_mapped_sizes_by_smaps(piece.at, spec.bytes, 2 * spec.page_size, &by_smaps));
    assert_int_equal(by_smaps.conforming, 0);
    assert_ok(host_piece_put(&piece));
}

static void remappable(raffia_page_kind kind)
{
    struct driver_chunk_spec spec = host_piece_spec(kind, 4);
    spec.remappable = true;
    struct host_piece piece;
    assert_ok(host_piece_get(&piece, &spec));
    strcpy((char *)piece.at + spec.bytes - 16, "kept");
    void *base;
    assert_ok(driver->range_reserve(0, spec.bytes, spec.page_size, &base));
    char *other = base;
    assert_ok(driver->chunk_map(0, piece.chunk, other, &piece.reason));
    assert_string_equal(other + spec.bytes - 16, "kept");
    strcpy(other, "seen through both");
    assert_string_equal((char *)piece.at, "seen through both");
    assert_status(RAFFIA_ERROR_BUSY, driver->chunk_destroy(0, piece.chunk));
    struct driver_page_evidence evidence;
    assert_ok(driver->page_size_of(0, other, spec.bytes, kind, spec.page_size, &evidence));
    assert_int_equal(evidence.conforming, spec.bytes);
    assert_ok(driver->chunk_unmap(0, piece.chunk, other));
    assert_string_equal((char *)piece.at, "seen through both");
    assert_ok(driver->range_release(0, other, spec.bytes));
    assert_ok(host_piece_put(&piece));
}

static void remapping_and_aliases_keep_the_content(void **state)
{
    (void)state;
    remappable(RAFFIA_PAGE_REGULAR);
    need_transparent();
    remappable(RAFFIA_PAGE_TRANSPARENT);
}

static void an_exported_chunk_outlives_its_maker(void **state)
{
    (void)state;
    struct driver_chunk_spec spec = host_piece_spec(RAFFIA_PAGE_REGULAR, 16);
    spec.handle = DRIVER_HANDLE_FD;
    struct host_piece piece;
    assert_ok(host_piece_get(&piece, &spec));
    strcpy((char *)piece.at, "passed on");
    uint64_t handle[DRIVER_HANDLE_WORDS];
    memset(handle, 0xff, sizeof handle);
    assert_ok(driver->chunk_export(0, piece.chunk, DRIVER_HANDLE_FD, handle));
    assert_int_equal(handle[7], 0);
    assert_ok(host_piece_put(&piece));

    driver_chunk chunk;
    struct driver_chunk_spec wrong = spec;
    wrong.bytes *= 2;
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT,
                  driver->chunk_import(0, DRIVER_HANDLE_FD, handle, &wrong, &chunk));
    assert_error_mentions("bytes, not the");
    wrong = host_piece_spec(RAFFIA_PAGE_HUGETLB, 1);
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT,
                  driver->chunk_import(0, DRIVER_HANDLE_FD, handle, &wrong, &chunk));
    assert_ok(driver->chunk_import(0, DRIVER_HANDLE_FD, handle, &spec, &chunk));
    close((int)handle[0]);
    void *base;
    raffia_fallback_reason reason;
    assert_ok(driver->range_reserve(0, spec.bytes, spec.page_size, &base));
    assert_ok(driver->chunk_map(0, chunk, base, &reason));
    assert_string_equal(base, "passed on");
    assert_ok(driver->chunk_unmap(0, chunk, base));
    assert_ok(driver->chunk_destroy(0, chunk));
    assert_ok(driver->range_release(0, base, spec.bytes));
}

static void what_could_shrink_is_not_imported(void **state)
{
    (void)state;
    struct driver_chunk_spec spec = host_piece_spec(RAFFIA_PAGE_REGULAR, 16);
    spec.handle = DRIVER_HANDLE_FD;
    int fd = memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_int_equal(ftruncate(fd, (off_t)spec.bytes), 0);
    uint64_t handle[DRIVER_HANDLE_WORDS] = {(uint64_t)fd};
    driver_chunk chunk;
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT,
                  driver->chunk_import(0, DRIVER_HANDLE_FD, handle, &spec, &chunk));
    assert_error_mentions("F_SEAL_SHRINK");
    close(fd);
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT,
                  driver->chunk_import(0, DRIVER_HANDLE_FD, handle, &spec, &chunk));
    assert_status(RAFFIA_ERROR_UNSUPPORTED,
                  driver->chunk_import(0, DRIVER_HANDLE_FABRIC, handle, &spec, &chunk));
    handle[0] = UINT64_MAX;
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT,
                  driver->chunk_import(0, DRIVER_HANDLE_FD, handle, &spec, &chunk));
}

static void only_chunks_made_for_it_are_exported(void **state)
{
    (void)state;
    struct driver_chunk_spec spec = host_piece_spec(RAFFIA_PAGE_REGULAR, 1);
    spec.remappable = true;
    struct host_piece piece;
    assert_ok(host_piece_get(&piece, &spec));
    uint64_t handle[DRIVER_HANDLE_WORDS];
    assert_status(RAFFIA_ERROR_UNSUPPORTED,
                  driver->chunk_export(0, piece.chunk, DRIVER_HANDLE_FD, handle));
    assert_ok(host_piece_put(&piece));
}

static void a_fork_shares_files_and_copies_the_rest(void **state)
{
    (void)state;
    struct driver_chunk_spec spec = host_piece_spec(RAFFIA_PAGE_REGULAR, 4);
    for (int shared = 0; shared < 2; shared++) {
        spec.remappable = shared;
        struct host_piece piece;
        assert_ok(host_piece_get(&piece, &spec));
        assert_int_equal(host_piece_in_child(host_piece_write, piece.at), 0);
        assert_int_equal(piece.at[0], shared ? 77 : 0);
        assert_ok(host_piece_put(&piece));
    }
}

static int make_and_use(void *context)
{
    struct host_piece piece;
    if (host_piece_get(&piece, context))
        return 1;
    piece.at[0] = 1;
    return host_piece_put(&piece) ? 2 : 0;
}

static void a_forked_child_makes_memory_of_its_own(void **state)
{
    (void)state;
    struct driver_chunk_spec spec = host_piece_spec(RAFFIA_PAGE_REGULAR, 4);
    assert_int_equal(host_piece_in_child(make_and_use, &spec), 0);
}

#define THREADS 4
#define ROUNDS  20

struct shared_chunk {
    struct driver_chunk_spec spec;
    driver_chunk chunk;
};

/* Maps the shared chunk at addresses of the thread's own, and a chunk of its own. */
static void *map_again_and_again(void *argument)
{
    struct shared_chunk *shared = argument;
    size_t bytes = shared->spec.bytes;
    struct driver_chunk_spec own = shared->spec;
    own.remappable = false;
    for (int round = 0; round < ROUNDS; round++) {
        void *base;
        raffia_fallback_reason reason;
        struct host_piece piece;
        if (driver->range_reserve(0, bytes, shared->spec.page_size, &base) ||
            driver->chunk_map(0, shared->chunk, base, &reason) || host_piece_get(&piece, &own))
            return argument;
        bool kept = strcmp(base, "shared") == 0 && piece.at[bytes - 1] == 0;
        piece.at[bytes - 1] = 1;
        if (host_piece_put(&piece) || driver->chunk_unmap(0, shared->chunk, base) ||
            driver->range_release(0, base, bytes) || !kept)
            return argument;
    }
    return NULL;
}

static void threads_map_side_by_side(void **state)
{
    (void)state;
    struct driver_chunk_spec spec = host_piece_spec(RAFFIA_PAGE_REGULAR, 64);
    spec.remappable = true;
    struct host_piece piece;
    assert_ok(host_piece_get(&piece, &spec));
    strcpy((char *)piece.at, "shared");
    struct shared_chunk shared = {spec, piece.chunk};
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, map_again_and_again, &shared), 0);
    for (int i = 0; i < THREADS; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    assert_ok(host_piece_put(&piece));
}

static void access_can_be_made_read_only(void **state)
{
    (void)state;
    struct driver_chunk_spec spec = host_piece_spec(RAFFIA_PAGE_REGULAR, 4);
    struct host_piece piece;
    assert_ok(host_piece_get(&piece, &spec));
    assert_ok(driver->set_access(0, piece.at, spec.bytes, 0, false));
    assert_int_equal(host_piece_in_child(host_piece_read, piece.at), 0);
    assert_int_equal(host_piece_in_child(host_piece_write, piece.at), -SIGSEGV);
    assert_ok(driver->set_access(0, piece.at, spec.bytes, 0, true));
    assert_int_equal(host_piece_in_child(host_piece_write, piece.at), 0);
    assert_status(RAFFIA_ERROR_UNSUPPORTED, driver->set_access(0, piece.at, spec.bytes, 1, true));
    assert_ok(host_piece_put(&piece));
}

static void ranges_are_aligned_as_asked(void **state)
{
    (void)state;
    size_t page = host_base_page_size();
    for (size_t alignment = page; alignment <= (size_t)1 << 30; alignment *= 2) {
        void *base;
        assert_ok(driver->range_reserve(0, 3 * page, alignment, &base));
        assert_true(((uintptr_t)base & (alignment - 1)) == 0);
        assert_int_equal(host_piece_in_child(host_piece_read, base), -SIGSEGV);
        assert_ok(driver->range_release(0, base, 3 * page));
    }
    void *base = NULL;
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, driver->range_reserve(0, 0, page, &base));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, driver->range_reserve(0, page + 1, page, &base));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, driver->range_reserve(0, page, 3 * page, &base));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, driver->range_reserve(0, page, 1, &base));
    assert_status(RAFFIA_ERROR_OVERFLOW,
                  driver->range_reserve(0, SIZE_MAX - page + 1, (size_t)1 << 30, &base));
    assert_status(RAFFIA_ERROR_LIMIT, driver->range_reserve(0, (size_t)1 << 62, page, &base));
    assert_null(base);
}

static void wrong_calls_are_refused(void **state)
{
    (void)state;
    struct driver_chunk_spec good = host_piece_spec(RAFFIA_PAGE_REGULAR, 4), bad = good;
    driver_chunk chunk = NULL;
    raffia_fallback_reason reason;
    bad.bytes++;
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, driver->chunk_create(0, &bad, &chunk, &reason));
    bad.bytes = 0;
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, driver->chunk_create(0, &bad, &chunk, &reason));
    bad = good;
    bad.page_size = 0;
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, driver->chunk_create(0, &bad, &chunk, &reason));
    assert_null(chunk);

    struct host_piece piece;
    assert_ok(host_piece_get(&piece, &good));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT,
                  driver->chunk_map(0, piece.chunk, piece.at, &reason));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT,
                  driver->chunk_map(0, piece.chunk, piece.at + 1, &reason));
    assert_int_equal(reason, RAFFIA_REASON_MISALIGNED);
    assert_ok(driver->chunk_unmap(0, piece.chunk, piece.at));
    assert_status(RAFFIA_ERROR_BAD_ADDRESS, driver->chunk_unmap(0, piece.chunk, piece.at));
    assert_ok(driver->chunk_map(0, piece.chunk, piece.at, &reason));
    assert_ok(host_piece_put(&piece));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(regular_pages_are_mapped_and_given_back),
        cmocka_unit_test(transparent_pages_are_mapped_and_given_back),
        cmocka_unit_test(many_threads_share_a_few_pages),
        cmocka_unit_test(regular_pages_stay_small),
        cmocka_unit_test(a_split_page_is_noticed),
        cmocka_unit_test(sources_of_evidence_agree),
        cmocka_unit_test(mappings_tell_their_page_size),
        cmocka_unit_test(remapping_and_aliases_keep_the_content),
        cmocka_unit_test(an_exported_chunk_outlives_its_maker),
        cmocka_unit_test(what_could_shrink_is_not_imported),
        cmocka_unit_test(only_chunks_made_for_it_are_exported),
        cmocka_unit_test(a_fork_shares_files_and_copies_the_rest),
        cmocka_unit_test(a_forked_child_makes_memory_of_its_own),
        cmocka_unit_test(threads_map_side_by_side),
        cmocka_unit_test(access_can_be_made_read_only),
        cmocka_unit_test(ranges_are_aligned_as_asked),
        cmocka_unit_test(wrong_calls_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
