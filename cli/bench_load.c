/*
 * raffia bench load: what fresh and standing memory, small and huge pages, one and many threads
 * cost a model that lies in the page cache.
 */
#include "cli/bench.h"
#include "cli/bench_load_rounds.h"
#include "cli/command.h"
#include "cli/fail.h"
#include "cli/input.h"
#include "cli/interrupt.h"
#include "cli/model_maker.h"
#include "cli/options.h"
#include "core/memory.h"
#include "core/parallel.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char documentation[] =
    "Loads one model from the page cache in several ways and compares them. FILE is a model; "
    "without it one is made, and nothing of it stays.\n"
    "\v"
    "Rows:\n"
    "  plain.fresh4k      read() into new memory in 4 KiB pages, then unmap it\n"
    "  load.fresh4k       the library, into 4 KiB pages made for the load\n"
    "  load.freshhuge     the library, into huge pages made for the load\n"
    "  load.standing4k    the library, into a pool of 4 KiB pages made before\n"
    "  load.standinghuge  the library, into a pool of huge pages made before\n"
    "The first is what a program does that knows nothing of pools. Each with one thread (.1) and "
    "with all (.n). The rows take turns, round by round; the first round warms up, checks every "
    "byte and is dropped. Before each row with new memory as much is touched and freed, because "
    "the host of a virtual machine is slow to provide it.\n\n"
    "Ratios of medians:\n"
    "  load.fresh4k_over_pool               plain.fresh4k.1 : load.standinghuge.n\n"
    "  load.fresh4k_over_pool_same_threads  plain.fresh4k.n : load.standinghuge.n\n"
    "  load.fresh4k_over_pool_one_thread    plain.fresh4k.1 : load.standinghuge.1\n"
    "  load.pages_alone                     load.standing4k.n : load.standinghuge.n\n"
    "  load.pages_alone_fresh               load.fresh4k.n : load.freshhuge.n\n"
    "They are left out (null) if no huge pages could be had.\n\n"
    "Memory needed: twice the model's size, the page cache included.\n\n"
    "Examples:\n"
    "  raffia bench load\n"
    "  raffia bench load model.safetensors --pages on --json\n\n"
    "Exit codes: 0 measured, 1 it could not be measured, 2 bad command line.";

enum key {
    KEY_SIZE = 's',
    KEY_RUNS = 'r',
    KEY_PAGES = CLI_OPTION_FIRST,
    KEY_PAGE_SIZE,
    KEY_THREADS,
    KEY_DIRECTORY,
    KEY_JSON,
};

#define DEFAULT_BYTES ((size_t)2 << 30)
#define DEFAULT_RUNS  5u
#define RUNS_MAX      10000u

/* Room for "/proc/self/fd/" and any int. */
#define FD_PATH_MAX 40

static const struct argp_option option_table[] = {
    {"size", KEY_SIZE, "SIZE", 0, "size of the model that is made (2GiB)", 0},
    {"runs", KEY_RUNS, "N", 0, "rounds that count (5)", 0},
    {"pages", KEY_PAGES, "MODE", 0, "huge pages of the huge rows: try or on (try)", 0},
    {"page-size", KEY_PAGE_SIZE, "SIZE", 0, "largest page to try: 2MiB or 1GiB", 0},
    {"threads", KEY_THREADS, "N", 0, "threads of the .n rows (one for each CPU, at most 16)", 0},
    {"dir", KEY_DIRECTORY, "DIR", 0, "where the model is made (TMPDIR, else /tmp)", 0},
    {"json", KEY_JSON, NULL, 0, "report as one JSON object on standard output", 0},
    {0},
};

struct arguments {
    const char *path;
    size_t bytes;
    const char *directory;
    struct bench_load_plan plan;
};

static error_t parse(int key, char *text, struct argp_state *state)
{
    static const char *const pages_words[] = {"try", "on", NULL};
    static const raffia_pages_mode modes[] = {RAFFIA_PAGES_TRY, RAFFIA_PAGES_ON};
    struct arguments *arguments = state->input;
    switch (key) {
    case KEY_SIZE:
        arguments->bytes =
            cli_option_size(state, "--size", text, MODEL_SHAPE_BYTES_MIN, MODEL_SHAPE_BYTES_MAX);
        return 0;
    case KEY_RUNS:
        arguments->plan.runs = (unsigned)cli_option_count(state, "--runs", text, 1, RUNS_MAX);
        return 0;
    case KEY_PAGES:
        arguments->plan.pages = modes[cli_option_choice(state, "--pages", text, pages_words)];
        return 0;
    case KEY_PAGE_SIZE:
        arguments->plan.page_size = cli_option_size(state, "--page-size", text, 1, (size_t)1 << 30);
        return 0;
    case KEY_THREADS:
        arguments->plan.threads =
            (unsigned)cli_option_count(state, "--threads", text, 1, CORE_THREADS_MAX);
        return 0;
    case KEY_DIRECTORY:
        arguments->directory = text;
        return 0;
    case KEY_JSON:
        arguments->plan.json = true;
        return 0;
    case ARGP_KEY_ARG:
        if (arguments->path)
            argp_error(state, "one FILE is enough: '%s' is too many", text);
        arguments->path = text;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static raffia_status make_model(const char *path, size_t bytes)
{
    struct model_shape shape;
    raffia_status status = model_shape_make(bytes, RAFFIA_DTYPE_BF16, &shape);
    if (status)
        return status;
    struct cli_progress progress;
    cli_progress_start(&progress, "making a model", shape.bytes);
    struct model_order order = {.path = path, .shape = &shape, .replace = true};
    /* Synced, so that the disk has nothing left to do while the clock runs. */
    struct model_writer writer = {
        .dtype = shape.dtype, .seed = 1, .durable = true, .progress = &progress};
    status = model_make(&order, &writer);
    cli_progress_end(&progress);
    model_shape_free(&shape);
    return status;
}

/* The model made here has no name while it is measured: nothing of it can be left behind. */
static raffia_status bench_new_model(const struct arguments *arguments)
{
    char *path =
        core_asprintf("%s/raffia-bench-%d.safetensors", arguments->directory, (int)getpid());
    if (!path)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    raffia_status status = bench_load_check_memory(arguments->bytes);
    if (!status)
        status = make_model(path, arguments->bytes);
    if (!status) {
        int fd;
        status = input_open(path, &fd);
        unlink(path);
        if (!status) {
            char nameless[FD_PATH_MAX];
            snprintf(nameless, sizeof nameless, "/proc/self/fd/%d", fd);
            status = bench_load_model(nameless, &arguments->plan);
            close(fd);
        }
    }
    core_free(path);
    return status;
}

int bench_load(int argc, char **argv)
{
    static const struct argp argp = {option_table, parse, "[FILE]", documentation,
                                     NULL,         NULL,  NULL};
    const char *temporary = getenv("TMPDIR");
    struct arguments arguments = {
        .bytes = DEFAULT_BYTES,
        .plan = {.runs = DEFAULT_RUNS, .pages = RAFFIA_PAGES_TRY},
        .directory = temporary && *temporary ? temporary : "/tmp",
    };
    argp_parse(&argp, argc, argv, 0, NULL, &arguments);
    cli_interrupt_catch();
    raffia_status status = arguments.path ? bench_load_model(arguments.path, &arguments.plan)
                                          : bench_new_model(&arguments);
    return status ? cli_fail_last(arguments.plan.json, NULL) : CLI_OK;
}
