/**
 * @file resources.h
 * @brief The resources that memory comes from: device, host, pinned host, pool, fixed-size,
 * binning, arena, callback, and the driver's own pool.
 *
 * Each says which RMM resource it is the counterpart of (RMM 26.08), and where it differs on
 * purpose. What holds for all of them:
 *  - alignments beyond 256 are honoured; RMM's base resources refuse them;
 *  - 0 bytes give NULL, and NULL can be freed;
 *  - frees are checked (resource.h); RMM trusts the caller. For that the resources of device, host
 *    and pinned host memory and of the driver's own pool record each block: beyond 1,048,576 live
 *    ones a request is refused with #RAFFIA_ERROR_LIMIT. The others cut many blocks from one;
 *  - a free on a stream is ordered behind the stream's work in all of them, host memory included;
 *  - a resource over an upstream that does not say its device takes no stream but NULL.
 *
 * **Not offered**: *managed* memory (its pages move by faults, page by page: what huge pages and
 * pinning are to avoid), *prefetch* (there is nothing to prefetch without it), *system memory with
 * headroom* (a property of machines whose GPU reads pageable memory, decided per request by asking
 * how much is free), *async view* (a driver's pool made by somebody else: a program that has one
 * wraps it in a callback resource).
 */
#ifndef RAFFIA_RESOURCES_H
#define RAFFIA_RESOURCES_H

#include <raffia/base.h>
#include <raffia/pool.h>
#include <raffia/resource.h>
#include <raffia/status.h>

/** @addtogroup memory_resource
 *  @{ */

/** Options of resources that take memory from a device, request by request. */
typedef struct raffia_device_resource_options {
    size_t struct_size; /**< sizeof(raffia_device_resource_options) */
    const char *device; /**< see device.h; NULL = default device */
} raffia_device_resource_options;

/** Options of a resource over a pool of the driver's own. */
typedef struct raffia_async_resource_options {
    size_t struct_size;   /**< sizeof(raffia_async_resource_options) */
    const char *device;   /**< see device.h; NULL = default device */
    size_t initial_bytes; /**< taken from the device at creation, at most release_threshold; 0 or
                               #RAFFIA_NONE = nothing until it is needed */
    size_t release_threshold; /**< what the pool may keep of memory that nobody uses, bytes: what is
                                   beyond goes back to the device when the program next waits for
                                   a stream, an event or the device; 0 = it keeps all;
                                   #RAFFIA_NONE = nothing */
} raffia_async_resource_options;

/** Options of a resource that hands out blocks of one size. */
typedef struct raffia_fixed_size_resource_options {
    size_t struct_size;      /**< sizeof(raffia_fixed_size_resource_options) */
    size_t block_bytes;      /**< size of a block, rounded up to 256; 0 = 1 MiB; not
                                  #RAFFIA_NONE */
    size_t blocks_per_chunk; /**< blocks taken from upstream at once; 0 = 128 */
    bool lazy;               /**< take the first chunk when it is needed, not at creation */
} raffia_fixed_size_resource_options;

/** Options of a resource that routes requests by size. */
typedef struct raffia_binning_resource_options {
    size_t struct_size; /**< sizeof(raffia_binning_resource_options) */
    unsigned min_exponent;
    unsigned max_exponent; /**< bins of 2^min to 2^max bytes; both 0 = none */
} raffia_binning_resource_options;

/** Options of an arena. */
typedef struct raffia_arena_resource_options {
    size_t struct_size; /**< sizeof(raffia_arena_resource_options) */
    size_t arena_bytes; /**< all it will ever have, rounded down to 256; at least 1 MiB; 0 = half of
                             what the device has free, at most what one block of upstream may be;
                             not #RAFFIA_NONE */
} raffia_arena_resource_options;

/**
 * Allocates @p bytes in the order of @p stream; NULL = there is no memory. The result must be
 * aligned to 256 bytes.
 */
typedef void *(*raffia_allocate_callback)(size_t bytes, raffia_stream stream, void *argument);

/** Frees what #raffia_allocate_callback returned. */
typedef void (*raffia_deallocate_callback)(void *address, size_t bytes, raffia_stream stream,
                                           void *argument);

/** A resource out of two functions. */
typedef struct raffia_callback_resource_options {
    size_t struct_size; /**< sizeof(raffia_callback_resource_options) */
    raffia_allocate_callback allocate;
    raffia_deallocate_callback deallocate;
    void *allocate_argument;
    void *deallocate_argument;
    unsigned properties; /**< #raffia_resource_properties; 0 = device-accessible */
    const char *device;  /**< whose memory it is; NULL = not known */
} raffia_callback_resource_options;

RAFFIA_BEGIN_DECLS

/**
 * @brief Memory of a device, one request to its driver for each block.
 *
 * RMM: `cuda_memory_resource`. There is one for each device. Differences: a free waits
 * until the stream has done its work (cudaFree waits for the whole device); on the host device it
 * is what `malloc` gives.
 *
 * @param options    NULL = the default device
 * @param resource_p receives an owner
 * @return #RAFFIA_ERROR_NOT_FOUND, #RAFFIA_ERROR_UNSUPPORTED for the device,
 *         #RAFFIA_ERROR_OUT_OF_HOST_MEMORY
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_device_resource_create(
    const raffia_device_resource_options *options, raffia_resource **resource_p);

/**
 * @brief Pageable memory of the machine.
 *
 * RMM: `system_memory_resource`. A free waits for the stream, as there. Difference: it can be made
 * on any machine; device-accessible it is only if the device is the host itself, where RMM refuses
 * to make one without hardware that reads pageable memory.
 *
 * @param options    the device whose streams use the memory; NULL = the default device
 * @param resource_p receives an owner
 * @return as raffia_device_resource_create()
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_host_resource_create(
    const raffia_device_resource_options *options, raffia_resource **resource_p);

/**
 * @brief Pinned memory of the machine, one registration for each block.
 *
 * RMM: `pinned_host_memory_resource`. Difference: a free waits for the stream; RMM's returns at
 * once, and a copy still under way then reads freed memory.
 *
 * @param options    the GPU that it is pinned for; NULL = the first
 * @param resource_p receives an owner
 * @return #RAFFIA_ERROR_UNSUPPORTED where no GPU is there to pin memory for
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_pinned_host_resource_create(
    const raffia_device_resource_options *options, raffia_resource **resource_p);

/**
 * @brief A pool of the driver's own, in the order of streams; on NVIDIA GPUs what `cudaMallocAsync`
 * stands on.
 *
 * RMM: `cuda_async_memory_resource`, with its defaults: each resource has a pool of its own, which
 * keeps what is freed. A block may be used by what is submitted to the stream after the allocation,
 * and elsewhere by what is ordered behind it; a free returns at once, ordered behind the stream's
 * work, and other streams that use the block must have been waited for by that stream. Freed memory
 * is used again at once on the same stream, elsewhere when the free is done or the driver orders
 * it. The driver chooses the pages, so nothing is known of their size. Blocks are found by address
 * and their sizes are checked; the pool goes when the last owner has gone and the last block is
 * freed.
 *
 * Differences: the device is named instead of current; the first bytes are taken on a stream of
 * their own instead of the default stream, and are there when the call returns; more of them than
 * the threshold is refused, as they would be given back at once; before a request is refused, idle
 * chunks of the device's pools of huge pages (pool.h) are given back, while what this pool keeps
 * goes only when raffia_async_resource_trim() is called; a stream that is being captured is refused
 * with #RAFFIA_ERROR_BUSY, where RMM's memory would silently become the graph's; memory cannot be
 * exported to other processes (no handle types), and is not marked for the decompression hardware.
 *
 * @param options    NULL = the default device and all defaults
 * @param resource_p receives an owner
 * @return #RAFFIA_ERROR_UNSUPPORTED where the device or its driver has no such pools, as the host's
 *         has none, #RAFFIA_ERROR_INVALID_ARGUMENT for the sizes, #RAFFIA_ERROR_NOT_FOUND for the
 *         device, #RAFFIA_ERROR_OUT_OF_MEMORY for the first bytes,
 * #RAFFIA_ERROR_OUT_OF_HOST_MEMORY, #RAFFIA_ERROR_DRIVER
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_async_resource_create(
    const raffia_async_resource_options *options, raffia_resource **resource_p);

/**
 * @brief Gives what such a pool keeps back to its device.
 *
 * Blocks in use stay, and memory whose free has not come to pass; nothing is waited for. RMM has no
 * call for it (`cudaMemPoolTrimTo` on its pool's handle does it). May be called while other threads
 * allocate.
 *
 * @param ref        a resource that raffia_async_resource_create() made
 * @param keep_bytes the pool is not made smaller than this, blocks in use included; 0 = all goes
 * @return #RAFFIA_ERROR_INVALID_ARGUMENT if @p ref is none, #RAFFIA_ERROR_FORKED,
 *         #RAFFIA_ERROR_DRIVER
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_async_resource_trim(raffia_resource_ref ref,
                                                                     size_t keep_bytes);

/**
 * @brief A pool of verified huge pages (pool.h).
 *
 * RMM: `pool_memory_resource`. Differences: the pages come from the device's driver and not from an
 * upstream resource, because their size is the point; sizes are rounded up rather than refused;
 * idle chunks can be given back (raffia_pool_trim()); the cost of a request does not grow with the
 * number of holes.
 *
 * @param options    as raffia_pool_create()
 * @param resource_p receives an owner
 * @return as raffia_pool_create()
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status
raffia_pool_resource_create(const raffia_pool_options *options, raffia_resource **resource_p);

/** @brief The same over a pool that is there, which gets an owner more. There is one for each pool.
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status
raffia_pool_resource_from_pool(raffia_pool *pool, raffia_resource **resource_p);

/**
 * @brief The pool behind a pool resource, borrowed.
 * @return #RAFFIA_ERROR_INVALID_ARGUMENT if @p ref is none
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_pool_resource_pool(raffia_resource_ref ref,
                                                                    raffia_pool **pool_p);

/**
 * @brief Blocks of one size, in constant time.
 *
 * RMM: `fixed_size_memory_resource`, with its defaults. A request for more than a block is
 * #RAFFIA_ERROR_OUT_OF_MEMORY. Blocks are handed out again in the order they were freed; one freed
 * on another stream only after an event behind its last use. Chunks go back at the teardown.
 * Difference: a number of blocks per chunk of 0 is the default instead of a resource that hands out
 * NULL.
 *
 * @param upstream   where chunks come from; the resource becomes an owner of it
 * @param options    NULL = all defaults
 * @param resource_p receives an owner
 * @return #RAFFIA_ERROR_OUT_OF_MEMORY for the first chunk, #RAFFIA_ERROR_OVERFLOW,
 *         #RAFFIA_ERROR_INVALID_ARGUMENT
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_fixed_size_resource_create(
    raffia_resource_ref upstream, const raffia_fixed_size_resource_options *options,
    raffia_resource **resource_p);

/**
 * @brief Routes each request to the smallest bin that holds it, else upstream.
 *
 * RMM: `binning_memory_resource`. 0 bytes go to the smallest bin. Blocks are freed by the way their
 * size leads. Differences: the bins that it makes itself take their first chunk when they are
 * first used (RMM's take 128 blocks each at creation, which is 992 MiB for 2^18 to 2^22); bins may
 * be added while other threads allocate.
 *
 * @param upstream   serves what no bin holds, and the bins' chunks
 * @param options    NULL = no bins yet
 * @param resource_p receives an owner
 * @return #RAFFIA_ERROR_INVALID_ARGUMENT for exponents beyond 40 or out of order,
 *         #RAFFIA_ERROR_OUT_OF_HOST_MEMORY
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_binning_resource_create(
    raffia_resource_ref upstream, const raffia_binning_resource_options *options,
    raffia_resource **resource_p);

/** Bins of one binning resource, at most. */
#define RAFFIA_BINS_MAX 64u

/**
 * @brief Adds a bin. One of a size that is there already changes nothing.
 *
 * Blocks that are live when a bin is added are still freed by the way they came.
 *
 * @param binning the binning resource
 * @param bytes   largest request that goes there, rounded up to 256
 * @param bin     what serves it; none (`{NULL, NULL}`): a fixed-size resource over upstream
 * @return #RAFFIA_ERROR_INVALID_ARGUMENT if @p binning is none, or @p bin is it or stands on it,
 *         #RAFFIA_ERROR_LIMIT for bins and for resources one above the other,
 *         #RAFFIA_ERROR_OUT_OF_HOST_MEMORY
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_binning_add_bin(raffia_resource_ref binning,
                                                                 size_t bytes,
                                                                 raffia_resource_ref bin);

/**
 * @brief One block of upstream, cut up without ever growing; each stream has an arena of its own.
 *
 * RMM: `arena_memory_resource`. Requests up to 1 MiB are served from superblocks of 1 MiB that
 * belong to the stream (at most 256 streams at once have their own), larger ones from the whole. A
 * block that is freed on a stream can be reused there at once; elsewhere once its superblock is
 * free and the stream has got there. Before a request fails every stream is waited for and all free
 * superblocks are gathered. Differences: the arena is the stream's and never the thread's; placing
 * is best fit instead of first fit; no dump file on failure, raffia_resource_walk() lists what is
 * live; the default size is bounded.
 *
 * @param upstream   where its memory comes from; the resource becomes an owner of it
 * @param options    NULL = all defaults
 * @param resource_p receives an owner
 * @return #RAFFIA_ERROR_OUT_OF_MEMORY, #RAFFIA_ERROR_INVALID_ARGUMENT for the size
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_arena_resource_create(
    raffia_resource_ref upstream, const raffia_arena_resource_options *options,
    raffia_resource **resource_p);

/**
 * @brief A resource out of two functions of the program's.
 *
 * RMM: `callback_memory_resource`. The alignment is not passed on; 0 bytes are. Differences: an
 * address that is not as aligned as was asked is freed and refused; what a free names is not
 * checked, as nothing is known of it.
 *
 * @param options    both functions are required
 * @param resource_p receives an owner
 * @return #RAFFIA_ERROR_INVALID_ARGUMENT
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_callback_resource_create(
    const raffia_callback_resource_options *options, raffia_resource **resource_p);

RAFFIA_END_DECLS

/** @} */

#endif
