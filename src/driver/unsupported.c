/* What a driver answers for a verb that its device does not have. */
#include "core/error.h"
#include "driver/driver.h"

#undef driver_unsupported /* the analyser's version is for callers */

raffia_status driver_unsupported(const char *driver, const char *verb)
{
    return core_error(RAFFIA_ERROR_UNSUPPORTED, "the %s driver has no %s", driver, verb);
}
