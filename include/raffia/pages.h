/**
 * @file pages.h
 * @brief Words about memory pages: what was asked for, what was got, what was verified.
 *
 * A success code proves nothing about page sizes (the kernel accepts advice it will not follow), so
 * Raffia keeps three facts apart: the page size *asked* for, the one it *got* by the route taken,
 * and the one *verified* by reading it back from the kernel. The words are PostgreSQL's
 * (`off|try|on`) and libhugetlbfs's (fall back or be strict).
 */
#ifndef RAFFIA_PAGES_H
#define RAFFIA_PAGES_H

#include <raffia/base.h>
#include <raffia/status.h>

/** @addtogroup pages
 *  @{ */

/** Whether huge pages are wanted. */
typedef enum raffia_pages_mode {
    RAFFIA_PAGES_DEFAULT = 0, /**< the process setting, `RAFFIA_PAGES`; "off" if that is not set */
    RAFFIA_PAGES_OFF,         /**< regular memory */
    RAFFIA_PAGES_TRY, /**< huge pages if they can be had; else fall back, count, warn once */
    RAFFIA_PAGES_ON,  /**< huge pages or #RAFFIA_ERROR_NO_HUGE_PAGES with the reason */
} raffia_pages_mode;

/** What kind of pages back an address range. */
typedef enum raffia_page_kind {
    RAFFIA_PAGE_NONE = 0,    /**< nothing is mapped */
    RAFFIA_PAGE_REGULAR,     /**< the base page of the machine, usually 4 KiB */
    RAFFIA_PAGE_TRANSPARENT, /**< transparent huge pages: huge now, the kernel may split them later
                              */
    RAFFIA_PAGE_HUGETLB,     /**< huge pages from the reserved pool: huge until unmapped */
    RAFFIA_PAGE_DEVICE,      /**< device memory, whose page size only its driver knows */
    RAFFIA_PAGE_KIND_COUNT,
} raffia_page_kind;

/** Why a step of the ladder was refused. */
typedef enum raffia_fallback_reason {
    RAFFIA_REASON_NONE = 0,
    RAFFIA_REASON_DISABLED,    /**< switched off by the administrator or for this process */
    RAFFIA_REASON_UNSUPPORTED, /**< the device or kernel has no pages of this kind and size */
    RAFFIA_REASON_POOL_EMPTY,  /**< too few free pages in the system's huge-page pool */
    RAFFIA_REASON_CGROUP,      /**< a limit of the control group (container) */
    RAFFIA_REASON_PERMISSION,  /**< the caller lacks the right */
    RAFFIA_REASON_NODE,        /**< the NUMA node asked for is short */
    RAFFIA_REASON_FAULT,       /**< the kernel could not fill every page (fragmentation, usually) */
    RAFFIA_REASON_MISALIGNED,  /**< the driver returned a base that is not aligned to the page */
    RAFFIA_REASON_SMALLER,     /**< read back: the pages are smaller than the driver said */
    RAFFIA_REASON_MEMORY,      /**< the machine or device is out of memory */
    RAFFIA_REASON_LIMIT,       /**< address space, mappings, file descriptors or a resource limit */
    RAFFIA_REASON_EXHAUSTED,   /**< the pool has no room for the request, or not in one piece */
    RAFFIA_REASON_PIN,         /**< the device's driver would not register (pin) the memory. The
                                    sizes of such a step are those of registered pieces, rounded up
                                    to powers of two; regular pages stand for memory that the driver
                                    allocates itself, no pages for pageable memory */
    RAFFIA_REASON_COUNT,
} raffia_fallback_reason;

/** The page size of a range or a whole pool, in its three senses. */
typedef struct raffia_page_report {
    raffia_page_kind asked_kind;   /**< first rung of the ladder that applied */
    size_t asked_size;             /**< its page size, bytes */
    raffia_page_kind got_kind;     /**< rung that served the request */
    size_t got_size;               /**< its page size, bytes */
    size_t verified_size;          /**< smallest page size read back, bytes; 0 if not verified */
    bool verified;                 /**< the kernel was asked and confirmed got_size everywhere */
    size_t verified_bytes;         /**< bytes that were read back with at least got_size */
    size_t total_bytes;            /**< bytes looked at */
    raffia_fallback_reason reason; /**< why the first rung was refused; NONE if it was not */
    const char *evidence;          /**< how it was read back ("pagemap", "maps", "smaps", "fstatfs",
                                        "by construction", "none"). Static storage */
} raffia_page_report;

/** One row of the process-wide table of fallbacks. */
typedef struct raffia_fallback_count {
    raffia_page_kind from_kind;
    size_t from_size; /**< page size that was refused, bytes */
    raffia_page_kind to_kind;
    size_t to_size; /**< page size tried next, bytes; 0 when nothing was left to try */
    raffia_fallback_reason reason;
    uint64_t count;
} raffia_fallback_count;

RAFFIA_BEGIN_DECLS

/** @brief "transparent", "hugetlb", ...; "unknown" for a foreign value. Static storage. */
RAFFIA_API const char *raffia_page_kind_name(raffia_page_kind kind);

/** @brief "pool_empty", "cgroup", ... as metrics label them; "unknown" for a foreign value. */
RAFFIA_API const char *raffia_fallback_reason_name(raffia_fallback_reason reason);

/** @brief One clause that explains the reason to a person. Static storage. */
RAFFIA_API const char *raffia_fallback_reason_text(raffia_fallback_reason reason);

/** @brief "default", "off", "try" or "on". Static storage. */
RAFFIA_API const char *raffia_pages_mode_name(raffia_pages_mode mode);

/** @brief The mode that #RAFFIA_PAGES_DEFAULT stands for now. */
RAFFIA_API raffia_pages_mode raffia_pages_mode_in_force(void);

/**
 * @brief Copies the table of fallbacks since the process started.
 * @param rows     receives up to @p capacity rows; may be NULL if @p capacity is 0
 * @param capacity rows there is room for
 * @return rows there are (may exceed @p capacity)
 */
RAFFIA_API size_t raffia_fallbacks(raffia_fallback_count *rows, size_t capacity);

RAFFIA_END_DECLS

/** @} */

#endif
