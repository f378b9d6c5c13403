#include "cli/extract.h"

#include "cli/output.h"
#include "core/checked.h"
#include "core/error.h"
#include "core/memory.h"

#include <string.h>

/* Copied back from a device at once. */
#define PIECE_BYTES ((size_t)4 << 20)

static raffia_status write_pieces(const raffia_model *model, const raffia_tensor *tensor,
                                  struct output *output)
{
    unsigned char *piece = core_malloc(PIECE_BYTES);
    raffia_status status = piece ? RAFFIA_OK : RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t done = 0; done < tensor->bytes && !status;) {
        size_t bytes = core_min(tensor->bytes - done, PIECE_BYTES);
        status = raffia_model_read(model, tensor, done, piece, bytes);
        if (!status)
            status = output_write(output, piece, bytes);
        done += bytes;
    }
    core_free(piece);
    return status;
}

static raffia_status write_tensor(const raffia_model *model, const raffia_tensor *tensor,
                                  const char *path)
{
    if (!raffia_model_report(model)->pinned)
        return output_write_whole(path, tensor->data, tensor->bytes);
    struct output output;
    raffia_status status = output_open(path, tensor->bytes, &output);
    if (status)
        return status;
    status = write_pieces(model, tensor, &output);
    if (!status)
        return output_commit(&output, true);
    output_abandon(&output);
    return status;
}

raffia_status extract_tensor(const raffia_model *model, const char *request)
{
    const char *equals = strchr(request, '=');
    char *name = core_asprintf("%.*s", equals ? (int)(equals - request) : 0, request);
    if (!name)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    const raffia_tensor *tensor = raffia_model_tensor(model, name);
    raffia_status status =
        equals && tensor
            ? write_tensor(model, tensor, equals + 1)
            : core_error(RAFFIA_ERROR_NOT_FOUND, "there is no tensor '%s' to extract", name);
    core_free(name);
    return status;
}
