/* Ranges of addresses with nothing behind them. */
#include "core/checked.h"
#include "core/error.h"
#include "core/sys.h"
#include "core/text.h"
#include "driver/host/facts.h"
#include "driver/host/process_limits.h"
#include "driver/host/verbs.h"

#include <assert.h>
#include <errno.h>
#include <sys/mman.h>

/* `bytes`: room for the alignment included. */
static raffia_status refuse_addresses(size_t bytes, int error_number)
{
    char text[CORE_SIZE_TEXT_MAX], limit[HOST_LIMIT_TEXT_MAX];
    return core_error_errno(RAFFIA_ERROR_LIMIT, error_number,
                            "cannot reserve %s of addresses, alignment included: %s",
                            core_format_size(bytes, text),
                            *host_process_limit_text(bytes, HOST_COUNTED_ADDRESSES, limit)
                                ? limit
                                : "mmap is refused (vm.max_map_count, or there are not so many)");
}

raffia_status host_range_reserve(int device, size_t bytes, size_t alignment, void **base_p)
{
    assert(device == 0);
    (void)device;
    size_t page = host_base_page_size(), padded;
    if (bytes == 0 || !core_is_aligned(bytes, page) || !core_is_power_of_two(alignment) ||
        alignment < page)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "a range of %zu bytes aligned to %zu is not in whole pages of %zu", bytes,
                          alignment, page);
    if (!core_add(bytes, alignment - page, &padded))
        return core_error(RAFFIA_ERROR_OVERFLOW, "a range of %zu bytes does not fit", bytes);
    char *base =
        sys_mmap(NULL, padded, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return refuse_addresses(padded, errno);
    size_t head = core_align_up_unchecked((uintptr_t)base, alignment) - (uintptr_t)base;
    size_t tail = padded - head - bytes;
    if (head)
        sys_munmap(base, head);
    if (tail)
        sys_munmap(base + head + bytes, tail);
    *base_p = base + head;
    return RAFFIA_OK;
}

raffia_status host_range_release(int device, void *base, size_t bytes)
{
    (void)device;
    if (sys_munmap(base, bytes))
        return core_error_errno(RAFFIA_ERROR_INVALID_ARGUMENT, errno,
                                "cannot release %zu bytes of addresses at %p", bytes, base);
    return RAFFIA_OK;
}

raffia_status host_set_access(int device, void *at, size_t bytes, int peer, bool writable)
{
    if (peer != device)
        return core_error(RAFFIA_ERROR_UNSUPPORTED,
                          "host memory has no peers: device %d cannot be given access", peer);
    if (sys_mprotect(at, bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ))
        return core_error_errno(core_status_of_errno(errno), errno,
                                "cannot make %zu bytes at %p %s", bytes, at,
                                writable ? "writable" : "read-only");
    return RAFFIA_OK;
}
