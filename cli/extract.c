#include "cli/extract.h"

#include "cli/output.h"
#include "core/checked.h"
#include "core/error.h"
#include "core/memory.h"
#include "load/catalog_directory.h"
#include "load/catalog_show.h"
#include "load/model.h"

#include <string.h>
#include <sys/stat.h>

static raffia_status no_tensor(const char *name, size_t length)
{
    char *text = core_asprintf("%.*s", (int)length, name);
    if (!text)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    core_error(RAFFIA_ERROR_NOT_FOUND,
               "there is no tensor '%s' to extract among those to load; raffia inspect --tensors "
               "lists what a model has",
               catalog_show(text).text);
    core_free(text);
    return RAFFIA_ERROR_NOT_FOUND;
}

/* Splits a request at the last '=' before which stands the name of a tensor. */
static raffia_status split(const raffia_model *model, const char *request,
                           struct extract_item *item)
{
    item->name = core_strdup(request);
    if (!item->name)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    for (char *equals; (equals = strrchr(item->name, '='));) {
        *equals = '\0';
        const char *file = request + (equals - item->name) + 1;
        if (*file && raffia_model_tensor(model, item->name)) {
            item->file = file;
            return RAFFIA_OK;
        }
    }
    return no_tensor(request, strcspn(request, "="));
}

/* The file that was named, or found in the directory that was: it may be the index of shards. */
static bool is_entry(const char *path, const struct stat *target)
{
    struct stat found;
    char *entry;
    if (output_is_file(path, target))
        return true;
    if (stat(path, &found) || !S_ISDIR(found.st_mode) || catalog_directory_find(path, &entry))
        return false;
    const bool is = output_is_file(entry, target);
    core_free(entry);
    return is;
}

static bool is_source(const raffia_model *model, const char *path, const char *file)
{
    struct stat target;
    if (stat(file, &target))
        return false;
    for (size_t i = 0; i < model->catalog->file_count; i++) {
        const struct catalog_file *source = &model->catalog->files[i];
        if (source->device == target.st_dev && source->inode == target.st_ino)
            return true;
    }
    return is_entry(path, &target);
}

static raffia_status check_target(const raffia_model *model, const char *path,
                                  struct extract_plan *plan, size_t index)
{
    const struct extract_item *item = &plan->items[index];
    if (is_source(model, path, item->file)) {
        plan->clash = true;
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "'%s' is a file of the model itself: extracting tensor '%s' to it would "
                          "destroy the model; name another file",
                          catalog_show_path(item->file).text, catalog_show(item->name).text);
    }
    for (size_t i = 0; i < index; i++)
        if (output_same_place(plan->items[i].file, item->file)) {
            plan->clash = true;
            return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                              "'%s' is to hold both tensor '%s' and tensor '%s'; name a file for "
                              "each",
                              catalog_show_path(item->file).text,
                              catalog_show(plan->items[i].name).text,
                              catalog_show(item->name).text);
        }
    return output_check(item->file, raffia_model_tensor(model, item->name)->bytes);
}

raffia_status extract_plan_make(const char *path, const raffia_load_options *options,
                                const char *const *requests, size_t count,
                                struct extract_plan *plan)
{
    *plan = (struct extract_plan){0};
    if (count == 0)
        return RAFFIA_OK;
    raffia_model *model;
    raffia_status status = raffia_model_inspect(path, options, &model);
    if (status)
        return status;
    plan->items = core_calloc(count, sizeof *plan->items);
    if (!plan->items)
        status = RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; !status && i < count; i++) {
        plan->count = i + 1;
        status = split(model, requests[i], &plan->items[i]);
        if (!status)
            status = check_target(model, path, plan, i);
    }
    raffia_model_release(model);
    return status;
}

void extract_plan_free(struct extract_plan *plan)
{
    for (size_t i = 0; i < plan->count; i++)
        core_free(plan->items[i].name);
    core_free(plan->items);
    *plan = (struct extract_plan){0};
}

/* Copied back from a device at once. */
#define PIECE_BYTES ((size_t)4 << 20)

static raffia_status write_pieces(const raffia_model *model, const raffia_tensor *tensor,
                                  struct output *output)
{
    unsigned char *piece = core_malloc(PIECE_BYTES);
    raffia_status status = piece ? RAFFIA_OK : RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t done = 0; done < tensor->bytes && !status;) {
        size_t bytes = core_min(tensor->bytes - done, PIECE_BYTES);
        status = raffia_model_read(model, tensor, done, piece, bytes);
        if (!status)
            status = output_write(output, piece, bytes);
        done += bytes;
    }
    core_free(piece);
    return status;
}

static raffia_status write_tensor(const raffia_model *model, const raffia_tensor *tensor,
                                  const char *file)
{
    if (!raffia_model_report(model)->pinned)
        return output_write_whole(file, tensor->data, tensor->bytes);
    struct output output;
    raffia_status status = output_open(file, tensor->bytes, &output);
    if (status)
        return status;
    status = write_pieces(model, tensor, &output);
    if (!status)
        return output_commit(&output, true);
    output_abandon(&output);
    return status;
}

raffia_status extract_tensors(const raffia_model *model, const struct extract_plan *plan)
{
    raffia_status status = RAFFIA_OK;
    for (size_t i = 0; !status && i < plan->count; i++) {
        const struct extract_item *item = &plan->items[i];
        /* The model may be another than the one that was looked at first. */
        const raffia_tensor *tensor = raffia_model_tensor(model, item->name);
        status = tensor ? write_tensor(model, tensor, item->file)
                        : no_tensor(item->name, strlen(item->name));
    }
    return status;
}
