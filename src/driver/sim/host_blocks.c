/* Host memory that the device's driver allocates: ordinary pages, put on record. */
#include "core/checked.h"
#include "core/error.h"
#include "core/sys.h"
#include "driver/sim/memory.h"
#include "driver/sim/verbs.h"

#include <errno.h>
#include <sys/mman.h>

static raffia_status take(struct sim_device *device, size_t bytes, void **at_p)
{
    size_t whole;
    if (!bytes || !core_align_up(bytes, SIM_BASE_PAGE, &whole))
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "sim:%d: %zu bytes are no host memory",
                          device->index, bytes);
    if (device->config.refuses_host_alloc)
        return core_error(RAFFIA_ERROR_OUT_OF_MEMORY, "sim:%d allocates no host memory",
                          device->index);
    raffia_status status = sim_spans_reserve(&device->host_blocks, 1);
    if (status)
        return status;
    void *at = sys_mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return core_error_errno(core_status_of_errno(errno), errno,
                                "sim:%d: cannot allocate %zu bytes of host memory", device->index,
                                bytes);
    sim_spans_insert(&device->host_blocks, at, bytes, NULL);
    *at_p = at;
    return RAFFIA_OK;
}

raffia_status sim_host_alloc(int index, size_t bytes, void **at_p)
{
    struct sim_device *device;
    raffia_status status = sim_enter(SIM_VERB_host_alloc, index, NULL, &device);
    if (status)
        return status;
    status = take(device, bytes, at_p);
    sim_leave();
    return status;
}

static raffia_status give(struct sim_device *device, void *at, size_t bytes)
{
    const struct sim_span *block = sim_spans_exactly(&device->host_blocks, at);
    if (!block || block->bytes != bytes)
        return sim_misuse(device, "host_free of %zu bytes at %p, where %zu were allocated", bytes,
                          at, block ? block->bytes : (size_t)0);
    raffia_status status = sim_check_quiet(device, at, bytes, "host_free");
    if (status)
        return status;
    sim_spans_remove(&device->host_blocks, at);
    sys_munmap(at, core_align_up_unchecked(bytes, SIM_BASE_PAGE));
    return RAFFIA_OK;
}

raffia_status sim_host_free(int index, void *at, size_t bytes)
{
    struct sim_device *device;
    raffia_status status = sim_enter(SIM_VERB_host_free, index, NULL, &device);
    if (status)
        return status;
    status = give(device, at, bytes);
    sim_leave();
    return status;
}

void sim_host_blocks_clear(struct sim_device *device)
{
    for (size_t i = 0; i < device->host_blocks.count; i++) {
        const struct sim_span *block = &device->host_blocks.items[i];
        sys_munmap((void *)block->start, core_align_up_unchecked(block->bytes, SIM_BASE_PAGE));
    }
    sim_spans_clear(&device->host_blocks);
}
