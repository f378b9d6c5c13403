/* The huge route: the host's chunks, registered where they are mapped. */
#include "core/error.h"
#include "core/fallbacks.h"
#include "core/log.h"
#include "core/memory.h"
#include "driver/host/host.h"
#include "driver/pinned/verbs.h"

#define HOST 0

struct mapping {
    struct mapping *next;
    enum pinned_way way;
    struct pinned_registration registration;
};

struct pinned_chunk {
    driver_chunk host;
    struct driver_chunk_spec spec;
    struct mapping *mappings; /* calls on one chunk come one at a time */
};

static struct pinned_chunk *chunk_of(driver_chunk handle)
{
    return (struct pinned_chunk *)(void *)handle;
}

raffia_status pinned_range_reserve(int index, size_t bytes, size_t alignment, void **base_p)
{
    raffia_status status = pinned_context_state(index);
    return status ? status : host_driver.range_reserve(HOST, bytes, alignment, base_p);
}

raffia_status pinned_range_release(int index, void *base, size_t bytes)
{
    (void)index;
    return host_driver.range_release(HOST, base, bytes);
}

static raffia_status new_chunk(const struct driver_chunk_spec *spec, struct pinned_chunk **chunk_p)
{
    struct pinned_chunk *chunk = core_calloc(1, sizeof *chunk);
    if (!chunk)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    chunk->spec = *spec;
    *chunk_p = chunk;
    return RAFFIA_OK;
}

raffia_status pinned_chunk_create(int index, const struct driver_chunk_spec *spec,
                                  driver_chunk *chunk_p, raffia_fallback_reason *reason)
{
    struct pinned_chunk *chunk = NULL;
    *reason = RAFFIA_REASON_NONE;
    raffia_status status = pinned_context_state(index);
    if (!status)
        status = new_chunk(spec, &chunk);
    if (status)
        return status;
    status = host_driver.chunk_create(HOST, spec, &chunk->host, reason);
    if (status) {
        core_free(chunk);
        return status;
    }
    *chunk_p = (driver_chunk)(void *)chunk;
    return RAFFIA_OK;
}

raffia_status pinned_chunk_destroy(int index, driver_chunk handle)
{
    (void)index;
    struct pinned_chunk *chunk = chunk_of(handle);
    raffia_status status = host_driver.chunk_destroy(HOST, chunk->host);
    if (!status)
        core_free(chunk);
    return status;
}

/* The pages are there; makes them known to the GPU as well as it will have them. The address being
 * the caller's, memory of the driver's own choice is no way out here. */
static raffia_status pin(int index, const struct pinned_chunk *chunk, void *at,
                         struct mapping *mapping)
{
    const raffia_page_offer page = {chunk->spec.kind, chunk->spec.page_size};
    raffia_status status =
        pinned_register(index, at, chunk->spec.bytes, page, &mapping->registration, &mapping->way);
    if (!status && mapping->way == PINNED_PAGEABLE)
        core_fallback_pin(page.kind, mapping->registration.piece_bytes, RAFFIA_PAGE_NONE, 0,
                          "it stays pageable, which makes copies slower", raffia_last_error());
    return status;
}

raffia_status pinned_chunk_map(int index, driver_chunk handle, void *at,
                               raffia_fallback_reason *reason)
{
    struct pinned_chunk *chunk = chunk_of(handle);
    *reason = RAFFIA_REASON_NONE;
    struct mapping *mapping = core_calloc(1, sizeof *mapping);
    if (!mapping)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    raffia_status status = host_driver.chunk_map(HOST, chunk->host, at, reason);
    if (status)
        goto free_mapping;
    status = pin(index, chunk, at, mapping);
    if (status)
        goto unmap;
    pinned_count(index, mapping->way, chunk->spec.bytes);
    mapping->next = chunk->mappings;
    chunk->mappings = mapping;
    return RAFFIA_OK;

    struct core_error_record cause;
unmap:
    core_error_save(&cause);
    if (host_driver.chunk_unmap(HOST, chunk->host, at))
        core_log_error("a chunk that was to be pinned stays mapped: %s", raffia_last_error());
    core_error_restore(&cause);
free_mapping:
    core_free(mapping);
    return status;
}

/* It stays mapped, and its user goes on with it: as it was, or else known not to be pinned. */
static void pin_again(int index, const struct pinned_chunk *chunk, struct mapping *mapping)
{
    struct core_error_record cause;
    core_error_save(&cause);
    const enum pinned_way before = mapping->way;
    void *const at = mapping->registration.at;
    mapping->way = PINNED_PAGEABLE;
    if (before != PINNED_PAGEABLE)
        (void)pin(index, chunk, at, mapping); /* a lost GPU has nothing pinned either */
    pinned_count(index, mapping->way, chunk->spec.bytes);
    pinned_uncount(index, before, chunk->spec.bytes);
    core_error_restore(&cause);
}

raffia_status pinned_chunk_unmap(int index, driver_chunk handle, void *at)
{
    struct pinned_chunk *chunk = chunk_of(handle);
    struct mapping **place = &chunk->mappings;
    while (*place && (*place)->registration.at != at)
        place = &(*place)->next;
    struct mapping *mapping = *place;
    if (!mapping)
        return core_error(RAFFIA_ERROR_BAD_ADDRESS, "a chunk is not mapped at %p", at);
    raffia_status status = pinned_unregister(index, &mapping->registration);
    if (status)
        return status;
    status = host_driver.chunk_unmap(HOST, chunk->host, at);
    if (status) {
        pin_again(index, chunk, mapping);
        return status;
    }
    pinned_uncount(index, mapping->way, chunk->spec.bytes);
    *place = mapping->next;
    core_free(mapping);
    return RAFFIA_OK;
}

raffia_status pinned_chunk_export(int index, driver_chunk handle, enum driver_handle_type type,
                                  uint64_t words[DRIVER_HANDLE_WORDS])
{
    (void)index;
    return host_driver.chunk_export(HOST, chunk_of(handle)->host, type, words);
}

raffia_status pinned_chunk_import(int index, enum driver_handle_type type,
                                  const uint64_t words[DRIVER_HANDLE_WORDS],
                                  const struct driver_chunk_spec *spec, driver_chunk *chunk_p)
{
    struct pinned_chunk *chunk = NULL;
    raffia_status status = pinned_context_state(index);
    if (!status)
        status = new_chunk(spec, &chunk);
    if (status)
        return status;
    status = host_driver.chunk_import(HOST, type, words, spec, &chunk->host);
    if (status) {
        core_free(chunk);
        return status;
    }
    *chunk_p = (driver_chunk)(void *)chunk;
    return RAFFIA_OK;
}

raffia_status pinned_page_size_of(int index, const void *at, size_t bytes, raffia_page_kind kind,
                                  size_t expected, struct driver_page_evidence *evidence)
{
    (void)index;
    return host_driver.page_size_of(HOST, at, bytes, kind, expected, evidence);
}
