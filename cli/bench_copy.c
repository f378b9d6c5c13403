/*
 * raffia bench copy: what the link between host and device moves, from pinned and pageable memory.
 */
#include "cli/bench.h"
#include "cli/bench_copy_rounds.h"
#include "cli/bench_run.h"

#include <string.h>

static const char documentation[] =
    "Copies between host and device memory, in copies of several sizes, from and to pinned and "
    "pageable memory.\n"
    "\v"
    "Rows: <direction>.<memory>.<size of one copy>; h2d is host to device, d2h device to host. "
    "Each sample submits copies of one size, one behind the other on one stream, until --total "
    "bytes or 65536 copies are under way, and waits. Pinned memory is verified huge pages, "
    "registered with the device; pageable memory has 4 KiB pages, all there.\n\n"
    "Rows <direction>.<count>x<size>.<way> are batches of small copies of pinned memory: 'loop' is "
    "one call of the driver for each, 'batch' its batched copy, 'ours' raffia_copy_batch() with a "
    "threshold above the size. copy.loop_over_ours and copy.batch_over_ours are of 4096 copies of "
    "256 bytes to the device.\n\n"
    "With --sweep there are rows sweep.<count>x<size>.<way> of all combinations up to 16 MiB, to "
    "the device: 'loop' and 'batch' as above, 'auto' raffia_copy_batch() with the threshold set "
    "to auto. copy.auto_slower says for how many of them auto is slower than the better of the "
    "driver's two, so that the 95 % confidence intervals of the medians do not meet; "
    "copy.auto_by_kernel how many it makes by the kernel; copy.best_over_auto_least is the least "
    "ratio of the medians.\n\n"
    "Values: the best rate of each direction from pinned memory, in GB/s; and the kernel copy "
    "threshold that a measurement advises for 64 or more copies at once, with the least number of "
    "them for which any kernel pays.\n\n"
    "Examples:\n"
    "  raffia bench copy --device cuda:0\n"
    "  raffia bench copy --device cuda:0 --sizes 4MiB,16MiB,512MiB --json\n"
    "  raffia bench copy --device cuda:0 --sweep\n\n"
    "Exit codes: 0 measured, 1 it could not be measured, 2 bad command line.";

enum key {
    KEY_SIZES = BENCH_OPTION_FIRST,
    KEY_TOTAL,
    KEY_SWEEP,
};

#define TOTAL_DEFAULT ((size_t)1 << 30)
#define BYTES_MAX     ((size_t)16 << 30)

static const struct argp_option option_table[] = {
    {"sizes", KEY_SIZES, "SIZE[,SIZE...]", 0,
     "sizes of one copy, at most 8 (256KiB,1MiB,4MiB,16MiB,64MiB,256MiB)", 0},
    {"sweep", KEY_SWEEP, NULL, 0,
     "measure small copies in many sizes and numbers, with the threshold set to auto", 0},
    {"total", KEY_TOTAL, "SIZE", 0, "bytes of one sample, in at most 65536 copies (1GiB)", 0},
    {0},
};

static void parse_sizes(struct argp_state *state, char *text, struct bench_copy_plan *plan)
{
    plan->size_count = 0;
    for (char *word = text; word;) {
        char *comma = strchr(word, ',');
        if (comma)
            *comma = '\0';
        if (plan->size_count == BENCH_COPY_SIZES_MAX)
            argp_error(state, "--sizes: at most %d sizes make a list", BENCH_COPY_SIZES_MAX);
        plan->sizes[plan->size_count++] = cli_option_size(state, "--sizes", word, 1, BYTES_MAX);
        word = comma ? comma + 1 : NULL;
    }
}

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct bench_copy_plan *plan = state->input;
    switch (key) {
    case KEY_SIZES:
        parse_sizes(state, text, plan);
        return 0;
    case KEY_SWEEP:
        plan->sweep = true;
        return 0;
    case KEY_TOTAL:
        plan->total_bytes = cli_option_size(state, "--total", text, 1, BYTES_MAX);
        return 0;
    case ARGP_KEY_END:
        if (!plan->options.device)
            argp_error(state, "--device is needed: between host and host there is no link");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static raffia_status measure(const void *plan, struct bench_report *report)
{
    return bench_copy_measure(plan, report);
}

int bench_copy(int argc, char **argv)
{
    static const struct bench_command command = {
        documentation, NULL, BENCH_TAKES_RUNS | BENCH_NEEDS_DEVICE, option_table, parse};
    struct bench_copy_plan plan = {
        .sizes = {(size_t)256 << 10, (size_t)1 << 20, (size_t)4 << 20, (size_t)16 << 20,
                  (size_t)64 << 20, (size_t)256 << 20},
        .size_count = 6,
        .total_bytes = TOTAL_DEFAULT,
    };
    bench_options_parse(&command, argc, argv, &plan);
    return bench_run(measure, &plan, plan.options.json);
}
