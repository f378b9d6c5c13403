/*
 * The page store: physical memory of one device, one page kind and size, and one sharing group.
 *
 * It owns every chunk, keeps the sum of their sizes under a limit, and gives memory back to the
 * system. Pools (and later their sub-pools) own addresses and *borrow* chunks to put behind them,
 * so no pool strands memory that another could use. A chunk that comes back is kept for the next
 * borrower if it is remappable, else destroyed.
 *
 * Thread-safe. The store's lock is the innermost one above the driver and is not held during driver
 * calls that may take long (create, map, unmap).
 */
#ifndef PAGES_PAGE_STORE_H
#define PAGES_PAGE_STORE_H

#include "driver/driver.h"

#include <raffia/base.h>
#include <raffia/pages.h>
#include <raffia/status.h>

struct page_store;

struct page_store_options {
    struct driver_device device;
    raffia_page_kind kind;
    size_t page_size;
    size_t limit_bytes; /* of all chunks together, lent and kept */
    bool remappable;
    enum driver_handle_type handle;
    int numa_node; /* -1: any */
    unsigned threads;
};

/* A chunk lent to one borrower, mapped at one address. */
struct page_loan {
    driver_chunk chunk;
    void *at;
    size_t bytes;
    struct driver_page_evidence evidence; /* as found when it was mapped */
    struct page_record *record;           /* the store's own */
};

struct page_store_stats {
    size_t lent_bytes;
    size_t kept_bytes; /* idle, ready for the next borrower */
    size_t limit_bytes;
    size_t peak_bytes;
    size_t chunks;         /* lent and kept */
    uint64_t driver_calls; /* create, map, unmap, destroy */
};

/* UNSUPPORTED if the device cannot remap or export and is asked to; OUT_OF_HOST_MEMORY. */
raffia_status page_store_create(const struct page_store_options *options,
                                struct page_store **store_p);

/* Pre: no loans. Destroys the chunks kept, trying again where the driver fails. NULL is ignored. */
void page_store_destroy(struct page_store *store);

/*
 * Puts a chunk of `bytes` (a multiple of the page size) behind the reserved addresses at `at`;
 * `total_bytes` is what the borrower lacks in all, this chunk included, for advice in a refusal. On
 * success every page is there and was read back, if the driver can, to be of the store's page size.
 * OUT_OF_MEMORY or LIMIT otherwise, or what the driver says, with *reason set (NONE where the pages
 * are not to blame), and nothing changed. Kept chunks are given back before it fails.
 */
raffia_status page_store_borrow(struct page_store *store, void *at, size_t bytes,
                                size_t total_bytes, struct page_loan *loan,
                                raffia_fallback_reason *reason);

/* Takes a chunk back from its address. Nobody may be using it. A driver failure leaves the loan as
 * it was. A chunk that is unmapped but cannot be destroyed is kept until a trim succeeds; the loan
 * is over all the same. */
raffia_status page_store_return(struct page_store *store, struct page_loan *loan);

/*
 * Maps a lent chunk at `at` instead of where it is: same content, same borrower. Pre: the store is
 * remappable, and the chunk is settled. Nobody may be using it. Where the driver can map a chunk
 * twice, its former address stays mapped until page_store_settle(): the dear half of a move can
 * wait. On failure nothing changed, with two exceptions: `at` may still be mapped, and is then the
 * loan's former address; and with a driver that cannot map twice, and that failed twice, the loan
 * is over (loan->record is NULL) and its chunk kept.
 */
raffia_status page_store_move(struct page_store *store, struct page_loan *loan, void *at,
                              raffia_fallback_reason *reason);

/* Moves it back to where it came from, `old`. Cannot fail where the driver can map twice, but that
 * the loan may need to be settled. As page_store_move() elsewhere. */
raffia_status page_store_move_back(struct page_store *store, struct page_loan *loan, void *old);

/* The address besides loan->at where the chunk is still mapped; NULL if it is settled. Chunks must
 * be before they are moved again or returned. */
void *page_store_former(const struct page_loan *loan);
raffia_status page_store_settle(struct page_store *store, const struct page_loan *loan);

/* Ends the loan of a chunk that the driver will not take back because the device's context is lost,
 * and its memory with it. The addresses stay as they are. */
void page_store_forget(struct page_store *store, struct page_loan *loan);

/* Gives kept chunks back to the system until at most `keep_bytes` are kept. */
raffia_status page_store_trim(struct page_store *store, size_t keep_bytes, size_t *released_p);

/* Lowering it below what is lent stops further borrowing; nothing is taken away. */
void page_store_set_limit(struct page_store *store, size_t limit_bytes);

void page_store_query(struct page_store *store, struct page_store_stats *stats);

#endif
