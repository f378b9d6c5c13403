/**
 * @file device.h
 * @brief The devices whose memory Raffia hands out.
 *
 * A device goes by a name: "host" is this machine's own memory and always there; "cuda:0" is the
 * first NVIDIA GPU; "sim:0" is a simulated device for tests; "pinned:cuda:0" is host memory that is
 * registered with that GPU, so that it can be copied from and to directly. NULL, or an empty name,
 * is the default device of the process: `RAFFIA_DRIVER` = auto | cuda | host | sim, where auto
 * takes a GPU if there is one.
 */
#ifndef RAFFIA_DEVICE_H
#define RAFFIA_DEVICE_H

#include <raffia/base.h>
#include <raffia/pages.h>
#include <raffia/status.h>

/** @addtogroup device
 *  @{ */

/** Most page sizes one device can offer. */
#define RAFFIA_PAGE_SIZES_MAX 8

/** Longest device name, its NUL included. */
#define RAFFIA_DEVICE_NAME_MAX 64

/** One kind and size of page that a device can offer. */
typedef struct raffia_page_offer {
    raffia_page_kind kind;
    size_t size; /**< bytes */
} raffia_page_offer;

/** What a device is. */
typedef struct raffia_device_info {
    char name[RAFFIA_DEVICE_NAME_MAX];  /**< as it is opened: "host", "cuda:0" */
    char model[RAFFIA_DEVICE_NAME_MAX]; /**< what is printed on it: "NVIDIA H200", or the CPU */
    size_t total_bytes;                 /**< memory it has; control-group limits included */
    size_t free_bytes;                  /**< memory that could be had now */
    int numa_node;                      /**< node it is attached to; -1 if unknown or all */
    bool cpu_accessible;                /**< the CPU may read and write its memory */
    bool verifies_pages;                /**< page sizes can be read back */
    bool asynchronous;                  /**< it has streams */
    size_t page_count;                  /**< entries in pages */
    raffia_page_offer
        pages[RAFFIA_PAGE_SIZES_MAX]; /**< largest first, as far as supported here;
                                           being listed is no promise that any is free */
} raffia_device_info;

/** How memory that was to be pinned for a device is pinned, in bytes that exist now. */
typedef struct raffia_pinned_usage {
    size_t registered_bytes;       /**< registered in pieces as large as the setting `pin_piece` */
    size_t smaller_pieces_bytes;   /**< registered, but in smaller pieces only */
    size_t driver_allocated_bytes; /**< allocated by the device's driver, in its own pages */
    size_t pageable_bytes;         /**< not pinned: copies of it are slower and not asynchronous */
} raffia_pinned_usage;

RAFFIA_BEGIN_DECLS

/**
 * @brief Describes a device.
 * @param name as above; NULL for the default device
 * @param info receives the description
 * @return #RAFFIA_ERROR_NOT_FOUND if no such device exists, #RAFFIA_ERROR_UNSUPPORTED if its driver
 *         is not part of this build or cannot be loaded
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_device_query(const char *name,
                                                              raffia_device_info *info);

/**
 * @brief How the memory of "pinned:" devices is pinned.
 * @param name  the device it is pinned for, with or without "pinned:" before it
 * @param usage receives the bytes
 * @return as raffia_device_query(); #RAFFIA_ERROR_UNSUPPORTED if memory cannot be pinned for it
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_device_query_pinned(const char *name,
                                                                     raffia_pinned_usage *usage);

RAFFIA_END_DECLS

/** @} */

#endif
