#include "copy/places.h"

#include "core/checked.h"
#include "core/error.h"
#include "driver/pinned/pinned.h"

/* Stretches side by side that are looked at: chunks of a pool, pieces of a registration. */
#define STRETCHES_MAX 1024

static const struct driver_memory *recall(const struct copy_places *places, uintptr_t at)
{
    for (unsigned i = 0; i < places->known_count; i++)
        if (at - places->known[i].start < places->known[i].bytes)
            return &places->known[i];
    return NULL;
}

static const struct driver_memory *ask(struct copy_places *places, uintptr_t at)
{
    struct driver_memory memory = {0};
    struct core_error_record before;
    core_error_save(&before);
    /* No answer is one: the driver's own copy will do, or fail with the sentence. */
    if (places->device.driver->find_memory(places->device.index, (const void *)at, &memory)) {
        core_error_restore(&before);
        return NULL;
    }
    if (memory.kind == DRIVER_MEMORY_UNKNOWN || at - memory.start >= memory.bytes)
        return NULL;
    /* What is registered in one piece is pinned as a whole, even if the driver tells of less. */
    uintptr_t start;
    size_t bytes;
    if (memory.kind == DRIVER_MEMORY_PINNED &&
        pinned_piece_find((const void *)at, &start, &bytes) && bytes > memory.bytes) {
        memory.start = start;
        memory.bytes = bytes;
    }
    struct driver_memory *place = &places->known[places->next];
    *place = memory;
    places->next = (places->next + 1) % COPY_PLACES_KEPT;
    if (places->known_count < COPY_PLACES_KEPT)
        places->known_count++;
    return place;
}

enum driver_memory_kind copy_places_kind(struct copy_places *places, const void *at, size_t bytes)
{
    enum driver_memory_kind kind = DRIVER_MEMORY_UNKNOWN;
    uintptr_t from = (uintptr_t)at;
    for (int i = 0; i < STRETCHES_MAX; i++) {
        const struct driver_memory *memory = recall(places, from);
        if (!memory)
            memory = ask(places, from);
        if (!memory || (i && memory->kind != kind))
            return DRIVER_MEMORY_UNKNOWN;
        kind = memory->kind;
        const size_t reach = memory->bytes - (from - memory->start);
        if (reach >= bytes)
            return kind;
        from += reach;
        bytes -= reach;
    }
    return DRIVER_MEMORY_UNKNOWN;
}

/* The stretches of a copy that suits, which were asked for last: both are known. */
static void remember(struct copy_places *places, const struct driver_copy *copy)
{
    const struct driver_memory *to = recall(places, (uintptr_t)copy->destination);
    const struct driver_memory *from = recall(places, (uintptr_t)copy->source);
    if (!to || !from)
        return;
    places->to = *to;
    places->from = *from;
}

bool copy_places_suit(struct copy_places *places, const struct driver_copy *copy)
{
    const enum driver_memory_kind from = copy_places_kind(places, copy->source, copy->bytes);
    if (from == DRIVER_MEMORY_UNKNOWN)
        return false;
    const enum driver_memory_kind to = copy_places_kind(places, copy->destination, copy->bytes);
    if (to == DRIVER_MEMORY_UNKNOWN || to == from)
        return false;
    remember(places, copy);
    return true;
}
