/*
 * A set of disjoint address spans, each with an owner, sorted by address.
 *
 * The simulated device keeps all its records in such sets: reserved ranges, mappings, blocks, and
 * also its own objects, whose handles are then checked before anybody looks behind the pointer.
 */
#ifndef DRIVER_SIM_SPANS_H
#define DRIVER_SIM_SPANS_H

#include <raffia/base.h>
#include <raffia/status.h>

struct sim_span {
    uintptr_t start;
    size_t bytes;
    void *owner;
};

/* All zero is an empty set. */
struct sim_spans {
    struct sim_span *items;
    size_t count, room;
};

/* Makes room for `more` insertions, which then cannot fail. OUT_OF_HOST_MEMORY. */
raffia_status sim_spans_reserve(struct sim_spans *spans, size_t more);

/* Pre: there is room, and nothing overlaps. */
void sim_spans_insert(struct sim_spans *spans, const void *start, size_t bytes, void *owner);

/* Pre: a span starts there. */
void sim_spans_remove(struct sim_spans *spans, const void *start);

/* The first span that overlaps [at, at + bytes), which does not wrap; NULL if there is none. Span
 * pointers are good until the next insertion or removal. */
struct sim_span *sim_spans_first(const struct sim_spans *spans, const void *at, size_t bytes);

/* The span that contains the address, or NULL. */
struct sim_span *sim_spans_at(const struct sim_spans *spans, const void *address);

/* The span that starts at the address, or NULL. */
struct sim_span *sim_spans_exactly(const struct sim_spans *spans, const void *start);

/* Whether the spans cover all of [at, at + bytes) without a hole. */
bool sim_spans_cover(const struct sim_spans *spans, const void *at, size_t bytes);

/* Whether all of [at, at + bytes) lies in this span. */
bool sim_span_contains(const struct sim_span *span, const void *at, size_t bytes);

size_t sim_spans_bytes(const struct sim_spans *spans);

/* Frees the set, not what its owners point at. */
void sim_spans_clear(struct sim_spans *spans);

#endif
