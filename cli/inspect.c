/*
 * raffia inspect: what a model file holds, from its headers alone.
 */
#include "cli/command.h"
#include "cli/fail.h"
#include "cli/format.h"
#include "cli/json.h"
#include "cli/model_summary.h"
#include "cli/options.h"
#include "core/text.h"

#include <raffia/load.h>

#include <stdio.h>
#include <string.h>

static const char documentation[] =
    "Reads and validates the headers of a model and says what it holds. PATH is a safetensors "
    "file, the index of a sharded model, or a directory with either. No tensor is read.\n"
    "\v"
    "A malformed file is refused with the file, the offset and the reason.\n\n"
    "Examples:\n"
    "  raffia inspect model.safetensors\n"
    "  raffia inspect models/llama --tensors\n"
    "  raffia inspect model.safetensors --json --tensors | jq '.tensor_list[].name'\n\n"
    "Exit codes: 0 valid, 1 malformed or unreadable, 2 bad command line.";

enum key {
    KEY_TENSORS = 't',
    KEY_LENIENT = CLI_OPTION_FIRST,
    KEY_JSON,
};

static const struct argp_option option_table[] = {
    {"tensors", KEY_TENSORS, NULL, 0, "list every tensor", 0},
    {"lenient", KEY_LENIENT, NULL, 0, "accept bytes behind the last tensor", 0},
    {"json", KEY_JSON, NULL, 0, "report as one JSON object on standard output", 0},
    {0},
};

struct arguments {
    const char *path;
    bool tensors;
    bool lenient;
    bool json;
};

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct arguments *arguments = state->input;
    switch (key) {
    case KEY_TENSORS:
        arguments->tensors = true;
        return 0;
    case KEY_LENIENT:
        arguments->lenient = true;
        return 0;
    case KEY_JSON:
        arguments->json = true;
        return 0;
    case ARGP_KEY_ARG:
        arguments->path = cli_option_argument(state, "PATH", arguments->path, text);
        return 0;
    case ARGP_KEY_END:
        if (!arguments->path)
            argp_error(state, "say which model to inspect: PATH is missing");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* "[4096, 1024]" in at most `capacity` bytes. */
static const char *shape_text(const raffia_tensor *tensor, char *buffer, size_t capacity)
{
    size_t length = (size_t)snprintf(buffer, capacity, "[");
    for (unsigned i = 0; i < tensor->rank && length < capacity; i++)
        length += (size_t)snprintf(buffer + length, capacity - length, "%s%llu", i ? ", " : "",
                                   (unsigned long long)tensor->shape[i]);
    if (length < capacity)
        snprintf(buffer + length, capacity - length, "]");
    return buffer;
}

static void print_tensor(const raffia_tensor *tensor)
{
    char shape[24 * RAFFIA_TENSOR_RANK_MAX], name[CLI_NAME_MAX], size[CORE_SIZE_TEXT_MAX];
    printf("  %12s  %-8s %-16s %s\n", core_format_size(tensor->bytes, size),
           raffia_dtype_name(tensor->dtype), shape_text(tensor, shape, sizeof shape),
           cli_format_name(tensor->name, name));
}

static void print_metadata(const raffia_model *model)
{
    const char *key, *value;
    for (size_t i = 0; raffia_model_metadata_at(model, i, &key, &value); i++) {
        char key_text[CLI_NAME_MAX], value_text[CLI_NAME_MAX];
        if (i == 0)
            printf("metadata\n");
        printf("  %s: %s\n", cli_format_name(key, key_text), cli_format_name(value, value_text));
    }
}

static void print_files(const struct model_summary *summary)
{
    printf("files\n");
    for (size_t i = 0; i < summary->file_count; i++) {
        char name[CLI_NAME_MAX], size[CORE_SIZE_TEXT_MAX];
        printf("  %12s  %s\n", core_format_size(summary->files[i].bytes, size),
               cli_format_name(summary->files[i].path, name));
    }
}

static void print_text(const struct arguments *arguments, const raffia_model *model,
                       const struct model_summary *summary)
{
    char size[CORE_SIZE_TEXT_MAX];
    size_t tensors = raffia_model_tensor_count(model);
    printf("%s: safetensors, %zu tensor%s, %s in %zu file%s\n", arguments->path, tensors,
           cli_plural(tensors), core_format_size(raffia_model_bytes(model), size),
           summary->file_count, cli_plural(summary->file_count));
    print_metadata(model);
    print_files(summary);
    printf("element types\n");
    for (int dtype = 1; dtype < RAFFIA_DTYPE_COUNT; dtype++)
        if (summary->dtypes[dtype].tensors)
            printf("  %12s  %s in %zu tensor%s\n",
                   core_format_size(summary->dtypes[dtype].bytes, size),
                   raffia_dtype_name((raffia_dtype)dtype), summary->dtypes[dtype].tensors,
                   cli_plural(summary->dtypes[dtype].tensors));
    printf("%s\n", arguments->tensors ? "tensors" : "largest tensors");
    if (arguments->tensors)
        for (size_t i = 0; i < raffia_model_tensor_count(model); i++)
            print_tensor(raffia_model_tensor_at(model, i));
    else
        for (size_t i = 0; i < summary->largest_count; i++)
            print_tensor(summary->largest[i]);
}

static json_t *json_tensor(const raffia_tensor *tensor)
{
    json_t *object = json_object(), *shape = json_array();
    for (unsigned i = 0; i < tensor->rank; i++)
        cli_json_append(shape, json_integer((json_int_t)tensor->shape[i]));
    cli_json_text(object, "name", tensor->name);
    cli_json_text(object, "dtype", raffia_dtype_name(tensor->dtype));
    cli_json_set(object, "shape", shape);
    cli_json_count(object, "bytes", tensor->bytes);
    cli_json_text(object, "file", tensor->file);
    cli_json_count(object, "offset", tensor->file_offset);
    return object;
}

static json_t *json_metadata(const raffia_model *model)
{
    json_t *metadata = json_object();
    const char *key, *value;
    for (size_t i = 0; raffia_model_metadata_at(model, i, &key, &value); i++)
        cli_json_text(metadata, key, value);
    return metadata;
}

static json_t *json_files(const struct model_summary *summary)
{
    json_t *files = json_array();
    for (size_t i = 0; i < summary->file_count; i++) {
        json_t *file = json_object();
        cli_json_text(file, "path", summary->files[i].path);
        cli_json_count(file, "bytes", summary->files[i].bytes);
        cli_json_append(files, file);
    }
    return files;
}

static json_t *json_dtypes(const struct model_summary *summary)
{
    json_t *dtypes = json_object();
    for (int i = 1; i < RAFFIA_DTYPE_COUNT; i++) {
        if (!summary->dtypes[i].tensors)
            continue;
        json_t *dtype = json_object();
        cli_json_count(dtype, "tensors", summary->dtypes[i].tensors);
        cli_json_count(dtype, "bytes", summary->dtypes[i].bytes);
        cli_json_set(dtypes, raffia_dtype_name((raffia_dtype)i), dtype);
    }
    return dtypes;
}

static raffia_status print_json(const struct arguments *arguments, const raffia_model *model,
                                const struct model_summary *summary)
{
    json_t *root = json_object(), *largest = json_array();
    cli_json_text(root, "path", arguments->path);
    cli_json_text(root, "format", "safetensors");
    cli_json_set(root, "files", json_files(summary));
    cli_json_count(root, "tensors", raffia_model_tensor_count(model));
    cli_json_count(root, "bytes", raffia_model_bytes(model));
    cli_json_set(root, "dtypes", json_dtypes(summary));
    cli_json_set(root, "metadata", json_metadata(model));
    for (size_t i = 0; i < summary->largest_count; i++)
        cli_json_append(largest, json_tensor(summary->largest[i]));
    cli_json_set(root, "largest", largest);
    if (arguments->tensors) {
        json_t *list = json_array();
        for (size_t i = 0; i < raffia_model_tensor_count(model); i++)
            cli_json_append(list, json_tensor(raffia_model_tensor_at(model, i)));
        cli_json_set(root, "tensor_list", list);
    }
    return cli_json_print(root);
}

static raffia_status inspect(const struct arguments *arguments)
{
    raffia_load_options options = {.struct_size = sizeof options, .lenient = arguments->lenient};
    raffia_model *model;
    raffia_status status = raffia_model_inspect(arguments->path, &options, &model);
    if (status)
        return status;
    struct model_summary summary;
    status = model_summary_make(model, &summary);
    if (!status) {
        if (arguments->json)
            status = print_json(arguments, model, &summary);
        else
            print_text(arguments, model, &summary);
        model_summary_free(&summary);
    }
    raffia_model_release(model);
    return status;
}

int cli_inspect(int argc, char **argv)
{
    static const struct argp argp = {option_table, parse, "PATH", documentation, NULL, NULL, NULL};
    struct arguments arguments = {0};
    argp_parse(&argp, argc, argv, 0, NULL, &arguments);
    return inspect(&arguments) ? cli_fail_last(arguments.json, NULL) : CLI_OK;
}
