/*
 * raffia bench load: what fresh and standing memory, small and huge pages, one and many threads
 * cost a model that lies in the page cache.
 */
#include "cli/bench.h"
#include "cli/bench_load_rounds.h"
#include "cli/command.h"
#include "cli/fail.h"
#include "cli/interrupt.h"
#include "cli/json.h"
#include "cli/model_shape.h"

#include <stdio.h>
#include <string.h>

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
    "The second table says where each row's time went (medians), and its bottleneck:\n"
    "  open     opening, parsing and validating the files, planning\n"
    "  map      getting the memory: mapping, filling and verifying its pages. The plain rows get "
    "theirs\n"
    "           page by page while they read\n"
    "  read     the first read to the last byte in place: the one copy there is\n"
    "  release  giving the memory back\n"
    "  wait     what is in none of these\n\n"
    "--size takes a list: each size is measured by itself, and --json then prints an object with a "
    "list, \"reports\".\n\n"
    "With --device the model goes to the memory of a device:\n"
    "  link.pinned  copies of pinned memory, each as large as those of the loader's ring\n"
    "  load.first   the pool is made inside the clock, and the ring of pinned memory, which "
    "devices "
    "need\n"
    "               whose memory the CPU cannot touch\n"
    "  load.second  they are there\n"
    "  load.cold    as load.second, the files dropped from the page cache before\n"
    "  read.cold    direct reads of the same files, and no device\n"
    "The clock stops with the last byte on the device; driver and context were up before it "
    "started. load.link_share and load.first_link_share are rates over that of the best copy of "
    "link.pinned, load.cold_share is read.cold : load.cold.\n\n"
    "Memory needed: twice the model's size, the page cache included.\n\n"
    "Examples:\n"
    "  raffia bench load\n"
    "  raffia bench load --size 0.25GiB,1GiB,8GiB\n"
    "  raffia bench load model.safetensors --pages on --json\n"
    "  raffia bench load --device cuda:0 --size 6GiB\n\n"
    "Exit codes: 0 measured, 1 it could not be measured, 2 bad command line.";

enum key {
    KEY_SIZE = 's',
    KEY_HOT = BENCH_OPTION_FIRST,
};

#define DEFAULT_BYTES ((size_t)2 << 30)

/* Most sizes of one list. */
#define SIZES_MAX 16

static const struct argp_option option_table[] = {
    {"size", KEY_SIZE, "SIZE[,SIZE...]", 0, "size of the model that is made (2GiB)", 0},
    {"hot", KEY_HOT, NULL, 0, "with --device: leave the cold rows out", 0},
    {0},
};

struct arguments {
    struct bench_options plan;
    const char *path;
    size_t sizes[SIZES_MAX];
    size_t size_count;
    bool sizes_given;
};

static void parse_sizes(struct argp_state *state, char *text, struct arguments *arguments)
{
    arguments->size_count = 0;
    arguments->sizes_given = true;
    for (char *word = text; word;) {
        char *comma = strchr(word, ',');
        if (comma)
            *comma = '\0';
        if (arguments->size_count == SIZES_MAX)
            argp_error(state, "--size: at most %d sizes make a list", SIZES_MAX);
        arguments->sizes[arguments->size_count++] =
            cli_option_size(state, "--size", word, MODEL_SHAPE_BYTES_MIN, MODEL_SHAPE_BYTES_MAX);
        word = comma ? comma + 1 : NULL;
    }
}

/* What is asked of a model that is made means nothing to one that is there. */
static void check(struct argp_state *state, const struct arguments *arguments)
{
    const char *idle = arguments->sizes_given      ? "--size"
                       : arguments->plan.directory ? "--dir"
                                                   : NULL;
    if (arguments->path && idle)
        argp_error(state, "%s is for a model that is made, and '%s' is there: leave one out", idle,
                   arguments->path);
}

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct arguments *arguments = state->input;
    switch (key) {
    case KEY_SIZE:
        parse_sizes(state, text, arguments);
        return 0;
    case KEY_HOT:
        arguments->plan.hot_only = true;
        return 0;
    case ARGP_KEY_ARG:
        arguments->path = cli_option_argument(state, "FILE", arguments->path, text);
        return 0;
    case ARGP_KEY_END:
        check(state, arguments);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* Measures once and says so: as text at once, as JSON by adding to the list. */
static raffia_status measure(const struct arguments *arguments, size_t bytes, json_t *reports)
{
    struct bench_report *report = bench_report_new();
    if (!report)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    raffia_status status =
        arguments->path
            ? bench_load_measure(arguments->path, &arguments->plan, report)
            : bench_load_measure_new(arguments->plan.directory, bytes, &arguments->plan, report);
    if (!status && arguments->plan.json)
        cli_json_append(reports, bench_report_json(report));
    else if (!status)
        bench_report_print_text(report);
    bench_report_free(report);
    return status;
}

static raffia_status print_json(json_t *reports)
{
    if (json_array_size(reports) == 1)
        return cli_json_print(json_incref(json_array_get(reports, 0)));
    json_t *root = json_object();
    cli_json_set(root, "reports", json_incref(reports));
    return cli_json_print(root);
}

static raffia_status measure_all(const struct arguments *arguments)
{
    raffia_status status = RAFFIA_OK;
    /* A list that cannot be measured to its end is better refused at its start. */
    for (size_t i = 0; !status && !arguments->path && i < arguments->size_count; i++)
        status = bench_load_check_memory(arguments->sizes[i]);
    json_t *reports = json_array();
    size_t count = arguments->path ? 1 : arguments->size_count;
    for (size_t i = 0; !status && i < count; i++) {
        if (i > 0 && !arguments->plan.json)
            printf("\n");
        status = measure(arguments, arguments->sizes[i], reports);
    }
    if (!status && arguments->plan.json)
        status = print_json(reports);
    json_decref(reports);
    return status;
}

int bench_load(int argc, char **argv)
{
    static const struct bench_command command = {
        documentation, "[FILE]", BENCH_TAKES_RUNS | BENCH_TAKES_DIRECTORY | BENCH_TAKES_DEVICE,
        option_table, parse};
    struct arguments arguments = {
        .sizes = {DEFAULT_BYTES},
        .size_count = 1,
    };
    bench_options_parse(&command, argc, argv, &arguments);
    cli_interrupt_catch();
    return measure_all(&arguments) ? cli_fail_last(arguments.plan.json, NULL) : CLI_OK;
}
