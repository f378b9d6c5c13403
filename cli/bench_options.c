#include "cli/bench_options.h"

#include "core/parallel.h"

#include <string.h>

#define RUNS_MAX 10000u

enum key {
    KEY_RUNS = 'r',
    KEY_PAGES = CLI_OPTION_FIRST,
    KEY_PAGE_SIZE,
    KEY_THREADS,
    KEY_JSON,
    KEY_DEVICE,
};

static const struct argp_option option_table[] = {
    {"runs", KEY_RUNS, "N", 0, "rounds that count (5)", 0},
    {"pages", KEY_PAGES, "MODE", 0, "huge pages of the huge rows: try or on (try)", 0},
    {"page-size", KEY_PAGE_SIZE, "SIZE", 0, "largest page to try: 2MiB or 1GiB", 0},
    {"threads", KEY_THREADS, "N", 0,
     "threads that fill pools, and of the rows with several (one for each CPU, at most 16)", 0},
    {"json", KEY_JSON, NULL, 0, "report as one JSON object on standard output", 0},
    {0},
};

static error_t parse(int key, char *text, struct argp_state *state)
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
        options->page_size = cli_option_size(state, "--page-size", text, 1, (size_t)1 << 30);
        return 0;
    case KEY_THREADS:
        options->threads =
            (unsigned)cli_option_count(state, "--threads", text, 1, CORE_THREADS_MAX);
        return 0;
    case KEY_JSON:
        options->json = true;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp parser = {option_table, parse, NULL, NULL, NULL, NULL, NULL};

const struct argp_child bench_options_children[] = {{&parser, 0, NULL, 0}, {0}};

static const struct argp_option device_table[] = {
    {"device", KEY_DEVICE, "NAME", 0,
     "measure a device, cuda:0 for example (this machine's memory)", 0},
    {0},
};

static error_t parse_device(int key, char *text, struct argp_state *state)
{
    struct bench_options *options = state->input;
    if (key != KEY_DEVICE)
        return ARGP_ERR_UNKNOWN;
    options->device = strcmp(text, "host") == 0 ? NULL : text;
    return 0;
}

static const struct argp device_parser = {device_table, parse_device, NULL, NULL, NULL, NULL, NULL};

const struct argp_child bench_device_options_children[] = {
    {&parser, 0, NULL, 0}, {&device_parser, 0, NULL, 0}, {0}};
