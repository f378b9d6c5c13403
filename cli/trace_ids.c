#include "cli/trace_ids.h"

#include "core/memory.h"

#define CAPACITY_FIRST 1024u

/* Keys may count up, or be addresses that share their low bits: they are mixed before they are used
 * as an index (the finaliser of MurmurHash3, which is in the public domain). */
static size_t mixed(uint64_t key)
{
    key = (key ^ (key >> 33)) * UINT64_C(0xff51afd7ed558ccd);
    key = (key ^ (key >> 33)) * UINT64_C(0xc4ceb9fe1a85ec53);
    return (size_t)(key ^ (key >> 33));
}

/* The place of a key, or the empty one where it belongs. Pre: one is empty. */
static struct trace_id *place_of(struct trace_id *places, size_t capacity, uint64_t key)
{
    size_t at = mixed(key) & (capacity - 1);
    while (places[at].used && places[at].key != key)
        at = (at + 1) & (capacity - 1);
    return &places[at];
}

static raffia_status grow(struct trace_ids *ids)
{
    size_t capacity = ids->capacity ? ids->capacity * 2 : CAPACITY_FIRST;
    struct trace_id *places = core_calloc(capacity, sizeof *places);
    if (!places)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < ids->capacity; i++)
        if (ids->places[i].used)
            *place_of(places, capacity, ids->places[i].key) = ids->places[i];
    core_free(ids->places);
    ids->places = places;
    ids->capacity = capacity;
    return RAFFIA_OK;
}

raffia_status trace_ids_take(struct trace_ids *ids, uint64_t key, struct trace_id **id_p)
{
    if (ids->count >= ids->capacity / 2) {
        raffia_status status = grow(ids);
        if (status)
            return status;
    }
    struct trace_id *id = place_of(ids->places, ids->capacity, key);
    if (!id->used) {
        *id = (struct trace_id){.key = key, .used = true};
        ids->count++;
    }
    *id_p = id;
    return RAFFIA_OK;
}

void trace_ids_clear(struct trace_ids *ids)
{
    core_free(ids->places);
    *ids = (struct trace_ids){0};
}
