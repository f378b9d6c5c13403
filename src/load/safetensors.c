#include "load/safetensors.h"

#include "core/checked.h"
#include "core/error.h"
#include "core/memory.h"
#include "load/catalog_build.h"
#include "load/catalog_file.h"
#include "load/catalog_json.h"
#include "load/catalog_show.h"
#include "load/catalog_text.h"
#include "load/safetensors_layout.h"
#include "load/safetensors_tensor.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

static const char metadata_name[] = "__metadata__";

/* Half the room that the first tensor makes. */
#define TENSOR_ROOM_FIRST 64

raffia_status safetensors_header_bytes(const char *path, const void *start, uint64_t file_bytes,
                                       size_t limit, size_t *header_bytes_p)
{
    if (file_bytes < SAFETENSORS_LENGTH_BYTES)
        return core_error(RAFFIA_ERROR_FORMAT,
                          "%s: the file has %llu bytes; a safetensors file begins with the length "
                          "of its header, %d bytes",
                          catalog_show_path(path).text, (unsigned long long)file_bytes,
                          SAFETENSORS_LENGTH_BYTES);
    uint64_t length;
    memcpy(&length, start, sizeof length);
    length = le64toh(length);
    if (length > file_bytes - SAFETENSORS_LENGTH_BYTES)
        return core_error(RAFFIA_ERROR_FORMAT,
                          "%s: the length at offset 0 gives the header %llu bytes, the file has "
                          "%llu after it: it was cut short or is no safetensors file",
                          catalog_show_path(path).text, (unsigned long long)length,
                          (unsigned long long)(file_bytes - SAFETENSORS_LENGTH_BYTES));
    if (length > CATALOG_HEADER_BYTES_MAX)
        return core_error(RAFFIA_ERROR_FORMAT,
                          "%s: the length at offset 0 gives the header %llu bytes; the format "
                          "allows at most %zu",
                          catalog_show_path(path).text, (unsigned long long)length,
                          CATALOG_HEADER_BYTES_MAX);
    if (length > limit)
        return core_error(RAFFIA_ERROR_LIMIT,
                          "%s: the header has %llu bytes, more than the limit of %zu; raise "
                          "header_limit_bytes (at most %zu)",
                          catalog_show_path(path).text, (unsigned long long)length, limit,
                          CATALOG_HEADER_BYTES_MAX);
    *header_bytes_p = (size_t)length;
    return RAFFIA_OK;
}

static int by_key(const void *left, const void *right)
{
    const struct catalog_metadata *a = left, *b = right;
    return strcmp(a->key, b->key);
}

/* What a header adds to the catalog: it lies behind what the catalog has, and is counted in only
 * when all of it is known to be right. */
struct addition {
    struct catalog *catalog;
    size_t tensors, tensor_room;
    size_t metadata;
    bool metadata_seen;
};

static raffia_status add_metadata(struct addition *addition, json_t *object)
{
    struct catalog *catalog = addition->catalog;
    if (addition->metadata_seen)
        return core_error(RAFFIA_ERROR_FORMAT, "it is there twice");
    addition->metadata_seen = true;
    if (json_is_null(object))
        return RAFFIA_OK;
    if (!json_is_object(object))
        return core_error(RAFFIA_ERROR_FORMAT, "it is %s, not an object of strings",
                          catalog_json_kind(object));
    size_t old_count = catalog->metadata_count;
    struct catalog_metadata *rows = core_reallocate(
        catalog->metadata, old_count + json_object_size(object), sizeof *catalog->metadata);
    if (!rows)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    catalog->metadata = rows;
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        if (!json_is_string(value))
            return core_error(RAFFIA_ERROR_FORMAT, "the value of '%s' is %s, not a string",
                              catalog_show(key).text, catalog_json_kind(value));
        struct catalog_metadata row = {.key = key};
        if (old_count && bsearch(&row, rows, old_count, sizeof row, by_key))
            continue;
        row.key = catalog_text_string(catalog->text, key);
        row.value = catalog_text_string(catalog->text, json_string_value(value));
        if (!row.key || !row.value)
            return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
        rows[old_count + addition->metadata++] = row;
    }
    return RAFFIA_OK;
}

/* The offset stays the header's own for now. */
static raffia_status add_tensor(struct addition *addition, const char *name,
                                const json_t *description)
{
    struct catalog *catalog = addition->catalog;
    size_t count = catalog->tensor_count + addition->tensors;
    if (count == addition->tensor_room) {
        size_t room;
        if (!core_multiply(core_max(count, TENSOR_ROOM_FIRST), 2, &room))
            room = SIZE_MAX; /* core_reallocate() will refuse it */
        struct catalog_tensor *rows = core_reallocate(catalog->tensors, room, sizeof *rows);
        if (!rows)
            return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
        catalog->tensors = rows;
        addition->tensor_room = room;
    }
    struct catalog_tensor *tensor = &catalog->tensors[count];
    raffia_status status = safetensors_tensor_parse(description, catalog->text, tensor);
    if (status)
        return status;
    tensor->name = catalog_text_string(catalog->text, name);
    if (!tensor->name)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    addition->tensors++;
    return RAFFIA_OK;
}

static raffia_status add_member(struct addition *addition, const struct catalog_json_member *member)
{
    const char *name = json_string_value(member->key);
    if (strcmp(name, metadata_name) == 0)
        return add_metadata(addition, member->value)
                   ? core_error_prefix("%s (offset %llu)", metadata_name,
                                       (unsigned long long)member->offset)
                   : RAFFIA_OK;
    return add_tensor(addition, name, member->value)
               ? core_error_prefix("tensor '%s' (described at offset %llu)",
                                   catalog_show(name).text, (unsigned long long)member->offset)
               : RAFFIA_OK;
}

static raffia_status add_members(struct addition *addition, struct catalog_json_walk *walk)
{
    for (;;) {
        struct catalog_json_member member;
        raffia_status status = catalog_json_next(walk, &member);
        if (status || !member.key)
            return status;
        status = add_member(addition, &member);
        catalog_json_release(&member);
        if (status)
            return status;
    }
}

raffia_status safetensors_parse(const char *path, const void *header, size_t header_bytes,
                                uint64_t file_bytes, bool lenient, size_t file,
                                struct catalog *catalog)
{
    struct catalog_json_walk walk = {
        .text = header, .bytes = header_bytes, .offset = SAFETENSORS_LENGTH_BYTES};
    struct addition addition = {.catalog = catalog, .tensor_room = catalog->tensor_count};
    raffia_status status = add_members(&addition, &walk);
    struct safetensors_layout layout = {
        .tensors = addition.tensors ? catalog->tensors + catalog->tensor_count : NULL,
        .count = addition.tensors,
        .data_offset = SAFETENSORS_LENGTH_BYTES + (uint64_t)header_bytes,
        .file_bytes = file_bytes,
        .lenient = lenient,
        .path = path,
    };
    if (!status)
        status = safetensors_layout_settle(&layout);
    if (status)
        return core_error_prefix("%s", catalog_show_path(path).text);
    for (size_t i = 0; i < layout.count; i++)
        layout.tensors[i].file = file;
    catalog->tensor_count += addition.tensors;
    catalog->metadata_count += addition.metadata;
    if (addition.metadata)
        qsort(catalog->metadata, catalog->metadata_count, sizeof *catalog->metadata, by_key);
    return RAFFIA_OK;
}

raffia_status safetensors_read(struct catalog *catalog, size_t file,
                               const struct catalog_limits *limits)
{
    const struct catalog_file *source = &catalog->files[file];
    unsigned char start[SAFETENSORS_LENGTH_BYTES] = {0};
    size_t start_bytes = core_min(sizeof start, source->bytes), header_bytes;
    raffia_status status = catalog_file_read(source, start, start_bytes, 0);
    if (!status)
        status = safetensors_header_bytes(source->path, start, source->bytes, limits->header_bytes,
                                          &header_bytes);
    if (status)
        return status;
    char *header = core_malloc(header_bytes);
    if (!header)
        return core_error_prefix("%s", catalog_show_path(source->path).text);
    status = catalog_file_read(source, header, header_bytes, sizeof start);
    if (!status)
        status = safetensors_parse(source->path, header, header_bytes, source->bytes,
                                   limits->lenient, file, catalog);
    core_free(header);
    return status;
}
