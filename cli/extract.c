#include "cli/extract.h"

#include "cli/output.h"
#include "core/error.h"
#include "core/memory.h"

#include <string.h>

static raffia_status find(const raffia_model *model, const char *request,
                          const raffia_tensor **tensor_p)
{
    const char *equals = strchr(request, '=');
    char *name = core_asprintf("%.*s", equals ? (int)(equals - request) : 0, request);
    if (!name)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    *tensor_p = equals ? raffia_model_tensor(model, name) : NULL;
    raffia_status status =
        *tensor_p ? RAFFIA_OK
                  : core_error(RAFFIA_ERROR_NOT_FOUND,
                               "there is no tensor '%s' to extract among those to be loaded", name);
    core_free(name);
    return status;
}

raffia_status extract_check(const char *path, const raffia_load_options *options,
                            const char *const *requests, size_t count)
{
    if (!count)
        return RAFFIA_OK;
    raffia_model *model;
    raffia_status status = raffia_model_inspect(path, options, &model);
    if (status)
        return status;
    const raffia_tensor *unused;
    for (size_t i = 0; !status && i < count; i++)
        status = find(model, requests[i], &unused);
    raffia_model_release(model);
    return status;
}

raffia_status extract_tensor(const raffia_model *model, const char *request)
{
    const raffia_tensor *tensor;
    raffia_status status = find(model, request, &tensor);
    return status ? status
                  : output_write_whole(strchr(request, '=') + 1, tensor->data, tensor->bytes);
}
