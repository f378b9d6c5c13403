/*
 * raffia make-model: writes a model whose every byte can be checked.
 */
#include "cli/command.h"
#include "cli/fail.h"
#include "cli/format.h"
#include "cli/interrupt.h"
#include "cli/json.h"
#include "cli/model_maker.h"
#include "cli/options.h"
#include "core/clock.h"
#include "core/text.h"
#include "load/dtype.h"

#include <stdio.h>
#include <string.h>

#define DEFAULT_SEED 1u

static const char documentation[] =
    "Writes a safetensors model of a language model's shape (embedding, layers of attention and "
    "feed-forward projections, small norms, output head) whose content follows from a seed.\n"
    "\v"
    "Each 64-bit word of a tensor depends on the seed, the tensor's name and the word's place, so "
    "`raffia load --verify` finds bytes that are wrong and bytes that are in the wrong place. The "
    "same seed gives the same file. Its __metadata__ records raffia.pattern and raffia.seed.\n\n"
    "The tensors add up to the size asked for, less at most two rows of the hidden size (8 KiB "
    "for 1 GiB). The file appears whole or not at all: it is written beside OUT as "
    "OUT.partial-XXXXXX, synced and renamed; Ctrl-C removes it.\n\n"
    "Examples:\n"
    "  raffia make-model model.safetensors --size 1GiB\n"
    "  raffia make-model sharded/ --size 4GiB --shards 4\n"
    "  raffia load model.safetensors --verify\n\n"
    "Exit codes: 0 written, 1 could not be written, 2 bad command line.";

enum key {
    KEY_SIZE = 's',
    KEY_FORCE = 'f',
    KEY_SEED = CLI_OPTION_FIRST,
    KEY_SHARDS,
    KEY_DTYPE,
    KEY_JSON,
};

static const struct argp_option option_table[] = {
    {"size", KEY_SIZE, "SIZE", 0, "bytes of all tensors, from 64KiB to 4TiB (needed)", 0},
    {"seed", KEY_SEED, "N", 0, "what the content follows from (1)", 0},
    {"shards", KEY_SHARDS, "N", 0, "make OUT a directory of N files and their index", 0},
    {"dtype", KEY_DTYPE, "NAME", 0, "element type as safetensors names it (BF16)", 0},
    {"force", KEY_FORCE, NULL, 0, "replace an existing file", 0},
    {"json", KEY_JSON, NULL, 0, "report as one JSON object on standard output", 0},
    {0},
};

struct arguments {
    char *path;
    size_t bytes;
    uint64_t seed;
    unsigned shards;
    raffia_dtype dtype;
    bool force;
    bool json;
};

static raffia_dtype parse_dtype(struct argp_state *state, const char *text)
{
    raffia_dtype dtype = catalog_dtype_find(text);
    if (dtype == RAFFIA_DTYPE_NONE)
        argp_error(state, "--dtype: '%s' is no element type (write it like BF16, F32 or U8)", text);
    if (raffia_dtype_bits(dtype) % CATALOG_BYTE_BITS)
        argp_error(state, "--dtype: the elements of %s are no whole bytes", text);
    return dtype;
}

static void check_complete(struct argp_state *state, struct arguments *arguments)
{
    char *path = arguments->path;
    if (!path || !*path) {
        argp_error(state, "say where to write the model: OUT is missing");
        return; /* for the analyser: argp_error() ended the process */
    }
    if (!arguments->bytes)
        argp_error(state, "say how large the model shall be: --size is missing");
    /* "directory/" names the same place as "directory"; the partial name is put behind it. */
    size_t length = strlen(path);
    while (arguments->shards && length > 1 && path[length - 1] == '/')
        path[--length] = '\0';
}

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct arguments *arguments = state->input;
    switch (key) {
    case KEY_SIZE:
        arguments->bytes =
            cli_option_size(state, "--size", text, MODEL_SHAPE_BYTES_MIN, MODEL_SHAPE_BYTES_MAX);
        return 0;
    case KEY_SEED:
        arguments->seed = cli_option_count(state, "--seed", text, 0, INT64_MAX);
        return 0;
    case KEY_SHARDS:
        arguments->shards =
            (unsigned)cli_option_count(state, "--shards", text, 1, MODEL_SHARDS_MAX);
        return 0;
    case KEY_DTYPE:
        arguments->dtype = parse_dtype(state, text);
        return 0;
    case KEY_FORCE:
        arguments->force = true;
        return 0;
    case KEY_JSON:
        arguments->json = true;
        return 0;
    case ARGP_KEY_ARG:
        arguments->path = cli_option_argument(state, "OUT", arguments->path, text);
        return 0;
    case ARGP_KEY_END:
        check_complete(state, arguments);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static raffia_status report(const struct arguments *arguments, const struct model_shape *shape,
                            double seconds)
{
    if (arguments->json) {
        json_t *root = json_object();
        cli_json_text(root, "path", arguments->path);
        cli_json_count(root, "bytes", shape->bytes);
        cli_json_count(root, "tensors", shape->count);
        cli_json_count(root, "files", arguments->shards ? arguments->shards : 1);
        cli_json_count(root, "hidden", shape->hidden);
        cli_json_count(root, "layers", shape->layers);
        cli_json_count(root, "vocabulary", shape->vocabulary);
        cli_json_count(root, "seed", arguments->seed);
        cli_json_real(root, "seconds", seconds);
        return cli_json_print(root);
    }
    char size[CORE_SIZE_TEXT_MAX], time[CLI_FORMAT_MAX], rate[CLI_FORMAT_MAX];
    printf("%s: %zu tensors, %s in %u file%s (%llu layers, hidden size %llu), seed %llu\n",
           arguments->path, shape->count, core_format_size(shape->bytes, size),
           arguments->shards ? arguments->shards : 1,
           cli_plural(arguments->shards ? arguments->shards : 1), (unsigned long long)shape->layers,
           (unsigned long long)shape->hidden, (unsigned long long)arguments->seed);
    printf("written in %s (%s)\n", cli_format_seconds(seconds, time),
           cli_format_rate((double)shape->bytes, seconds, rate));
    return RAFFIA_OK;
}

static raffia_status make(const struct arguments *arguments)
{
    struct model_shape shape;
    raffia_status status = model_shape_make(arguments->bytes, arguments->dtype, &shape);
    if (status)
        return status;
    struct cli_progress progress;
    cli_progress_start(&progress, "writing", shape.bytes);
    struct model_order order = {
        .path = arguments->path,
        .shape = &shape,
        .shards = arguments->shards,
        .replace = arguments->force,
    };
    struct model_writer writer = {
        .dtype = arguments->dtype,
        .seed = arguments->seed,
        .durable = true,
        .progress = &progress,
    };
    double started = core_clock_seconds();
    status = model_make(&order, &writer);
    cli_progress_end(&progress);
    if (!status)
        status = report(arguments, &shape, core_clock_seconds() - started);
    model_shape_free(&shape);
    return status;
}

int cli_make_model(int argc, char **argv)
{
    static const struct argp argp = {option_table, parse, "OUT", documentation, NULL, NULL, NULL};
    struct arguments arguments = {.seed = DEFAULT_SEED, .dtype = RAFFIA_DTYPE_BF16};
    argp_parse(&argp, argc, argv, 0, NULL, &arguments);
    cli_interrupt_catch();
    return make(&arguments) ? cli_fail_last(arguments.json, NULL) : CLI_OK;
}
