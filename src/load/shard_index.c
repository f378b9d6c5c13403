#include "load/shard_index.h"

#include "core/checked.h"
#include "core/error.h"
#include "core/log.h"
#include "core/memory.h"
#include "load/catalog_build.h"
#include "load/catalog_json.h"
#include "load/catalog_show.h"

#include <stdlib.h>
#include <string.h>

static int by_tensor(const void *left, const void *right)
{
    const struct shard_index_entry *a = left, *b = right;
    return strcmp(a->tensor, b->tensor);
}

static int by_text(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

/* A NUL cannot be in it: the parser refuses that. */
static bool is_plain_name(const char *name)
{
    return *name && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && !strchr(name, '/');
}

static raffia_status parse_metadata(const json_t *metadata, struct shard_index *index)
{
    if (!metadata || json_is_null(metadata))
        return RAFFIA_OK;
    if (!json_is_object(metadata))
        return core_error(RAFFIA_ERROR_FORMAT, "metadata is %s, not an object",
                          catalog_json_kind(metadata));
    index->total_given =
        catalog_json_unsigned(json_object_get(metadata, "total_size"), &index->total_bytes);
    return RAFFIA_OK;
}

static raffia_status parse_weight_map(json_t *map, struct shard_index *index)
{
    if (!json_is_object(map))
        return core_error(RAFFIA_ERROR_FORMAT, "weight_map is %s%s", catalog_json_kind(map),
                          map ? ", not an object" : "");
    size_t count = json_object_size(map);
    if (count == 0)
        return core_error(RAFFIA_ERROR_FORMAT, "weight_map names no tensor");
    index->entries = core_calloc(count, sizeof *index->entries);
    if (!index->entries)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    const char *tensor;
    json_t *file;
    json_object_foreach(map, tensor, file)
    {
        if (!json_is_string(file))
            return core_error(RAFFIA_ERROR_FORMAT,
                              "weight_map: the file of tensor '%s' is %s, not a string",
                              catalog_show(tensor).text, catalog_json_kind(file));
        if (!is_plain_name(json_string_value(file)))
            return core_error(RAFFIA_ERROR_FORMAT,
                              "weight_map: the file of tensor '%s' is '%s', which is not a plain "
                              "file name",
                              catalog_show(tensor).text,
                              catalog_show(json_string_value(file)).text);
        index->entries[index->entry_count++] =
            (struct shard_index_entry){tensor, json_string_value(file)};
    }
    qsort(index->entries, index->entry_count, sizeof *index->entries, by_tensor);
    return RAFFIA_OK;
}

static raffia_status collect_files(struct shard_index *index)
{
    index->files = core_calloc(index->entry_count, sizeof *index->files);
    if (!index->files)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < index->entry_count; i++)
        index->files[i] = index->entries[i].file;
    qsort(index->files, index->entry_count, sizeof *index->files, by_text);
    size_t unique = 1;
    for (size_t i = 1; i < index->entry_count; i++)
        if (strcmp(index->files[i], index->files[unique - 1]) != 0)
            index->files[unique++] = index->files[i];
    index->file_count = unique;
    if (unique > CATALOG_FILES_MAX)
        return core_error(RAFFIA_ERROR_LIMIT, "weight_map names %zu files; at most %d are opened",
                          unique, CATALOG_FILES_MAX);
    return RAFFIA_OK;
}

raffia_status shard_index_parse(const char *path, const void *text, size_t bytes,
                                struct shard_index *index)
{
    struct shard_index parsed = {0};
    raffia_status status = catalog_json_object(text, bytes, 0, &parsed.json);
    if (!status)
        status = parse_metadata(json_object_get(parsed.json, "metadata"), &parsed);
    if (!status)
        status = parse_weight_map(json_object_get(parsed.json, "weight_map"), &parsed);
    if (!status)
        status = collect_files(&parsed);
    if (status) {
        shard_index_clear(&parsed);
        return core_error_prefix("%s", catalog_show_path(path).text);
    }
    *index = parsed;
    return RAFFIA_OK;
}

void shard_index_clear(struct shard_index *index)
{
    core_free(index->entries);
    core_free(index->files);
    json_decref(index->json);
    *index = (struct shard_index){0};
}

static raffia_status unlisted(const struct shard_index *index, const struct catalog_tensor *tensor)
{
    return core_error(
        RAFFIA_ERROR_FORMAT,
        "tensor '%s' lies in '%s' (offset %llu), but weight_map does not know it: the "
        "index is stale",
        catalog_show(tensor->name).text, catalog_show(index->files[tensor->file]).text,
        (unsigned long long)tensor->offset);
}

static raffia_status absent(const struct shard_index_entry *entry)
{
    return core_error(RAFFIA_ERROR_FORMAT, "tensor '%s' is mapped to '%s', which does not have it",
                      catalog_show(entry->tensor).text, catalog_show(entry->file).text);
}

/* Both lists are in order of name: one walk through both finds every difference. */
static raffia_status compare_names(const struct shard_index *index, const struct catalog *catalog)
{
    size_t e = 0, t = 0;
    while (e < index->entry_count || t < catalog->tensor_count) {
        int order = e == index->entry_count ? 1
                    : t == catalog->tensor_count
                        ? -1
                        : strcmp(index->entries[e].tensor, catalog->tensors[t].name);
        if (order > 0)
            return unlisted(index, &catalog->tensors[t]);
        if (order < 0)
            return absent(&index->entries[e]);
        const struct shard_index_entry *entry = &index->entries[e];
        const struct catalog_tensor *tensor = &catalog->tensors[t];
        if (strcmp(entry->file, index->files[tensor->file]) != 0)
            return core_error(RAFFIA_ERROR_FORMAT,
                              "tensor '%s' is mapped to '%s', but it lies in '%s' (offset %llu)",
                              catalog_show(entry->tensor).text, catalog_show(entry->file).text,
                              catalog_show(index->files[tensor->file]).text,
                              (unsigned long long)tensor->offset);
        e++;
        t++;
    }
    return RAFFIA_OK;
}

raffia_status shard_index_check(const char *path, const struct shard_index *index,
                                const struct catalog *catalog)
{
    if (compare_names(index, catalog))
        return core_error_prefix("%s", catalog_show_path(path).text);
    size_t total = 0;
    for (size_t i = 0; i < catalog->tensor_count; i++)
        if (!core_add(total, catalog->tensors[i].bytes, &total))
            return core_error(RAFFIA_ERROR_OVERFLOW, "%s: the sum of all tensors overflows",
                              catalog_show_path(path).text);
    if (index->total_given && index->total_bytes != total)
        core_log_warn("%s: total_size is %llu, but the tensors have %zu bytes; it is ignored",
                      catalog_show_path(path).text, (unsigned long long)index->total_bytes, total);
    return RAFFIA_OK;
}
