/* Element types by the names that model files use. */
#ifndef LOAD_DTYPE_H
#define LOAD_DTYPE_H

#include <raffia/dtype.h>

/* Widths of types are in bits. */
#define CATALOG_BYTE_BITS 8u

/* RAFFIA_DTYPE_NONE if there is no type of that name; case matters. */
raffia_dtype catalog_dtype_find(const char *name);

#endif
