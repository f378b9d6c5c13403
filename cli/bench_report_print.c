/* Reports as text and as JSON. */
#include "cli/bench_machine.h"
#include "cli/bench_report.h"
#include "cli/format.h"
#include "cli/json.h"
#include "cli/page_text.h"
#include "core/text.h"

#include <stdio.h>
#include <string.h>

/* Columns of the tables. */
#define NAME_WIDTH    24
#define CELL_WIDTH    10
#define THREADS_WIDTH 7
#define FAULTS_WIDTH  8
#define NUMBER_WIDTH  44

static void print_row(const struct bench_row *row)
{
    char median[CLI_FORMAT_MAX], least[CLI_FORMAT_MAX], p99[CLI_FORMAT_MAX], most[CLI_FORMAT_MAX];
    char rate[CLI_FORMAT_MAX] = "-", faults[CLI_FORMAT_MAX] = "-", tables[CORE_SIZE_TEXT_MAX] = "-";
    char pages[PAGE_TEXT_MAX] = "-";
    if (row->bytes_each)
        cli_format_rate((double)row->bytes_each, bench_row_median(row), rate);
    if (row->counted) {
        snprintf(faults, sizeof faults, "%llu", (unsigned long long)row->faults);
        core_format_size(row->page_table_bytes, tables);
    }
    if (row->has_pages)
        page_text_kind(row->pages.got_kind, row->pages.got_size, pages);
    printf("%-*s %*u %*s %*s %*s %*s %*s %*s %*s  %s%s\n", NAME_WIDTH, row->name, THREADS_WIDTH,
           row->threads, CELL_WIDTH, cli_format_seconds(bench_row_median(row), median), CELL_WIDTH,
           cli_format_seconds(bench_row_quantile(row, 0), least), CELL_WIDTH,
           cli_format_seconds(bench_row_quantile(row, 0.99), p99), CELL_WIDTH,
           cli_format_seconds(bench_row_quantile(row, 1), most), CELL_WIDTH, rate, FAULTS_WIDTH,
           faults, CELL_WIDTH, tables, pages,
           row->has_pages && row->pages.verified ? " (verified)" : "");
}

static void print_rows(const struct bench_report *report)
{
    printf("%-*s %*s %*s %*s %*s %*s %*s %*s %*s  %s\n", NAME_WIDTH, "row", THREADS_WIDTH,
           "threads", CELL_WIDTH, "median", CELL_WIDTH, "min", CELL_WIDTH, "p99", CELL_WIDTH, "max",
           CELL_WIDTH, "rate", FAULTS_WIDTH, "faults", CELL_WIDTH, "tables", "pages");
    for (size_t i = 0; i < report->row_count; i++)
        print_row(&report->rows[i]);
    printf("\n");
}

static void print_split(const struct bench_row *row)
{
    char text[CLI_FORMAT_MAX];
    printf("%-*s", NAME_WIDTH, row->name);
    for (int part = 0; part < BENCH_PART_COUNT; part++)
        printf(" %*s", CELL_WIDTH,
               cli_format_seconds(bench_row_part(row, (enum bench_part)part), text));
    printf("  %s\n", bench_part_name(bench_row_bottleneck(row)));
}

/* Where the time went; nothing if no row tells. */
static void print_splits(const struct bench_report *report)
{
    bool begun = false;
    for (size_t i = 0; i < report->row_count; i++) {
        if (!report->rows[i].parts)
            continue;
        if (!begun) {
            printf("%-*s", NAME_WIDTH, "row");
            for (int part = 0; part < BENCH_PART_COUNT; part++)
                printf(" %*s", CELL_WIDTH, bench_part_name((enum bench_part)part));
            printf("  bottleneck\n");
        }
        begun = true;
        print_split(&report->rows[i]);
    }
    if (begun)
        printf("\n");
}

/* Bytes are counted: their names end so. */
static bool is_bytes(const struct bench_number *number)
{
    static const char ending[] = "_bytes";
    const size_t length = strlen(number->name), of_ending = sizeof ending - 1;
    return length > of_ending && strcmp(number->name + length - of_ending, ending) == 0;
}

static void print_bytes(const struct bench_number *number)
{
    char text[CORE_SIZE_TEXT_MAX];
    printf("%-*s %s\n", NUMBER_WIDTH, number->name, core_format_size((size_t)number->value, text));
}

static void print_number(const struct bench_number *number, const char *unit)
{
    char text[CLI_FORMAT_MAX];
    printf("%-*s %s%s\n", NUMBER_WIDTH, number->name,
           number->known ? cli_format_number(number->value, text) : "-", number->known ? unit : "");
}

void bench_report_print_text(const struct bench_report *report)
{
    struct bench_machine machine;
    bench_machine_read(&machine);
    char text[BENCH_MACHINE_TEXT_MAX];
    printf("%s\n%s\n\n", report->title, bench_machine_text(&machine, text));
    print_rows(report);
    print_splits(report);
    for (size_t i = 0; i < report->ratio_count; i++)
        print_number(&report->ratios[i], "x");
    for (size_t i = 0; i < report->value_count; i++)
        if (is_bytes(&report->values[i]) && report->values[i].known)
            print_bytes(&report->values[i]);
        else
            print_number(&report->values[i], "");
    if (report->source)
        printf("%-*s %s\n", NUMBER_WIDTH, "source", report->source);
    for (size_t i = 0; i < report->note_count; i++)
        printf("note: %s\n", report->notes[i]);
}

static json_t *json_split(const struct bench_row *row)
{
    json_t *object = json_object();
    for (int part = 0; part < BENCH_PART_COUNT; part++)
        cli_json_real(object, bench_part_name((enum bench_part)part),
                      bench_row_part(row, (enum bench_part)part));
    return object;
}

static json_t *json_row(const struct bench_row *row)
{
    json_t *object = json_object();
    double median = bench_row_median(row);
    cli_json_text(object, "name", row->name);
    cli_json_count(object, "threads", row->threads);
    cli_json_text(object, "unit", "s");
    cli_json_real(object, "median", median);
    cli_json_real(object, "mean", bench_row_mean(row));
    cli_json_real(object, "min", bench_row_quantile(row, 0));
    cli_json_real(object, "p50", bench_row_quantile(row, 0.5));
    cli_json_real(object, "p99", bench_row_quantile(row, 0.99));
    cli_json_real(object, "max", bench_row_quantile(row, 1));
    cli_json_count(object, "runs", row->count);
    if (row->bytes_each) {
        cli_json_count(object, "bytes", row->bytes_each);
        cli_json_real(object, "gb_per_second", (double)row->bytes_each / median * 1e-9);
    }
    if (row->parts) {
        cli_json_set(object, "split", json_split(row));
        cli_json_text(object, "bottleneck", bench_part_name(bench_row_bottleneck(row)));
    }
    if (row->counted) {
        cli_json_count(object, "faults", row->faults);
        cli_json_count(object, "page_table_bytes", row->page_table_bytes);
    }
    cli_json_set(object, "pages", row->has_pages ? cli_json_pages(&row->pages) : json_null());
    return object;
}

/* Bytes are whole, and may have more digits than a real is printed with. */
static json_t *json_number(const struct bench_number *number)
{
    if (!number->known)
        return json_null();
    return is_bytes(number) ? json_integer((json_int_t)number->value) : json_real(number->value);
}

static json_t *json_numbers(const struct bench_number *numbers, size_t count)
{
    json_t *object = json_object();
    for (size_t i = 0; i < count; i++)
        cli_json_set(object, numbers[i].name, json_number(&numbers[i]));
    return object;
}

json_t *bench_report_json(const struct bench_report *report)
{
    struct bench_machine machine;
    bench_machine_read(&machine);
    json_t *root = json_object(), *rows = json_array(), *notes = json_array();
    cli_json_text(root, "title", report->title);
    cli_json_set(root, "machine", bench_machine_json(&machine));
    for (size_t i = 0; i < report->row_count; i++)
        cli_json_append(rows, json_row(&report->rows[i]));
    for (size_t i = 0; i < report->note_count; i++)
        cli_json_append(notes, json_string(report->notes[i]));
    cli_json_set(root, "rows", rows);
    cli_json_set(root, "ratios", json_numbers(report->ratios, report->ratio_count));
    cli_json_set(root, "values", json_numbers(report->values, report->value_count));
    if (report->source)
        cli_json_text(root, "source", report->source);
    cli_json_set(root, "notes", notes);
    return root;
}

raffia_status bench_report_print(const struct bench_report *report, bool json)
{
    if (json)
        return cli_json_print(bench_report_json(report));
    bench_report_print_text(report);
    return RAFFIA_OK;
}
