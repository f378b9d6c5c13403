#include "cli/model_file.h"

#include "cli/output.h"
#include "cli/pattern.h"
#include "core/checked.h"
#include "core/error.h"
#include "core/memory.h"

#include <endian.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Tensor bytes made at once; a multiple of the pattern's word. */
#define PIECE_BYTES ((size_t)4 << 20)

/* Headers are padded to a multiple of this, so that the first tensor is aligned. */
#define HEADER_ALIGNMENT 8u

static raffia_status no_memory(void)
{
    return core_error(RAFFIA_ERROR_OUT_OF_HOST_MEMORY, "no memory for the header of the model");
}

static json_t *metadata(uint64_t seed)
{
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)seed);
    return json_pack("{s:s, s:s, s:s}", "format", "pt", PATTERN_METADATA_VERSION, PATTERN_VERSION,
                     PATTERN_METADATA_SEED, text);
}

static json_t *tensor_entry(const struct model_tensor *tensor, raffia_dtype dtype, uint64_t begin)
{
    json_t *shape = json_array();
    for (unsigned i = 0; i < tensor->rank; i++)
        json_array_append_new(shape, json_integer((json_int_t)tensor->shape[i]));
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", raffia_dtype_name(dtype), "shape", shape,
                     "data_offsets", (json_int_t)begin, (json_int_t)(begin + tensor->bytes));
}

/* The header's text, to be freed with free(); NULL for want of memory. */
static char *header_text(const struct model_writer *writer, const struct model_tensor *tensors,
                         size_t count)
{
    json_t *root = json_object();
    bool complete = json_object_set_new(root, "__metadata__", metadata(writer->seed)) == 0;
    uint64_t begin = 0;
    for (size_t i = 0; complete && i < count; i++) {
        complete = json_object_set_new(root, tensors[i].name,
                                       tensor_entry(&tensors[i], writer->dtype, begin)) == 0;
        begin += tensors[i].bytes;
    }
    char *text = complete ? json_dumps(root, JSON_COMPACT) : NULL;
    json_decref(root);
    return text;
}

static raffia_status write_header(struct output *output, const char *text)
{
    static const char spaces[HEADER_ALIGNMENT] = "       ";
    size_t length = strlen(text);
    size_t padded = core_align_up_unchecked(length, HEADER_ALIGNMENT);
    uint64_t prefix = htole64(padded);
    raffia_status status = output_write(output, &prefix, sizeof prefix);
    if (!status)
        status = output_write(output, text, length);
    if (!status)
        status = output_write(output, spaces, padded - length);
    return status;
}

static raffia_status write_tensor(struct model_writer *writer, struct output *output,
                                  const struct model_tensor *tensor, void *piece)
{
    uint64_t key = pattern_key(writer->seed, tensor->name);
    for (uint64_t done = 0; done < tensor->bytes;) {
        size_t bytes = core_min(tensor->bytes - done, PIECE_BYTES);
        pattern_fill(key, done, piece, bytes);
        raffia_status status = output_write(output, piece, bytes);
        if (status)
            return status;
        done += bytes;
        writer->bytes_done += bytes;
        if (writer->progress)
            cli_progress_update(writer->progress, writer->bytes_done);
    }
    return RAFFIA_OK;
}

static raffia_status write_content(struct model_writer *writer, struct output *output,
                                   const char *header, const struct model_tensor *tensors,
                                   size_t count)
{
    void *piece = core_malloc(PIECE_BYTES);
    if (!piece)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    raffia_status status = write_header(output, header);
    for (size_t i = 0; !status && i < count; i++)
        status = write_tensor(writer, output, &tensors[i], piece);
    core_free(piece);
    return status;
}

raffia_status model_file_write(struct model_writer *writer, const char *path,
                               const struct model_tensor *tensors, size_t count)
{
    char *header = header_text(writer, tensors, count);
    if (!header)
        return no_memory();
    uint64_t bytes = sizeof(uint64_t) + strlen(header);
    for (size_t i = 0; i < count; i++)
        bytes += tensors[i].bytes;
    struct output output;
    raffia_status status = output_open(path, bytes, &output);
    if (!status) {
        status = write_content(writer, &output, header, tensors, count);
        if (status)
            output_abandon(&output);
        else
            status = output_commit(&output, writer->durable);
    }
    free(header);
    return status;
}
