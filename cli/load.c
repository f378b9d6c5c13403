/*
 * raffia load: loads a model, says what that took, and checks it if asked.
 */
#include "cli/command.h"
#include "cli/extract.h"
#include "cli/fail.h"
#include "cli/interrupt.h"
#include "cli/json.h"
#include "cli/load_report.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/parallel.h"
#include "core/settings.h"

#include <raffia/device.h>

#include <string.h>

static const char documentation[] =
    "Loads a model and reports where the time went, how the files were read and which pages the "
    "tensors lie in. PATH is a safetensors file, the index of a sharded model, or a directory "
    "with either.\n"
    "\v"
    "--verify checks every byte in memory: against the pattern if the model was made by `raffia "
    "make-model`, else against the file, read a second time in the plainest way. The report says "
    "which. What lies in a device is copied back for it.\n\n"
    "Into a device whose memory the CPU cannot touch, as a GPU's, the bytes go through slots of "
    "pinned memory (RAFFIA_LOAD_SLOT), as many as --budget has room for.\n\n"
    "With --pages try the pages fall back step by step (hugetlb, transparent, regular) and the "
    "report says why; with --pages on the load fails instead. --pages off is regular memory. "
    "Without the option RAFFIA_PAGES decides, and without that it is try.\n\n"
    "--extract ends NAME at the last '=' before which stands a tensor's name; write ./ before a "
    "FILE with a '=' in it. No file of the model is written to.\n\n"
    "Examples:\n"
    "  raffia load model.safetensors --pages try --verify\n"
    "  raffia load models/llama --reader direct --threads 8 --repeat 5\n"
    "  raffia load model.safetensors --tensor 'model.layers.0.*' --checksum\n"
    "  raffia load model.safetensors --extract lm_head.weight=head.bin\n"
    "  raffia load models/llama --device cuda:0 --verify\n\n"
    "Exit codes: 0 loaded (and verified), 1 not (standard error says why), 2 bad command line.";

enum key {
    KEY_DEVICE = CLI_OPTION_FIRST,
    KEY_PAGES,
    KEY_PAGE_SIZE,
    KEY_READER,
    KEY_THREADS,
    KEY_BUDGET,
    KEY_VERIFY,
    KEY_REPEAT,
    KEY_CHECKSUM,
    KEY_TENSOR,
    KEY_EXTRACT,
    KEY_STALL_TIMEOUT,
    KEY_LENIENT,
    KEY_JSON,
};

static const struct argp_option option_table[] = {
    {"device", KEY_DEVICE, "NAME", 0, "device to load into: host, cuda:0 (RAFFIA_DRIVER)", 0},
    {"pages", KEY_PAGES, "MODE", 0, "huge pages: off, try or on (RAFFIA_PAGES, else try)", 0},
    {"page-size", KEY_PAGE_SIZE, "SIZE", 0, "largest page to try: 2MiB or 1GiB", 0},
    {"reader", KEY_READER, "WAY", 0, "auto (by page cache), buffered, or direct (O_DIRECT) (auto)",
     0},
    {"threads", KEY_THREADS, "N", 0, "threads that read (one for each CPU, at most 16)", 0},
    {"budget", KEY_BUDGET, "SIZE", 0, "most staging memory (64MiB)", 0},
    {"tensor", KEY_TENSOR, "PATTERN", 0,
     "load only the tensors a shell pattern matches; may be repeated", 0},
    {"verify", KEY_VERIFY, NULL, 0, "check every byte after the load", 0},
    {"checksum", KEY_CHECKSUM, NULL, 0, "print each tensor's XXH3", 0},
    {"extract", KEY_EXTRACT, "NAME=FILE", 0, "write a tensor's bytes to a file; may be repeated",
     0},
    {"repeat", KEY_REPEAT, "N", 0, "load N times and report the median", 0},
    {"stall-timeout", KEY_STALL_TIMEOUT, "MS", 0,
     "give up after so many milliseconds without a byte (never)", 0},
    {"lenient", KEY_LENIENT, NULL, 0, "accept bytes behind the last tensor", 0},
    {"json", KEY_JSON, NULL, 0, "report as one JSON object on standard output", 0},
    {0},
};

#define REPEAT_MAX 100000u

/* Texts of an option that may be repeated. At most as many as the command line has words. */
struct texts {
    const char **items;
    size_t count;
};

struct arguments {
    const char *path;
    raffia_load_options options;
    const char *reader;
    struct texts patterns;
    struct texts extracts;
    unsigned repeat;
    bool verify;
    bool json;
};

static const char *const pages_words[] = {"off", "try", "on", NULL};
static const char *const reader_words[] = {"auto", "buffered", "direct", NULL};

static raffia_pages_mode parse_pages(struct argp_state *state, const char *text)
{
    static const raffia_pages_mode modes[] = {RAFFIA_PAGES_OFF, RAFFIA_PAGES_TRY, RAFFIA_PAGES_ON};
    return modes[cli_option_choice(state, "--pages", text, pages_words)];
}

static raffia_reader parse_reader(struct argp_state *state, const char *text)
{
    static const raffia_reader readers[] = {RAFFIA_READER_AUTO, RAFFIA_READER_BUFFERED,
                                            RAFFIA_READER_DIRECT};
    return readers[cli_option_choice(state, "--reader", text, reader_words)];
}

static void add_text(struct argp_state *state, struct texts *texts, const char *text)
{
    if (!texts->items) {
        texts->items = core_calloc((size_t)state->argc, sizeof *texts->items);
        if (!texts->items) {
            argp_failure(state, CLI_FAILURE, 0, "%s", raffia_last_error());
            return; /* for the analyser: argp_failure() ended the process */
        }
    }
    texts->items[texts->count++] = text;
}

static void add_extract(struct argp_state *state, struct texts *texts, const char *text)
{
    const char *equals = strchr(text, '=');
    if (!equals || equals == text || text[strlen(text) - 1] == '=')
        argp_error(state, "--extract: '%s' is not NAME=FILE", text);
    add_text(state, texts, text);
}

/* Options that say what to do once the model is loaded. */
static error_t parse_afterwards(int key, char *text, struct argp_state *state)
{
    struct arguments *arguments = state->input;
    switch (key) {
    case KEY_VERIFY:
        arguments->verify = true;
        return 0;
    case KEY_EXTRACT:
        add_extract(state, &arguments->extracts, text);
        return 0;
    case KEY_REPEAT:
        arguments->repeat = (unsigned)cli_option_count(state, "--repeat", text, 1, REPEAT_MAX);
        return 0;
    case KEY_JSON:
        arguments->json = true;
        return 0;
    case ARGP_KEY_ARG:
        arguments->path = cli_option_argument(state, "PATH", arguments->path, text);
        return 0;
    case ARGP_KEY_END:
        if (!arguments->path)
            argp_error(state, "say which model to load: PATH is missing");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct arguments *arguments = state->input;
    raffia_load_options *options = &arguments->options;
    switch (key) {
    case KEY_DEVICE:
        options->device = cli_option_device(state, text);
        return 0;
    case KEY_PAGES:
        options->pages = parse_pages(state, text);
        return 0;
    case KEY_PAGE_SIZE:
        options->page_size = cli_option_page_size(state, text, (size_t)4 << 10);
        return 0;
    case KEY_READER:
        options->reader = parse_reader(state, text);
        arguments->reader = text;
        return 0;
    case KEY_THREADS:
        options->threads =
            (unsigned)cli_option_count(state, "--threads", text, 1, CORE_THREADS_MAX);
        return 0;
    case KEY_BUDGET:
        options->budget_bytes =
            cli_option_size(state, "--budget", text, CORE_LOAD_BUDGET_MIN, PTRDIFF_MAX);
        return 0;
    case KEY_TENSOR:
        add_text(state, &arguments->patterns, text);
        return 0;
    case KEY_CHECKSUM:
        options->checksum = RAFFIA_CHECKSUM_XXH3;
        return 0;
    case KEY_STALL_TIMEOUT:
        options->stall_timeout_ms =
            (unsigned)cli_option_count(state, "--stall-timeout", text, 1, UINT32_MAX);
        return 0;
    case KEY_LENIENT:
        options->lenient = true;
        return 0;
    default:
        return parse_afterwards(key, text, state);
    }
}

static bool draw_progress(void *context, const raffia_load_progress *progress)
{
    struct cli_progress *bar = context;
    bar->total = progress->bytes_total;
    cli_progress_update(bar, progress->bytes_done);
    return true;
}

static raffia_load_options options_of(const struct arguments *arguments)
{
    raffia_load_options options = arguments->options;
    options.names = arguments->patterns.items;
    options.name_count = arguments->patterns.count;
    options.cancel = cli_interrupt_flag();
    return options;
}

static raffia_status plan_extracts(const struct arguments *arguments, struct extract_plan *plan)
{
    const raffia_load_options options = options_of(arguments);
    return extract_plan_make(arguments->path, &options, arguments->extracts.items,
                             arguments->extracts.count, plan);
}

static raffia_status load_once(const struct arguments *arguments, raffia_model **model_p)
{
    struct cli_progress progress;
    cli_progress_start(&progress, "loading", 0);
    raffia_load_options options = options_of(arguments);
    if (progress.visible) {
        options.progress = draw_progress;
        options.progress_context = &progress;
    }
    raffia_status status = raffia_model_load(arguments->path, &options, model_p);
    cli_progress_end(&progress);
    if (status == RAFFIA_ERROR_CANCELLED && cli_interrupted())
        return core_error_prefix("interrupted");
    return status;
}

/* Loads `repeat` times; the last model is left in *model_p, whatever the result. */
static raffia_status load_repeatedly(const struct arguments *arguments,
                                     struct load_outcome *outcome, raffia_model **model_p)
{
    process_facts_read(&outcome->before);
    for (unsigned run = 0; run < arguments->repeat; run++) {
        raffia_model_release(*model_p);
        *model_p = NULL;
        raffia_status status = load_once(arguments, model_p);
        if (status)
            return status;
        if (run == 0)
            process_facts_read(&outcome->after);
        outcome->reports[outcome->runs++] = *raffia_model_report(*model_p);
        if (arguments->verify) {
            status = verify_model(*model_p, arguments->options.threads, &outcome->verification);
            if (status)
                return status;
            outcome->verified = true;
        }
    }
    outcome->tensors = raffia_model_tensor_count(*model_p);
    return RAFFIA_OK;
}

static json_t *failure_details(const struct load_outcome *outcome)
{
    const struct verify_result *result = &outcome->verification;
    if (!result->bad_tensor)
        return NULL;
    json_t *details = json_object();
    cli_json_text(details, "tensor", result->bad_tensor);
    cli_json_count(details, "offset", result->bad_offset);
    return details;
}

static int load(const struct arguments *arguments)
{
    raffia_device_info device;
    raffia_model *model = NULL;
    struct extract_plan extracts = {0};
    struct load_outcome outcome = {.path = arguments->path, .reader = arguments->reader};
    raffia_status status = raffia_device_query(arguments->options.device, &device);
    if (!status)
        status = plan_extracts(arguments, &extracts);
    if (!status) {
        outcome.device = device.name;
        outcome.reports = core_calloc(arguments->repeat, sizeof *outcome.reports);
        status =
            outcome.reports ? load_repeatedly(arguments, &outcome, &model) : raffia_last_status();
    }
    if (!status)
        status = extract_tensors(model, &extracts);
    if (!status) {
        outcome.model = arguments->options.checksum ? model : NULL;
        status = load_report_print(&outcome, arguments->json);
    }
    int code = status ? cli_fail_last(arguments->json, failure_details(&outcome)) : CLI_OK;
    if (extracts.clash)
        code = CLI_USAGE;
    extract_plan_free(&extracts);
    raffia_model_release(model);
    raffia_load_release_staging();
    core_free(outcome.reports);
    return code;
}

int cli_load(int argc, char **argv)
{
    static const struct argp argp = {option_table, parse, "PATH", documentation, NULL, NULL, NULL};
    struct arguments arguments = {
        .options = {.struct_size = sizeof arguments.options},
        .reader = reader_words[0],
        .repeat = 1,
    };
    argp_parse(&argp, argc, argv, 0, NULL, &arguments);
    /* The library takes regular pages unless told otherwise; who runs this command wants to see. */
    if (arguments.options.pages == RAFFIA_PAGES_DEFAULT && !core_setting_given(CORE_SETTING_PAGES))
        arguments.options.pages = RAFFIA_PAGES_TRY;
    cli_interrupt_catch();
    int code = load(&arguments);
    core_free(arguments.patterns.items);
    core_free(arguments.extracts.items);
    return code;
}
