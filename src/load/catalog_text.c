/*
 * An arena of chunks. In a chunk shapes grow upward from its start and strings downward from its
 * end, so that shapes stay aligned and no byte is lost to padding.
 */
#include "load/catalog_text.h"

#include "core/checked.h"
#include "core/memory.h"

#include <string.h>

#define CHUNK_BYTES_FIRST ((size_t)16 << 10)
#define CHUNK_BYTES_MAX   ((size_t)1 << 20)

struct chunk {
    struct chunk *next;
    size_t low, high; /* bytes[low..high-1] are free; low is a multiple of sizeof(uint64_t) */
    _Alignas(uint64_t) unsigned char bytes[];
};

struct catalog_text {
    struct chunk *chunks; /* the first has the room, the others are full */
    size_t chunk_bytes;   /* of the next chunk */
};

struct catalog_text *catalog_text_create(void)
{
    struct catalog_text *text = core_calloc(1, sizeof *text);
    if (text)
        text->chunk_bytes = CHUNK_BYTES_FIRST;
    return text;
}

/* The chunk with room for `bytes`. */
static struct chunk *chunk_for(struct catalog_text *text, size_t bytes)
{
    struct chunk *chunk = text->chunks;
    if (chunk && chunk->high - chunk->low >= bytes)
        return chunk;
    size_t room = core_max(text->chunk_bytes, bytes), total;
    if (!core_add(room, sizeof *chunk, &total))
        total = SIZE_MAX; /* core_malloc() will refuse it */
    chunk = core_malloc(total);
    if (!chunk)
        return NULL;
    chunk->low = 0;
    chunk->high = room;
    chunk->next = text->chunks;
    text->chunks = chunk;
    text->chunk_bytes = core_min(text->chunk_bytes * 2, CHUNK_BYTES_MAX);
    return chunk;
}

const char *catalog_text_string(struct catalog_text *text, const char *string)
{
    size_t bytes = strlen(string) + 1;
    struct chunk *chunk = chunk_for(text, bytes);
    if (!chunk)
        return NULL;
    chunk->high -= bytes;
    return memcpy(chunk->bytes + chunk->high, string, bytes);
}

uint64_t *catalog_text_shape(struct catalog_text *text, size_t rank)
{
    size_t bytes;
    if (!core_multiply(rank, sizeof(uint64_t), &bytes))
        bytes = SIZE_MAX;
    struct chunk *chunk = chunk_for(text, bytes);
    if (!chunk)
        return NULL;
    uint64_t *shape = (uint64_t *)(void *)(chunk->bytes + chunk->low);
    chunk->low += bytes;
    return shape;
}

void catalog_text_destroy(struct catalog_text *text)
{
    if (!text)
        return;
    for (struct chunk *chunk = text->chunks, *next; chunk; chunk = next) {
        next = chunk->next;
        core_free(chunk);
    }
    core_free(text);
}
