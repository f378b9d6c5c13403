/*
 * raffia bench step: steps of a training or inference loop, with memory from the system and from a
 * pool.
 */
#include "cli/bench.h"
#include "cli/bench_run.h"
#include "cli/bench_step_device.h"
#include "cli/bench_step_rounds.h"
#include "core/text.h"

static const char documentation[] =
    "Runs steps as a training or inference loop does: each gets memory for a batch, copies a fresh "
    "batch there, computes with it and with weights that stay, and gives the memory back.\n"
    "\v"
    "The regular path has 4 KiB pages: mmap() and munmap() for each batch, weights mapped once. In "
    "the pool's path both come from a pool of huge pages that stands from the first step on. The "
    "arithmetic is one sweep over the batch (batch += 1/2 weights) and a gather of weights at "
    "random, one for every 256 bytes of them.\n\n"
    "Rows:\n"
    "  first.regular, first.pool  the first step, with all that comes with it: making the memory "
    "(the pool, for the pool's path) and filling the weights\n"
    "  step.regular, step.pool    the steps after it\n"
    "The paths take turns step by step. First steps are repeated (--runs), and the first of them "
    "is "
    "dropped.\n\n"
    "Ratios of medians:\n"
    "  step.regular_over_pool_first  first.regular : first.pool\n"
    "  step.regular_over_pool        step.regular : step.pool\n"
    "They are left out (null) if no huge pages could be had.\n\n"
    "With --device the batch is moved to the device, and the sweep alone computed there. The "
    "regular "
    "path then has the driver's allocator for each batch and copies from pageable memory; the "
    "pool's path copies from pinned memory.\n\n"
    "Memory needed: three times --batch and twice --weights.\n\n"
    "Examples:\n"
    "  raffia bench step\n"
    "  raffia bench step --steps 100 --json\n"
    "  raffia bench step --device cuda:0\n\n"
    "Exit codes: 0 measured, 1 it could not be measured, 2 bad command line.";

enum key {
    KEY_STEPS = BENCH_OPTION_FIRST,
    KEY_BATCH,
    KEY_WEIGHTS,
};

#define STEPS_DEFAULT   100u
#define STEPS_MAX       ((uint64_t)1000 * 1000)
#define BATCH_DEFAULT   ((size_t)64 << 20)
#define WEIGHTS_DEFAULT ((size_t)256 << 20)

/* Whole numbers of floats; the gather counts weights with 32 bits. */
#define BYTES_MIN ((size_t)64 << 10)
#define BYTES_MAX ((size_t)8 << 30)

#define HUGE_BYTES ((size_t)2 << 20)

static const struct argp_option option_table[] = {
    {"steps", KEY_STEPS, "N", 0, "steps of each path, the first included (100)", 0},
    {"batch", KEY_BATCH, "SIZE", 0, "size of a batch (64MiB)", 0},
    {"weights", KEY_WEIGHTS, "SIZE", 0, "size of the weights (256MiB)", 0},
    {0},
};

/* Blocks are whole pages: of larger pages than blocks the pool would be mostly empty, and the steps
 * would tell nothing of them. */
static void check(struct argp_state *state, const struct bench_step_plan *plan)
{
    const size_t page = plan->options.page_size;
    if (page <= HUGE_BYTES || (page <= plan->batch_bytes && page <= plan->weight_bytes))
        return;
    char size[CORE_SIZE_TEXT_MAX];
    argp_error(state,
               "--page-size: pages of %s are larger than the batch or the weights; make these as "
               "large (--batch, --weights)",
               core_format_size(page, size));
}

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct bench_step_plan *plan = state->input;
    switch (key) {
    case KEY_STEPS:
        plan->steps = cli_option_count(state, "--steps", text, 2, STEPS_MAX);
        return 0;
    case KEY_BATCH:
        plan->batch_bytes = cli_option_size(state, "--batch", text, BYTES_MIN, BYTES_MAX);
        return 0;
    case KEY_WEIGHTS:
        plan->weight_bytes = cli_option_size(state, "--weights", text, BYTES_MIN, BYTES_MAX);
        return 0;
    case ARGP_KEY_END:
        check(state, plan);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static raffia_status measure(const void *plan, struct bench_report *report)
{
    const struct bench_step_plan *asked = plan;
    return asked->options.device ? bench_step_device_measure(asked, report)
                                 : bench_step_measure(asked, report);
}

int bench_step(int argc, char **argv)
{
    static const struct bench_command command = {
        documentation, NULL, BENCH_TAKES_RUNS | BENCH_TAKES_DEVICE, option_table, parse};
    struct bench_step_plan plan = {
        .steps = STEPS_DEFAULT,
        .batch_bytes = BATCH_DEFAULT,
        .weight_bytes = WEIGHTS_DEFAULT,
    };
    bench_options_parse(&command, argc, argv, &plan);
    return bench_run(measure, &plan, plan.options.json);
}
