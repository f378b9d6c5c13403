#include "driver/sim/spans.h"

#include "core/error.h"
#include "core/fault.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM ((size_t)16)

/* Plain realloc(3) on purpose, here and for streams: what the device itself keeps from one call to
 * the next is no leak of the code under test, whose blocks core_memory_live() counts. */
raffia_status sim_spans_reserve(struct sim_spans *spans, size_t more)
{
    size_t needed = spans->count + more;
    if (needed <= spans->room)
        return RAFFIA_OK;
    size_t room = spans->room ? 2 * spans->room : FIRST_ROOM;
    while (room < needed)
        room *= 2;
    struct sim_span *items =
        core_fault("sim.realloc") ? NULL : realloc(spans->items, room * sizeof *items);
    if (!items)
        return core_error(RAFFIA_ERROR_OUT_OF_HOST_MEMORY,
                          "sim: cannot allocate room for %zu records", room);
    spans->items = items;
    spans->room = room;
    return RAFFIA_OK;
}

/* Index of the first span that ends behind the address. */
static size_t first_ending_behind(const struct sim_spans *spans, uintptr_t address)
{
    size_t low = 0, high = spans->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (spans->items[middle].start + spans->items[middle].bytes > address)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

void sim_spans_insert(struct sim_spans *spans, const void *start, size_t bytes, void *owner)
{
    assert(spans->count < spans->room && bytes > 0);
    assert(!sim_spans_first(spans, start, bytes));
    size_t index = first_ending_behind(spans, (uintptr_t)start);
    memmove(&spans->items[index + 1], &spans->items[index],
            (spans->count - index) * sizeof *spans->items);
    spans->items[index] = (struct sim_span){(uintptr_t)start, bytes, owner};
    spans->count++;
}

void sim_spans_remove(struct sim_spans *spans, const void *start)
{
    struct sim_span *span = sim_spans_exactly(spans, start);
    assert(span);
    size_t index = (size_t)(span - spans->items);
    spans->count--;
    memmove(span, span + 1, (spans->count - index) * sizeof *span);
}

struct sim_span *sim_spans_first(const struct sim_spans *spans, const void *at, size_t bytes)
{
    size_t index = first_ending_behind(spans, (uintptr_t)at);
    if (index == spans->count || spans->items[index].start >= (uintptr_t)at + bytes)
        return NULL;
    return &spans->items[index];
}

struct sim_span *sim_spans_at(const struct sim_spans *spans, const void *address)
{
    return sim_spans_first(spans, address, 1);
}

struct sim_span *sim_spans_exactly(const struct sim_spans *spans, const void *start)
{
    struct sim_span *span = sim_spans_at(spans, start);
    return span && span->start == (uintptr_t)start ? span : NULL;
}

bool sim_spans_cover(const struct sim_spans *spans, const void *at, size_t bytes)
{
    uintptr_t address = (uintptr_t)at, end = address + bytes;
    for (size_t i = first_ending_behind(spans, address); address < end; i++) {
        if (i == spans->count || spans->items[i].start > address)
            return false;
        address = spans->items[i].start + spans->items[i].bytes;
    }
    return true;
}

bool sim_span_contains(const struct sim_span *span, const void *at, size_t bytes)
{
    uintptr_t address = (uintptr_t)at;
    return address >= span->start && address - span->start <= span->bytes &&
           bytes <= span->bytes - (address - span->start);
}

size_t sim_spans_bytes(const struct sim_spans *spans)
{
    size_t bytes = 0;
    for (size_t i = 0; i < spans->count; i++)
        bytes += spans->items[i].bytes;
    return bytes;
}

void sim_spans_clear(struct sim_spans *spans)
{
    free(spans->items);
    *spans = (struct sim_spans){0};
}
