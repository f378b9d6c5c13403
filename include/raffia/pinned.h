/**
 * @file pinned.h
 * @brief Host memory that devices copy from and to directly: the process's pinned resource, and the
 *        thresholds that say what it is used for.
 *
 * It follows libcudf's pinned resource (`pinned_memory.hpp`, 26.10), for the whole process: there
 * is one, shared by all copies of the library, until another one is set the **default** one. That
 * is a pool with a way out: what the pool cannot serve is served by a block that is pinned for it
 * alone, counted, and logged at level info; frees find their way by the address. Both ways are
 * ordered behind the stream that a block is freed on.
 *
 * The default resource is built at the first call that needs it, raffia_pinned_resource_set()
 * included, which has it to return. Its sizes, in this order:
 *
 *  - first size: the setting `pinned_pool_size` (`RAFFIA_PINNED_POOL_SIZE`, or
 *    `LIBCUDF_PINNED_POOL_SIZE`), else raffia_pinned_options.pool_size, else 1/200 of the memory of
 *    the default device, at most 64 MiB;
 *  - limit: the setting `pinned_pool_max_size` (`RAFFIA_PINNED_POOL_MAX_SIZE`, or
 *    `LIBCUDF_PINNED_POOL_MAX_SIZE`), else 16 times the first size, but
 *    no more than a pool can keep book of, which is just below 1 TiB. 0: there is no pool, and
 * every block is pinned for itself.
 *
 * Both are rounded up to 256 bytes. Unlike everywhere else the environment beats the option, as in
 * libcudf. Unlike libcudf's, values are read strictly ("64MiB", not "64x"): a bad one, or a limit
 * below the first size, is warned of and the default used.
 *
 * Where there is no GPU to pin memory for, the default resource is a pool of host memory, and
 * raffia_pinned_info.pinned says no.
 */
#ifndef RAFFIA_PINNED_H
#define RAFFIA_PINNED_H

#include <raffia/base.h>
#include <raffia/device.h>
#include <raffia/resource.h>
#include <raffia/status.h>

/** @addtogroup pinned_memory
 *  @{ */

/**
 * A kernel copy threshold that is measured: raffia_copy_calibrate() (copy.h) does it, or the first
 * copy that needs it. As a setting it is "auto".
 */
#define RAFFIA_KERNEL_COPY_AUTO (SIZE_MAX - 1)

/** How the default pinned resource is made. */
typedef struct raffia_pinned_options {
    size_t struct_size; /**< sizeof(raffia_pinned_options) */
    size_t pool_size;   /**< first size, bytes; 0 = default; #RAFFIA_NONE = no pool */
} raffia_pinned_options;

/** What the default pinned resource is. */
typedef struct raffia_pinned_info {
    char device[RAFFIA_DEVICE_NAME_MAX]; /**< whose memory it is: "pinned:cuda:0", or "host" */
    bool pinned;                         /**< false: host memory that is not pinned */
    size_t initial_bytes;                /**< first size of the pool, as asked for */
    size_t maximum_bytes;                /**< its limit, as asked for; 0 = there is no pool */
    uint64_t fallbacks;                  /**< requests that the pool did not serve */
} raffia_pinned_info;

RAFFIA_BEGIN_DECLS

/**
 * @brief Builds the default pinned resource, if this is the first call to need it.
 *
 * To have a say in its size a program calls this before anything else here.
 *
 * @param options      NULL = all defaults
 * @param configured_p receives whether this very call built it; may be NULL. True does not mean
 *                     that its size was used: the environment beats it
 * @return #RAFFIA_ERROR_OUT_OF_MEMORY and what else raffia_pool_create() answers; the next call
 *         tries again
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status
raffia_pinned_config_default(const raffia_pinned_options *options, bool *configured_p);

/** @brief Describes the default pinned resource, which is built if it is not there. */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_pinned_query(raffia_pinned_info *info);

/** @brief Borrows the pinned resource; see raffia_current_resource_get() for how long. */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_pinned_resource_get(raffia_resource_ref *ref_p);

/** @brief The pinned resource, with an owner of the caller's. */
RAFFIA_API RAFFIA_NODISCARD raffia_status
raffia_pinned_resource_acquire(raffia_resource **resource_p);

/**
 * @brief Makes another resource the pinned one of the process.
 * @param resource   must be host- and device-accessible; gets an owner more
 * @param previous_p receives the previous one, to be released, or set again; NULL: it is released
 * @return #RAFFIA_ERROR_INVALID_ARGUMENT for the resource; as raffia_pinned_config_default()
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_pinned_resource_set(raffia_resource *resource,
                                                                     raffia_resource **previous_p);

/**
 * @brief Size in bytes below which copies between a device and pinned memory run as a kernel.
 *
 * 0 = none does, until it is set by `RAFFIA_KERNEL_PINNED_COPY_THRESHOLD` (or
 * `LIBCUDF_KERNEL_PINNED_COPY_THRESHOLD`), the setting `kernel_pinned_copy_threshold`, or
 * raffia_kernel_copy_threshold_set(), which beats both. See copy.h for the copies that it governs,
 * and #RAFFIA_KERNEL_COPY_AUTO.
 */
RAFFIA_API size_t raffia_kernel_copy_threshold(void);

/** @brief Sets it for the process. */
RAFFIA_API void raffia_kernel_copy_threshold_set(size_t bytes);

/**
 * @brief Size in bytes up to which, and including it, raffia_host_resource_for() answers with the
 *        pinned resource.
 *
 * 0 = only requests for nothing, until it is set by `RAFFIA_ALLOCATE_HOST_AS_PINNED_THRESHOLD` (or
 * `LIBCUDF_ALLOCATE_HOST_AS_PINNED_THRESHOLD`), the setting `allocate_host_as_pinned_threshold`, or
 * raffia_host_as_pinned_threshold_set(), which beats both.
 */
RAFFIA_API size_t raffia_host_as_pinned_threshold(void);

/** @brief Sets it for the process. */
RAFFIA_API void raffia_host_as_pinned_threshold_set(size_t bytes);

/**
 * @brief What host memory of a size should come from: the pinned resource for at most
 *        raffia_host_as_pinned_threshold() bytes, pageable memory for more.
 * @param bytes      size of the request
 * @param resource_p receives an owner, to be released
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_host_resource_for(size_t bytes,
                                                                   raffia_resource **resource_p);

RAFFIA_END_DECLS

/** @} */

#endif
