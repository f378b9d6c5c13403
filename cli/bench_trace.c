/*
 * raffia bench trace: recorded allocations replayed on a pool.
 */
#include "cli/bench_trace.h"

#include "cli/bench.h"
#include "cli/bench_sim.h"
#include "cli/command.h"
#include "cli/fail.h"
#include "cli/interrupt.h"
#include "cli/json.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/trace_svg.h"
#include "core/error.h"
#include "core/memory.h"

#include <raffia/device.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char documentation[] =
    "Replays what a program allocated and freed on a pool, and says what memory the pool needed "
    "for it and how long its calls took. FILE is a table op,id,size,stream,t_us, a log of RMM's "
    "logging adaptor, or lines 'a ID BYTES' and 'f ID'; '-' is standard input.\n"
    "\v"
    "The pool starts with one chunk and grows as the trace asks, in the order of the trace and "
    "without its pauses. No memory is touched unless --touch says so, but a pool of host memory "
    "fills the "
    "pages it maps; --device sim:0 needs next to no memory, and tells the same but for the cost of "
    "growth.\n\n"
    "Rows, in seconds for one operation:\n"
    "  cold.alloc, .free  each call of the first pass, growth included\n"
    "  warm.alloc, .free  each call of a second pass, on the pool that has grown\n"
    "  warm.mean          the mean of a pass, the clock read at both ends only\n"
    "  floor.mean         the same calling functions that do nothing\n"
    "The clock is read before and after each call of cold and warm: its cost, trace.clock_ns, is "
    "in them.\n\n"
    "Values, of the first pass but for the times:\n"
    "  trace.peak_requested_bytes     largest sum of live sizes\n"
    "  trace.peak_in_use_bytes        the same as the pool rounds it\n"
    "  trace.peak_reserved_bytes      most that the pool had mapped\n"
    "  trace.reserved_over_requested  the last by the first\n"
    "  trace.stranded_bytes_end       with --remap: free at the end, in chunks partly in use\n"
    "  trace.failures                 allocations refused; their frees are passed over\n"
    "  trace.hits, .misses            allocations without and with driver calls\n"
    "  trace.remaps, .remapped_chunks  with --remap: allocations that chunks were moved for, and "
    "how "
    "many\n"
    "  trace.remap_us_per_chunk        what mapping one at its new place took the "
    "allocation\n"
    "  trace.remap_unmap_us_per_chunk  what unmapping its old place took later calls\n"
    "  trace.remap_refusals            moves not made for want of addresses or mappings\n"
    "  trace.trims                    with --trims: how often it was trimmed, at even distances\n"
    "  trace.trimmed_bytes            what that gave back, all in all\n"
    "  trace.untrimmed_bytes          what was left of idle memory after a trim, in the mean: "
    "mapped beyond whole chunks for what is in use\n"
    "  trace.placed_low               with --adaptive: allocations placed for what is known of "
    "their size, or for want of knowledge\n"
    "  trace.op_ns                    median of the passes of warm.mean\n"
    "  trace.op_p50_ns, .op_p99_ns, .op_max_ns  of the calls of warm.alloc and warm.free\n"
    "  trace.need_over_peak           with --need: the smallest limit that refuses nothing\n\n"
    "The drawing (--svg) shows the first pass: bytes held, stranded (free, but in chunks partly in "
    "use), free in whole chunks, and not mapped.\n\n"
    "Examples:\n"
    "  raffia bench trace program.csv --device sim:0\n"
    "  raffia bench trace program.csv --device cuda:0 --remap --limit-factor 1.025\n"
    "  gzip -dc program.csv.gz | raffia bench trace - --limit-factor 1.05 --svg program.svg\n\n"
    "Exit codes: 0 measured, 1 it could not be measured, 2 bad command line.";

enum key {
    KEY_RUNS = 'r',
    KEY_DEVICE = CLI_OPTION_FIRST,
    KEY_PAGES,
    KEY_POOL_SIZE,
    KEY_PAGE_SIZE,
    KEY_GRANULE,
    KEY_CHUNK,
    KEY_LIMIT,
    KEY_NEED,
    KEY_REMAP,
    KEY_ADAPTIVE,
    KEY_TRIMS,
    KEY_TOUCH,
    KEY_SVG,
    KEY_JSON,
};

#define RUNS_DEFAULT 5u
#define TRIMS_MAX    1000000u
#define RUNS_MAX     1000u
#define BYTES_MAX    ((size_t)1 << 50)
#define PAGE_MIN     ((size_t)2 << 20)
#define PAGE_MAX     ((size_t)1 << 30)
#define GRANULE_MIN  ((size_t)256)
#define FACTOR_MIN   0.01
#define FACTOR_MAX   1000.0

static const struct argp_option option_table[] = {
    {"device", KEY_DEVICE, "NAME", 0, "device of the pool: host, sim:0, ... (host)", 0},
    {"pages", KEY_PAGES, "MODE", 0, "huge pages of the pool: off, try or on (try)", 0},
    {"page-size", KEY_PAGE_SIZE, "SIZE", 0, "largest page to try: 2MiB or 1GiB", 0},
    {"pool-size", KEY_POOL_SIZE, "SIZE", 0, "limit of the pool (twice the peak requested)", 0},
    {"limit-factor", KEY_LIMIT, "X", 0,
     "limit the pool to so many times the peak requested; it then grows by the page unless --chunk "
     "says otherwise",
     0},
    {"granule", KEY_GRANULE, "SIZE", 0, "block sizes are multiples of it (256B)", 0},
    {"chunk", KEY_CHUNK, "SIZE", 0, "unit of growth (as the pool chooses)", 0},
    {"need", KEY_NEED, NULL, 0, "look for the smallest limit that refuses nothing", 0},
    {"remap", KEY_REMAP, NULL, 0,
     "let the pool put free chunks together; it then grows by 2 MiB unless --chunk says otherwise",
     0},
    {"adaptive", KEY_ADAPTIVE, NULL, 0, "let the pool learn which sizes to keep together", 0},
    {"trims", KEY_TRIMS, "N", 0, "give back what is idle N times in the first pass (0)", 0},
    {"touch", KEY_TOUCH, NULL, 0, "write to each page of each block", 0},
    {"runs", KEY_RUNS, "N", 0, "passes of warm.mean (5)", 0},
    {"svg", KEY_SVG, "FILE", 0, "draw the pool's memory over the trace into FILE", 0},
    {"json", KEY_JSON, NULL, 0, "report as one JSON object on standard output", 0},
    {0},
};

#define FILES_MAX 256u

struct command {
    struct bench_trace_plan plan;
    const char *files[FILES_MAX];
    size_t file_count;
    const char *svg;
    bool json;
    json_t *reports; /* of all files, where there are several and JSON is wanted */
};

/* "1.05": the decimal point is a point whatever the locale, as the command sets none. */
static double factor(struct argp_state *state, const char *text)
{
    char *end;
    errno = 0;
    const double value = strtod(text, &end);
    if (end == text || *end || errno || !(value >= FACTOR_MIN && value <= FACTOR_MAX))
        argp_error(state, "--limit-factor: '%s' is not a number from %g to %g", text, FACTOR_MIN,
                   FACTOR_MAX);
    return value;
}

static void add_file(struct argp_state *state, char *text, struct command *command)
{
    if (command->file_count == FILES_MAX)
        argp_error(state, "more than %u files", FILES_MAX);
    command->files[command->file_count++] = text;
}

static void check(struct argp_state *state, const struct command *command)
{
    if (command->file_count == 0)
        argp_error(state, "name a FILE to replay");
    if (command->svg && command->file_count > 1)
        argp_error(state, "--svg draws one trace, and %zu are named", command->file_count);
    if (command->plan.limit_factor > 0 && command->plan.pool_bytes)
        argp_error(state, "--limit-factor and --pool-size both say how large the pool may become");
}

static error_t parse_pool(int key, char *text, struct argp_state *state,
                          struct bench_trace_plan *plan)
{
    static const char *const words[] = {"off", "try", "on", NULL};
    static const raffia_pages_mode modes[] = {RAFFIA_PAGES_OFF, RAFFIA_PAGES_TRY, RAFFIA_PAGES_ON};
    switch (key) {
    case KEY_DEVICE:
        plan->device = cli_option_device(state, text);
        return 0;
    case KEY_PAGES:
        plan->pages = modes[cli_option_choice(state, "--pages", text, words)];
        return 0;
    case KEY_PAGE_SIZE:
        plan->page_size = cli_option_page_size(state, text, PAGE_MIN);
        return 0;
    case KEY_POOL_SIZE:
        plan->pool_bytes = cli_option_size(state, "--pool-size", text, 1, BYTES_MAX);
        return 0;
    case KEY_GRANULE:
        plan->granule = cli_option_size(state, "--granule", text, GRANULE_MIN, PAGE_MAX);
        return 0;
    case KEY_CHUNK:
        plan->chunk_bytes = cli_option_size(state, "--chunk", text, 1, BYTES_MAX);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct command *command = state->input;
    switch (key) {
    case KEY_LIMIT:
        command->plan.limit_factor = factor(state, text);
        return 0;
    case KEY_NEED:
        command->plan.need = true;
        return 0;
    case KEY_REMAP:
        command->plan.remap = true;
        return 0;
    case KEY_ADAPTIVE:
        command->plan.adaptive = true;
        return 0;
    case KEY_TRIMS:
        command->plan.trims = (unsigned)cli_option_count(state, "--trims", text, 1, TRIMS_MAX);
        return 0;
    case KEY_TOUCH:
        command->plan.touch = true;
        return 0;
    case KEY_RUNS:
        command->plan.runs = (unsigned)cli_option_count(state, "--runs", text, 1, RUNS_MAX);
        return 0;
    case KEY_SVG:
        command->svg = text;
        return 0;
    case KEY_JSON:
        command->json = true;
        return 0;
    case ARGP_KEY_ARG:
        add_file(state, text, command);
        return 0;
    case ARGP_KEY_END:
        check(state, command);
        return 0;
    default:
        return parse_pool(key, text, state, &command->plan);
    }
}

static size_t value_of(const struct bench_report *report, const char *name)
{
    return (size_t)bench_report_find_value(report, name)->value;
}

static raffia_status draw(const struct command *command, const char *name,
                          const struct bench_report *report, const struct trace_series *series)
{
    const struct trace_svg svg = {
        .name = name,
        .operations = value_of(report, "trace.operations"),
        .requested_peak = value_of(report, "trace.peak_requested_bytes"),
        .reserved_peak = value_of(report, "trace.peak_reserved_bytes"),
        .limit = value_of(report, "trace.limit_bytes"),
        .failures = value_of(report, "trace.failures"),
        .series = series,
    };
    char *text;
    size_t bytes;
    raffia_status status = trace_svg_draw(&svg, &text, &bytes);
    if (status)
        return status;
    status = output_write_whole(command->svg, text, bytes);
    free(text);
    return status;
}

/* Prints, or keeps for the end. */
static raffia_status hand_out(struct command *command, const struct bench_report *report,
                              const struct trace_series *series)
{
    if (!command->json) {
        bench_report_print_text(report);
        if (command->file_count > 1)
            printf("\n");
        return RAFFIA_OK;
    }
    json_t *object = bench_report_json(report);
    if (command->svg)
        cli_json_set(object, "series", trace_series_json(series));
    if (command->file_count == 1)
        return cli_json_print(object);
    cli_json_append(command->reports, object);
    return RAFFIA_OK;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return strcmp(path, "-") == 0 ? "standard input" : slash ? slash + 1 : path;
}

static raffia_status replay_file(struct command *command, const char *path)
{
    struct trace trace;
    raffia_status status = trace_read(path, &trace);
    if (status)
        return status;
    struct bench_report *report = bench_report_new();
    struct trace_series *series = report ? core_calloc(1, sizeof *series) : NULL;
    status = series ? RAFFIA_OK : raffia_last_status();
    if (!status)
        status = bench_trace_measure(&command->plan, base_name(path), &trace, report, series);
    if (!status && command->svg)
        status = draw(command, base_name(path), report, series);
    if (!status)
        status = hand_out(command, report, series);
    core_free(series);
    bench_report_free(report);
    trace_clear(&trace);
    return status;
}

/* What the CPU cannot write to cannot be touched. */
static raffia_status check_touch(const struct bench_trace_plan *plan)
{
    raffia_device_info info;
    if (!plan->touch)
        return RAFFIA_OK;
    raffia_status status = raffia_device_query(plan->device, &info);
    if (!status && !info.cpu_accessible)
        status = core_error(RAFFIA_ERROR_UNSUPPORTED,
                            "--touch: the CPU cannot write to the memory of %s", info.name);
    return status;
}

/* Long before the drawing replaces it: the trace would be gone. */
static raffia_status check_drawing(const struct command *command, bool *clash_p)
{
    const char *trace = command->files[0];
    struct stat source;
    if (!command->svg)
        return RAFFIA_OK;
    *clash_p =
        (strcmp(trace, "-") == 0 ? fstat(STDIN_FILENO, &source) : stat(trace, &source)) == 0 &&
        output_is_file(command->svg, &source);
    if (*clash_p)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "--svg: '%s' is the trace itself, and the drawing would destroy it; name "
                          "another file",
                          command->svg);
    return output_check(command->svg, 0);
}

static raffia_status replay_files(struct command *command)
{
    if (command->json && command->file_count > 1)
        command->reports = json_array();
    raffia_status status = check_touch(&command->plan);
    for (size_t i = 0; !status && i < command->file_count; i++)
        status = replay_file(command, command->files[i]);
    if (!command->reports)
        return status;
    if (status) {
        json_decref(command->reports);
        return status;
    }
    json_t *root = json_object();
    cli_json_set(root, "reports", command->reports);
    return cli_json_print(root);
}

int bench_trace(int argc, char **argv)
{
    static const struct argp argp = {option_table, parse, "FILE...", documentation,
                                     NULL,         NULL,  NULL};
    struct command command = {
        .plan = {.device = "host", .pages = RAFFIA_PAGES_TRY, .runs = RUNS_DEFAULT}};
    argp_parse(&argp, argc, argv, 0, NULL, &command);
    cli_interrupt_catch();
    bool clash = false;
    raffia_status status = check_drawing(&command, &clash);
    if (!status)
        status = replay_files(&command);
    if (!status)
        return CLI_OK;
    const int code = cli_fail_last(command.json, NULL);
    return clash ? CLI_USAGE : code;
}
