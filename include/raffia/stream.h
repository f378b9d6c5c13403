/**
 * @file stream.h
 * @brief The order of work on a device.
 */
#ifndef RAFFIA_STREAM_H
#define RAFFIA_STREAM_H

#include <raffia/base.h>
#include <raffia/status.h>

/** @addtogroup device
 *  @{ */

/**
 * A stream of the device's driver, by its native handle (a `cudaStream_t`, for example). NULL is
 * the device's default stream. Plain host memory has no streams: pass NULL.
 */
typedef void *raffia_stream;

RAFFIA_BEGIN_DECLS

/**
 * @brief Says that a stream will be destroyed: call it last, after all work was submitted.
 *
 * Blocks that were freed on the stream and wait for it are in every pool of the process; while its
 * handle is valid, each pool marks the place behind which they are free. It does not wait for the
 * stream, unless the driver refuses to mark it.
 *
 * A stream that is destroyed without this harms nothing, but may cost a wait: no pool ever uses the
 * handle of a stream outside of a call that it was passed to, so that blocks behind which nothing
 * was marked are free only when somebody needs memory and waits for the whole device. Default
 * streams (NULL and CUDA's special handles) need no call, as they live on.
 *
 * @param device the stream's device, see device.h; NULL = default device
 * @param stream the stream; NULL, the default stream, lives on, and its blocks are marked
 * @return #RAFFIA_ERROR_BUSY while the stream is being captured, #RAFFIA_ERROR_INVALID_ARGUMENT for
 *         a stream on a device without streams, #RAFFIA_ERROR_NOT_FOUND for the device, and
 *         what the driver says; it may then be tried again. #RAFFIA_ERROR_FORKED in a forked child
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_stream_retire(const char *device,
                                                               raffia_stream stream);

RAFFIA_END_DECLS

/** @} */

#endif
