/* Chunks at addresses: map, unmap, peers, and which pages lie behind an address. */
#include "core/checked.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/sys.h"
#include "driver/sim/memory.h"
#include "driver/sim/verbs.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

/* What stale memory looks like, so that nobody takes it for kept or for zero. */
#define STALE_BYTE 0xdd

void sim_mapping_free(struct sim_mapping *mapping)
{
    core_free(mapping->split);
    core_free(mapping);
}

static raffia_status check_place(struct sim_device *device, const struct driver_chunk *chunk,
                                 void *at)
{
    if (chunk->mappings && !chunk->remappable)
        return sim_misuse(device, "chunk_map at %p of a chunk that is mapped and not remappable",
                          at);
    if (!core_is_aligned((uintptr_t)at, chunk->page_size))
        return sim_misuse(device, "chunk_map at %p, which is not aligned to pages of %zu bytes", at,
                          chunk->page_size);
    const struct sim_span *range = sim_spans_at(&device->ranges, at);
    if (!range || !sim_span_contains(range, at, chunk->bytes))
        return sim_misuse(device, "chunk_map of %zu bytes at %p, outside of every reserved range",
                          chunk->bytes, at);
    if (sim_spans_first(&device->mappings, at, chunk->bytes))
        return sim_misuse(device, "chunk_map of %zu bytes at %p, over another chunk", chunk->bytes,
                          at);
    return RAFFIA_OK;
}

/* Writes to each page once only: a chunk of gigabytes shall stay cheap. */
static void scribble(const struct driver_chunk *chunk, char *at)
{
    for (size_t offset = 0; offset < chunk->bytes; offset += chunk->page_size)
        memset(at + offset, STALE_BYTE, SIM_BASE_PAGE);
}

/* `at` is where the CPU finds the memory; a device that hides it leaves its own addresses bare. */
static raffia_status put_memory_at(struct driver_chunk *chunk, void *at)
{
    if (sys_mmap(at, chunk->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE,
                 chunk->fd, (off_t)chunk->offset) == MAP_FAILED)
        return core_error_errno(core_status_of_errno(errno), errno,
                                "sim: cannot map a chunk of %zu bytes at %p", chunk->bytes, at);
    if (chunk->stale)
        scribble(chunk, at);
    chunk->stale = false;
    return RAFFIA_OK;
}

static raffia_status map(struct sim_device *device, driver_chunk handle, void *at,
                         raffia_fallback_reason *reason)
{
    struct driver_chunk *chunk = sim_chunk_find(device, handle);
    if (!chunk)
        return sim_misuse(device, "chunk_map of %p, which is not a chunk", (void *)handle);
    raffia_status status = check_place(device, chunk, at);
    if (!status)
        status = sim_spans_reserve(&device->mappings, 1);
    if (status)
        return status;
    struct sim_mapping *mapping = core_calloc(1, sizeof *mapping);
    if (!mapping)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    bool had_memory = chunk->committed;
    status = sim_chunk_commit(device, chunk, reason);
    if (status)
        goto free_record;
    status = put_memory_at(chunk, sim_real_address(at));
    if (status) {
        *reason = RAFFIA_REASON_LIMIT;
        goto give_memory;
    }
    mapping->chunk = chunk;
    mapping->page_size = chunk->page_size;
    if (device->config.smaller_pages > 0 && chunk->page_size > SIM_BASE_PAGE) {
        device->config.smaller_pages--;
        mapping->page_size = SIM_BASE_PAGE;
    }
    chunk->mappings++;
    sim_spans_insert(&device->mappings, at, chunk->bytes, mapping);
    return RAFFIA_OK;

give_memory:
    if (!had_memory)
        sim_chunk_decommit(device, chunk);
free_record:
    core_free(mapping);
    return status;
}

raffia_status sim_chunk_map(int index, driver_chunk handle, void *at,
                            raffia_fallback_reason *reason)
{
    struct sim_device *device;
    raffia_fallback_reason why = RAFFIA_REASON_NONE;
    raffia_status status = sim_enter(SIM_VERB_chunk_map, index, &why, &device);
    if (!status) {
        status = map(device, handle, at, &why);
        sim_leave();
    }
    if (status && reason)
        *reason = why;
    return status;
}

static raffia_status unmap(struct sim_device *device, driver_chunk handle, void *at)
{
    struct driver_chunk *chunk = sim_chunk_find(device, handle);
    if (!chunk)
        return sim_misuse(device, "chunk_unmap of %p, which is not a chunk", (void *)handle);
    const struct sim_span *span = sim_spans_exactly(&device->mappings, at);
    struct sim_mapping *mapping = span ? span->owner : NULL;
    if (!mapping || mapping->chunk != chunk)
        return sim_misuse(device, "chunk_unmap at %p, where this chunk is not mapped", at);
    raffia_status status = sim_check_quiet(device, at, chunk->bytes, "chunk_unmap");
    if (!status)
        status = sim_make_bare(sim_real_address(at), chunk->bytes);
    if (status)
        return status;
    sim_spans_remove(&device->mappings, at);
    sim_mapping_free(mapping);
    chunk->mappings--;
    if (!chunk->remappable) {
        /* What was exported may be in use elsewhere. */
        if (!chunk->owns_fd) {
            sim_chunk_discard(chunk);
            chunk->stale = true;
        }
        if (device->config.commits_at_map)
            sim_chunk_decommit(device, chunk);
    }
    return RAFFIA_OK;
}

raffia_status sim_chunk_unmap(int index, driver_chunk handle, void *at)
{
    struct sim_device *device;
    raffia_status status = sim_enter(SIM_VERB_chunk_unmap, index, NULL, &device);
    if (status)
        return status;
    status = unmap(device, handle, at);
    sim_leave();
    return status;
}

static raffia_status open_to_peer(struct sim_device *device, void *at, size_t bytes, int peer,
                                  bool writable)
{
    if (peer < 0 || peer >= sim_device_count)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "sim:%d: there is no peer device %d",
                          device->index, peer);
    uintptr_t end;
    if (!bytes || !core_add((uintptr_t)at, bytes, &end) ||
        !sim_spans_cover(&device->mappings, at, bytes))
        return sim_misuse(device, "set_access to %zu bytes at %p, which are not all mapped", bytes,
                          at);
    struct sim_span *first = sim_spans_first(&device->mappings, at, bytes);
    const struct sim_span *last = sim_spans_at(&device->mappings, (char *)at + bytes - 1);
    if (first->start != (uintptr_t)at || last->start + last->bytes != end)
        return sim_misuse(device, "set_access to %zu bytes at %p, which cut a chunk", bytes, at);
    unsigned bit = 1u << peer;
    for (struct sim_span *span = first; span <= last; span++) {
        struct sim_mapping *mapping = span->owner;
        mapping->readers |= bit;
        mapping->writers = writable ? mapping->writers | bit : mapping->writers & ~bit;
    }
    return RAFFIA_OK;
}

raffia_status sim_set_access(int index, void *at, size_t bytes, int peer, bool writable)
{
    struct sim_device *device;
    raffia_status status = sim_enter(SIM_VERB_set_access, index, NULL, &device);
    if (status)
        return status;
    status = open_to_peer(device, at, bytes, peer, writable);
    sim_leave();
    return status;
}

static void note_pages(size_t page_size, size_t bytes, size_t expected,
                       struct driver_page_evidence *evidence)
{
    evidence->smallest = core_min(evidence->smallest, page_size);
    if (page_size >= expected)
        evidence->conforming += bytes;
}

/* Looks at the pages of one mapping from offset `from` to `to`. */
static void note_mapping(const struct sim_mapping *mapping, size_t from, size_t to, size_t expected,
                         struct driver_page_evidence *evidence)
{
    if (!mapping->split) {
        note_pages(mapping->page_size, to - from, expected, evidence);
        return;
    }
    while (from < to) {
        size_t page = from / mapping->page_size;
        size_t end = core_min(to, (page + 1) * mapping->page_size);
        note_pages(mapping->split[page] ? SIM_BASE_PAGE : mapping->page_size, end - from, expected,
                   evidence);
        from = end;
    }
}

static raffia_status read_pages(struct sim_device *device, const void *at, size_t bytes,
                                size_t expected, struct driver_page_evidence *evidence)
{
    size_t end;
    if (!bytes || !core_add((uintptr_t)at, bytes, &end))
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "sim:%d: %zu bytes at %p are no address range", device->index, bytes, at);
    struct driver_page_evidence found = {.smallest = SIZE_MAX, .verified = true, .source = "sim"};
    const struct sim_span *block = sim_spans_at(&device->blocks, at);
    if (block && sim_span_contains(block, at, bytes)) {
        note_pages(SIM_BASE_PAGE, bytes, expected, &found);
    } else if (sim_spans_cover(&device->mappings, at, bytes)) {
        const struct sim_span *span = sim_spans_first(&device->mappings, at, bytes);
        for (size_t address = (uintptr_t)at; address < end; span++) {
            size_t stop = core_min(end, span->start + span->bytes);
            note_mapping(span->owner, address - span->start, stop - span->start, expected, &found);
            address = stop;
        }
    } else {
        return sim_misuse(device, "page_size_of %zu bytes at %p, which are not all mapped", bytes,
                          at);
    }
    if (device->config.hides_page_sizes)
        found = (struct driver_page_evidence){.source = "none"};
    *evidence = found;
    return RAFFIA_OK;
}

raffia_status sim_page_size_of(int index, const void *at, size_t bytes, raffia_page_kind kind,
                               size_t expected, struct driver_page_evidence *evidence)
{
    (void)kind; /* the device knows */
    struct sim_device *device;
    raffia_status status = sim_enter(SIM_VERB_page_size_of, index, NULL, &device);
    if (status)
        return status;
    status = read_pages(device, at, bytes, expected, evidence);
    sim_leave();
    return status;
}
