/* Memory with an address range of its own: the whole ladder of pages and of ways to pin them. */
#include "core/checked.h"
#include "core/error.h"
#include "core/fallbacks.h"
#include "core/log.h"
#include "driver/host/host.h"
#include "driver/pinned/verbs.h"

#include <unistd.h>

#define HOST 0

static size_t base_page(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* One rung: addresses, a chunk and its pages. */
static raffia_status map_rung(raffia_page_offer page, size_t bytes, unsigned threads,
                              struct pinned_memory *memory, raffia_fallback_reason *reason)
{
    *reason = RAFFIA_REASON_NONE;
    struct driver_chunk_spec spec = {
        .page_size = page.size, .kind = page.kind, .numa_node = -1, .threads = threads};
    if (!core_align_up(bytes, page.size, &spec.bytes))
        return core_error(RAFFIA_ERROR_OVERFLOW, "%zu bytes do not fit into the address space",
                          bytes);
    void *base;
    driver_chunk chunk;
    raffia_status status = host_driver.range_reserve(HOST, spec.bytes, page.size, &base);
    if (status)
        return status;
    status = host_driver.chunk_create(HOST, &spec, &chunk, reason);
    if (status)
        goto release_range;
    status = host_driver.chunk_map(HOST, chunk, base, reason);
    if (status)
        goto destroy_chunk;
    *memory = (struct pinned_memory){.at = base,
                                     .bytes = bytes,
                                     .way = PINNED_PAGEABLE,
                                     .page = page,
                                     .chunk = chunk,
                                     .range_bytes = spec.bytes};
    return RAFFIA_OK;
destroy_chunk:
    (void)host_driver.chunk_destroy(HOST, chunk); /* not mapped: cannot fail */
release_range:
    (void)host_driver.range_release(HOST, base, spec.bytes); /* empty: cannot fail */
    return status;
}

static raffia_status map_pages(const raffia_page_offer *rungs, size_t count, size_t bytes,
                               unsigned threads, struct pinned_memory *memory)
{
    raffia_status status = RAFFIA_OK;
    for (size_t i = 0; i < count; i++) {
        raffia_fallback_reason reason;
        status = map_rung(rungs[i], bytes, threads, memory, &reason);
        if (!status)
            return RAFFIA_OK;
        /* What is no matter of pages, as a want of addresses, is no fallback of theirs. */
        if (i + 1 < count && reason != RAFFIA_REASON_NONE)
            core_fallback(rungs[i].kind, rungs[i].size, rungs[i + 1].kind, rungs[i + 1].size,
                          reason, raffia_last_error());
    }
    return status;
}

/* Unmapping needs a mapping for the moment; what had none to be had may be better off next time. */
static raffia_status unmap_pages(struct pinned_memory *memory)
{
    raffia_status status = RAFFIA_OK;
    if (memory->chunk && host_driver.chunk_unmap(HOST, memory->chunk, memory->at))
        status = host_driver.chunk_unmap(HOST, memory->chunk, memory->at);
    if (status)
        return status;
    if (memory->chunk)
        (void)host_driver.chunk_destroy(HOST, memory->chunk); /* not mapped: cannot fail */
    memory->chunk = NULL;
    return host_driver.range_release(HOST, memory->at, memory->range_bytes);
}

/* Lets the GPU's driver allocate instead, or else does without pinning. */
static raffia_status do_without(int index, struct pinned_memory *memory)
{
    const struct driver_device gpu = pinned_gpu(index);
    struct core_error_record refusal;
    core_error_save(&refusal);
    size_t piece = memory->registration.piece_bytes;
    void *at;
    if (!memory->registration.registered && (gpu.driver->capabilities & DRIVER_CAN_ALLOC_HOST)) {
        core_fallback_pin(memory->page.kind, piece, RAFFIA_PAGE_REGULAR, base_page(),
                          "the device's driver allocates it instead", refusal.text);
        raffia_status status = gpu.driver->host_alloc(gpu.index, memory->bytes, &at);
        if (!status) {
            if (unmap_pages(memory))
                core_log_error("memory that could not be pinned is lost: %s", raffia_last_error());
            *memory = (struct pinned_memory){.at = at,
                                             .bytes = memory->bytes,
                                             .way = PINNED_BY_DRIVER,
                                             .page = {RAFFIA_PAGE_REGULAR, base_page()}};
            return RAFFIA_OK;
        }
        core_error_save(&refusal);
        status = pinned_context_state(index);
        if (status)
            return status;
    }
    core_fallback_pin(memory->page.kind, piece, RAFFIA_PAGE_NONE, 0,
                      "it stays pageable, which makes copies slower", refusal.text);
    return RAFFIA_OK;
}

raffia_status pinned_take(int index, const raffia_page_offer *rungs, size_t rung_count,
                          size_t bytes, unsigned threads, struct pinned_memory *memory)
{
    struct pinned_memory taken = {0};
    raffia_status status = pinned_context_state(index);
    if (!status)
        status = map_pages(rungs, rung_count, bytes, threads, &taken);
    if (status)
        return status;
    status = pinned_register(index, taken.at, taken.range_bytes, taken.page, &taken.registration,
                             &taken.way);
    if (!status && taken.way == PINNED_PAGEABLE)
        status = do_without(index, &taken);
    if (status) {
        struct core_error_record cause;
        core_error_save(&cause);
        if (pinned_unregister(index, &taken.registration) || unmap_pages(&taken))
            core_log_error("memory that was to be pinned is lost: %s", raffia_last_error());
        return core_error_restore(&cause);
    }
    pinned_count(index, taken.way, bytes);
    *memory = taken;
    return RAFFIA_OK;
}

raffia_status pinned_give(int index, struct pinned_memory *memory)
{
    const struct driver_device gpu = pinned_gpu(index);
    raffia_status status;
    if (memory->way == PINNED_BY_DRIVER) {
        status = gpu.driver->host_free(gpu.index, memory->at, memory->bytes);
        /* With its context went what was allocated in it. */
        if (status && gpu.driver->context_state(gpu.index) == RAFFIA_ERROR_DRIVER)
            status = RAFFIA_OK;
    } else {
        status = pinned_unregister(index, &memory->registration);
        if (!status)
            status = unmap_pages(memory);
    }
    if (status)
        return status;
    pinned_uncount(index, memory->way, memory->bytes);
    *memory = (struct pinned_memory){0};
    return RAFFIA_OK;
}
