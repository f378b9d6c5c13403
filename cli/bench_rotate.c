/*
 * raffia bench rotate: what it costs models to take turns, with a pool that stands and without.
 */
#include "cli/bench.h"
#include "cli/bench_options.h"
#include "cli/bench_rotate_rounds.h"
#include "cli/command.h"
#include "cli/fail.h"
#include "cli/interrupt.h"
#include "cli/nameless_model.h"
#include "core/checked.h"
#include "core/error.h"
#include "core/text.h"

#include <raffia/device.h>

static const char documentation[] =
    "Loads several models in turn, round after round, as a server does that has more models than "
    "memory to spare, in four ways:\n"
    "  rotate.stay     all stay in one pool of 1.3 times their sum; each is replaced by itself\n"
    "  rotate.turns    one at a time, in one pool of 1.2 times the largest\n"
    "  rotate.rebuilt  one at a time, in huge pages made for it\n"
    "  rotate.regular  one at a time, in regular pages made for it\n"
    "\v"
    "For each round it prints the median and the largest time of a turn (the old model goes, the "
    "next one comes) and the driver calls made to get memory (those that give it back are not "
    "counted). A pool that stands makes none after it was built. A load that finds no memory "
    "counts as failed.\n\n"
    "The models are made for it, and nothing of them stays. Memory needed: 2.3 times all models, "
    "the page cache included.\n\n"
    "Examples:\n"
    "  raffia bench rotate --size 256MiB\n"
    "  raffia bench rotate --models 5 --rounds 50 --json\n\n"
    "Exit codes: 0 measured, 1 it could not be measured, 2 bad command line.";

enum key {
    KEY_SIZE = 's',
    KEY_MODELS = 'm',
    KEY_ROUNDS = 'r',
};

#define DEFAULT_BYTES  ((size_t)1 << 30)
#define DEFAULT_MODELS 3u
#define DEFAULT_ROUNDS 20u

/* Models in the page cache once, and in a pool with three tenths to spare. */
#define MEMORY_TENTHS 23u

static const struct argp_option option_table[] = {
    {"size", KEY_SIZE, "SIZE", 0, "size of each model (1GiB)", 0},
    {"models", KEY_MODELS, "N", 0, "how many take turns (3)", 0},
    {"rounds", KEY_ROUNDS, "N", 0, "how often each has its turn (20)", 0},
    {0},
};

struct arguments {
    struct bench_options options;
    struct rotate_plan plan;
};

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct arguments *arguments = state->input;
    struct rotate_plan *plan = &arguments->plan;
    switch (key) {
    case KEY_SIZE:
        plan->model_bytes =
            cli_option_size(state, "--size", text, MODEL_SHAPE_BYTES_MIN, MODEL_SHAPE_BYTES_MAX);
        return 0;
    case KEY_MODELS:
        plan->models = (unsigned)cli_option_count(state, "--models", text, 1, ROTATE_MODELS_MAX);
        return 0;
    case KEY_ROUNDS:
        plan->rounds = (unsigned)cli_option_count(state, "--rounds", text, 1, ROTATE_ROUNDS_MAX);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static raffia_status check_memory(const struct rotate_plan *plan)
{
    raffia_device_info host;
    size_t needed;
    raffia_status status = raffia_device_query("host", &host);
    if (status)
        return status;
    if (core_multiply(plan->model_bytes / 10 * MEMORY_TENTHS, plan->models, &needed) &&
        needed <= host.free_bytes)
        return RAFFIA_OK;
    char size[CORE_SIZE_TEXT_MAX], have[CORE_SIZE_TEXT_MAX];
    return core_error(RAFFIA_ERROR_OUT_OF_MEMORY,
                      "the benchmark needs 2.3 times the size of %u models of %s, and %s are free: "
                      "use smaller models (--size) or fewer (--models)",
                      plan->models, core_format_size(plan->model_bytes, size),
                      core_format_size(host.free_bytes, have));
}

static raffia_status rotate_and_print(const struct arguments *arguments,
                                      const struct nameless_model *models)
{
    const char *paths[ROTATE_MODELS_MAX];
    struct rotate_result result;
    for (unsigned i = 0; i < arguments->plan.models; i++)
        paths[i] = models[i].path;
    raffia_status status = rotate_measure(&arguments->plan, paths, &result);
    if (!status)
        status = rotate_print(&result, arguments->options.json);
    rotate_result_free(&result);
    return status;
}

static raffia_status run(const struct arguments *arguments)
{
    struct model_shape shape;
    struct nameless_model models[ROTATE_MODELS_MAX];
    unsigned made = 0;
    raffia_status status = check_memory(&arguments->plan);
    if (!status)
        status = model_shape_make(arguments->plan.model_bytes, RAFFIA_DTYPE_BF16, &shape);
    if (status)
        return status;
    while (!status && made < arguments->plan.models) {
        status = nameless_model_make(arguments->options.directory, &shape, made, &models[made]);
        made += !status;
    }
    model_shape_free(&shape);
    if (!status)
        status = rotate_and_print(arguments, models);
    while (made > 0)
        nameless_model_close(&models[--made]);
    return status;
}

int bench_rotate(int argc, char **argv)
{
    static const struct bench_command command = {documentation, NULL, BENCH_TAKES_DIRECTORY,
                                                 option_table, parse};
    struct arguments arguments = {
        .plan = {.models = DEFAULT_MODELS, .rounds = DEFAULT_ROUNDS, .model_bytes = DEFAULT_BYTES},
    };
    bench_options_parse(&command, argc, argv, &arguments);
    arguments.plan.pages = arguments.options.pages;
    arguments.plan.page_size = arguments.options.page_size;
    arguments.plan.threads = arguments.options.threads;
    cli_interrupt_catch();
    raffia_status status = run(&arguments);
    return status ? cli_fail_last(arguments.options.json, NULL) : CLI_OK;
}
