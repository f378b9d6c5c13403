#include "cli/bench_memory.h"

#include "cli/interrupt.h"
#include "core/checked.h"
#include "core/error.h"
#include "core/parallel.h"
#include "core/text.h"

#include <raffia/device.h>

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#define UNIT ((size_t)2 << 20)

/* Touched between two looks at the interrupt flag. */
#define PIECE ((size_t)16 << 20)

raffia_status bench_memory_map(size_t bytes, unsigned char **memory_p)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return core_error_errno(core_status_of_errno(errno), errno, "cannot map %zu bytes", bytes);
    /* Fails where the kernel knows no transparent huge pages: then there are none to avoid. */
    (void)!madvise(memory, bytes, MADV_NOHUGEPAGE);
    *memory_p = memory;
    return RAFFIA_OK;
}

void bench_memory_unmap(unsigned char *memory, size_t bytes)
{
    if (memory)
        munmap(memory, bytes);
}

struct touch {
    unsigned char *memory;
    size_t bytes;
};

static raffia_status touch_share(void *context, unsigned index, unsigned count)
{
    const struct touch *touch = context;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t share = core_align_up_unchecked(touch->bytes / count, page);
    size_t begin = core_min(share * index, touch->bytes);
    size_t end = index + 1 == count ? touch->bytes : core_min(begin + share, touch->bytes);
    raffia_status status = RAFFIA_OK;
    while (!status && begin < end) {
        const size_t stop = core_min(begin + PIECE, end);
        for (size_t offset = begin; offset < stop; offset += page)
            *(volatile unsigned char *)(touch->memory + offset) = 1;
        begin = stop;
        status = cli_interrupt_check();
    }
    return status;
}

raffia_status bench_memory_touch(unsigned char *memory, size_t bytes, unsigned threads)
{
    struct touch touch = {memory, bytes};
    return core_parallel(threads, touch_share, &touch);
}

void bench_memory_warm(size_t bytes, bool huge)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return;
    (void)!madvise(memory, bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    struct touch touch = {memory, bytes};
    (void)!touch_share(&touch, 0, 1); /* who was interrupted looks again */
    munmap(memory, bytes);
}

raffia_status bench_memory_free(size_t *bytes_p)
{
    raffia_device_info host;
    raffia_status status = raffia_device_query("host", &host);
    /* Without /proc nothing is known, and nothing can be checked. */
    if (!status)
        *bytes_p = host.total_bytes ? host.free_bytes : SIZE_MAX;
    return status;
}

raffia_status bench_memory_check(size_t bytes, const char *what, const char *option)
{
    size_t free_bytes;
    raffia_status status = bench_memory_free(&free_bytes);
    if (status || free_bytes >= bytes)
        return status;
    char need[CORE_SIZE_TEXT_MAX], have[CORE_SIZE_TEXT_MAX];
    return core_error(RAFFIA_ERROR_OUT_OF_MEMORY, "%s needs %s, and %s are free: ask for less (%s)",
                      what, core_format_size(bytes, need), core_format_size(free_bytes, have),
                      option);
}

raffia_status bench_memory_choose(size_t bytes, size_t share, size_t *bytes_p)
{
    size_t free_bytes;
    raffia_status status = bench_memory_free(&free_bytes);
    if (!status)
        *bytes_p = core_max(core_align_down(core_min(bytes, free_bytes / share), UNIT), UNIT);
    return status;
}
