/**
 * @file adaptors.h
 * @brief Resources that stand in front of another: limiting, statistics, tracking, logging,
 * aligned, failure callback, thread-safe.
 *
 * Each owns its upstream: the ref that is given is turned into an owner
 * (raffia_resource_from_ref()). Each is equal to itself alone. `raffia_limiting_*`,
 * `raffia_statistics_*`, ... take the adaptor itself, not one that stands in front of it, and
 * answer #RAFFIA_ERROR_INVALID_ARGUMENT for anything else; an owner that came from another copy of
 * the library in the process is such.
 *
 * Each says which RMM adaptor it is the counterpart of (RMM 26.08).
 */
#ifndef RAFFIA_ADAPTORS_H
#define RAFFIA_ADAPTORS_H

#include <raffia/base.h>
#include <raffia/resource.h>
#include <raffia/status.h>

/** @addtogroup resource_adaptor
 *  @{ */

/** Most levels of counters in a statistics adaptor. */
#define RAFFIA_STATISTICS_LEVELS_MAX 64u

/** Frames of a call stack that a tracking adaptor keeps. */
#define RAFFIA_TRACKING_FRAMES_MAX 16u

/** One counter of a statistics adaptor. Values may be negative after a push, when older blocks are
 * freed. */
typedef struct raffia_counter {
    int64_t value; /**< now */
    int64_t peak;  /**< most so far */
    int64_t total; /**< sum of all additions */
} raffia_counter;

/** What a statistics adaptor counts, as asked for: nothing is rounded. */
typedef struct raffia_statistics {
    raffia_counter bytes;
    raffia_counter blocks; /**< blocks of 0 bytes count */
} raffia_statistics;

/** Options of a tracking adaptor. */
typedef struct raffia_tracking_options {
    size_t struct_size;  /**< sizeof(raffia_tracking_options) */
    bool capture_stacks; /**< keep the call stack of each allocation: about 1-2 us each */
} raffia_tracking_options;

/** One live block of a tracking adaptor. */
typedef struct raffia_tracked_block {
    void *address;
    size_t bytes;
    size_t frame_count;                       /**< 0 if stacks are not captured */
    void *frames[RAFFIA_TRACKING_FRAMES_MAX]; /**< return addresses, innermost first */
} raffia_tracked_block;

/** Called for each live block; return false to stop. It must not call the adaptor. */
typedef bool (*raffia_tracked_visitor)(void *context, const raffia_tracked_block *block);

/** Receives one row of the log, its newline included. Called with the log's lock held. */
typedef void (*raffia_row_sink)(void *context, const char *row);

/** Options of a logging adaptor. */
typedef struct raffia_logging_options {
    size_t struct_size; /**< sizeof(raffia_logging_options) */
    const char *path; /**< file to write, which is truncated; NULL = the variable `RMM_LOG_FILE` */
    raffia_row_sink sink; /**< instead of a file */
    void *sink_context;
    bool auto_flush; /**< write each row at once */
} raffia_logging_options;

/** Options of an adaptor that raises alignment. */
typedef struct raffia_aligned_options {
    size_t struct_size; /**< sizeof(raffia_aligned_options) */
    size_t alignment;   /**< a power of two; raised to 256; 0 = 256: everything passes through */
    size_t threshold_bytes; /**< smaller requests pass through */
} raffia_aligned_options;

/** Asked when memory is short; true = something was freed, try again. */
typedef bool (*raffia_failure_callback)(size_t bytes, void *argument);

/** Options of an adaptor that asks for help when memory is short. */
typedef struct raffia_failure_callback_options {
    size_t struct_size; /**< sizeof(raffia_failure_callback_options) */
    raffia_failure_callback callback;
    void *argument;
    unsigned retries; /**< most for one request; 0 = 1000 */
} raffia_failure_callback_options;

RAFFIA_BEGIN_DECLS

/**
 * @brief Refuses what would exceed a limit, with #RAFFIA_ERROR_OUT_OF_MEMORY.
 *
 * RMM: `limiting_resource_adaptor`. Sizes count rounded up to 256. Differences: a request never
 * fails because another one that exceeds the limit counts for a moment; a block of 0 bytes that
 * upstream has an address for counts as 256.
 *
 * @param upstream    where memory comes from
 * @param limit_bytes most bytes live at once
 * @param resource_p  receives an owner
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_limiting_resource_create(
    raffia_resource_ref upstream, size_t limit_bytes, raffia_resource **resource_p);

/** @brief Bytes live through a limiting adaptor, and its limit; either pointer may be NULL. */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_limiting_query(raffia_resource_ref limiting,
                                                                size_t *allocated_bytes_p,
                                                                size_t *limit_bytes_p);

/**
 * @brief Counts bytes and blocks: now, at most, in all.
 *
 * RMM: `statistics_resource_adaptor`, with its stack of counters.
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status
raffia_statistics_resource_create(raffia_resource_ref upstream, raffia_resource **resource_p);

/** @brief The counters on top of the stack. */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_statistics_get(raffia_resource_ref statistics,
                                                                raffia_statistics *counters);

/**
 * @brief Puts counters at zero on top of the stack.
 * @param statistics the adaptor
 * @param previous   receives those that were on top; may be NULL
 * @return #RAFFIA_ERROR_LIMIT beyond #RAFFIA_STATISTICS_LEVELS_MAX
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_statistics_push(raffia_resource_ref statistics,
                                                                 raffia_statistics *previous);

/**
 * @brief Takes the counters on top off, and adds them to those below: values and totals are summed,
 *        and the peak becomes the larger of its own and value below + peak above.
 * @param statistics the adaptor
 * @param popped     receives those taken off; may be NULL
 * @return #RAFFIA_ERROR_LIMIT, and nothing changes, for the last ones
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_statistics_pop(raffia_resource_ref statistics,
                                                                raffia_statistics *popped);

/**
 * @brief Knows every live block, with its size and on request the call stack it came from.
 *
 * RMM: `tracking_resource_adaptor`. Differences: a free of an address that is not live here is
 * refused with #RAFFIA_ERROR_BAD_ADDRESS, and one with another size than was asked for with
 * #RAFFIA_ERROR_INVALID_ARGUMENT, where RMM logs either and passes it on. Beyond 1,048,576 live
 * blocks a request is refused with #RAFFIA_ERROR_LIMIT.
 * At its teardown nothing is live. Leaks are seen by raffia_tracking_print().
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_tracking_resource_create(
    raffia_resource_ref upstream, const raffia_tracking_options *options,
    raffia_resource **resource_p);

/** @brief Bytes and blocks live through a tracking adaptor; either pointer may be NULL. */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_tracking_query(raffia_resource_ref tracking,
                                                                size_t *bytes_p, size_t *blocks_p);

/** @brief Visits the live blocks. */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_tracking_walk(raffia_resource_ref tracking,
                                                               raffia_tracked_visitor visitor,
                                                               void *context);

/**
 * @brief Writes a line for each live block, with its stack, as text.
 * @param tracking the adaptor
 * @param buffer   receives the text, cut to @p capacity; may be NULL with 0
 * @param capacity bytes in @p buffer
 * @param needed_p receives the bytes that the whole text needs, its NUL included; may be NULL
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_tracking_print(raffia_resource_ref tracking,
                                                                char *buffer, size_t capacity,
                                                                size_t *needed_p);

/**
 * @brief Writes a row for each allocation, failure and free.
 *
 * RMM: `logging_resource_adaptor`; the rows are such that its replay benchmark and other tools read
 * them: a header `Thread,Time,Action,Pointer,Size,Stream`, then the kernel's thread id, the local
 * time as `HH:MM:SS.microseconds`, `allocate`, `allocate failure` or `free`, the address in hex or
 * `(nil)`, the size in bytes, and the stream in hex, `0` for the default one. The time zone is that
 * of the first row of the process. Frees go to upstream one by one, each with its row, so that the
 * order of rows is one that happened, and a free that upstream refused has none (RMM writes the row
 * first). Rows of allocations in several threads may swap places with each other, as in RMM.
 *
 * @param upstream   where memory comes from
 * @param options    NULL = the file of `RMM_LOG_FILE`
 * @param resource_p receives an owner
 * @return #RAFFIA_ERROR_INVALID_ARGUMENT if neither path, sink nor variable is there,
 *         #RAFFIA_ERROR_IO or #RAFFIA_ERROR_PERMISSION for the file
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status
raffia_logging_resource_create(raffia_resource_ref upstream, const raffia_logging_options *options,
                               raffia_resource **resource_p);

/** @brief Writes out what is buffered. #RAFFIA_ERROR_IO also for an earlier row that was lost. */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_logging_flush(raffia_resource_ref logging);

/**
 * @brief Raises the alignment of what upstream gives.
 *
 * RMM: `aligned_resource_adaptor`. For upstreams that align to 256 only; those of this library
 * align as they are asked. Difference: upstream is asked for an alignment of 256 rather than 1.
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status
raffia_aligned_resource_create(raffia_resource_ref upstream, const raffia_aligned_options *options,
                               raffia_resource **resource_p);

/**
 * @brief Asks a function of the program's when upstream is out of memory, and tries again.
 *
 * RMM: `failure_callback_resource_adaptor<out_of_memory>`. Difference: the number of retries of one
 * request is bounded, so that a callback that always says yes does not hang the program.
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_failure_callback_resource_create(
    raffia_resource_ref upstream, const raffia_failure_callback_options *options,
    raffia_resource **resource_p);

/**
 * @brief Lets one thread at a time through to upstream.
 *
 * RMM: `thread_safe_resource_adaptor`. For upstreams of the program's: those of this library need
 * none.
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status
raffia_thread_safe_resource_create(raffia_resource_ref upstream, raffia_resource **resource_p);

RAFFIA_END_DECLS

/** @} */

#endif
