#include "cli/bench_options.h"

#include "core/parallel.h"

#include <stdlib.h>
#include <string.h>

#define RUNS_DEFAULT 5u
#define RUNS_MAX     10000u

enum key {
    KEY_RUNS = 'r',
    KEY_PAGES = CLI_OPTION_FIRST,
    KEY_PAGE_SIZE,
    KEY_THREADS,
    KEY_JSON,
    KEY_DIRECTORY,
    KEY_DEVICE,
};

static const struct argp_option common_options[] = {
    {"pages", KEY_PAGES, "MODE", 0, "huge pages of the huge rows: try or on (try)", 0},
    {"page-size", KEY_PAGE_SIZE, "SIZE", 0, "largest page to try: 2MiB or 1GiB", 0},
    {"threads", KEY_THREADS, "N", 0,
     "threads that fill pools, and of the rows with several (one for each CPU, at most 16)", 0},
    {"json", KEY_JSON, NULL, 0, "report as one JSON object on standard output", 0},
    {0},
};

static const struct argp_option runs_options[] = {
    {"runs", KEY_RUNS, "N", 0, "rounds that count (5)", 0},
    {0},
};

static const struct argp_option directory_options[] = {
    {"dir", KEY_DIRECTORY, "DIR", 0, "where models are made (TMPDIR, else /tmp)", 0},
    {0},
};

static const struct argp_option device_options[] = {
    {"device", KEY_DEVICE, "NAME", 0,
     "measure a device, cuda:0 for example (this machine's memory)", 0},
    {0},
};

static const struct argp_option needed_device_options[] = {
    {"device", KEY_DEVICE, "NAME", 0, "device to measure, cuda:0 for example; it must be named", 0},
    {0},
};

/* NULL for this machine's own memory. Memory that is pinned for a device is this machine's too; the
 * benchmarks make their own of it. */
static const char *parse_device(struct argp_state *state, const char *text)
{
    static const char pinned[] = "pinned:";
    if (strncmp(text, pinned, strlen(pinned)) == 0)
        argp_error(state,
                   "--device: '%s' is host memory pinned for a device; name the device, '%s', and "
                   "pinned memory is measured with it",
                   text, text + strlen(pinned));
    return strcmp(text, "host") == 0 ? NULL : text;
}

static error_t parse_shared(int key, char *text, struct argp_state *state)
{
    static const char *const pages_words[] = {"try", "on", NULL};
    static const raffia_pages_mode modes[] = {RAFFIA_PAGES_TRY, RAFFIA_PAGES_ON};
    struct bench_options *options = state->input;
    switch (key) {
    case KEY_RUNS:
        options->runs = (unsigned)cli_option_count(state, "--runs", text, 1, RUNS_MAX);
        return 0;
    case KEY_PAGES:
        options->pages = modes[cli_option_choice(state, "--pages", text, pages_words)];
        return 0;
    case KEY_PAGE_SIZE:
        options->page_size = cli_option_page_size(state, text, (size_t)4 << 10);
        return 0;
    case KEY_THREADS:
        options->threads =
            (unsigned)cli_option_count(state, "--threads", text, 1, CORE_THREADS_MAX);
        return 0;
    case KEY_JSON:
        options->json = true;
        return 0;
    case KEY_DIRECTORY:
        options->directory = text;
        return 0;
    case KEY_DEVICE:
        options->device = parse_device(state, cli_option_device(state, text));
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* What all parsers of one command line work for. */
struct reading {
    const struct bench_command *command;
    void *plan;
    size_t children;
};

/* Each of the children fills in the plan, whose first member the shared options are. */
static error_t parse_command(int key, char *text, struct argp_state *state)
{
    const struct reading *reading = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        for (size_t i = 0; i < reading->children; i++)
            state->child_inputs[i] = reading->plan;
        return 0;
    case ARGP_KEY_ARG:
        if (!reading->command->argument)
            argp_error(state, "'%s' is too many: there are no arguments", text);
        return ARGP_ERR_UNKNOWN;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static void fill_in_defaults(struct bench_options *options)
{
    const char *temporary = getenv("TMPDIR");
    if (!options->runs)
        options->runs = RUNS_DEFAULT;
    if (options->pages == RAFFIA_PAGES_DEFAULT)
        options->pages = RAFFIA_PAGES_TRY;
    if (!options->directory)
        options->directory = temporary && *temporary ? temporary : "/tmp";
}

void bench_options_parse(const struct bench_command *command, int argc, char **argv, void *plan)
{
    const struct argp_option *named =
        command->takes & BENCH_NEEDS_DEVICE ? needed_device_options : device_options;
    const struct argp own = {command->options, command->parse, NULL, NULL, NULL, NULL, NULL},
                      common = {common_options, parse_shared, NULL, NULL, NULL, NULL, NULL},
                      runs = {runs_options, parse_shared, NULL, NULL, NULL, NULL, NULL},
                      directory = {directory_options, parse_shared, NULL, NULL, NULL, NULL, NULL},
                      device = {named, parse_shared, NULL, NULL, NULL, NULL, NULL};
    struct argp_child children[6] = {{&own, 0, NULL, 0}, {&common, 0, NULL, 0}};
    struct reading reading = {command, plan, 2};
    if (command->takes & BENCH_TAKES_RUNS)
        children[reading.children++].argp = &runs;
    if (command->takes & BENCH_TAKES_DIRECTORY)
        children[reading.children++].argp = &directory;
    if (command->takes & (BENCH_TAKES_DEVICE | BENCH_NEEDS_DEVICE))
        children[reading.children++].argp = &device;
    const struct argp argp = {
        NULL, parse_command, command->argument, command->documentation, children, NULL, NULL};
    argp_parse(&argp, argc, argv, 0, NULL, &reading);
    fill_in_defaults(plan);
}
