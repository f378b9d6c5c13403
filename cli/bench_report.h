/*
 * What every benchmark reports: rows of samples, ratios between rows, numbers, notes, and the
 * machine.
 */
#ifndef CLI_BENCH_REPORT_H
#define CLI_BENCH_REPORT_H

#include <raffia/pages.h>
#include <raffia/status.h>

#include <jansson.h>

#define BENCH_ROWS_MAX   256
#define BENCH_RATIOS_MAX 32
#define BENCH_VALUES_MAX 64
#define BENCH_NOTES_MAX  16
#define BENCH_NAME_MAX   64
#define BENCH_NOTE_MAX   400
#define BENCH_TITLE_MAX  160

/* Where the time of a sample went. */
enum bench_part {
    BENCH_OPEN,    /* opening, parsing and validating files, planning */
    BENCH_MAP,     /* getting the memory */
    BENCH_READ,    /* the first read issued to the last byte in place; each is copied once, here */
    BENCH_RELEASE, /* giving the memory back */
    BENCH_WAIT,    /* in none of the others */
    BENCH_PART_COUNT,
};

/* One way of doing a thing, measured several times. */
struct bench_row {
    char name[BENCH_NAME_MAX];
    unsigned threads;
    uint64_t bytes_each; /* moved by one sample, for a rate; 0 = there is none */
    double *samples;     /* seconds, in the order measured */
    double *parts;       /* BENCH_PART_COUNT for each sample; NULL where they are not told apart */
    size_t count;
    size_t capacity;
    bool counted;              /* the two that follow were looked at */
    uint64_t faults;           /* minor page faults of the last sample */
    uint64_t page_table_bytes; /* that its memory needed */
    bool has_pages;
    raffia_page_report pages;
};

/* A number of its own: a ratio, or a value whose unit its name says. */
struct bench_number {
    char name[BENCH_NAME_MAX];
    bool known;
    double value;
};

struct bench_report {
    char title[BENCH_TITLE_MAX];
    const char *source; /* what the numbers rest on, where there are several; NULL = the clock */
    struct bench_row rows[BENCH_ROWS_MAX];
    size_t row_count;
    struct bench_number ratios[BENCH_RATIOS_MAX];
    size_t ratio_count;
    struct bench_number values[BENCH_VALUES_MAX];
    size_t value_count;
    char notes[BENCH_NOTES_MAX][BENCH_NOTE_MAX];
    size_t note_count;
};

/* An empty report, for bench_report_free(); NULL for want of memory. */
struct bench_report *bench_report_new(void);
void bench_report_free(struct bench_report *report);

/* A new row with room for `capacity` samples; NULL for want of memory. Asserts that there is room
 * for the row: their number is the benchmark's, not the user's. */
struct bench_row *bench_report_row(struct bench_report *report, const char *name, unsigned threads,
                                   size_t capacity);

/* Makes room for the parts of each sample. */
raffia_status bench_row_split(struct bench_row *row);

void bench_row_add(struct bench_row *row, double seconds);

/* Makes the row's samples `count` in number and returns them, to be written. Those it had are
 * dropped. Asserts that there is room. */
double *bench_row_take(struct bench_row *row, size_t count);

/* Drops all samples but the first `count`. */
void bench_row_cut(struct bench_row *row, size_t count);

/* The same as bench_row_add() for a row that is split; what the parts leave over is BENCH_WAIT. */
void bench_row_add_parts(struct bench_row *row, double seconds,
                         const double parts[static BENCH_WAIT]);

/* The smallest sample that at least `share` (0 to 1) of them do not exceed. */
double bench_row_quantile(const struct bench_row *row, double share);

/* The quantile 0.5; of an even number of samples the mean of the two in the middle. */
double bench_row_median(const struct bench_row *row);

double bench_row_mean(const struct bench_row *row);

/* Median of one part over all samples. Pre: the row is split. */
double bench_row_part(const struct bench_row *row, enum bench_part part);

/* The part that takes longest. */
enum bench_part bench_row_bottleneck(const struct bench_row *row);

/* "open", "map", "read", "release", "wait". */
const char *bench_part_name(enum bench_part part);

/* Whether the row got huge pages. */
bool bench_row_is_huge(const struct bench_row *row);

/* Median of `slow` over median of `fast`. Where `known` is false it is reported as null. */
void bench_report_ratio(struct bench_report *report, const char *name, const struct bench_row *slow,
                        const struct bench_row *fast, bool known);

/* The same for two numbers. */
void bench_report_quotient(struct bench_report *report, const char *name, double slow, double fast,
                           bool known);

/* A number beside them; its name ends in its unit ("_ns", "_bytes"), unless it counts things. One
 * that is not finite is reported as null. */
void bench_report_value(struct bench_report *report, const char *name, double value);

/* A sentence to read with the numbers. */
void bench_report_note(struct bench_report *report, const char *format, ...) RAFFIA_PRINTF(2, 3);

/* Finds what was put in; NULL if nothing goes by that name. */
const struct bench_row *bench_report_find_row(const struct bench_report *report, const char *name);
const struct bench_number *bench_report_find_ratio(const struct bench_report *report,
                                                   const char *name);
const struct bench_number *bench_report_find_value(const struct bench_report *report,
                                                   const char *name);

/* The whole report, for people and for programs. */
void bench_report_print_text(const struct bench_report *report);
json_t *bench_report_json(const struct bench_report *report);

/* Prints it all. */
raffia_status bench_report_print(const struct bench_report *report, bool json);

#endif
