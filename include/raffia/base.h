/**
 * @file base.h
 * @brief What every Raffia header needs: linkage, attributes and the "none" sentinel.
 *
 * Conventions that hold in all headers:
 *  - sizes and offsets are bytes (`size_t`, or `uint64_t` where a file may exceed the address
 *    space) unless the name says another unit;
 *  - a function that can fail returns a `raffia_status` and writes its results, which are its last
 *    parameters, only on success; raffia_last_error() then holds a full sentence;
 *  - an options structure starts with `struct_size` (set it to `sizeof` the structure), zero in any
 *    other field means "default", and a NULL options pointer means "all defaults". Bytes beyond the
 *    fields this version knows must be zero;
 *  - functions may be called from any thread unless their comment says otherwise.
 */
#ifndef RAFFIA_BASE_H
#define RAFFIA_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** @addtogroup base
 *  @{ */

#ifdef __cplusplus
#define RAFFIA_BEGIN_DECLS extern "C" {
#define RAFFIA_END_DECLS   }
#else
#define RAFFIA_BEGIN_DECLS
#define RAFFIA_END_DECLS
#endif

/** Marks the symbols that the shared library exports. */
#define RAFFIA_API __attribute__((visibility("default")))

/** The result must be looked at: dropping it hides a failure. */
#define RAFFIA_NODISCARD __attribute__((warn_unused_result))

/** Warns who still calls it; behind a declaration. */
#define RAFFIA_DEPRECATED(reason) __attribute__((deprecated(reason)))

/** Says to the compiler which argument is a printf format. */
#define RAFFIA_PRINTF(format_index, first_argument)                                                \
    __attribute__((format(printf, format_index, first_argument)))

/** "None" in a size option, where zero already means "default". */
#define RAFFIA_NONE SIZE_MAX

/** @} */

#endif
