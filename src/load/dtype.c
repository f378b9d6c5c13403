/* The table of element types. */
#include "load/dtype.h"

#include <string.h>

static const struct {
    const char *name;
    unsigned bits;
} dtypes[RAFFIA_DTYPE_COUNT] = {[RAFFIA_DTYPE_NONE] = {"?", 0},
#define DTYPE_ROW(name, bits) [RAFFIA_DTYPE_##name] = {#name, bits},
                                RAFFIA_DTYPE_LIST(DTYPE_ROW)
#undef DTYPE_ROW
};

/* A foreign value, whatever the sign of the enumeration's type, reads the row of NONE. */
static size_t row_of(raffia_dtype dtype)
{
    return (size_t)dtype < RAFFIA_DTYPE_COUNT ? (size_t)dtype : RAFFIA_DTYPE_NONE;
}

const char *raffia_dtype_name(raffia_dtype dtype)
{
    return dtypes[row_of(dtype)].name;
}

unsigned raffia_dtype_bits(raffia_dtype dtype)
{
    return dtypes[row_of(dtype)].bits;
}

raffia_dtype catalog_dtype_find(const char *name)
{
    for (size_t row = RAFFIA_DTYPE_NONE + 1; row < RAFFIA_DTYPE_COUNT; row++)
        if (strcmp(name, dtypes[row].name) == 0)
            return (raffia_dtype)row;
    return RAFFIA_DTYPE_NONE;
}
