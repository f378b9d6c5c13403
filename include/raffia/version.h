/**
 * @file version.h
 * @brief The version of these headers, and of the library that is running.
 */
#ifndef RAFFIA_VERSION_H
#define RAFFIA_VERSION_H

#include <raffia/base.h>

/** @addtogroup base
 *  @{ */

#define RAFFIA_VERSION_MAJOR 0
#define RAFFIA_VERSION_MINOR 1
#define RAFFIA_VERSION_PATCH 0

/** One comparable number: major * 1 000 000 + minor * 1 000 + patch. */
#define RAFFIA_VERSION                                                                             \
    (RAFFIA_VERSION_MAJOR * 1000000 + RAFFIA_VERSION_MINOR * 1000 + RAFFIA_VERSION_PATCH)

RAFFIA_BEGIN_DECLS

/**
 * @brief Version of the library that is loaded, encoded as #RAFFIA_VERSION.
 *
 * Compare it with #RAFFIA_VERSION to learn whether the program was built against other headers.
 */
RAFFIA_API int raffia_version(void);

/** @brief The same as text, for example "0.1.0". Static storage; never NULL. */
RAFFIA_API const char *raffia_version_text(void);

RAFFIA_END_DECLS

/** @} */

#endif
