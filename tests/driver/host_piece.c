#include "driver/host_piece.h"

#include "driver/host/facts.h"
#include "driver/host/host.h"
#include "support/cmocka.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define HUGETLB_SIZE ((size_t)2 << 20)

struct driver_chunk_spec host_piece_spec(raffia_page_kind kind, size_t pages)
{
    size_t page_size = HUGETLB_SIZE;
    struct host_thp thp;
    if (kind == RAFFIA_PAGE_REGULAR)
        page_size = host_base_page_size();
    if (kind == RAFFIA_PAGE_TRANSPARENT) {
        host_thp_read(&thp);
        page_size = thp.present ? thp.page_size : HUGETLB_SIZE;
    }
    return (struct driver_chunk_spec){.bytes = pages * page_size,
                                      .page_size = page_size,
                                      .kind = kind,
                                      .numa_node = -1,
                                      .threads = 3};
}

raffia_status host_piece_get(struct host_piece *piece, const struct driver_chunk_spec *spec)
{
    *piece = (struct host_piece){.spec = *spec};
    void *base;
    raffia_status status = host_driver.range_reserve(0, spec->bytes, spec->page_size, &base);
    if (status)
        return status;
    piece->at = base;
    status = host_driver.chunk_create(0, spec, &piece->chunk, &piece->reason);
    if (status)
        goto release_range;
    status = host_driver.chunk_map(0, piece->chunk, base, &piece->reason);
    if (status)
        goto destroy_chunk;
    return RAFFIA_OK;

destroy_chunk:
    assert_int_equal(host_driver.chunk_destroy(0, piece->chunk), RAFFIA_OK);
release_range:
    assert_int_equal(host_driver.range_release(0, base, spec->bytes), RAFFIA_OK);
    return status;
}

raffia_status host_piece_put(struct host_piece *piece)
{
    raffia_status status = host_driver.chunk_unmap(0, piece->chunk, piece->at);
    if (status)
        assert_ok(host_driver.chunk_unmap(0, piece->chunk, piece->at));
    assert_ok(host_driver.chunk_destroy(0, piece->chunk));
    assert_ok(host_driver.range_release(0, piece->at, piece->spec.bytes));
    return status;
}

void host_piece_check(const struct host_piece *piece)
{
    const struct driver_chunk_spec *spec = &piece->spec;
    assert_true(((uintptr_t)piece->at & (spec->page_size - 1)) == 0);
    for (size_t offset = 0; offset < spec->bytes; offset += 4096) {
        assert_int_equal(piece->at[offset], 0);
        piece->at[offset] = 1;
    }
    piece->at[spec->bytes - 1] = 1;
    struct driver_page_evidence evidence;
    assert_ok(host_driver.page_size_of(0, piece->at, spec->bytes, spec->kind, spec->page_size,
                                       &evidence));
    assert_true(evidence.verified);
    assert_int_equal(evidence.conforming, spec->bytes);
    assert_int_equal(evidence.smallest, spec->page_size);
    assert_string_not_equal(evidence.source, "none");
}

bool host_piece_transparent_works(void)
{
    struct host_thp thp;
    host_thp_read(&thp);
    return thp.present && !thp.process_disabled && strcmp(thp.anonymous, "never") != 0 &&
           strcmp(thp.shared, "deny") != 0;
}

int host_piece_in_child(int (*body)(void *context), void *context)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        /* Sanitizers and cmocka have handlers of their own. */
        signal(SIGSEGV, SIG_DFL);
        signal(SIGBUS, SIG_DFL);
        _exit(body(context));
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

int host_piece_write(void *address)
{
    *(volatile unsigned char *)address = 77;
    return 0;
}

int host_piece_read(void *address)
{
    return *(volatile unsigned char *)address;
}
