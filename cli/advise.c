/*
 * raffia advise: how large a pool models want, of which pages, and how to get it on this machine.
 */
#include "cli/advise.h"

#include "cli/command.h"
#include "cli/fail.h"
#include "cli/options.h"
#include "core/error.h"
#include "core/memory.h"

#include <raffia/load.h>

#include <stdio.h>

static const char documentation[] =
    "Reads the headers of models and says how large a pool of huge pages they want and why, which "
    "page size, which command sets the pages aside on this machine, and what gain to expect.\n"
    "\v"
    "One model that stays wants its weights x 1.2; models that rotate want the sum of their "
    "weights "
    "x 1.3, or if they take turns the largest x 1.2. One PATH is taken for a model that stays and "
    "several for models that rotate, unless "
    "told otherwise. Pages are 2 MiB; 1 GiB only if the weights exceed 8 GB, loads come 20 times a "
    "day and more, and the pool takes at most half of the free memory.\n\n"
    "It changes nothing. Commands with sudo are for you to judge: each changes the whole machine "
    "until the next boot. What to expect are figures of the author who first described such a pool "
    "(\"seed figures\"); raffia bench measures this machine.\n\n"
    "Examples:\n"
    "  raffia advise model.safetensors\n"
    "  raffia advise models/a models/b --rotate --loads-per-day 40 --json\n\n"
    "Exit codes: 0 advised, 1 a model is malformed or unreadable, 2 bad command line.";

enum key {
    KEY_RESIDENT = CLI_OPTION_FIRST,
    KEY_ROTATE,
    KEY_LOADS,
    KEY_JSON,
};

#define LOADS_MAX (1000u * 1000 * 1000)

static const struct argp_option option_table[] = {
    {"resident", KEY_RESIDENT, NULL, 0, "the models stay in memory", 0},
    {"rotate", KEY_ROTATE, NULL, 0, "the models come and go", 0},
    {"loads-per-day", KEY_LOADS, "N", 0, "how often models are loaded", 0},
    {"json", KEY_JSON, NULL, 0, "report as one JSON object on standard output", 0},
    {0},
};

struct arguments {
    bool resident, rotate;
    bool loads_given;
    uint64_t loads_per_day;
    bool json;
    size_t count;
    const char **paths; /* room for all arguments */
};

static void check(struct argp_state *state, const struct arguments *arguments)
{
    if (arguments->count == 0)
        argp_error(state, "say which models it is about: PATH is missing");
    if (arguments->resident && arguments->rotate)
        argp_error(state, "models stay or rotate: --resident and --rotate exclude each other");
}

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct arguments *arguments = state->input;
    switch (key) {
    case KEY_RESIDENT:
        arguments->resident = true;
        return 0;
    case KEY_ROTATE:
        arguments->rotate = true;
        return 0;
    case KEY_LOADS:
        arguments->loads_given = true;
        arguments->loads_per_day = cli_option_count(state, "--loads-per-day", text, 0, LOADS_MAX);
        return 0;
    case KEY_JSON:
        arguments->json = true;
        return 0;
    case ARGP_KEY_ARG:
        arguments->paths[arguments->count++] = text;
        return 0;
    case ARGP_KEY_END:
        check(state, arguments);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static raffia_status read_weights(const struct arguments *arguments, size_t *weights)
{
    for (size_t i = 0; i < arguments->count; i++) {
        raffia_model *model;
        raffia_status status = raffia_model_inspect(arguments->paths[i], NULL, &model);
        if (status)
            return status;
        uint64_t bytes = raffia_model_bytes(model);
        raffia_model_release(model);
        if (bytes > SIZE_MAX)
            return core_error(RAFFIA_ERROR_OVERFLOW, "%s: the model exceeds the address space",
                              arguments->paths[i]);
        weights[i] = (size_t)bytes;
    }
    return RAFFIA_OK;
}

static raffia_status judge(const struct arguments *arguments, const size_t *weights,
                           struct advise_report *report)
{
    struct host_facts *facts = core_calloc(1, sizeof *facts);
    if (!facts)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    host_facts_read(facts);
    report->paths = arguments->paths;
    report->question = (struct advise_question){
        .weights = weights,
        .count = arguments->count,
        .rotate = arguments->rotate || (arguments->count > 1 && !arguments->resident),
        .loads_given = arguments->loads_given,
        .loads_per_day = arguments->loads_per_day,
    };
    raffia_status status = advise_judge(&report->question, facts, &report->advice);
    core_free(facts);
    return status;
}

static raffia_status advise(const struct arguments *arguments)
{
    size_t *weights = core_calloc(arguments->count, sizeof *weights);
    if (!weights)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    struct advise_report report;
    raffia_status status = read_weights(arguments, weights);
    if (!status)
        status = judge(arguments, weights, &report);
    if (!status)
        status = advise_print(&report, arguments->json);
    core_free(weights);
    return status;
}

int cli_advise(int argc, char **argv)
{
    static const struct argp argp = {option_table, parse, "PATH...", documentation,
                                     NULL,         NULL,  NULL};
    struct arguments arguments = {.paths = core_calloc((size_t)argc, sizeof *arguments.paths)};
    if (!arguments.paths)
        return cli_fail_last(false, NULL);
    argp_parse(&argp, argc, argv, 0, NULL, &arguments);
    raffia_status status = advise(&arguments);
    core_free(arguments.paths);
    return status ? cli_fail_last(arguments.json, NULL) : CLI_OK;
}
