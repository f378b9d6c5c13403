/**
 * @file umd.h
 * @brief Huge-page allocation by the names of a user-mode driver (UMD): five calls.
 *
 * One pool of huge pages for each device. A request that the policy finds worth huge pages is
 * served from the pool, any other from the device's regular memory; the caller need not know which,
 * and frees both by the same call. Underneath are the pools of pool.h.
 *
 * **Results.** 0 is success; a negative number is a #raffia_status, and raffia_last_error() says in
 * a sentence what happened. A NULL from an allocation is explained there too.
 *
 * **Devices.** @c device_id counts the devices of the process's driver (`RAFFIA_DRIVER` = auto |
 * cuda | host | sim), from 0. An id that does not exist is answered by #RAFFIA_ERROR_NOT_FOUND.
 * While an id has a pool or a block it stays with the device it had, whatever happens to that
 * setting.
 *
 * **Which requests use huge pages.** Those larger than the setting `huge_threshold` (16 MiB) and
 * those that ask for an alignment of 2 MiB or more (of a page, where the setting `page_size` is
 * less), which an alignment of 0 does; a hint overrides both. They do if the process asked for huge
 * pages, by the setting `pages` (`RAFFIA_PAGES`) or by umd_huge_page_pool_init(). Without either
 * all memory is regular.
 *
 * **Falling back.** A request that was meant for the pool and cannot be served from it (it is full,
 * too fragmented, cannot align so far, or cannot be built) is served from regular memory and
 * counted as a fallback. With pages `on` it fails with the reason instead. A request that the
 * policy sends to regular memory is no fallback. A request is never served in parts.
 *
 * **Alignment and size.** Every address out of the pool is aligned to its page size, and sizes are
 * rounded up to whole pages: 3 MiB take 4 MiB. Where the pool got pages of less than 2 MiB, or
 * regular ones, 2 MiB stand for the page size in both.
 *
 * **Threads.** All calls may be made from several threads at once.
 *
 * **Fork.** A forked child starts afresh: it has no pool and no block here, and may make its own
 * where the driver allows it. Blocks it inherited from its parent are not its to free
 * (#RAFFIA_ERROR_BAD_ADDRESS), and nothing it does disturbs its parent's pools.
 */
#ifndef RAFFIA_UMD_H
#define RAFFIA_UMD_H

#include <raffia/base.h>
#include <raffia/hint.h>
#include <raffia/status.h>

/** @addtogroup umd
 *  @{ */

/** What a device's pool holds now. All zero but @c device_id where there is no pool. */
typedef struct PoolStatus {
    void *cpu_addr;           /**< where the CPU sees the pool; NULL if it cannot */
    uint64_t gpu_addr;        /**< where the device sees it */
    uint64_t total_size;      /**< bytes mapped */
    uint64_t page_size;       /**< page size got, bytes */
    uint64_t free_list_count; /**< stretches of free space */
    int device_id;
    int is_initialized;    /**< 1: there is a pool */
    uint64_t free_size;    /**< bytes mapped and not handed out */
    uint64_t largest_free; /**< largest block that could be served at once, bytes */
    uint64_t hits;         /**< requests served from the pool without a call to the driver */
    uint64_t fallbacks;    /**< requests meant for the pool and served from regular memory */
} PoolStatus;

RAFFIA_BEGIN_DECLS

/**
 * @brief Builds the pool of a device: maps all of it, and reads the page size back.
 *
 * Making a pool on purpose asks for huge pages: they are tried unless the setting `pages` says
 * otherwise. With `on` it fails where there are none; with `off` the pool has regular pages.
 *
 * @param device_id the device
 * @param pool_size bytes, rounded up to whole pages; limited only by what is free. 0 = the default
 *                  share of the device: 8 % of its memory, at most 16 GiB, at most what is free
 *                  (settings `pool_share`, `pool_maximum` and `device_parameters`)
 * @return 0; #RAFFIA_ERROR_BUSY if it has a pool already, which stays as it is;
 *         #RAFFIA_ERROR_NOT_FOUND for the device; #RAFFIA_ERROR_NO_HUGE_PAGES,
 *         #RAFFIA_ERROR_OUT_OF_MEMORY and what else raffia_pool_create() answers. Nothing is left
 *         behind on failure.
 */
RAFFIA_API int umd_huge_page_pool_init(int device_id, uint64_t pool_size);

/**
 * @brief Allocates a block.
 *
 * The first request that is meant for huge pages builds the default pool, if the setting `pages`
 * says `try` or `on` and umd_huge_page_pool_init() was not called; threads that want it meanwhile
 * wait. Where that fails with `try`, some requests are served from regular memory before it is
 * tried again: 1, 3, 7 and so on, 1023 at most, or until a setting is changed.
 *
 * @param device_id the device
 * @param size      bytes, at least 1
 * @param align     a power of two; 0 = the page size of the pool (in regular memory 2 MiB, where
 *                  pages are larger)
 * @return the address; NULL with #RAFFIA_ERROR_INVALID_ARGUMENT for a size of 0 or an alignment
 *         that is not a power of two, #RAFFIA_ERROR_NOT_FOUND for the device,
 *         #RAFFIA_ERROR_OUT_OF_MEMORY, #RAFFIA_ERROR_OVERFLOW, #RAFFIA_ERROR_LIMIT beyond 1,048,576
 *         live blocks of regular memory, or with pages `on` why huge pages cannot be had.
 *         raffia_last_status() tells which.
 */
RAFFIA_API void *umd_huge_page_alloc(int device_id, uint64_t size, uint64_t align);

/**
 * @brief The same with hints about the block.
 * @param device_id the device
 * @param size      as above
 * @param align     as above
 * @param hints     flags of #raffia_hint; contradicting or unknown ones are refused as
 *                  #RAFFIA_ERROR_INVALID_ARGUMENT
 * @return as umd_huge_page_alloc()
 */
RAFFIA_API void *umd_huge_page_alloc_hint(int device_id, uint64_t size, uint64_t align,
                                          unsigned hints);

/**
 * @brief Frees a block, whichever way it was served.
 *
 * No work of the device may still use it.
 *
 * @param device_id the device it was allocated for
 * @param addr      its address; NULL is a success
 * @return 0; #RAFFIA_ERROR_BAD_ADDRESS if no live block of the device starts there (never handed
 *         out, freed before, inside a block), which harms nothing; #RAFFIA_ERROR_NOT_FOUND for the
 *         device
 */
RAFFIA_API int umd_huge_page_free(int device_id, void *addr);

/**
 * @brief Tells what the pool of a device holds.
 * @param device_id the device
 * @param status    filled in. Where there is no pool @c is_initialized is 0, as is the rest
 * @return 0; #RAFFIA_ERROR_INVALID_ARGUMENT if @p status is NULL, #RAFFIA_ERROR_NOT_FOUND for the
 *         device
 */
RAFFIA_API int umd_huge_page_pool_query(int device_id, PoolStatus *status);

/**
 * @brief Gives the pool of a device back. It can be built again.
 * @param device_id the device
 * @return 0; #RAFFIA_ERROR_BUSY, and nothing changes, while a block of the device is live, be it
 *         from the pool or from regular memory, or a call that may make one is under way;
 *         #RAFFIA_ERROR_NOT_FOUND if there is no pool or no such device
 */
RAFFIA_API int umd_huge_page_pool_destroy(int device_id);

RAFFIA_END_DECLS

/** @} */

#endif
