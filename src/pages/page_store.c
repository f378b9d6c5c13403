/* The budget of a page store: what is lent, what is kept, and what is on its way between them. */
#include "pages/page_store.h"

#include "core/checked.h"
#include "core/error.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/text.h"
#include "pages/page_record.h"

#include <assert.h>
#include <pthread.h>

/* A store that goes away has nobody to tell that the driver failed, so it asks again. */
#define PAGE_STORE_END_ATTEMPTS 3

struct page_store {
    struct page_source source;

    pthread_mutex_t lock; /* guards the rest; never held during a driver call */
    struct page_record *kept;
    size_t lent_bytes;
    size_t kept_bytes;
    size_t moving_bytes; /* reserved by calls that are under way, so that none overruns the limit */
    size_t limit_bytes;
    size_t peak_bytes;
    size_t chunks;
};

raffia_status page_store_create(const struct page_store_options *options,
                                struct page_store **store_p)
{
    const struct driver *driver = options->device.driver;
    assert(core_is_power_of_two(options->page_size));
    if (options->remappable && !(driver->capabilities & DRIVER_CAN_REMAP))
        return core_error(RAFFIA_ERROR_UNSUPPORTED,
                          "remappable pages were asked for, but the %s driver cannot move memory "
                          "from one address to another",
                          driver->name);
    if (options->handle != DRIVER_HANDLE_NONE && !(driver->capabilities & DRIVER_CAN_EXPORT))
        return core_error(RAFFIA_ERROR_UNSUPPORTED,
                          "shareable pages were asked for, but the %s driver cannot export memory "
                          "to other processes",
                          driver->name);
    struct page_store *store = core_calloc(1, sizeof *store);
    if (!store)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    store->source.options = *options;
    store->limit_bytes = options->limit_bytes;
    pthread_mutex_init(&store->lock, NULL);
    *store_p = store;
    return RAFFIA_OK;
}

static size_t used_bytes(const struct page_store *store)
{
    return store->lent_bytes + store->kept_bytes + store->moving_bytes;
}

/* Lock held. Takes a chunk from the kept: one of exactly `bytes` that can be lent again, or, for
 * `bytes` 0, any. Its size is then counted as moving. */
static struct page_record *take_kept(struct page_store *store, size_t bytes)
{
    for (struct page_record **link = &store->kept; *link; link = &(*link)->next) {
        struct page_record *record = *link;
        if (bytes && (record->bytes != bytes || !record->reusable))
            continue;
        *link = record->next;
        store->kept_bytes -= record->bytes;
        store->moving_bytes += record->bytes;
        return record;
    }
    return NULL;
}

/* Lock held. The reverse. */
static void put_kept(struct page_store *store, struct page_record *record)
{
    record->next = store->kept;
    store->kept = record;
    store->moving_bytes -= record->bytes;
    store->kept_bytes += record->bytes;
}

/* No lock held; the record's bytes are counted as moving. Ends it, or keeps it if that fails. */
static raffia_status end_moving(struct page_store *store, struct page_record *record)
{
    const size_t bytes = record->bytes;
    raffia_status status = page_record_end(&store->source, record);
    pthread_mutex_lock(&store->lock);
    if (status) {
        record->reusable = record->reusable && !record->at;
        put_kept(store, record);
    } else {
        store->moving_bytes -= bytes;
        store->chunks--;
    }
    pthread_mutex_unlock(&store->lock);
    return status;
}

raffia_status page_store_trim(struct page_store *store, size_t keep_bytes, size_t *released_p)
{
    size_t released = 0;
    raffia_status status = RAFFIA_OK;
    while (!status) {
        pthread_mutex_lock(&store->lock);
        struct page_record *record = store->kept_bytes > keep_bytes ? take_kept(store, 0) : NULL;
        pthread_mutex_unlock(&store->lock);
        if (!record)
            break;
        const size_t bytes = record->bytes;
        status = end_moving(store, record);
        if (!status)
            released += bytes;
    }
    if (released_p && !status)
        *released_p = released;
    return status;
}

void page_store_destroy(struct page_store *store)
{
    if (!store)
        return;
    assert(store->lent_bytes == 0 && store->moving_bytes == 0);
    raffia_status status = RAFFIA_ERROR_DRIVER;
    for (int attempt = 0; status && attempt < PAGE_STORE_END_ATTEMPTS; attempt++)
        status = page_store_trim(store, 0, NULL);
    if (status)
        core_log_error("%zu bytes of %s pages could not be given back: %s", store->kept_bytes,
                       raffia_page_kind_name(store->source.options.kind), raffia_last_error());
    for (struct page_record *record = store->kept, *next; record; record = next) {
        next = record->next;
        core_free(record); /* nobody can find its chunk any more */
    }
    pthread_mutex_destroy(&store->lock);
    core_free(store);
}

static raffia_status over_the_limit(struct page_store *store, size_t bytes,
                                    raffia_fallback_reason *reason)
{
    struct page_store_stats stats;
    char asked[CORE_SIZE_TEXT_MAX], limit[CORE_SIZE_TEXT_MAX], lent[CORE_SIZE_TEXT_MAX],
        kept[CORE_SIZE_TEXT_MAX];
    page_store_query(store, &stats);
    *reason = RAFFIA_REASON_LIMIT;
    return core_error(
        RAFFIA_ERROR_LIMIT,
        "%s more of %s pages would exceed the limit of %s: %s are lent and %s kept",
        core_format_size(bytes, asked), raffia_page_kind_name(store->source.options.kind),
        core_format_size(stats.limit_bytes, limit), core_format_size(stats.lent_bytes, lent),
        core_format_size(stats.kept_bytes, kept));
}

/*
 * Counts `bytes` as moving: those of a kept chunk, which is then *record_p, or room for a new one.
 * Kept chunks of other sizes go if the limit wants it.
 */
static raffia_status reserve(struct page_store *store, size_t bytes, struct page_record **record_p,
                             raffia_fallback_reason *reason)
{
    *record_p = NULL;
    for (;;) {
        struct page_record *surplus = NULL;
        size_t wanted;
        pthread_mutex_lock(&store->lock);
        *record_p = take_kept(store, bytes);
        const bool fits = !*record_p && core_add(used_bytes(store), bytes, &wanted) &&
                          wanted <= store->limit_bytes;
        if (fits)
            store->moving_bytes += bytes;
        else if (!*record_p)
            surplus = take_kept(store, 0);
        pthread_mutex_unlock(&store->lock);
        if (*record_p || fits)
            return RAFFIA_OK;
        if (!surplus || end_moving(store, surplus))
            return over_the_limit(store, bytes, reason);
    }
}

/* Gives up what reserve() counted. */
static void unreserve(struct page_store *store, size_t bytes)
{
    pthread_mutex_lock(&store->lock);
    store->moving_bytes -= bytes;
    pthread_mutex_unlock(&store->lock);
}

/* Makes a new chunk for bytes already counted; a refusal for want of memory gives back what is kept
 * and tries once more. */
static raffia_status create_reserved(struct page_store *store, size_t bytes, size_t total_bytes,
                                     struct page_record **record_p, raffia_fallback_reason *reason)
{
    raffia_status status = page_record_create(&store->source, bytes, total_bytes, record_p, reason);
    size_t released;
    if (status == RAFFIA_ERROR_OUT_OF_MEMORY && !page_store_trim(store, 0, &released) && released)
        status = page_record_create(&store->source, bytes, total_bytes, record_p, reason);
    if (status) {
        unreserve(store, bytes);
        return status;
    }
    pthread_mutex_lock(&store->lock);
    store->chunks++;
    pthread_mutex_unlock(&store->lock);
    return RAFFIA_OK;
}

static raffia_status map_reserved(struct page_store *store, struct page_record *record, void *at,
                                  struct driver_page_evidence *evidence,
                                  raffia_fallback_reason *reason)
{
    raffia_status status = page_record_map(&store->source, record, at, evidence, reason);
    size_t released;
    if (status == RAFFIA_ERROR_OUT_OF_MEMORY && !record->at &&
        !page_store_trim(store, 0, &released) && released)
        status = page_record_map(&store->source, record, at, evidence, reason);
    /* Memory in smaller pages than promised may be an accident of this once. */
    if (status && *reason == RAFFIA_REASON_SMALLER && !record->at)
        status = page_record_map(&store->source, record, at, evidence, reason);
    if (status) {
        struct core_error_record cause;
        core_error_save(&cause);
        end_moving(store, record);
        core_error_restore(&cause);
    }
    return status;
}

raffia_status page_store_borrow(struct page_store *store, void *at, size_t bytes,
                                size_t total_bytes, struct page_loan *loan,
                                raffia_fallback_reason *reason)
{
    struct page_record *record;
    struct driver_page_evidence evidence;
    assert(bytes && core_is_aligned(bytes, store->source.options.page_size));
    assert(core_is_aligned((uintptr_t)at, store->source.options.page_size));
    raffia_status status = reserve(store, bytes, &record, reason);
    if (!status && !record)
        status = create_reserved(store, bytes, total_bytes, &record, reason);
    if (!status)
        status = map_reserved(store, record, at, &evidence, reason);
    if (status)
        return status;
    pthread_mutex_lock(&store->lock);
    store->moving_bytes -= bytes;
    store->lent_bytes += bytes;
    store->peak_bytes = core_max(store->peak_bytes, store->lent_bytes + store->kept_bytes);
    pthread_mutex_unlock(&store->lock);
    *loan = (struct page_loan){record->chunk, at, bytes, evidence, record};
    return RAFFIA_OK;
}

void page_store_forget(struct page_store *store, struct page_loan *loan)
{
    struct page_record *record = loan->record;
    pthread_mutex_lock(&store->lock);
    store->lent_bytes -= record->bytes;
    store->chunks--;
    pthread_mutex_unlock(&store->lock);
    core_free(record);
    *loan = (struct page_loan){0};
}

raffia_status page_store_return(struct page_store *store, struct page_loan *loan)
{
    struct page_record *record = loan->record;
    assert(record && record->at == loan->at);
    if (record->former)
        return core_error(RAFFIA_ERROR_DRIVER,
                          "a chunk of %zu bytes is still mapped at %p, which it was moved from",
                          record->bytes, record->former);
    raffia_status status = page_record_unmap(&store->source, record);
    if (status)
        return status;
    pthread_mutex_lock(&store->lock);
    store->lent_bytes -= record->bytes;
    store->moving_bytes += record->bytes;
    const bool keep = record->reusable && used_bytes(store) <= store->limit_bytes;
    if (keep)
        put_kept(store, record);
    pthread_mutex_unlock(&store->lock);
    *loan = (struct page_loan){0};
    if (!keep)
        (void)end_moving(store, record); /* or it is kept */
    return RAFFIA_OK;
}

/* A chunk that is not where its borrower had it any more, nor where it should have gone. */
static void keep_lost(struct page_store *store, struct page_loan *loan)
{
    struct page_record *record = loan->record;
    pthread_mutex_lock(&store->lock);
    store->lent_bytes -= record->bytes;
    store->moving_bytes += record->bytes;
    put_kept(store, record);
    pthread_mutex_unlock(&store->lock);
    *loan = (struct page_loan){0};
}

raffia_status page_store_move(struct page_store *store, struct page_loan *loan, void *at,
                              raffia_fallback_reason *reason)
{
    struct page_record *record = loan->record;
    struct driver_page_evidence evidence;
    assert(store->source.options.remappable && record->at == loan->at && !record->former);
    *reason = RAFFIA_REASON_NONE;
    raffia_status status = page_record_move(&store->source, record, at, &evidence, reason);
    if (status && record->at != loan->at) {
        struct core_error_record cause;
        core_error_save(&cause);
        keep_lost(store, loan);
        core_error_restore(&cause);
        return status;
    }
    if (status)
        return status;
    loan->at = at;
    loan->evidence = evidence;
    return RAFFIA_OK;
}

raffia_status page_store_move_back(struct page_store *store, struct page_loan *loan, void *old)
{
    struct page_record *record = loan->record;
    raffia_fallback_reason ignored;
    if (record->former != old)
        return page_store_move(store, loan, old, &ignored);
    record->former = record->at;
    loan->at = record->at = old;
    (void)page_record_settle(&store->source, record); /* or it stays the former address */
    return RAFFIA_OK;
}

void *page_store_former(const struct page_loan *loan)
{
    return loan->record ? loan->record->former : NULL;
}

raffia_status page_store_settle(struct page_store *store, const struct page_loan *loan)
{
    return page_record_settle(&store->source, loan->record);
}

void page_store_set_limit(struct page_store *store, size_t limit_bytes)
{
    pthread_mutex_lock(&store->lock);
    store->limit_bytes = limit_bytes;
    pthread_mutex_unlock(&store->lock);
}

void page_store_query(struct page_store *store, struct page_store_stats *stats)
{
    pthread_mutex_lock(&store->lock);
    *stats = (struct page_store_stats){
        .lent_bytes = store->lent_bytes,
        .kept_bytes = store->kept_bytes,
        .limit_bytes = store->limit_bytes,
        .peak_bytes = store->peak_bytes,
        .chunks = store->chunks,
        .driver_calls = atomic_load_explicit(&store->source.driver_calls, memory_order_relaxed),
    };
    pthread_mutex_unlock(&store->lock);
}
