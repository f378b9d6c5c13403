/*
 * The regular path. Each block is a mapping of its own that ends at an inaccessible page, so that
 * running over its end is a fault, and what was freed lately stays inaccessible, so that using it
 * is one too.
 */
#include "core/checked.h"
#include "core/error.h"
#include "core/sys.h"
#include "driver/sim/memory.h"
#include "driver/sim/verbs.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define BLOCK_ALIGNMENT ((size_t)256)

/* What fresh memory begins with, so that nobody relies on zeros. */
#define FRESH_BYTE  0xcd
#define FRESH_BYTES ((size_t)4096)

/* Freed blocks that stay inaccessible: so many, and no more than so many bytes. */
#define GRAVES_MAX       ((size_t)64)
#define GRAVES_BYTES_MAX ((size_t)16 << 20)

/* The pages of a block's mapping, the inaccessible one at its end included. Pre: bytes is not so
 * large that it would wrap, which the capacity sees to. */
static size_t mapping_bytes(size_t bytes)
{
    return core_align_up_unchecked(bytes, SIM_BASE_PAGE) + SIM_BASE_PAGE;
}

/* Start of the mapping that ends in this block. */
static char *mapping_start(char *address, size_t bytes)
{
    return address + core_align_up_unchecked(bytes, BLOCK_ALIGNMENT) + SIM_BASE_PAGE -
           mapping_bytes(bytes);
}

/* The block's memory, in the middle of a mapping that is inaccessible, or, for a device that hides
 * it, elsewhere. */
static void *map_usable(const struct sim_device *device, char *start, size_t usable)
{
    if (device->config.cpu_inaccessible)
        return sys_mmap(NULL, usable, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return sys_mprotect(start, usable, PROT_READ | PROT_WRITE) ? MAP_FAILED : start;
}

/* *real_p is where the CPU finds the block. */
static raffia_status map_block(const struct sim_device *device, size_t bytes, char **address_p,
                               char **real_p)
{
    size_t whole = mapping_bytes(bytes), usable = whole - SIM_BASE_PAGE;
    char *start =
        sys_mmap(NULL, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED)
        return core_error_errno(core_status_of_errno(errno), errno,
                                "sim: cannot find addresses for a block of %zu bytes", bytes);
    char *memory = map_usable(device, start, usable);
    if (memory == MAP_FAILED) {
        int error_number = errno;
        sys_munmap(start, whole);
        return core_error_errno(core_status_of_errno(error_number), error_number,
                                "sim: cannot map a block of %zu bytes", bytes);
    }
    size_t offset = usable - core_align_up_unchecked(bytes, BLOCK_ALIGNMENT);
    memset(memory + offset, FRESH_BYTE, core_min(bytes, FRESH_BYTES));
    *address_p = start + offset;
    *real_p = memory + offset;
    return RAFFIA_OK;
}

/* Gives back the memory of a block that is hidden, which begins at `real`. */
static void unmap_twin(char *address, char *real, size_t bytes)
{
    if (real)
        sys_munmap(real - (address - mapping_start(address, bytes)),
                   mapping_bytes(bytes) - SIM_BASE_PAGE);
}

static raffia_status alloc(struct sim_device *device, size_t bytes, void **address_p)
{
    if (!bytes)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "sim:%d: a block of 0 bytes is no block",
                          device->index);
    /* Room for the grave too: a free must not fail for want of it. */
    raffia_status status = sim_spans_reserve(&device->blocks, 1);
    if (!status)
        status = sim_spans_reserve(&device->graves, GRAVES_MAX - device->graves.count);
    if (!status)
        status = sim_take_memory(device, bytes);
    if (status)
        return status;
    char *address = NULL, *real = NULL;
    status = map_block(device, bytes, &address, &real);
    if (status) {
        sim_give_memory(device, bytes);
        return status;
    }
    sim_spans_insert(&device->blocks, address, bytes, real == address ? NULL : real);
    *address_p = address;
    return RAFFIA_OK;
}

raffia_status sim_mem_alloc(int index, size_t bytes, void **address_p)
{
    struct sim_device *device;
    raffia_status status = sim_enter(SIM_VERB_mem_alloc, index, NULL, &device);
    if (status)
        return status;
    status = alloc(device, bytes, address_p);
    sim_leave();
    return status;
}

static void open_oldest_grave(struct sim_device *device)
{
    const struct sim_span *oldest = device->graves.items;
    for (size_t i = 1; i < device->graves.count; i++)
        if ((uintptr_t)device->graves.items[i].owner < (uintptr_t)oldest->owner)
            oldest = &device->graves.items[i];
    void *start = (void *)oldest->start;
    sys_munmap(start, oldest->bytes);
    sim_spans_remove(&device->graves, start);
}

/* Makes the mapping inaccessible and keeps it for a while; a very large one is given up at once. */
static void bury(struct sim_device *device, char *start, size_t bytes)
{
    if (bytes > GRAVES_BYTES_MAX || sim_make_bare(start, bytes)) {
        sys_munmap(start, bytes);
        return;
    }
    while (device->graves.count == GRAVES_MAX ||
           (device->graves.count && sim_spans_bytes(&device->graves) > GRAVES_BYTES_MAX - bytes))
        open_oldest_grave(device);
    sim_spans_insert(&device->graves, start, bytes, (void *)(uintptr_t)++device->graves_made);
}

static raffia_status check_free(struct sim_device *device, const void *address, size_t bytes)
{
    const struct sim_span *block = sim_spans_at(&device->blocks, address);
    if (!block && sim_spans_at(&device->graves, address))
        return sim_misuse(device, "mem_free at %p, which was freed before", address);
    if (!block)
        return sim_misuse(device, "mem_free at %p, where no block is", address);
    if (block->start != (uintptr_t)address)
        return sim_misuse(device, "mem_free at %p, inside the block at %p", address,
                          (void *)block->start);
    if (block->bytes != bytes)
        return sim_misuse(device, "mem_free of %zu bytes at %p, which is a block of %zu", bytes,
                          address, block->bytes);
    return sim_check_quiet(device, address, bytes, "mem_free");
}

raffia_status sim_mem_free(int index, void *address, size_t bytes)
{
    struct sim_device *device;
    raffia_status status = sim_enter(SIM_VERB_mem_free, index, NULL, &device);
    if (status)
        return status;
    status = check_free(device, address, bytes);
    if (!status) {
        unmap_twin(address, sim_spans_at(&device->blocks, address)->owner, bytes);
        sim_spans_remove(&device->blocks, address);
        sim_give_memory(device, bytes);
        bury(device, mapping_start(address, bytes), mapping_bytes(bytes));
    }
    sim_leave();
    return status;
}

void sim_regular_clear(struct sim_device *device)
{
    for (size_t i = 0; i < device->blocks.count; i++) {
        const struct sim_span *block = &device->blocks.items[i];
        unmap_twin((char *)block->start, block->owner, block->bytes);
        sys_munmap(mapping_start((char *)block->start, block->bytes), mapping_bytes(block->bytes));
    }
    for (size_t i = 0; i < device->graves.count; i++)
        sys_munmap((void *)device->graves.items[i].start, device->graves.items[i].bytes);
    sim_spans_clear(&device->blocks);
    sim_spans_clear(&device->graves);
}
