/* What hints mean to a pool. */
#include "core/error.h"
#include "pool/pool.h"

#define HINTS_KNOWN                                                                                \
    (RAFFIA_HINT_LONG_LIVED | RAFFIA_HINT_SHORT_LIVED | RAFFIA_HINT_WILL_GROW | RAFFIA_HINT_HUGE | \
     RAFFIA_HINT_REGULAR)

static bool both(unsigned hints, unsigned a, unsigned b)
{
    return hints & a && hints & b;
}

raffia_status pool_check_hints(unsigned hints)
{
    if (hints & ~(unsigned)HINTS_KNOWN)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "hints %#x are not known to this library",
                          hints & ~(unsigned)HINTS_KNOWN);
    if (both(hints, RAFFIA_HINT_LONG_LIVED, RAFFIA_HINT_SHORT_LIVED))
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "the hints say that the block is long-lived and short-lived");
    if (both(hints, RAFFIA_HINT_HUGE, RAFFIA_HINT_REGULAR))
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "the hints say huge pages and regular memory");
    return RAFFIA_OK;
}
