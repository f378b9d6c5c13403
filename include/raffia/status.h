/**
 * @file status.h
 * @brief Status codes, and the sentence behind the last failure of the calling thread.
 */
#ifndef RAFFIA_STATUS_H
#define RAFFIA_STATUS_H

#include <raffia/base.h>

/** @addtogroup status
 *  @{ */

/**
 * The one list of status codes: X(name, code, text). Codes never change; new ones are added at the
 * end. Every table in the library that speaks of statuses is generated from this list.
 */
#define RAFFIA_STATUS_LIST(X)                                                                      \
    X(RAFFIA_OK, 0, "success")                                                                     \
    X(RAFFIA_ERROR_INVALID_ARGUMENT, -1, "an argument is not acceptable")                          \
    X(RAFFIA_ERROR_OUT_OF_MEMORY, -2, "no memory of the kind asked for is left")                   \
    X(RAFFIA_ERROR_OUT_OF_HOST_MEMORY, -3, "no ordinary memory is left for bookkeeping")           \
    X(RAFFIA_ERROR_UNSUPPORTED, -4, "not supported by this device, kernel or build")               \
    X(RAFFIA_ERROR_NOT_FOUND, -5, "nothing goes by that name")                                     \
    X(RAFFIA_ERROR_PERMISSION, -6, "the system does not permit it")                                \
    X(RAFFIA_ERROR_LIMIT, -7, "a limit was reached")                                               \
    X(RAFFIA_ERROR_OVERFLOW, -8, "the size does not fit into its type")                            \
    X(RAFFIA_ERROR_IO, -9, "reading or writing failed")                                            \
    X(RAFFIA_ERROR_FORMAT, -10, "the file is malformed")                                           \
    X(RAFFIA_ERROR_CHANGED, -11, "the file changed while it was read")                             \
    X(RAFFIA_ERROR_CANCELLED, -12, "the caller cancelled it")                                      \
    X(RAFFIA_ERROR_TIMED_OUT, -13, "no progress within the time allowed")                          \
    X(RAFFIA_ERROR_BUSY, -14, "still in use")                                                      \
    X(RAFFIA_ERROR_FORKED, -15, "the object belongs to the parent of this forked process")         \
    X(RAFFIA_ERROR_CORRUPT, -16, "bookkeeping is damaged; the object is frozen")                   \
    X(RAFFIA_ERROR_DRIVER, -17, "the device driver reported an error")                             \
    X(RAFFIA_ERROR_BAD_ADDRESS, -18, "the address is not a live block of this object")             \
    X(RAFFIA_ERROR_NO_HUGE_PAGES, -19, "huge pages were required and cannot be had")               \
    X(RAFFIA_ERROR_MISMATCH, -20, "the data differ from what they should be")

/** Outcome of a call: 0 is success, every failure is negative. */
typedef enum raffia_status {
#define RAFFIA_STATUS_ENUM(name, code, text) name = (code),
    RAFFIA_STATUS_LIST(RAFFIA_STATUS_ENUM)
#undef RAFFIA_STATUS_ENUM
} raffia_status;

RAFFIA_BEGIN_DECLS

/** @brief Symbolic name, for example "RAFFIA_ERROR_IO"; "RAFFIA_UNKNOWN" for a foreign code. */
RAFFIA_API const char *raffia_status_name(raffia_status status);

/** @brief One short clause that explains the status. Static storage; never NULL. */
RAFFIA_API const char *raffia_status_text(raffia_status status);

/**
 * @brief Full sentence about the last failure in the calling thread: what was asked, what happened,
 *        and where it is known, what to do.
 *
 * A successful call leaves it as it was. Empty before the first failure. The pointer stays valid
 * until the thread ends or its next failing call overwrites the text.
 */
RAFFIA_API const char *raffia_last_error(void);

/** @brief Status that belongs to raffia_last_error(); #RAFFIA_OK before the first failure. */
RAFFIA_API raffia_status raffia_last_status(void);

/**
 * @brief The operating system's or driver's own name of the last failure ("ENOMEM",
 *        "CUDA_ERROR_OUT_OF_MEMORY"), or "" where there was none.
 */
RAFFIA_API const char *raffia_last_native_error(void);

RAFFIA_END_DECLS

/** @} */

#endif
