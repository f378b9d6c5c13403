#include "driver/host/fill.h"

#include "core/checked.h"
#include "core/parallel.h"
#include "core/sys.h"
#include "driver/host/facts.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>

/* Threads do not share less than this, and look for each other's failures, and settle what they
 * claimed, this often. */
#define SLICE_BYTES_MIN ((size_t)2 << 20)
#define PIECE_BYTES     ((size_t)16 << 20)

/* Tries while the kernel says EAGAIN or EINTR. */
#define TRIES_MAX 8

struct fill {
    char *at;
    size_t bytes;
    size_t grain; /* slices begin and end at multiples of it */
    size_t base_page;
    bool collapse;
    struct host_claim *claim;
    atomic_int error_number; /* the first failure; ends the work of all */
};

static int advise(char *at, size_t bytes, int advice)
{
    for (int attempt = 0;; attempt++) {
        if (sys_madvise(at, bytes, advice) == 0)
            return 0;
        if ((errno != EAGAIN && errno != EINTR) || attempt == TRIES_MAX)
            return errno;
    }
}

static int fill_piece(const struct fill *fill, char *at, size_t bytes)
{
    if (!fill->collapse)
        return advise(at, bytes, MADV_POPULATE_WRITE);
    for (size_t offset = 0; offset < bytes; offset += fill->grain) {
        int error_number = advise(at + offset, fill->base_page, MADV_POPULATE_WRITE);
        if (error_number)
            return error_number;
    }
    advise(at, bytes, MADV_COLLAPSE);
    return 0;
}

/* `index` of `count` equal shares, in whole grains. */
static raffia_status fill_slice(void *context, unsigned index, unsigned count)
{
    struct fill *fill = context;
    size_t grains = fill->bytes / fill->grain;
    size_t share = grains / count, rest = grains % count;
    size_t start = (share * index + core_min(index, rest)) * fill->grain;
    size_t end = start + (share + (index < rest)) * fill->grain;
    size_t step = core_max(PIECE_BYTES, fill->grain);
    for (size_t offset = start; offset < end; offset += step) {
        if (atomic_load_explicit(&fill->error_number, memory_order_relaxed))
            break;
        int none = 0;
        size_t bytes = core_min(step, end - offset);
        int error_number = fill_piece(fill, fill->at + offset, bytes);
        if (error_number)
            atomic_compare_exchange_strong(&fill->error_number, &none, error_number);
        else
            host_claim_settle(fill->claim, bytes);
    }
    return RAFFIA_OK;
}

static int fill_all(struct fill *fill, unsigned threads)
{
    size_t slices = core_max(fill->bytes / core_max(fill->grain, SLICE_BYTES_MIN), 1);
    if (threads > slices)
        threads = (unsigned)slices;
    /* Slices report through error_number: the failure itself is explained by the caller. */
    if (core_parallel(threads ? threads : 1, fill_slice, fill))
        return ENOMEM;
    return atomic_load(&fill->error_number);
}

int host_fill(void *at, size_t bytes, size_t page_size, unsigned threads, struct host_claim *claim)
{
    struct fill fill = {.at = at, .bytes = bytes, .grain = page_size, .claim = claim};
    return fill_all(&fill, threads);
}

void host_collapse(void *at, size_t bytes, size_t page_size, unsigned threads,
                   struct host_claim *claim)
{
    struct fill fill = {.at = at,
                        .bytes = bytes,
                        .grain = page_size,
                        .base_page = host_base_page_size(),
                        .collapse = true,
                        .claim = claim};
    fill_all(&fill, threads);
}
