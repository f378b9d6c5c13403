/* Asking the kernel what it holds in the page cache. */
#include "load/residency.h"

#include "core/sys.h"

#include <assert.h>
#include <errno.h>
#include <unistd.h>

#define PROBES  5u
#define UNKNOWN (-1.0)

/* One byte that must come at once or not at all. Returns 1, 0, or -1 where this cannot be asked. */
static int is_cached_at(int fd, uint64_t offset)
{
    unsigned char byte;
    struct iovec piece = {&byte, sizeof byte};
    ssize_t got;
    do
        got = sys_preadv2(fd, &piece, 1, (off_t)offset, RWF_NOWAIT);
    while (got < 0 && errno == EINTR);
    if (got >= 0)
        return 1;
    return errno == EAGAIN ? 0 : -1;
}

/* From the end to the start: a probe that misses makes the kernel read ahead from there, which must
 * not reach a place that is yet to be asked about. */
static double sampled_share(int fd, uint64_t offset, size_t bytes)
{
    unsigned cached = 0;
    for (unsigned i = PROBES; i-- > 0;) {
        int answer = is_cached_at(fd, offset + (bytes - 1) / (PROBES - 1) * i);
        if (answer < 0)
            return UNKNOWN;
        cached += (unsigned)answer;
    }
    return (double)cached / PROBES;
}

double load_cached_share(int fd, uint64_t offset, size_t bytes)
{
    assert(bytes > 0);
    uint64_t cached;
    if (sys_cachestat(fd, offset, bytes, &cached))
        return sampled_share(fd, offset, bytes);
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t pages = (offset + bytes - 1) / page - offset / page + 1;
    return (double)cached / (double)pages;
}
