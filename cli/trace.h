/*
 * Records of what programs allocated and freed: read strictly, so that what is replayed is what was
 * recorded.
 *
 * Three forms are known by their first line:
 *   op,id,size,stream,t_us   a table; op is a or f. The size of an f is that of its a
 *   ...,Action,Pointer,Size  a table as RMM's logging adaptor writes it, its columns in any order
 *   a ID BYTES, f ID         no header
 * Blocks are numbered anew, from 0 in the order of their allocation; an id may come again once its
 * block is free.
 */
#ifndef CLI_TRACE_H
#define CLI_TRACE_H

#include <raffia/base.h>
#include <raffia/status.h>

enum trace_form {
    TRACE_TABLE,
    TRACE_RMM,
    TRACE_LINES,
};

struct trace_op {
    uint64_t bytes; /* of the block, also where it is freed */
    uint32_t block;
    bool frees;
};

struct trace {
    struct trace_op *ops;
    size_t count;
    enum trace_form form;
    uint32_t blocks;     /* allocations; op.block is less */
    size_t streams;      /* different ones; 0 where the form does not tell */
    size_t skipped;      /* lines of RMM's that are nothing to replay: failures, empty blocks */
    size_t live_max;     /* most blocks at once */
    size_t live_end;     /* blocks never freed */
    uint64_t peak_bytes; /* largest sum of live sizes: the peak requested */
    size_t peak_at;      /* the op that reaches it first */
    uint64_t asked_bytes;
};

/* More operations and larger files are refused. */
#define TRACE_OPS_MAX   ((size_t)1 << 28)
#define TRACE_BYTES_MAX ((size_t)4 << 30)

/* Reads a file, or with "-" standard input. FORMAT, and a sentence that names file and line, if the
 * contents are wrong; LIMIT, IO, OUT_OF_HOST_MEMORY. The trace is the caller's to clear, and
 * written only on success. */
raffia_status trace_read(const char *path, struct trace *trace);

/* The same from memory; `name` is for messages. */
raffia_status trace_parse(const char *name, const char *text, size_t bytes, struct trace *trace);

/* Gives the memory back and empties it. */
void trace_clear(struct trace *trace);

/* "table", "rmm", "lines". */
const char *trace_form_name(enum trace_form form);

#endif
