/*
 * Physical chunks: pieces of memfds. One memfd for each device holds the chunks that stay in the
 * process, so that thousands of them cost one descriptor; one that can be exported has its own,
 * which keeps the memory alive for its importers.
 */
#include "core/checked.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/sys.h"
#include "driver/sim/memory.h"
#include "driver/sim/verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

/* End of the sparse store: offsets are never used twice, so it must last a process's life. */
#define STORE_BYTES ((size_t)1 << 50)

struct driver_chunk *sim_chunk_find(struct sim_device *device, driver_chunk handle)
{
    return sim_spans_exactly(&device->chunks, handle) ? handle : NULL;
}

raffia_status sim_chunk_commit(struct sim_device *device, struct driver_chunk *chunk,
                               raffia_fallback_reason *reason)
{
    if (chunk->committed || chunk->imported)
        return RAFFIA_OK;
    size_t taken = device->offer_bytes[chunk->offer];
    for (size_t i = 0; i < RAFFIA_PAGE_SIZES_MAX; i++) {
        const struct sim_page_limit *limit = &device->config.limits[i];
        if (limit->reason == RAFFIA_REASON_NONE || limit->kind != chunk->kind ||
            limit->size != chunk->page_size)
            continue;
        if (taken > limit->bytes || chunk->bytes > limit->bytes - taken) {
            *reason = limit->reason;
            return core_error(driver_status_of_reason(limit->reason),
                              "sim:%d: %zu bytes of %s pages were asked for, %zu of %zu are taken",
                              device->index, chunk->bytes, raffia_page_kind_name(chunk->kind),
                              taken, limit->bytes);
        }
    }
    raffia_status status = sim_take_memory(device, chunk->bytes);
    if (status) {
        *reason = RAFFIA_REASON_MEMORY;
        return status;
    }
    device->chunk_bytes += chunk->bytes;
    device->offer_bytes[chunk->offer] += chunk->bytes;
    chunk->committed = true;
    return RAFFIA_OK;
}

void sim_chunk_decommit(struct sim_device *device, struct driver_chunk *chunk)
{
    if (!chunk->committed)
        return;
    sim_give_memory(device, chunk->bytes);
    device->chunk_bytes -= chunk->bytes;
    device->offer_bytes[chunk->offer] -= chunk->bytes;
    chunk->committed = false;
}

/* Punching a hole gives the memory back; should it fail, the memory is only kept longer. */
void sim_chunk_discard(const struct driver_chunk *chunk)
{
    (void)!fallocate(chunk->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)chunk->offset,
                     (off_t)chunk->bytes);
}

static raffia_status make_memfd(size_t bytes, int *fd_p)
{
    int fd = sys_memfd_create("raffia-sim", MFD_CLOEXEC);
    if (fd < 0)
        return core_error_errno(core_status_of_errno(errno), errno,
                                "sim: cannot create a memfd for a chunk");
    if (sys_ftruncate(fd, (off_t)bytes)) {
        int error_number = errno;
        sys_close(fd);
        return core_error_errno(core_status_of_errno(error_number), error_number,
                                "sim: cannot make a memfd of %zu bytes", bytes);
    }
    *fd_p = fd;
    return RAFFIA_OK;
}

static raffia_status back_by_store(struct sim_device *device, struct driver_chunk *chunk)
{
    if (!device->store_open) {
        raffia_status status = make_memfd(STORE_BYTES, &device->store);
        if (status)
            return status;
        device->store_open = true;
        device->store_end = 0;
    }
    if (chunk->bytes > STORE_BYTES - device->store_end)
        return core_error(RAFFIA_ERROR_LIMIT, "sim:%d: the store of chunks is used up",
                          device->index);
    chunk->fd = device->store;
    chunk->offset = device->store_end;
    device->store_end += chunk->bytes;
    return RAFFIA_OK;
}

static raffia_status check_spec(struct sim_device *device, const struct driver_chunk_spec *spec,
                                size_t *offer_p, raffia_fallback_reason *reason)
{
    size_t offer = 0, count = device->config.page_count;
    while (offer < count && (device->config.pages[offer].kind != spec->kind ||
                             device->config.pages[offer].size != spec->page_size))
        offer++;
    if (offer == count) {
        *reason = RAFFIA_REASON_UNSUPPORTED;
        return core_error(RAFFIA_ERROR_UNSUPPORTED, "sim:%d has no %s pages of %zu bytes",
                          device->index, raffia_page_kind_name(spec->kind), spec->page_size);
    }
    if (!spec->bytes || !core_is_aligned(spec->bytes, spec->page_size) || !spec->threads)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "sim:%d: a chunk of %zu bytes in pages of %zu, filled by %u threads, is "
                          "not acceptable",
                          device->index, spec->bytes, spec->page_size, spec->threads);
    if (spec->handle != DRIVER_HANDLE_NONE && spec->handle != DRIVER_HANDLE_FD)
        return core_error(RAFFIA_ERROR_UNSUPPORTED,
                          "sim:%d exports chunks as file descriptors only", device->index);
    /* The device is one node; asking for its only one is fine. */
    if (spec->numa_node > 0) {
        *reason = RAFFIA_REASON_NODE;
        return core_error(RAFFIA_ERROR_OUT_OF_MEMORY, "sim:%d has no memory on node %d",
                          device->index, spec->numa_node);
    }
    *offer_p = offer;
    return RAFFIA_OK;
}

/* A record of a chunk that fits the spec, without memory behind it; it is not in the set yet, where
 * there is room for it. */
static raffia_status make_record(struct sim_device *device, const struct driver_chunk_spec *spec,
                                 struct driver_chunk **chunk_p, raffia_fallback_reason *reason)
{
    size_t offer = 0;
    raffia_status status = check_spec(device, spec, &offer, reason);
    if (!status)
        status = sim_spans_reserve(&device->chunks, 1);
    if (status)
        return status;
    struct driver_chunk *chunk = core_calloc(1, sizeof *chunk);
    if (!chunk)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    chunk->bytes = spec->bytes;
    chunk->page_size = spec->page_size;
    chunk->kind = spec->kind;
    chunk->remappable = spec->remappable;
    chunk->handle = spec->handle;
    chunk->offer = offer;
    *chunk_p = chunk;
    return RAFFIA_OK;
}

static raffia_status create(struct sim_device *device, const struct driver_chunk_spec *spec,
                            driver_chunk *chunk_p, raffia_fallback_reason *reason)
{
    struct driver_chunk *chunk;
    raffia_status status = make_record(device, spec, &chunk, reason);
    if (status)
        return status;
    if (!device->config.commits_at_map)
        status = sim_chunk_commit(device, chunk, reason);
    if (status)
        goto free_record;
    chunk->owns_fd = spec->handle == DRIVER_HANDLE_FD;
    status = chunk->owns_fd ? make_memfd(chunk->bytes, &chunk->fd) : back_by_store(device, chunk);
    if (status) {
        *reason = RAFFIA_REASON_LIMIT;
        goto give_memory;
    }
    sim_spans_insert(&device->chunks, chunk, sizeof *chunk, chunk);
    *chunk_p = chunk;
    return RAFFIA_OK;

give_memory:
    sim_chunk_decommit(device, chunk);
free_record:
    core_free(chunk);
    return status;
}

raffia_status sim_chunk_create(int index, const struct driver_chunk_spec *spec,
                               driver_chunk *chunk_p, raffia_fallback_reason *reason)
{
    struct sim_device *device;
    raffia_fallback_reason why = RAFFIA_REASON_NONE;
    raffia_status status = sim_enter(SIM_VERB_chunk_create, index, &why, &device);
    if (!status) {
        status = create(device, spec, chunk_p, &why);
        sim_leave();
    }
    if (status && reason)
        *reason = why;
    return status;
}

/* The store lives as long as there are chunks, so that an idle device holds no descriptor. */
static void close_store(struct sim_device *device)
{
    if (device->store_open)
        sys_close(device->store);
    device->store_open = false;
}

static void free_chunk(struct driver_chunk *chunk)
{
    if (chunk->owns_fd)
        sys_close(chunk->fd);
    else
        sim_chunk_discard(chunk);
    core_free(chunk);
}

static raffia_status destroy(struct sim_device *device, driver_chunk handle)
{
    struct driver_chunk *chunk = sim_chunk_find(device, handle);
    if (!chunk)
        return sim_misuse(device, "chunk_destroy of %p, which is not a chunk", (void *)handle);
    if (chunk->mappings)
        return sim_misuse(device, "chunk_destroy of a chunk that is mapped at %u addresses",
                          chunk->mappings);
    sim_chunk_decommit(device, chunk);
    sim_spans_remove(&device->chunks, chunk);
    free_chunk(chunk);
    if (!device->chunks.count)
        close_store(device);
    return RAFFIA_OK;
}

raffia_status sim_chunk_destroy(int index, driver_chunk handle)
{
    struct sim_device *device;
    raffia_status status = sim_enter(SIM_VERB_chunk_destroy, index, NULL, &device);
    if (status)
        return status;
    status = destroy(device, handle);
    sim_leave();
    return status;
}

static raffia_status export_chunk(struct sim_device *device, driver_chunk handle,
                                  enum driver_handle_type type,
                                  uint64_t exported[DRIVER_HANDLE_WORDS])
{
    struct driver_chunk *chunk = sim_chunk_find(device, handle);
    if (!chunk)
        return sim_misuse(device, "chunk_export of %p, which is not a chunk", (void *)handle);
    if (type != DRIVER_HANDLE_FD || chunk->handle != type)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "sim:%d: the chunk was not created for this type of handle",
                          device->index);
    int fd = sys_duplicate(chunk->fd);
    if (fd < 0)
        return core_error_errno(core_status_of_errno(errno), errno,
                                "sim:%d: cannot duplicate a chunk's descriptor", device->index);
    for (int i = 1; i < DRIVER_HANDLE_WORDS; i++)
        exported[i] = 0;
    exported[0] = (uint64_t)fd;
    return RAFFIA_OK;
}

raffia_status sim_chunk_export(int index, driver_chunk handle, enum driver_handle_type type,
                               uint64_t exported[DRIVER_HANDLE_WORDS])
{
    struct sim_device *device;
    raffia_status status = sim_enter(SIM_VERB_chunk_export, index, NULL, &device);
    if (status)
        return status;
    status = export_chunk(device, handle, type, exported);
    sim_leave();
    return status;
}

/* The caller's descriptor stays the caller's. */
static raffia_status import_fd(struct sim_device *device, uint64_t given, size_t bytes, int *fd_p)
{
    struct stat about;
    if (given > INT32_MAX || sys_fstat((int)given, &about) || about.st_size < 0 ||
        (size_t)about.st_size != bytes)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "sim:%d: descriptor %llu is not an exported chunk of %zu bytes",
                          device->index, (unsigned long long)given, bytes);
    int fd = sys_duplicate((int)given);
    if (fd < 0)
        return core_error_errno(core_status_of_errno(errno), errno,
                                "sim:%d: cannot duplicate descriptor %llu", device->index,
                                (unsigned long long)given);
    *fd_p = fd;
    return RAFFIA_OK;
}

static raffia_status import_chunk(struct sim_device *device, enum driver_handle_type type,
                                  const uint64_t exported[DRIVER_HANDLE_WORDS],
                                  const struct driver_chunk_spec *spec, driver_chunk *chunk_p)
{
    if (type != DRIVER_HANDLE_FD || spec->handle != type)
        return core_error(RAFFIA_ERROR_UNSUPPORTED,
                          "sim:%d imports chunks from file descriptors only", device->index);
    struct driver_chunk *chunk;
    raffia_fallback_reason unused;
    raffia_status status = make_record(device, spec, &chunk, &unused);
    if (status)
        return status;
    status = import_fd(device, exported[0], spec->bytes, &chunk->fd);
    if (status) {
        core_free(chunk);
        return status;
    }
    chunk->owns_fd = true;
    chunk->imported = true;
    sim_spans_insert(&device->chunks, chunk, sizeof *chunk, chunk);
    *chunk_p = chunk;
    return RAFFIA_OK;
}

raffia_status sim_chunk_import(int index, enum driver_handle_type type,
                               const uint64_t exported[DRIVER_HANDLE_WORDS],
                               const struct driver_chunk_spec *spec, driver_chunk *chunk_p)
{
    struct sim_device *device;
    raffia_status status = sim_enter(SIM_VERB_chunk_import, index, NULL, &device);
    if (status)
        return status;
    status = import_chunk(device, type, exported, spec, chunk_p);
    sim_leave();
    return status;
}

void sim_chunks_clear(struct sim_device *device)
{
    for (size_t i = 0; i < device->mappings.count; i++)
        sim_mapping_free(device->mappings.items[i].owner);
    for (size_t i = 0; i < device->chunks.count; i++)
        free_chunk(device->chunks.items[i].owner);
    close_store(device);
    sim_spans_clear(&device->mappings);
    sim_spans_clear(&device->chunks);
}
