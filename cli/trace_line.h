/*
 * One line of a trace, in each of the forms.
 */
#ifndef CLI_TRACE_LINE_H
#define CLI_TRACE_LINE_H

#include "cli/trace.h"

/* Longest line, its end not counted. */
#define TRACE_LINE_MAX 1024u

/* Most columns of a table. */
#define TRACE_COLUMNS_MAX 16u

/* Which column of RMM's table holds what. */
struct trace_columns {
    unsigned count;
    unsigned action, pointer, size;
    unsigned stream; /* TRACE_COLUMNS_MAX where there is none */
};

/* What a line says. */
struct trace_event {
    enum trace_event_kind {
        TRACE_ALLOCATES,
        TRACE_FREES,
        TRACE_SKIPPED, /* nothing to replay */
    } kind;
    uint64_t id;
    uint64_t bytes;
    bool has_bytes; /* false for an f without a size */
    uint64_t stream;
    bool has_stream;
};

/* Tells the form by the first line; for RMM's it finds the columns. FORMAT if it is none of the
 * forms. The text is a line without its end, and is changed. */
raffia_status trace_line_form(char *line, enum trace_form *form, struct trace_columns *columns);

/* Reads a line that is not the header. FORMAT, with a sentence that does not name the line. */
raffia_status trace_line_read(char *line, enum trace_form form, const struct trace_columns *columns,
                              struct trace_event *event);

#endif
