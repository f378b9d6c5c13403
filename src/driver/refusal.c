/* What drivers answer when they refuse. */
#include "core/error.h"
#include "driver/driver.h"

#undef driver_unsupported /* the analyser's version is for callers */

raffia_status driver_unsupported(const char *driver, const char *verb)
{
    return core_error(RAFFIA_ERROR_UNSUPPORTED, "the %s driver has no %s", driver, verb);
}

raffia_status driver_status_of_reason(raffia_fallback_reason reason)
{
    switch (reason) {
    case RAFFIA_REASON_DISABLED:
    case RAFFIA_REASON_UNSUPPORTED:
        return RAFFIA_ERROR_UNSUPPORTED;
    case RAFFIA_REASON_PERMISSION:
        return RAFFIA_ERROR_PERMISSION;
    case RAFFIA_REASON_LIMIT:
        return RAFFIA_ERROR_LIMIT;
    default:
        return RAFFIA_ERROR_OUT_OF_MEMORY;
    }
}
