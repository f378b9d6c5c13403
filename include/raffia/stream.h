/**
 * @file stream.h
 * @brief The order of work on a device.
 */
#ifndef RAFFIA_STREAM_H
#define RAFFIA_STREAM_H

#include <raffia/base.h>

/** @addtogroup device
 *  @{ */

/**
 * A stream of the device's driver, by its native handle (a `cudaStream_t`, for example). NULL is
 * the device's default stream. Plain host memory has no streams: pass NULL.
 */
typedef void *raffia_stream;

/** @} */

#endif
