/*
 * One chunk of a page store and the driver calls that make, map and end it. Nothing here takes the
 * store's lock.
 */
#ifndef PAGES_PAGE_RECORD_H
#define PAGES_PAGE_RECORD_H

#include "pages/page_store.h"

#include <stdatomic.h>

/* Lives as long as its chunk, so that taking a chunk back never needs memory. */
struct page_record {
    struct page_record *next; /* among the kept */
    driver_chunk chunk;
    void *at;     /* where it is mapped; NULL if it is not */
    void *former; /* where it is mapped too, as it was moved or could not be; NULL if nowhere */
    size_t bytes;
    bool reusable; /* may be lent again; otherwise it only waits for its end */
};

/* What the calls need to know of the store. */
struct page_source {
    struct page_store_options options;
    atomic_uint_fast64_t driver_calls;
};

/* `total_bytes` as in struct driver_chunk_spec. */
raffia_status page_record_create(struct page_source *source, size_t bytes, size_t total_bytes,
                                 struct page_record **record_p, raffia_fallback_reason *reason);

/* Maps and reads the page size back. On failure the record may still be mapped if undoing failed
 * as well: record->at tells. */
raffia_status page_record_map(struct page_source *source, struct page_record *record, void *at,
                              struct driver_page_evidence *evidence,
                              raffia_fallback_reason *reason);

raffia_status page_record_unmap(struct page_source *source, struct page_record *record);

/* Maps a mapped chunk at `at` instead, reading the page size back. Where the driver can alias, the
 * old address becomes the former one, and on failure the record is as it was, but that `at` may be
 * the former address if undoing failed as well. Elsewhere it is unmapped first, and on failure
 * mapped again; record->at is the old address only if that succeeded. */
raffia_status page_record_move(struct page_source *source, struct page_record *record, void *at,
                               struct driver_page_evidence *evidence,
                               raffia_fallback_reason *reason);

/* Unmaps the former address. */
raffia_status page_record_settle(struct page_source *source, struct page_record *record);

/* Unmaps if need be, destroys, and frees the record. On failure the record stays. */
raffia_status page_record_end(struct page_source *source, struct page_record *record);

#endif
