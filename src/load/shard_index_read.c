/* Reading an index and every file that it names. */
#include "core/error.h"
#include "core/memory.h"
#include "load/catalog_build.h"
#include "load/catalog_directory.h"
#include "load/catalog_file.h"
#include "load/catalog_show.h"
#include "load/safetensors.h"
#include "load/shard_index.h"

#include <string.h>

static raffia_status read_index(const struct catalog_file *file,
                                const struct catalog_limits *limits, struct shard_index *index)
{
    if (file->bytes > limits->header_bytes)
        return core_error(RAFFIA_ERROR_LIMIT,
                          "%s: the index has %llu bytes, more than the limit of %zu; raise "
                          "header_limit_bytes (at most %zu)",
                          catalog_show_path(file->path).text, (unsigned long long)file->bytes,
                          limits->header_bytes, CATALOG_HEADER_BYTES_MAX);
    char *text = core_malloc(file->bytes);
    if (!text)
        return core_error_prefix("%s", catalog_show_path(file->path).text);
    raffia_status status = catalog_file_read(file, text, file->bytes, 0);
    if (!status)
        status = shard_index_parse(file->path, text, file->bytes, index);
    core_free(text);
    return status;
}

/* The shards lie beside the index, by the path it was opened by: in a hub's cache that is a link
 * itself, and what it points to has no neighbours of the right names. */
static raffia_status open_shards(struct catalog *catalog, const struct shard_index *index,
                                 const char *directory)
{
    raffia_status status = catalog_set_files(catalog, index->file_count);
    for (size_t i = 0; i < index->file_count && !status; i++) {
        char *path = core_asprintf("%s%s", directory, index->files[i]);
        if (!path)
            return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
        status = catalog_file_open(path, &catalog->files[i], NULL);
        core_free(path);
    }
    return status;
}

/* Opens every shard before it parses one: a missing shard is told at once. */
static raffia_status read_shards(struct catalog *catalog, const struct shard_index *index,
                                 const char *directory, const struct catalog_limits *limits)
{
    raffia_status status = open_shards(catalog, index, directory);
    for (size_t i = 0; i < index->file_count && !status; i++)
        status = safetensors_read(catalog, i, limits);
    return status ? status : catalog_arrange(catalog);
}

raffia_status shard_index_read(struct catalog *catalog, const struct catalog_file *file,
                               const struct catalog_limits *limits)
{
    struct shard_index index;
    raffia_status status = read_index(file, limits, &index);
    if (status)
        return status;
    const char *slash = strrchr(file->path, '/');
    int length = slash ? (int)(slash + 1 - file->path) : 0;
    char *directory = core_asprintf("%.*s", length, file->path);
    if (!directory) {
        shard_index_clear(&index);
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    }
    status = read_shards(catalog, &index, directory, limits);
    if (status)
        core_error_prefix("%s", catalog_show_path(file->path).text);
    else
        status = shard_index_check(file->path, &index, catalog);
    if (!status)
        catalog_directory_log_strays(length ? directory : ".", index.files, index.file_count);
    core_free(directory);
    shard_index_clear(&index);
    return status;
}
