/* What `raffia bench rotate` prints: each round of each way, and the sum of it. */
#include "cli/bench_machine.h"
#include "cli/bench_rotate_rounds.h"
#include "cli/format.h"
#include "cli/json.h"
#include "cli/page_text.h"
#include "core/text.h"

#include <math.h>
#include <stdio.h>

#define ROUND_WIDTH 6
#define TIME_WIDTH  9
#define CALLS_WIDTH 7
#define WAY_WIDTH   (2 * TIME_WIDTH + CALLS_WIDTH)

/* The first round builds what the others may find; with one round there are no others. */
#define FIRST_ROUND 0u
#define LATER       1u

static const char note[] =
    "a turn gives the old model back and loads the next; the first round is apart in the figures "
    "below, and in it every byte was verified. Driver calls are those counted while the memory was "
    "there: where no pool stands, the calls that give it back are not among them";

static const char *time_text(double seconds, char buffer[static CLI_FORMAT_MAX])
{
    return isnan(seconds) ? "-" : cli_format_seconds(seconds, buffer);
}

static raffia_status print_rounds(const struct rotate_result *result)
{
    printf("%*s", ROUND_WIDTH, "");
    for (enum rotate_way_kind kind = 0; kind < ROTATE_WAY_COUNT; kind++)
        printf(" | %*s", WAY_WIDTH, rotate_way_name(kind));
    printf("\n%*s", ROUND_WIDTH, "round");
    for (int i = 0; i < ROTATE_WAY_COUNT; i++)
        printf(" | %*s%*s%*s", TIME_WIDTH, "p50", TIME_WIDTH, "max", CALLS_WIDTH, "calls");
    printf("\n");
    for (unsigned round = 0; round < result->plan->rounds; round++) {
        printf("%*u", ROUND_WIDTH, round + 1);
        for (enum rotate_way_kind kind = 0; kind < ROTATE_WAY_COUNT; kind++) {
            char p50[CLI_FORMAT_MAX], max[CLI_FORMAT_MAX];
            struct rotate_times times;
            raffia_status status = rotate_times_of(result, kind, round, round + 1, &times);
            if (status)
                return status;
            printf(" | %*s%*s%*llu", TIME_WIDTH, time_text(times.p50, p50), TIME_WIDTH,
                   time_text(times.max, max), CALLS_WIDTH,
                   (unsigned long long)rotate_calls_of(result, kind, round, round + 1));
        }
        printf("\n");
    }
    return RAFFIA_OK;
}

static raffia_status print_way(const struct rotate_result *result, enum rotate_way_kind kind)
{
    const struct rotate_plan *plan = result->plan;
    const struct rotate_way *way = &result->ways[kind];
    char p50[CLI_FORMAT_MAX], max[CLI_FORMAT_MAX], pages[PAGE_TEXT_MAX], size[CORE_SIZE_TEXT_MAX],
        build[CLI_FORMAT_MAX];
    struct rotate_times later;
    raffia_status status = rotate_times_of(result, kind, LATER, plan->rounds, &later);
    if (status)
        return status;
    printf("%-15s %s%s", rotate_way_name(kind),
           page_text_kind(way->pages.got_kind, way->pages.got_size, pages),
           way->pages.verified ? " (verified)" : "");
    if (way->pool_bytes)
        printf(", a pool of %s built in %s by %llu driver calls",
               core_format_size(way->pool_bytes, size),
               cli_format_seconds(way->build_seconds, build), (unsigned long long)way->build_calls);
    printf("\n%-15s after the first round: p50 %s, max %s, %llu driver calls; %u of %u loads "
           "failed\n",
           "", time_text(later.p50, p50), time_text(later.max, max),
           (unsigned long long)rotate_calls_of(result, kind, LATER, plan->rounds),
           rotate_failures_of(result, kind), plan->rounds * plan->models);
    return RAFFIA_OK;
}

static const char *title_text(const struct rotate_plan *plan, char *text, size_t capacity)
{
    char size[CORE_SIZE_TEXT_MAX];
    snprintf(text, capacity, "Rotating %u models of %s, %u rounds", plan->models,
             core_format_size(plan->model_bytes, size), plan->rounds);
    return text;
}

static raffia_status print_text(const struct rotate_result *result, const char *title,
                                const struct bench_machine *machine)
{
    char text[BENCH_MACHINE_TEXT_MAX];
    printf("%s\n%s\n\n", title, bench_machine_text(machine, text));
    raffia_status status = print_rounds(result);
    printf("\n");
    for (enum rotate_way_kind kind = 0; !status && kind < ROTATE_WAY_COUNT; kind++)
        status = print_way(result, kind);
    printf("note: %s\n", note);
    return status;
}

/* No turn, no time: null. */
static json_t *json_time(double seconds)
{
    return isnan(seconds) ? json_null() : json_real(seconds);
}

static raffia_status add_figures(const struct rotate_result *result, enum rotate_way_kind kind,
                                 unsigned first, unsigned end, json_t *object)
{
    struct rotate_times times;
    raffia_status status = rotate_times_of(result, kind, first, end, &times);
    if (status)
        return status;
    cli_json_set(object, "p50", json_time(times.p50));
    cli_json_set(object, "max", json_time(times.max));
    cli_json_count(object, "driver_calls", rotate_calls_of(result, kind, first, end));
    return RAFFIA_OK;
}

static raffia_status json_way(const struct rotate_result *result, enum rotate_way_kind kind,
                              json_t *object)
{
    const struct rotate_way *way = &result->ways[kind];
    const unsigned count = result->plan->rounds;
    json_t *rounds = json_array(), *later = json_object();
    cli_json_text(object, "name", rotate_way_name(kind));
    cli_json_count(object, "pool_bytes", way->pool_bytes);
    cli_json_real(object, "build_seconds", way->build_seconds);
    cli_json_count(object, "build_driver_calls", way->build_calls);
    cli_json_set(object, "pages", cli_json_pages(&way->pages));
    cli_json_count(object, "loads", (uint64_t)count * result->plan->models);
    cli_json_count(object, "failures", rotate_failures_of(result, kind));
    raffia_status status = add_figures(result, kind, LATER, count, later);
    for (unsigned round = FIRST_ROUND; !status && round < count; round++) {
        json_t *entry = json_object();
        status = add_figures(result, kind, round, round + 1, entry);
        cli_json_count(entry, "failures", way->rounds[round].failures);
        cli_json_append(rounds, entry);
    }
    cli_json_set(object, "after_first_round", later);
    cli_json_set(object, "rounds", rounds);
    return status;
}

static raffia_status print_json(const struct rotate_result *result, const char *title,
                                const struct bench_machine *machine)
{
    json_t *root = json_object(), *ways = json_array(), *notes = json_array();
    raffia_status status = RAFFIA_OK;
    cli_json_text(root, "title", title);
    cli_json_set(root, "machine", bench_machine_json(machine));
    cli_json_count(root, "models", result->plan->models);
    cli_json_count(root, "model_bytes", result->plan->model_bytes);
    cli_json_text(root, "unit", "s");
    for (enum rotate_way_kind kind = 0; !status && kind < ROTATE_WAY_COUNT; kind++) {
        json_t *way = json_object();
        status = json_way(result, kind, way);
        cli_json_append(ways, way);
    }
    cli_json_set(root, "ways", ways);
    cli_json_append(notes, json_string(note));
    cli_json_set(root, "notes", notes);
    if (!status)
        return cli_json_print(root);
    json_decref(root);
    return status;
}

raffia_status rotate_print(const struct rotate_result *result, bool json)
{
    char title[128];
    struct bench_machine machine;
    bench_machine_read(&machine);
    title_text(result->plan, title, sizeof title);
    return json ? print_json(result, title, &machine) : print_text(result, title, &machine);
}
