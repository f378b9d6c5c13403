/* Opening and closing a catalog: finds out what the path names and lets the format's reader do it.
 */
#include "load/catalog.h"

#include "core/error.h"
#include "core/memory.h"
#include "load/catalog_build.h"
#include "load/catalog_directory.h"
#include "load/catalog_file.h"
#include "load/catalog_show.h"
#include "load/catalog_text.h"
#include "load/safetensors.h"
#include "load/shard_index.h"

#include <stdlib.h>
#include <string.h>

struct catalog *catalog_create(void)
{
    struct catalog *catalog = core_calloc(1, sizeof *catalog);
    if (!catalog)
        return NULL;
    catalog->text = catalog_text_create();
    if (!catalog->text) {
        core_free(catalog);
        return NULL;
    }
    return catalog;
}

raffia_status catalog_set_files(struct catalog *catalog, size_t count)
{
    catalog->files = core_calloc(count, sizeof *catalog->files);
    if (!catalog->files)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < count; i++)
        catalog->files[i] = CATALOG_FILE_CLOSED;
    catalog->file_count = count;
    return RAFFIA_OK;
}

void catalog_close(struct catalog *catalog)
{
    if (!catalog)
        return;
    for (size_t i = 0; i < catalog->file_count; i++)
        catalog_file_clear(&catalog->files[i]);
    core_free(catalog->files);
    core_free(catalog->tensors);
    core_free(catalog->metadata);
    catalog_text_destroy(catalog->text);
    core_free(catalog);
}

/* Equal names follow their places, so that messages do not depend on the sorting algorithm. */
static int by_name(const void *left, const void *right)
{
    const struct catalog_tensor *a = left, *b = right;
    int order = strcmp(a->name, b->name);
    if (!order)
        order = (a->file > b->file) - (a->file < b->file);
    return order ? order : (a->offset > b->offset) - (a->offset < b->offset);
}

/* A catalog made by hand has tensors without files. */
static struct catalog_shown file_shown(const struct catalog *catalog, size_t file)
{
    return catalog_show_path(file < catalog->file_count ? catalog->files[file].path : "the file");
}

static raffia_status twice(const struct catalog *catalog, const struct catalog_tensor *first,
                           const struct catalog_tensor *second)
{
    if (first->file == second->file)
        return core_error(RAFFIA_ERROR_FORMAT,
                          "%s: tensor '%s' is there twice, at offsets %llu and %llu",
                          file_shown(catalog, first->file).text, catalog_show(first->name).text,
                          (unsigned long long)first->offset, (unsigned long long)second->offset);
    return core_error(RAFFIA_ERROR_FORMAT, "tensor '%s' lies in two files, %s and %s",
                      catalog_show(first->name).text, file_shown(catalog, first->file).text,
                      file_shown(catalog, second->file).text);
}

raffia_status catalog_arrange(struct catalog *catalog)
{
    struct catalog_tensor *tensors = catalog->tensors;
    if (catalog->tensor_count < 2)
        return RAFFIA_OK;
    qsort(tensors, catalog->tensor_count, sizeof *tensors, by_name);
    for (size_t i = 1; i < catalog->tensor_count; i++)
        if (strcmp(tensors[i - 1].name, tensors[i].name) == 0)
            return twice(catalog, &tensors[i - 1], &tensors[i]);
    return RAFFIA_OK;
}

static bool names_index(const char *path)
{
    static const char ending[] = ".index.json";
    size_t length = strlen(path), ending_length = sizeof ending - 1;
    return length >= ending_length && strcmp(path + length - ending_length, ending) == 0;
}

/* Fills the catalog from an open file, which it takes over. */
static raffia_status read_file(struct catalog *catalog, struct catalog_file *file,
                               const struct catalog_limits *limits)
{
    raffia_status status;
    if (names_index(file->path)) {
        status = shard_index_read(catalog, file, limits);
        catalog_file_clear(file);
        return status;
    }
    status = catalog_set_files(catalog, 1);
    if (status) {
        catalog_file_clear(file);
        return status;
    }
    catalog->files[0] = *file;
    status = safetensors_read(catalog, 0, limits);
    return status ? status : catalog_arrange(catalog);
}

static raffia_status read_path(struct catalog *catalog, const char *path,
                               const struct catalog_limits *limits)
{
    struct catalog_file file = CATALOG_FILE_CLOSED;
    bool directory = false;
    raffia_status status = catalog_file_open(path, &file, &directory);
    if (!status && directory) {
        char *found;
        status = catalog_directory_find(path, &found);
        if (status)
            return status;
        status = catalog_file_open(found, &file, NULL);
        core_free(found);
    }
    return status ? status : read_file(catalog, &file, limits);
}

static raffia_status check_limits(const struct catalog_limits *asked, struct catalog_limits *limits)
{
    *limits = asked ? *asked : (struct catalog_limits){0};
    if (limits->header_bytes == 0)
        limits->header_bytes = CATALOG_HEADER_BYTES_DEFAULT;
    if (limits->header_bytes > CATALOG_HEADER_BYTES_MAX)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "header_limit_bytes is %zu; the format allows headers of at most %zu "
                          "bytes",
                          limits->header_bytes, CATALOG_HEADER_BYTES_MAX);
    return RAFFIA_OK;
}

raffia_status catalog_open(const char *path, const struct catalog_limits *limits,
                           struct catalog **catalog_p)
{
    if (!path)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "no path of a model is given");
    struct catalog_limits bounded;
    raffia_status status = check_limits(limits, &bounded);
    if (status)
        return status;
    struct catalog *catalog = catalog_create();
    if (!catalog)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    status = read_path(catalog, path, &bounded);
    if (status) {
        catalog_close(catalog);
        return status;
    }
    *catalog_p = catalog;
    return RAFFIA_OK;
}
