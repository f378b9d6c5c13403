#include "cli/bench_report.h"

#include "cli/bench_machine.h"
#include "cli/format.h"
#include "cli/json.h"
#include "cli/page_text.h"
#include "core/memory.h"
#include "core/text.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Columns of the table of rows. */
#define NAME_WIDTH    24
#define CELL_WIDTH    10
#define THREADS_WIDTH 7

struct bench_row *bench_report_row(struct bench_report *report, const char *name, unsigned threads,
                                   size_t capacity)
{
    assert(report->row_count < BENCH_ROWS_MAX);
    struct bench_row *row = &report->rows[report->row_count];
    *row = (struct bench_row){.threads = threads, .capacity = capacity};
    snprintf(row->name, sizeof row->name, "%s", name);
    row->samples = core_calloc(capacity, sizeof *row->samples);
    if (!row->samples)
        return NULL;
    report->row_count++;
    return row;
}

void bench_row_add(struct bench_row *row, double seconds)
{
    assert(row->count < row->capacity);
    row->samples[row->count++] = seconds;
}

static int by_value(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* The samples in ascending order, to be freed; NULL for want of memory. */
static double *sorted(const struct bench_row *row)
{
    double *copy = core_calloc(row->count, sizeof *copy);
    if (!copy)
        return NULL;
    memcpy(copy, row->samples, row->count * sizeof *copy);
    qsort(copy, row->count, sizeof *copy, by_value);
    return copy;
}

double bench_row_quantile(const struct bench_row *row, double share)
{
    double *samples = row->count ? sorted(row) : NULL;
    if (!samples)
        return NAN;
    size_t rank = (size_t)ceil(share * (double)row->count);
    double value = samples[rank ? rank - 1 : 0];
    core_free(samples);
    return value;
}

double bench_row_median(const struct bench_row *row)
{
    double *samples = row->count ? sorted(row) : NULL;
    if (!samples)
        return NAN;
    double value = (samples[(row->count - 1) / 2] + samples[row->count / 2]) / 2;
    core_free(samples);
    return value;
}

void bench_report_ratio(struct bench_report *report, const char *name, const struct bench_row *slow,
                        const struct bench_row *fast, bool known)
{
    assert(report->ratio_count < BENCH_RATIOS_MAX);
    struct bench_ratio *ratio = &report->ratios[report->ratio_count++];
    *ratio = (struct bench_ratio){.value = bench_row_median(slow) / bench_row_median(fast)};
    ratio->known = known && isfinite(ratio->value);
    snprintf(ratio->name, sizeof ratio->name, "%s", name);
}

void bench_report_note(struct bench_report *report, const char *format, ...)
{
    assert(report->note_count < BENCH_NOTES_MAX);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(report->notes[report->note_count++], BENCH_NOTE_MAX, format, arguments);
    va_end(arguments);
}

static void print_row(const struct bench_row *row)
{
    char median[CLI_FORMAT_MAX], least[CLI_FORMAT_MAX], p99[CLI_FORMAT_MAX], most[CLI_FORMAT_MAX];
    char rate[CLI_FORMAT_MAX] = "-", tables[CORE_SIZE_TEXT_MAX], pages[PAGE_TEXT_MAX] = "-";
    if (row->bytes_each)
        cli_format_rate((double)row->bytes_each, bench_row_median(row), rate);
    if (row->has_pages)
        page_text_kind(row->pages.got_kind, row->pages.got_size, pages);
    printf("%-*s %*u %*s %*s %*s %*s %*s %8llu %*s  %s%s\n", NAME_WIDTH, row->name, THREADS_WIDTH,
           row->threads, CELL_WIDTH, cli_format_seconds(bench_row_median(row), median), CELL_WIDTH,
           cli_format_seconds(bench_row_quantile(row, 0), least), CELL_WIDTH,
           cli_format_seconds(bench_row_quantile(row, 0.99), p99), CELL_WIDTH,
           cli_format_seconds(bench_row_quantile(row, 1), most), CELL_WIDTH, rate,
           (unsigned long long)row->faults, CELL_WIDTH,
           core_format_size(row->page_table_bytes, tables), pages,
           row->has_pages && row->pages.verified ? " (verified)" : "");
}

static void print_text(const struct bench_report *report, const struct bench_machine *machine)
{
    char text[BENCH_MACHINE_TEXT_MAX], number[CLI_FORMAT_MAX];
    printf("%s\n%s\n\n", report->title, bench_machine_text(machine, text));
    printf("%-*s %*s %*s %*s %*s %*s %*s %8s %*s  %s\n", NAME_WIDTH, "row", THREADS_WIDTH,
           "threads", CELL_WIDTH, "median", CELL_WIDTH, "min", CELL_WIDTH, "p99", CELL_WIDTH, "max",
           CELL_WIDTH, "rate", "faults", CELL_WIDTH, "tables", "pages");
    for (size_t i = 0; i < report->row_count; i++)
        print_row(&report->rows[i]);
    printf("\n");
    for (size_t i = 0; i < report->ratio_count; i++) {
        const struct bench_ratio *ratio = &report->ratios[i];
        printf("%-40s %s%s\n", ratio->name,
               ratio->known ? cli_format_number(ratio->value, number) : "-",
               ratio->known ? "x" : "");
    }
    for (size_t i = 0; i < report->note_count; i++)
        printf("note: %s\n", report->notes[i]);
}

static json_t *json_row(const struct bench_row *row)
{
    json_t *object = json_object();
    double median = bench_row_median(row);
    cli_json_text(object, "name", row->name);
    cli_json_count(object, "threads", row->threads);
    cli_json_text(object, "unit", "s");
    cli_json_real(object, "median", median);
    cli_json_real(object, "min", bench_row_quantile(row, 0));
    cli_json_real(object, "p50", bench_row_quantile(row, 0.5));
    cli_json_real(object, "p99", bench_row_quantile(row, 0.99));
    cli_json_real(object, "max", bench_row_quantile(row, 1));
    cli_json_count(object, "runs", row->count);
    if (row->bytes_each) {
        cli_json_count(object, "bytes", row->bytes_each);
        cli_json_real(object, "gb_per_second", (double)row->bytes_each / median * 1e-9);
    }
    cli_json_count(object, "faults", row->faults);
    cli_json_count(object, "page_table_bytes", row->page_table_bytes);
    cli_json_set(object, "pages", row->has_pages ? cli_json_pages(&row->pages) : json_null());
    return object;
}

static raffia_status print_json(const struct bench_report *report,
                                const struct bench_machine *machine)
{
    json_t *root = json_object(), *rows = json_array(), *ratios = json_object();
    json_t *notes = json_array();
    cli_json_text(root, "title", report->title);
    cli_json_set(root, "machine", bench_machine_json(machine));
    for (size_t i = 0; i < report->row_count; i++)
        cli_json_append(rows, json_row(&report->rows[i]));
    for (size_t i = 0; i < report->ratio_count; i++) {
        const struct bench_ratio *ratio = &report->ratios[i];
        cli_json_set(ratios, ratio->name, ratio->known ? json_real(ratio->value) : json_null());
    }
    for (size_t i = 0; i < report->note_count; i++)
        cli_json_append(notes, json_string(report->notes[i]));
    cli_json_set(root, "rows", rows);
    cli_json_set(root, "ratios", ratios);
    cli_json_set(root, "notes", notes);
    return cli_json_print(root);
}

raffia_status bench_report_print(const struct bench_report *report, bool json)
{
    struct bench_machine machine;
    bench_machine_read(&machine);
    if (json)
        return print_json(report, &machine);
    print_text(report, &machine);
    return RAFFIA_OK;
}

void bench_report_free(struct bench_report *report)
{
    for (size_t i = 0; i < report->row_count; i++)
        core_free(report->rows[i].samples);
    report->row_count = 0;
}
