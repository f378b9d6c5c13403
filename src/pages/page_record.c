/* The driver calls of a page store, one chunk at a time. */
#include "pages/page_record.h"

#include "core/error.h"
#include "core/memory.h"
#include "core/text.h"

#include <assert.h>

static void count_call(struct page_source *source)
{
    atomic_fetch_add_explicit(&source->driver_calls, 1, memory_order_relaxed);
}

raffia_status page_record_create(struct page_source *source, size_t bytes, size_t total_bytes,
                                 struct page_record **record_p, raffia_fallback_reason *reason)
{
    const struct page_store_options *options = &source->options;
    struct page_record *record = core_calloc(1, sizeof *record);
    if (!record) {
        *reason = RAFFIA_REASON_NONE;
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    }
    const struct driver_chunk_spec spec = {
        .bytes = bytes,
        .page_size = options->page_size,
        .kind = options->kind,
        .remappable = options->remappable,
        .handle = options->handle,
        .numa_node = options->numa_node,
        .threads = options->threads ? options->threads : 1,
        .total_bytes = total_bytes,
    };
    count_call(source);
    raffia_status status =
        options->device.driver->chunk_create(options->device.index, &spec, &record->chunk, reason);
    if (status) {
        core_free(record);
        return status;
    }
    record->bytes = bytes;
    record->reusable = options->remappable;
    *record_p = record;
    return RAFFIA_OK;
}

static raffia_status refuse_smaller(const struct page_store_options *options,
                                    const struct driver_page_evidence *evidence,
                                    raffia_fallback_reason *reason)
{
    char asked[CORE_SIZE_TEXT_MAX], found[CORE_SIZE_TEXT_MAX];
    *reason = RAFFIA_REASON_SMALLER;
    return core_error(RAFFIA_ERROR_OUT_OF_MEMORY,
                      "asked for %s pages of %s, but reading them back (%s) found pages of %s: the "
                      "memory is refused",
                      raffia_page_kind_name(options->kind),
                      core_format_size(options->page_size, asked), evidence->source,
                      core_format_size(evidence->smallest, found));
}

/* The driver promises the page size; a promise that can be checked is checked. Regular pages are
 * not: that costs a pass over the page tables, and nothing smaller exists. */
static raffia_status read_back(const struct page_source *source, const struct page_record *record,
                               struct driver_page_evidence *evidence,
                               raffia_fallback_reason *reason)
{
    const struct page_store_options *options = &source->options;
    const struct driver *driver = options->device.driver;
    if (options->kind == RAFFIA_PAGE_REGULAR) {
        *evidence = (struct driver_page_evidence){options->page_size, record->bytes, true,
                                                  "by construction"};
        return RAFFIA_OK;
    }
    *evidence = (struct driver_page_evidence){0, 0, false, "none"};
    if (!(driver->capabilities & DRIVER_CAN_VERIFY))
        return RAFFIA_OK;
    raffia_status status = driver->page_size_of(options->device.index, record->at, record->bytes,
                                                options->kind, options->page_size, evidence);
    if (status) {
        *reason = RAFFIA_REASON_NONE;
        return status;
    }
    if (evidence->verified && evidence->smallest < options->page_size)
        return refuse_smaller(options, evidence, reason);
    return RAFFIA_OK;
}

raffia_status page_record_map(struct page_source *source, struct page_record *record, void *at,
                              struct driver_page_evidence *evidence, raffia_fallback_reason *reason)
{
    const struct driver_device device = source->options.device;
    assert(!record->at);
    count_call(source);
    raffia_status status = device.driver->chunk_map(device.index, record->chunk, at, reason);
    if (status)
        return status;
    record->at = at;
    status = read_back(source, record, evidence, reason);
    if (status) {
        struct core_error_record cause;
        core_error_save(&cause);
        if (page_record_unmap(source, record))
            record->reusable = false;
        core_error_restore(&cause);
    }
    return status;
}

raffia_status page_record_unmap(struct page_source *source, struct page_record *record)
{
    const struct driver_device device = source->options.device;
    count_call(source);
    raffia_status status = device.driver->chunk_unmap(device.index, record->chunk, record->at);
    if (!status)
        record->at = NULL;
    return status;
}

raffia_status page_record_settle(struct page_source *source, struct page_record *record)
{
    const struct driver_device device = source->options.device;
    if (!record->former)
        return RAFFIA_OK;
    count_call(source);
    raffia_status status = device.driver->chunk_unmap(device.index, record->chunk, record->former);
    if (!status)
        record->former = NULL;
    return status;
}

static raffia_status alias(struct page_source *source, struct page_record *record, void *at,
                           struct driver_page_evidence *evidence, raffia_fallback_reason *reason)
{
    void *const old = record->at;
    record->at = NULL;
    raffia_status status = page_record_map(source, record, at, evidence, reason);
    if (status) {
        /* Still there if undoing failed. */
        record->former = record->at;
        record->reusable = true;
        record->at = old;
    } else {
        record->former = old;
    }
    return status;
}

raffia_status page_record_move(struct page_source *source, struct page_record *record, void *at,
                               struct driver_page_evidence *evidence,
                               raffia_fallback_reason *reason)
{
    const unsigned capabilities = source->options.device.driver->capabilities;
    void *const old = record->at;
    assert(old && !record->former);
    if (capabilities & DRIVER_CAN_ALIAS)
        return alias(source, record, at, evidence, reason);
    *reason = RAFFIA_REASON_NONE;
    raffia_status status = page_record_unmap(source, record);
    if (status)
        return status;
    status = page_record_map(source, record, at, evidence, reason);
    if (status) {
        struct core_error_record cause;
        raffia_fallback_reason ignored;
        core_error_save(&cause);
        if (!record->at)
            (void)page_record_map(source, record, old, evidence, &ignored);
        core_error_restore(&cause);
    }
    return status;
}

raffia_status page_record_end(struct page_source *source, struct page_record *record)
{
    const struct driver_device device = source->options.device;
    if (record->at) {
        raffia_status status = page_record_unmap(source, record);
        if (status)
            return status;
    }
    count_call(source);
    raffia_status status = device.driver->chunk_destroy(device.index, record->chunk);
    if (status)
        return status;
    core_free(record);
    return RAFFIA_OK;
}
