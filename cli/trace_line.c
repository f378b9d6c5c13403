#include "cli/trace_line.h"

#include "core/error.h"
#include "core/text.h"

#include <ctype.h>
#include <string.h>

#define TABLE_HEADER "op,id,size,stream,t_us"

/* Fields of TABLE_HEADER. */
enum { TABLE_OP, TABLE_ID, TABLE_SIZE, TABLE_STREAM, TABLE_TIME, TABLE_FIELDS };

/* Splits at each separator; the fields point into the line. Returns how many there are, at least
 * one, which may be more than there is room for. */
static unsigned split(char *line, char separator, char **fields, unsigned room)
{
    unsigned count = 0;
    char *field = line;
    do {
        char *end = strchr(field, separator);
        if (end)
            *end++ = '\0';
        if (count < room)
            fields[count] = field;
        count++;
        field = end;
    } while (field);
    return count;
}

static raffia_status wrong_count(unsigned expected, unsigned got)
{
    return core_error(RAFFIA_ERROR_FORMAT, "there are %u fields where %u belong", got, expected);
}

/* A decimal number; `what` names it in the sentence. */
static raffia_status number(const char *what, const char *text, uint64_t *value_p)
{
    if (!core_parse_count(text, UINT64_MAX - 1, value_p))
        return RAFFIA_OK;
    if (*text && !text[strspn(text, "0123456789")])
        return core_error(RAFFIA_ERROR_FORMAT, "the %s %.32s is too large: %llu is the most", what,
                          text, (unsigned long long)(UINT64_MAX - 1));
    return core_error(RAFFIA_ERROR_FORMAT, "the %s '%.32s' is not a whole number", what, text);
}

static int digit_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)tolower((unsigned char)c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* A pointer as printf("%p") writes it. */
static raffia_status pointer(const char *what, const char *text, uint64_t *value_p)
{
    if (strcmp(text, "(nil)") == 0) {
        *value_p = 0;
        return RAFFIA_OK;
    }
    const char *digits = strncmp(text, "0x", 2) == 0 ? text + 2 : text;
    size_t length = strlen(digits);
    uint64_t value = 0;
    bool good = length >= 1 && length <= 16;
    for (size_t i = 0; good && i < length; i++) {
        int digit = digit_value(digits[i]);
        good = digit >= 0;
        value = value << 4 | (uint64_t)(good ? digit : 0);
    }
    if (!good)
        return core_error(RAFFIA_ERROR_FORMAT, "the %s '%.32s' is not a hexadecimal number", what,
                          text);
    *value_p = value;
    return RAFFIA_OK;
}

/* "a" or "f". */
static raffia_status operation(const char *text, struct trace_event *event)
{
    if ((text[0] != 'a' && text[0] != 'f') || text[1])
        return core_error(RAFFIA_ERROR_FORMAT, "the operation '%.32s' is neither 'a' nor 'f'",
                          text);
    event->kind = text[0] == 'a' ? TRACE_ALLOCATES : TRACE_FREES;
    return RAFFIA_OK;
}

static raffia_status read_table(char *line, struct trace_event *event)
{
    char *fields[TABLE_FIELDS];
    uint64_t time;
    unsigned count = split(line, ',', fields, TABLE_FIELDS);
    if (count != TABLE_FIELDS)
        return wrong_count(TABLE_FIELDS, count);
    raffia_status status = operation(fields[TABLE_OP], event);
    if (!status)
        status = number("id", fields[TABLE_ID], &event->id);
    if (!status)
        status = number("size", fields[TABLE_SIZE], &event->bytes);
    if (!status)
        status = number("stream", fields[TABLE_STREAM], &event->stream);
    if (!status)
        status = number("time", fields[TABLE_TIME], &time);
    event->has_bytes = event->has_stream = true;
    return status;
}

static raffia_status read_plain(char *line, struct trace_event *event)
{
    char *fields[3];
    unsigned count = split(line, ' ', fields, 3);
    raffia_status status = operation(fields[0], event);
    unsigned expected = !status && event->kind == TRACE_FREES ? 2 : 3;
    if (!status && count != expected)
        return wrong_count(expected, count);
    if (!status)
        status = number("id", fields[1], &event->id);
    if (!status && expected == 3)
        status = number("size", fields[2], &event->bytes);
    event->has_bytes = expected == 3;
    return status;
}

/* An empty block has no address in RMM's log, and nothing to tell it from the next one. */
static raffia_status read_rmm(char *line, const struct trace_columns *columns,
                              struct trace_event *event)
{
    char *fields[TRACE_COLUMNS_MAX];
    unsigned count = split(line, ',', fields, TRACE_COLUMNS_MAX);
    if (count != columns->count)
        return wrong_count(columns->count, count);
    const char *action = fields[columns->action];
    if (strcmp(action, "allocate") == 0)
        event->kind = TRACE_ALLOCATES;
    else if (strcmp(action, "free") == 0)
        event->kind = TRACE_FREES;
    else if (strcmp(action, "allocate failure") == 0)
        event->kind = TRACE_SKIPPED;
    else
        return core_error(RAFFIA_ERROR_FORMAT,
                          "the action '%.32s' is none of allocate, allocate failure and free",
                          action);
    raffia_status status = pointer("pointer", fields[columns->pointer], &event->id);
    if (!status)
        status = number("size", fields[columns->size], &event->bytes);
    if (!status && columns->stream < TRACE_COLUMNS_MAX) {
        status = pointer("stream", fields[columns->stream], &event->stream);
        event->has_stream = true;
    }
    event->has_bytes = true;
    if (!status && event->kind != TRACE_SKIPPED && event->id == 0) {
        if (event->bytes)
            return core_error(RAFFIA_ERROR_FORMAT, "a block of %llu bytes has no address",
                              (unsigned long long)event->bytes);
        event->kind = TRACE_SKIPPED;
    }
    return status;
}

/* The column of that name, or TRACE_COLUMNS_MAX. */
static unsigned column(char *const *fields, unsigned count, const char *name)
{
    for (unsigned i = 0; i < count; i++)
        if (strcmp(fields[i], name) == 0)
            return i;
    return TRACE_COLUMNS_MAX;
}

static bool find_columns(char *line, struct trace_columns *columns)
{
    char *fields[TRACE_COLUMNS_MAX];
    unsigned count = split(line, ',', fields, TRACE_COLUMNS_MAX);
    if (count > TRACE_COLUMNS_MAX)
        return false;
    *columns = (struct trace_columns){
        .count = count,
        .action = column(fields, count, "Action"),
        .pointer = column(fields, count, "Pointer"),
        .size = column(fields, count, "Size"),
        .stream = column(fields, count, "Stream"),
    };
    return columns->action < TRACE_COLUMNS_MAX && columns->pointer < TRACE_COLUMNS_MAX &&
           columns->size < TRACE_COLUMNS_MAX;
}

raffia_status trace_line_form(char *line, enum trace_form *form, struct trace_columns *columns)
{
    *columns = (struct trace_columns){0};
    if (strcmp(line, TABLE_HEADER) == 0)
        *form = TRACE_TABLE;
    else if ((line[0] == 'a' || line[0] == 'f') && line[1] == ' ')
        *form = TRACE_LINES;
    else if (find_columns(line, columns))
        *form = TRACE_RMM;
    else
        return core_error(RAFFIA_ERROR_FORMAT,
                          "this begins no trace: it is neither '" TABLE_HEADER
                          "', nor a header with Action, Pointer and Size, nor 'a ID BYTES'");
    return RAFFIA_OK;
}

raffia_status trace_line_read(char *line, enum trace_form form, const struct trace_columns *columns,
                              struct trace_event *event)
{
    *event = (struct trace_event){0};
    switch (form) {
    case TRACE_TABLE:
        return read_table(line, event);
    case TRACE_RMM:
        return read_rmm(line, columns, event);
    case TRACE_LINES:
    default:
        return read_plain(line, event);
    }
}
