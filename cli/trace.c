#include "cli/trace.h"

#include "cli/trace_ids.h"
#include "cli/trace_line.h"
#include "core/checked.h"
#include "core/error.h"
#include "core/memory.h"

#include <stdio.h>
#include <string.h>

#define OPS_FIRST 1024u

/* A trace under construction. */
struct builder {
    struct trace *trace;
    size_t capacity; /* of trace->ops */
    size_t line;     /* that is being read, from 1 */
    struct trace_ids ids, streams;
    struct trace_columns columns;
    size_t live;
    uint64_t live_bytes;
};

static raffia_status add_op(struct builder *builder, const struct trace_op *op)
{
    struct trace *trace = builder->trace;
    if (trace->count == builder->capacity) {
        size_t capacity = builder->capacity ? builder->capacity * 2 : OPS_FIRST;
        if (capacity > TRACE_OPS_MAX)
            return core_error(RAFFIA_ERROR_LIMIT, "more than %zu operations are not replayed",
                              builder->capacity);
        void *ops = core_reallocate(trace->ops, capacity, sizeof *trace->ops);
        if (!ops)
            return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
        trace->ops = ops;
        builder->capacity = capacity;
    }
    trace->ops[trace->count++] = *op;
    return RAFFIA_OK;
}

/* Room for "0x" and 64 bits, or their decimal digits. */
#define BLOCK_NAME_MAX 24

/* As the trace itself writes it. */
static const char *block_name(const struct builder *builder, uint64_t id,
                              char name[static BLOCK_NAME_MAX])
{
    const bool pointer = builder->trace->form == TRACE_RMM;
    snprintf(name, BLOCK_NAME_MAX, pointer ? "0x%llx" : "%llu", (unsigned long long)id);
    return name;
}

static raffia_status allocate(struct builder *builder, struct trace_id *id,
                              const struct trace_event *event)
{
    struct trace *trace = builder->trace;
    uint64_t live_bytes, asked_bytes;
    char name[BLOCK_NAME_MAX];
    if (id->live)
        return core_error(RAFFIA_ERROR_FORMAT, "block %s is allocated, and has been since line %zu",
                          block_name(builder, event->id, name), id->line);
    if (!core_add(builder->live_bytes, event->bytes, &live_bytes) ||
        !core_add(trace->asked_bytes, event->bytes, &asked_bytes))
        return core_error(RAFFIA_ERROR_FORMAT, "with %llu bytes more the sizes exceed 64 bits",
                          (unsigned long long)event->bytes);
    const struct trace_op op = {.bytes = event->bytes, .block = trace->blocks};
    raffia_status status = add_op(builder, &op);
    if (status)
        return status;
    id->live = true;
    id->bytes = event->bytes;
    id->block = trace->blocks++;
    id->line = builder->line;
    builder->live_bytes = live_bytes;
    trace->asked_bytes = asked_bytes;
    if (live_bytes > trace->peak_bytes) {
        trace->peak_bytes = live_bytes;
        trace->peak_at = trace->count - 1;
    }
    trace->live_max = core_max(trace->live_max, ++builder->live);
    return RAFFIA_OK;
}

static raffia_status release(struct builder *builder, struct trace_id *id,
                             const struct trace_event *event)
{
    char name[BLOCK_NAME_MAX];
    if (!id->live)
        return core_error(RAFFIA_ERROR_FORMAT, "block %s is freed, and is not allocated",
                          block_name(builder, event->id, name));
    if (event->has_bytes && event->bytes != id->bytes)
        return core_error(RAFFIA_ERROR_FORMAT,
                          "block %s is freed with %llu bytes, and was allocated with %llu in "
                          "line %zu",
                          block_name(builder, event->id, name), (unsigned long long)event->bytes,
                          (unsigned long long)id->bytes, id->line);
    const struct trace_op op = {.bytes = id->bytes, .block = id->block, .frees = true};
    raffia_status status = add_op(builder, &op);
    if (status)
        return status;
    id->live = false;
    builder->live--;
    builder->live_bytes -= id->bytes;
    return RAFFIA_OK;
}

static raffia_status add_event(struct builder *builder, const struct trace_event *event)
{
    struct trace_id *id = NULL;
    if (event->kind == TRACE_SKIPPED) {
        builder->trace->skipped++;
        return RAFFIA_OK;
    }
    if (event->has_stream) {
        raffia_status status = trace_ids_take(&builder->streams, event->stream, &id);
        if (status)
            return status;
        builder->trace->streams = builder->streams.count;
    }
    raffia_status status = trace_ids_take(&builder->ids, event->id, &id);
    if (status)
        return status;
    return event->kind == TRACE_ALLOCATES ? allocate(builder, id, event)
                                          : release(builder, id, event);
}

/* A line without its end. */
static raffia_status read_line(struct builder *builder, const char *text, size_t length)
{
    char line[TRACE_LINE_MAX + 1];
    if (length && text[length - 1] == '\r')
        length--;
    if (length > TRACE_LINE_MAX)
        return core_error(RAFFIA_ERROR_FORMAT,
                          "the line is longer than %u bytes, as no trace's is (raffia bench trace "
                          "--help says what a trace looks like)",
                          TRACE_LINE_MAX);
    if (memchr(text, '\0', length))
        return core_error(RAFFIA_ERROR_FORMAT, "there is a NUL in the line: this is no text");
    memcpy(line, text, length);
    line[length] = '\0';
    struct trace *trace = builder->trace;
    if (builder->line == 1) {
        raffia_status status = trace_line_form(line, &trace->form, &builder->columns);
        if (status || trace->form != TRACE_LINES)
            return status;
    }
    struct trace_event event;
    raffia_status status = trace_line_read(line, trace->form, &builder->columns, &event);
    return status ? status : add_event(builder, &event);
}

static raffia_status read_lines(struct builder *builder, const char *text, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        builder->line++;
        const char *end = memchr(text + at, '\n', bytes - at);
        if (!end)
            return core_error(RAFFIA_ERROR_FORMAT,
                              "the last line has no end: the file was cut short");
        raffia_status status = read_line(builder, text + at, (size_t)(end - (text + at)));
        if (status)
            return status;
        at = (size_t)(end - text) + 1;
    }
    return RAFFIA_OK;
}

raffia_status trace_parse(const char *name, const char *text, size_t bytes, struct trace *trace)
{
    struct trace built = {0};
    struct builder builder = {.trace = &built};
    raffia_status status = read_lines(&builder, text, bytes);
    if (status && status != RAFFIA_ERROR_OUT_OF_HOST_MEMORY)
        status = core_error_prefix("%s, line %zu", name, builder.line);
    if (!status && built.count == 0)
        status = core_error(RAFFIA_ERROR_FORMAT, "%s: there is nothing to replay in it", name);
    built.live_end = builder.live;
    trace_ids_clear(&builder.ids);
    trace_ids_clear(&builder.streams);
    if (status)
        trace_clear(&built);
    else
        *trace = built;
    return status;
}

void trace_clear(struct trace *trace)
{
    core_free(trace->ops);
    *trace = (struct trace){0};
}

const char *trace_form_name(enum trace_form form)
{
    static const char *const names[] = {"table", "rmm", "lines"};
    return names[form];
}
