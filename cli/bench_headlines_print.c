/* The table of headlines. */
#include "cli/bench_headlines.h"
#include "cli/bench_machine.h"
#include "cli/format.h"
#include "cli/json.h"

#include <stdio.h>

#define NAME_WIDTH   11
#define FIGURE_WIDTH 34
#define RATIO_WIDTH  9

#define TITLE "Four headlines: the seed's figures (not measured here), and ours, measured now"

/* "41.2 -> 18.7 s"; large counts are shortened. */
static const char *figure_text(double before, double after, const char *unit,
                               char buffer[static FIGURE_WIDTH + 1])
{
    char from[CLI_FORMAT_MAX], to[CLI_FORMAT_MAX];
    snprintf(buffer, FIGURE_WIDTH + 1, "%.10s -> %.10s %.9s", cli_format_number(before, from),
             cli_format_number(after, to), unit);
    return buffer;
}

static const char *ratio_text(double ratio, bool known, char buffer[static CLI_FORMAT_MAX])
{
    char number[CLI_FORMAT_MAX];
    snprintf(buffer, CLI_FORMAT_MAX, "%.20s%s", known ? cli_format_number(ratio, number) : "-",
             known ? "x" : "");
    return buffer;
}

static void print_headline(const struct seed_figure *seed, const struct bench_headline *ours)
{
    char figure[FIGURE_WIDTH + 1], ratio[CLI_FORMAT_MAX];
    printf("%-*s %-*s", NAME_WIDTH, seed->name, FIGURE_WIDTH,
           figure_text(seed->before, seed->after, seed->unit, figure));
    printf(" %*s", RATIO_WIDTH, ratio_text(seed->ratio, true, ratio));
    printf("  %-*s", FIGURE_WIDTH, figure_text(ours->before, ours->after, ours->unit, figure));
    printf(" %*s", RATIO_WIDTH, ratio_text(ours->ratio, ours->known, ratio));
    printf(" %*s  %s\n", RATIO_WIDTH,
           ratio_text(ours->ratio / seed->ratio, ours->known && ours->comparable, ratio),
           ours->source);
}

static void print_text(const struct bench_headlines *headlines)
{
    struct bench_machine machine;
    char text[BENCH_MACHINE_TEXT_MAX];
    bench_machine_read(&machine);
    printf(TITLE "\n%s\n\n", bench_machine_text(&machine, text));
    printf("%-*s %-*s %*s  %-*s %*s %*s  %s\n", NAME_WIDTH, "row", FIGURE_WIDTH, "seed",
           RATIO_WIDTH, "ratio", FIGURE_WIDTH, "ours", RATIO_WIDTH, "ratio", RATIO_WIDTH, "of seed",
           "source");
    for (int i = 0; i < SEED_HEADLINES; i++)
        print_headline(seed_figure((enum seed_headline)i), &headlines->ours[i]);
    printf("\n");
    for (int i = 0; i < SEED_HEADLINES; i++)
        printf("%-*s seed: %s; ours: %s\n", NAME_WIDTH, seed_figure((enum seed_headline)i)->name,
               seed_figure((enum seed_headline)i)->what, headlines->ours[i].what);
    for (size_t i = 0; i < headlines->note_count; i++)
        printf("note: %s\n", headlines->notes[i]);
}

static json_t *json_side(const char *what, double before, double after, const char *unit,
                         json_t *ratio, const char *source)
{
    json_t *object = json_object();
    cli_json_text(object, "what", what);
    cli_json_real(object, "before", before);
    cli_json_real(object, "after", after);
    cli_json_text(object, "unit", unit);
    cli_json_set(object, "ratio", ratio);
    cli_json_text(object, "source", source);
    return object;
}

static json_t *json_headline(const struct seed_figure *seed, const struct bench_headline *ours)
{
    json_t *object = json_object();
    cli_json_text(object, "name", seed->name);
    cli_json_set(object, "seed",
                 json_side(seed->what, seed->before, seed->after, seed->unit,
                           json_real(seed->ratio), SEED_LABEL));
    cli_json_set(object, "ours",
                 json_side(ours->what, ours->before, ours->after, ours->unit,
                           ours->known ? json_real(ours->ratio) : json_null(), ours->source));
    cli_json_set(object, "ours_over_seed",
                 ours->known && ours->comparable ? json_real(ours->ratio / seed->ratio)
                                                 : json_null());
    return object;
}

static raffia_status print_json(const struct bench_headlines *headlines)
{
    struct bench_machine machine;
    bench_machine_read(&machine);
    json_t *root = json_object(), *rows = json_array(), *notes = json_array();
    cli_json_text(root, "title", TITLE);
    cli_json_set(root, "machine", bench_machine_json(&machine));
    for (int i = 0; i < SEED_HEADLINES; i++)
        cli_json_append(rows,
                        json_headline(seed_figure((enum seed_headline)i), &headlines->ours[i]));
    for (size_t i = 0; i < headlines->note_count; i++)
        cli_json_append(notes, json_string(headlines->notes[i]));
    cli_json_set(root, "rows", rows);
    cli_json_set(root, "notes", notes);
    return cli_json_print(root);
}

raffia_status bench_headlines_print(const struct bench_headlines *headlines, bool json)
{
    if (json)
        return print_json(headlines);
    print_text(headlines);
    return RAFFIA_OK;
}
