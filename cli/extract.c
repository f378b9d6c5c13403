#include "cli/extract.h"

#include "cli/output.h"
#include "core/error.h"
#include "core/memory.h"

#include <string.h>

raffia_status extract_tensor(const raffia_model *model, const char *request)
{
    const char *equals = strchr(request, '=');
    char *name = core_asprintf("%.*s", equals ? (int)(equals - request) : 0, request);
    if (!name)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    const raffia_tensor *tensor = raffia_model_tensor(model, name);
    raffia_status status =
        equals && tensor
            ? output_write_whole(equals + 1, tensor->data, tensor->bytes)
            : core_error(RAFFIA_ERROR_NOT_FOUND, "there is no tensor '%s' to extract", name);
    core_free(name);
    return status;
}
