#include "cli/extract.h"

#include "cli/output.h"
#include "core/error.h"
#include "core/memory.h"

#include <string.h>

static raffia_status write_tensor(const raffia_tensor *tensor, const char *path)
{
    struct output output;
    raffia_status status = output_open(path, tensor->bytes, &output);
    if (status)
        return status;
    status = output_write(&output, tensor->data, tensor->bytes);
    if (status)
        output_abandon(&output);
    else
        status = output_commit(&output, true);
    return status;
}

raffia_status extract_tensor(const raffia_model *model, const char *request)
{
    const char *equals = strchr(request, '=');
    char *name = core_asprintf("%.*s", equals ? (int)(equals - request) : 0, request);
    if (!name)
        return raffia_last_status();
    const raffia_tensor *tensor = raffia_model_tensor(model, name);
    raffia_status status =
        equals && tensor
            ? write_tensor(tensor, equals + 1)
            : core_error(RAFFIA_ERROR_NOT_FOUND, "there is no tensor '%s' to extract", name);
    core_free(name);
    return status;
}
