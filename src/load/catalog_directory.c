#include "load/catalog_directory.h"

#include "core/error.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/sys.h"
#include "load/catalog_show.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char index_name[] = "model.safetensors.index.json";
static const char model_name[] = "model.safetensors";

/* How many names of a kind a message lists. */
#define NAMES_LISTED_MAX 4

/* Names of one kind, of which a few are kept. */
struct found {
    size_t count;
    struct catalog_shown names[NAMES_LISTED_MAX];
};

struct listing {
    bool has_index, has_model;
    struct found models, indices;
    char *only_model; /* name of the model file that was found first */
};

static bool ends_in(const char *name, const char *ending)
{
    size_t length = strlen(name), ending_length = strlen(ending);
    return length > ending_length && strcmp(name + length - ending_length, ending) == 0;
}

static void note(struct found *found, const char *name)
{
    if (found->count < NAMES_LISTED_MAX)
        found->names[found->count] = catalog_show(name);
    found->count++;
}

/* Calls visit(context, name) for every name that is not hidden. */
static raffia_status visit_names(const char *directory,
                                 raffia_status (*visit)(void *context, const char *name),
                                 void *context)
{
    DIR *stream = sys_opendir(directory);
    if (!stream)
        return core_error_errno(core_status_of_errno(errno), errno, "%s: cannot list the directory",
                                catalog_show_path(directory).text);
    raffia_status status = RAFFIA_OK;
    struct dirent *entry;
    for (errno = 0; !status && (entry = sys_readdir(stream)); errno = 0)
        if (entry->d_name[0] != '.')
            status = visit(context, entry->d_name);
    if (!status && errno)
        status =
            core_error_errno(core_status_of_errno(errno), errno, "%s: cannot list the directory",
                             catalog_show_path(directory).text);
    closedir(stream);
    return status;
}

static raffia_status note_entry(void *context, const char *name)
{
    struct listing *listing = context;
    if (strcmp(name, index_name) == 0)
        listing->has_index = true;
    if (strcmp(name, model_name) == 0)
        listing->has_model = true;
    if (ends_in(name, ".index.json"))
        note(&listing->indices, name);
    if (!ends_in(name, ".safetensors"))
        return RAFFIA_OK;
    note(&listing->models, name);
    if (listing->only_model)
        return RAFFIA_OK;
    listing->only_model = core_strdup(name);
    return listing->only_model ? RAFFIA_OK : RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
}

/* Writes "a, b and 3 more" behind what `text` holds already. */
static void list_names(char *text, size_t capacity, const struct found *found)
{
    size_t used = strlen(text);
    for (size_t i = 0; i < found->count && i < NAMES_LISTED_MAX && used < capacity; i++)
        used += (size_t)snprintf(text + used, capacity - used, "%s%s", used ? ", " : "",
                                 found->names[i].text);
    if (found->count > NAMES_LISTED_MAX && used < capacity)
        snprintf(text + used, capacity - used, " and %zu more", found->count - NAMES_LISTED_MAX);
}

static raffia_status nothing_chosen(const char *directory, const struct listing *listing)
{
    if (listing->models.count + listing->indices.count == 0)
        return core_error(RAFFIA_ERROR_NOT_FOUND,
                          "%s: the directory has no *.safetensors file and no %s",
                          catalog_show_path(directory).text, index_name);
    char names[CORE_ERROR_MAX / 2] = "";
    list_names(names, sizeof names, &listing->indices);
    list_names(names, sizeof names, &listing->models);
    return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                      "%s: the directory has neither %s nor %s nor exactly one *.safetensors file; "
                      "name one of its files: %s",
                      catalog_show_path(directory).text, index_name, model_name, names);
}

raffia_status catalog_directory_find(const char *directory, char **path_p)
{
    struct listing listing = {0};
    raffia_status status = visit_names(directory, note_entry, &listing);
    const char *name = listing.has_index           ? index_name
                       : listing.has_model         ? model_name
                       : listing.models.count == 1 ? listing.only_model
                                                   : NULL;
    char *path = NULL;
    if (!status && !name)
        status = nothing_chosen(directory, &listing);
    if (!status) {
        path = core_asprintf("%s%s%s", directory, ends_in(directory, "/") ? "" : "/", name);
        status = path ? RAFFIA_OK : RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    }
    core_free(listing.only_model);
    if (!status)
        *path_p = path;
    return status;
}

struct strays {
    const char *const *names;
    size_t count;
    struct found found;
};

static int by_text(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

static raffia_status note_stray(void *context, const char *name)
{
    struct strays *strays = context;
    if (ends_in(name, ".safetensors") &&
        !bsearch(&name, strays->names, strays->count, sizeof *strays->names, by_text))
        note(&strays->found, name);
    return RAFFIA_OK;
}

void catalog_directory_log_strays(const char *directory, const char *const *names, size_t count)
{
    if (raffia_log_get_level() < RAFFIA_LOG_INFO)
        return;
    struct strays strays = {.names = names, .count = count};
    if (visit_names(directory, note_stray, &strays) || strays.found.count == 0)
        return;
    char text[CORE_ERROR_MAX / 2] = "";
    list_names(text, sizeof text, &strays.found);
    core_log_info("%s: files that the index does not name are ignored: %s",
                  catalog_show_path(directory).text, text);
}
