/* Reserved addresses: real ones of the process, inaccessible until a chunk is mapped. */
#include "core/checked.h"
#include "core/error.h"
#include "core/sys.h"
#include "driver/sim/memory.h"
#include "driver/sim/verbs.h"

#include <errno.h>
#include <sys/mman.h>

/* Reserves `bytes` at `skew` behind an aligned address, and nothing more. */
static raffia_status reserve_aligned(size_t bytes, size_t alignment, size_t skew, char **base_p)
{
    size_t room;
    if (!core_add(bytes, alignment, &room) || !core_add(room, skew, &room))
        return core_error(RAFFIA_ERROR_OVERFLOW,
                          "sim: a range of %zu bytes aligned to %zu does not fit into the address "
                          "space",
                          bytes, alignment);
    char *start =
        sys_mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED)
        return core_error_errno(core_status_of_errno(errno), errno,
                                "sim: cannot reserve %zu bytes of address space", room);
    size_t aligned = core_align_up_unchecked((uintptr_t)start, alignment) + skew;
    char *base = start + (aligned - (uintptr_t)start);
    if (base > start)
        sys_munmap(start, (size_t)(base - start));
    if (base + bytes < start + room)
        sys_munmap(base + bytes, (size_t)(start + room - (base + bytes)));
    *base_p = base;
    return RAFFIA_OK;
}

/* Addresses where the CPU finds what is hidden from it at `bytes` of the device's. */
static raffia_status reserve_twin(const struct sim_device *device, size_t bytes, void **twin_p)
{
    *twin_p = NULL;
    if (!device->config.cpu_inaccessible)
        return RAFFIA_OK;
    void *twin =
        sys_mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (twin == MAP_FAILED)
        return core_error_errno(core_status_of_errno(errno), errno,
                                "sim:%d: cannot reserve %zu bytes of address space", device->index,
                                bytes);
    *twin_p = twin;
    return RAFFIA_OK;
}

static raffia_status reserve(struct sim_device *device, size_t bytes, size_t alignment,
                             void **base_p)
{
    if (!bytes || !core_is_aligned(bytes, SIM_BASE_PAGE) || !core_is_power_of_two(alignment) ||
        alignment < SIM_BASE_PAGE)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "sim:%d: a range of %zu bytes aligned to %zu is not a whole number of "
                          "%zu-byte pages",
                          device->index, bytes, alignment, SIM_BASE_PAGE);
    raffia_status status = sim_spans_reserve(&device->ranges, 1);
    if (status)
        return status;
    /* An address off by a page is misaligned only for those who asked for more. */
    bool misaligned = device->config.misaligned_bases > 0 && alignment > SIM_BASE_PAGE;
    char *base = NULL;
    status = reserve_aligned(bytes, alignment, misaligned ? SIM_BASE_PAGE : 0, &base);
    if (status)
        return status;
    void *twin = NULL;
    status = reserve_twin(device, bytes, &twin);
    if (status) {
        sys_munmap(base, bytes);
        return status;
    }
    if (misaligned)
        device->config.misaligned_bases--;
    sim_spans_insert(&device->ranges, base, bytes, twin);
    *base_p = base;
    return RAFFIA_OK;
}

raffia_status sim_range_reserve(int index, size_t bytes, size_t alignment, void **base_p)
{
    struct sim_device *device;
    raffia_status status = sim_enter(SIM_VERB_range_reserve, index, NULL, &device);
    if (status)
        return status;
    status = reserve(device, bytes, alignment, base_p);
    sim_leave();
    return status;
}

static raffia_status release(struct sim_device *device, void *base, size_t bytes)
{
    const struct sim_span *range = sim_spans_exactly(&device->ranges, base);
    if (!range)
        return sim_misuse(device, "range_release at %p, where no range starts", base);
    if (range->bytes != bytes)
        return sim_misuse(device, "range_release of %zu bytes at %p, which is a range of %zu",
                          bytes, base, range->bytes);
    const struct sim_span *mapping = sim_spans_first(&device->mappings, base, bytes);
    if (mapping)
        return sim_misuse(device, "range_release at %p with a chunk still mapped at %p", base,
                          (void *)mapping->start);
    sys_munmap(base, bytes);
    if (range->owner)
        sys_munmap(range->owner, bytes);
    sim_spans_remove(&device->ranges, base);
    return RAFFIA_OK;
}

raffia_status sim_range_release(int index, void *base, size_t bytes)
{
    struct sim_device *device;
    raffia_status status = sim_enter(SIM_VERB_range_release, index, NULL, &device);
    if (status)
        return status;
    status = release(device, base, bytes);
    sim_leave();
    return status;
}
