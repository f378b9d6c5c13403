/**
 * @file copy.h
 * @brief Copies between host and device, and within a device: one, or many at once.
 *
 * A copy of a few hundred bytes costs what its submission costs. Many of them, between a device and
 * *pinned* host memory, are done by one kernel that gathers or scatters them all: copies **smaller
 * than** raffia_kernel_copy_threshold() (pinned.h) go that way, all others, and every copy of
 * pageable memory or within a device, through the driver: its batched copy where it has one, else
 * copy by copy. It is the rule of libcudf's `kernel_pinned_copy_threshold`, decided here for each
 * element of a batch, not for the batch. The threshold is 0 unless somebody sets it.
 *
 * What the kernel may touch is found out, not assumed: memory that the device's driver does not
 * know as pinned, or as the device's own, is copied by the driver. So is everything on a stream
 * that is being captured, because a record may run when the kernel's list of copies is gone;
 * everything on devices that run no code (the host: `memcpy`); and what a kernel cannot be had for.
 *
 * The kernel is compiled for the device by its driver when the first copy needs it, and kept.
 *
 * **Order.** A copy is done when its stream gets there, behind what was submitted to the stream
 * before and before what is submitted next; on a device without streams it is done on return. The
 * copies of one batch are in no order among themselves: the destination of one must not overlap
 * another's destination or source. Memory must stay valid until the stream got there.
 *
 * Every function may be called from several threads at once.
 */
#ifndef RAFFIA_COPY_H
#define RAFFIA_COPY_H

#include <raffia/base.h>
#include <raffia/memory_resources.h>
#include <raffia/status.h>
#include <raffia/stream.h>

/** @addtogroup copy
 *  @{ */

/** One copy of a batch. */
typedef struct raffia_copy_element {
    void *destination;  /**< host memory or the device's; may be NULL if bytes is 0 */
    const void *source; /**< likewise */
    size_t bytes;       /**< size; 0 copies nothing */
} raffia_copy_element;

/** From where on a kernel was measured to be no faster than the driver's copies. */
typedef struct raffia_copy_thresholds {
    size_t bytes; /**< copies smaller than this go faster by a kernel where 64 or more are submitted
                       at once; 0 = none does. The fewer there are, the smaller is this size */
    size_t count; /**< least number at once of which any do; 0 = however many, none does */
} raffia_copy_thresholds;

RAFFIA_BEGIN_DECLS

/**
 * @brief Copies @p bytes.
 * @param device      whose streams and memory, see device.h; NULL = the default device
 * @param stream      in whose order; NULL = the device's default stream
 * @param destination host memory or the device's
 * @param source      likewise
 * @param bytes       size; 0 is a success
 * @return #RAFFIA_ERROR_INVALID_ARGUMENT for NULL, and for a stream on a device without streams;
 *         #RAFFIA_ERROR_NOT_FOUND, #RAFFIA_ERROR_UNSUPPORTED for the device, and what its driver
 *         says
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_copy(const char *device, raffia_stream stream,
                                                      void *destination, const void *source,
                                                      size_t bytes);

/**
 * @brief Copies a batch: what is below the threshold by one kernel, the rest through the driver.
 *
 * The kernel reads its list from a block of 24 bytes for each 4 KiB, or part of them, of each copy.
 * The block comes from @p resources.temporary, if that is memory of this device, or pinned for it,
 * that the host can write too; else from the process's pinned resource, if that is pinned for this
 * device; else from a pinned pool of at most 64 MiB that is kept for the device. It goes back there
 * in the order of @p stream. Where there is no memory, the driver makes the copies.
 *
 * @param device    as raffia_copy()
 * @param stream    as raffia_copy()
 * @param copies    the copies; may be NULL if there is none. Not used any more after the call
 * @param count     how many; of none nothing is done, and @p stream is not looked at
 * @param resources see above; `{{0}}` for the pinned resource. There is no output
 * @return as raffia_copy(). Bad arguments are found before anything is submitted; when the driver
 *         refuses, some of the copies may have been
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_copy_batch(const char *device,
                                                            raffia_stream stream,
                                                            const raffia_copy_element *copies,
                                                            size_t count,
                                                            raffia_memory_resources resources);

/**
 * @brief Measures on this machine where the kernel stops being the faster way, and keeps the result
 *        for the process.
 *
 * It is what #RAFFIA_KERNEL_COPY_AUTO goes by; the first copy that needs it measures, if this has
 * not been called. It takes some 30 ms, 16 MiB each of device and pinned memory, and a stream of
 * its own; on a device that is busy with other work it measures that.
 *
 * @param device     as raffia_copy()
 * @param thresholds receives the result; may be NULL
 * @return #RAFFIA_ERROR_UNSUPPORTED for a device on which no kernel makes copies,
 *         #RAFFIA_ERROR_OUT_OF_MEMORY, and what the driver says
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_copy_calibrate(const char *device,
                                                                raffia_copy_thresholds *thresholds);

/**
 * @brief Gives back the kernels that were loaded, and the memory kept for their lists; the next
 * copy that needs them gets them again.
 *
 * No copy may be under way, on any device.
 */
RAFFIA_API void raffia_copy_release_kernels(void);

RAFFIA_END_DECLS

/** @} */

#endif
