/*
 * What every benchmark reports: rows of samples, ratios between rows, notes, and the machine.
 */
#ifndef CLI_BENCH_REPORT_H
#define CLI_BENCH_REPORT_H

#include <raffia/pages.h>
#include <raffia/status.h>

#define BENCH_ROWS_MAX   48
#define BENCH_RATIOS_MAX 32
#define BENCH_NOTES_MAX  16
#define BENCH_NAME_MAX   48
#define BENCH_NOTE_MAX   400

/* One way of doing a thing, measured several times. */
struct bench_row {
    char name[BENCH_NAME_MAX];
    unsigned threads;
    uint64_t bytes_each; /* moved by one sample, for a rate; 0 = there is none */
    double *samples;     /* seconds, in the order measured */
    size_t count;
    size_t capacity;
    uint64_t faults;           /* minor page faults of the last sample */
    uint64_t page_table_bytes; /* that its memory needed */
    bool has_pages;
    raffia_page_report pages;
};

struct bench_ratio {
    char name[BENCH_NAME_MAX];
    bool known;
    double value;
};

struct bench_report {
    const char *title;
    struct bench_row rows[BENCH_ROWS_MAX];
    size_t row_count;
    struct bench_ratio ratios[BENCH_RATIOS_MAX];
    size_t ratio_count;
    char notes[BENCH_NOTES_MAX][BENCH_NOTE_MAX];
    size_t note_count;
};

/* A new row with room for `capacity` samples; NULL for want of memory. Asserts that there is room
 * for the row: their number is the benchmark's, not the user's. */
struct bench_row *bench_report_row(struct bench_report *report, const char *name, unsigned threads,
                                   size_t capacity);

void bench_row_add(struct bench_row *row, double seconds);

/* The smallest sample that at least `share` (0 to 1) of them do not exceed. */
double bench_row_quantile(const struct bench_row *row, double share);

/* The quantile 0.5; of an even number of samples the mean of the two in the middle. */
double bench_row_median(const struct bench_row *row);

/* Median of `slow` over median of `fast`. Where `known` is false it is reported as null. */
void bench_report_ratio(struct bench_report *report, const char *name, const struct bench_row *slow,
                        const struct bench_row *fast, bool known);

/* A sentence to read with the numbers. */
void bench_report_note(struct bench_report *report, const char *format, ...) RAFFIA_PRINTF(2, 3);

/* Prints it all. */
raffia_status bench_report_print(const struct bench_report *report, bool json);

void bench_report_free(struct bench_report *report);

#endif
