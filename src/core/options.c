#include "core/options.h"

#include "core/checked.h"
#include "core/error.h"

#include <string.h>

raffia_status core_options_copy(void *copy, size_t known, const void *options, const char *what)
{
    memset(copy, 0, known);
    if (options) {
        size_t given;
        memcpy(&given, options, sizeof given);
        if (given < sizeof given)
            return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                              "%s: struct_size is %zu; set it to sizeof(%s)", what, given, what);
        for (size_t i = known; i < given; i++)
            if (((const unsigned char *)options)[i] != 0)
                return core_error(RAFFIA_ERROR_UNSUPPORTED,
                                  "%s: byte %zu is set, but this library knows only the first %zu: "
                                  "it is older than the headers of the program",
                                  what, i, known);
        memcpy(copy, options, core_min(given, known));
    }
    memcpy(copy, &known, sizeof known);
    return RAFFIA_OK;
}
