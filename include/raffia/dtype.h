/**
 * @file dtype.h
 * @brief Element types of tensors.
 *
 * Names and widths are those of the safetensors format (its Rust reference, 2026-05).
 */
#ifndef RAFFIA_DTYPE_H
#define RAFFIA_DTYPE_H

#include <raffia/base.h>

/** @addtogroup load
 *  @{ */

/** The one list of element types: X(name, bits of one element). New ones are added at the end. */
#define RAFFIA_DTYPE_LIST(X)                                                                       \
    X(BOOL, 8)                                                                                     \
    X(U8, 8)                                                                                       \
    X(I8, 8)                                                                                       \
    X(U16, 16)                                                                                     \
    X(I16, 16)                                                                                     \
    X(U32, 32)                                                                                     \
    X(I32, 32)                                                                                     \
    X(U64, 64)                                                                                     \
    X(I64, 64)                                                                                     \
    X(F16, 16)                                                                                     \
    X(BF16, 16)                                                                                    \
    X(F32, 32)                                                                                     \
    X(F64, 64)                                                                                     \
    X(C64, 64)                                                                                     \
    X(F8_E4M3, 8)                                                                                  \
    X(F8_E5M2, 8)                                                                                  \
    X(F8_E8M0, 8)                                                                                  \
    X(F8_E4M3FNUZ, 8)                                                                              \
    X(F8_E5M2FNUZ, 8)                                                                              \
    X(F6_E2M3, 6)                                                                                  \
    X(F6_E3M2, 6)                                                                                  \
    X(F4, 4)

/** Element type of a tensor; RAFFIA_DTYPE_F32 and so on. */
typedef enum raffia_dtype {
    RAFFIA_DTYPE_NONE = 0,
#define RAFFIA_DTYPE_ENUM(name, bits) RAFFIA_DTYPE_##name,
    RAFFIA_DTYPE_LIST(RAFFIA_DTYPE_ENUM)
#undef RAFFIA_DTYPE_ENUM
        RAFFIA_DTYPE_COUNT,
} raffia_dtype;

RAFFIA_BEGIN_DECLS

/** @brief "F32", "BF16", ...; "?" for a foreign value. Static storage. */
RAFFIA_API const char *raffia_dtype_name(raffia_dtype dtype);

/** @brief Bits of one element; 0 for a foreign value. Six- and four-bit types are packed. */
RAFFIA_API unsigned raffia_dtype_bits(raffia_dtype dtype);

RAFFIA_END_DECLS

/** @} */

#endif
