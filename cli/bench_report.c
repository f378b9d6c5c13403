#include "cli/bench_report.h"

#include "core/memory.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bench_report *bench_report_new(void)
{
    return core_calloc(1, sizeof(struct bench_report));
}

void bench_report_free(struct bench_report *report)
{
    if (!report)
        return;
    for (size_t i = 0; i < report->row_count; i++) {
        core_free(report->rows[i].samples);
        core_free(report->rows[i].parts);
    }
    core_free(report);
}

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

raffia_status bench_row_split(struct bench_row *row)
{
    assert(!row->parts && row->count == 0);
    row->parts = core_calloc(row->capacity, BENCH_PART_COUNT * sizeof *row->parts);
    return row->parts ? RAFFIA_OK : raffia_last_status();
}

void bench_row_add(struct bench_row *row, double seconds)
{
    assert(row->count < row->capacity);
    row->samples[row->count++] = seconds;
}

double *bench_row_take(struct bench_row *row, size_t count)
{
    assert(count <= row->capacity && !row->parts);
    row->count = count;
    return row->samples;
}

void bench_row_cut(struct bench_row *row, size_t count)
{
    assert(count <= row->count);
    row->count = count;
}

void bench_row_add_parts(struct bench_row *row, double seconds,
                         const double parts[static BENCH_WAIT])
{
    assert(row->parts);
    double *into = row->parts + row->count * BENCH_PART_COUNT;
    double rest = seconds;
    for (int i = 0; i < BENCH_WAIT; i++) {
        into[i] = parts[i];
        rest -= parts[i];
    }
    into[BENCH_WAIT] = rest > 0 ? rest : 0;
    bench_row_add(row, seconds);
}

static int by_value(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* Every `stride`-th of the numbers, `count` of them, in ascending order, to be freed; NULL for want
 * of memory, or of numbers. */
static double *sorted(const double *numbers, size_t count, size_t stride)
{
    double *copy = count ? core_calloc(count, sizeof *copy) : NULL;
    if (!copy)
        return NULL;
    for (size_t i = 0; i < count; i++)
        copy[i] = numbers[i * stride];
    qsort(copy, count, sizeof *copy, by_value);
    return copy;
}

static double median_of(const double *numbers, size_t count, size_t stride)
{
    double *copy = sorted(numbers, count, stride);
    if (!copy)
        return NAN;
    double value = (copy[(count - 1) / 2] + copy[count / 2]) / 2;
    core_free(copy);
    return value;
}

double bench_row_quantile(const struct bench_row *row, double share)
{
    double *samples = sorted(row->samples, row->count, 1);
    if (!samples)
        return NAN;
    size_t rank = (size_t)ceil(share * (double)row->count);
    double value = samples[rank ? rank - 1 : 0];
    core_free(samples);
    return value;
}

double bench_row_median(const struct bench_row *row)
{
    return median_of(row->samples, row->count, 1);
}

double bench_row_mean(const struct bench_row *row)
{
    double sum = 0;
    for (size_t i = 0; i < row->count; i++)
        sum += row->samples[i];
    return row->count ? sum / (double)row->count : NAN;
}

double bench_row_part(const struct bench_row *row, enum bench_part part)
{
    assert(row->parts);
    return median_of(row->parts + part, row->count, BENCH_PART_COUNT);
}

enum bench_part bench_row_bottleneck(const struct bench_row *row)
{
    enum bench_part longest = BENCH_OPEN;
    for (int part = 1; part < BENCH_PART_COUNT; part++)
        if (bench_row_part(row, (enum bench_part)part) > bench_row_part(row, longest))
            longest = (enum bench_part)part;
    return longest;
}

const char *bench_part_name(enum bench_part part)
{
    static const char *const names[BENCH_PART_COUNT] = {"open", "map", "read", "release", "wait"};
    return names[part];
}

bool bench_row_is_huge(const struct bench_row *row)
{
    return row->has_pages && row->pages.got_kind > RAFFIA_PAGE_REGULAR;
}

static void add_number(struct bench_number *number, const char *name, double value, bool known)
{
    *number = (struct bench_number){.value = value, .known = known && isfinite(value)};
    snprintf(number->name, sizeof number->name, "%s", name);
}

void bench_report_quotient(struct bench_report *report, const char *name, double slow, double fast,
                           bool known)
{
    assert(report->ratio_count < BENCH_RATIOS_MAX);
    add_number(&report->ratios[report->ratio_count++], name, slow / fast, known);
}

void bench_report_ratio(struct bench_report *report, const char *name, const struct bench_row *slow,
                        const struct bench_row *fast, bool known)
{
    bench_report_quotient(report, name, bench_row_median(slow), bench_row_median(fast), known);
}

void bench_report_value(struct bench_report *report, const char *name, double value)
{
    assert(report->value_count < BENCH_VALUES_MAX);
    add_number(&report->values[report->value_count++], name, value, true);
}

void bench_report_note(struct bench_report *report, const char *format, ...)
{
    assert(report->note_count < BENCH_NOTES_MAX);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(report->notes[report->note_count++], BENCH_NOTE_MAX, format, arguments);
    va_end(arguments);
}

const struct bench_row *bench_report_find_row(const struct bench_report *report, const char *name)
{
    for (size_t i = 0; i < report->row_count; i++)
        if (strcmp(report->rows[i].name, name) == 0)
            return &report->rows[i];
    return NULL;
}

static const struct bench_number *find_number(const struct bench_number *numbers, size_t count,
                                              const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(numbers[i].name, name) == 0)
            return &numbers[i];
    return NULL;
}

const struct bench_number *bench_report_find_ratio(const struct bench_report *report,
                                                   const char *name)
{
    return find_number(report->ratios, report->ratio_count, name);
}

const struct bench_number *bench_report_find_value(const struct bench_report *report,
                                                   const char *name)
{
    return find_number(report->values, report->value_count, name);
}
