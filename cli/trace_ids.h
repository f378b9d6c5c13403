/*
 * The names that a trace gives its blocks: what each stands for now.
 */
#ifndef CLI_TRACE_IDS_H
#define CLI_TRACE_IDS_H

#include <raffia/base.h>
#include <raffia/status.h>

struct trace_id {
    uint64_t key;
    uint64_t bytes;
    size_t line; /* where it was allocated last */
    uint32_t block;
    bool live;
    bool used; /* false: an empty place of the table */
};

/* A hash table; all zero is an empty one. */
struct trace_ids {
    struct trace_id *places;
    size_t capacity; /* a power of two, or 0 */
    size_t count;
};

/* The entry of a key; it is made, not live, where there is none. Valid until the next call.
 * OUT_OF_HOST_MEMORY. */
raffia_status trace_ids_take(struct trace_ids *ids, uint64_t key, struct trace_id **id_p);

void trace_ids_clear(struct trace_ids *ids);

#endif
