/* Models: building one from a catalog, and the public functions that ask it. */
#include "load/model.h"

#include "core/error.h"
#include "core/memory.h"
#include "core/process.h"
#include "core/sys.h"
#include "load/catalog_show.h"

#include <string.h>
#include <xxhash.h>

#define SLOTS_MIN ((size_t)16)

/* Names come from a file: seeding by address keeps a crafted file from lining them all up in one
 * run of slots. */
static size_t first_slot(const raffia_model *model, const char *name)
{
    return (size_t)XXH3_64bits_withSeed(name, strlen(name), (uintptr_t)model) & model->slot_mask;
}

static raffia_status index_names(raffia_model *model)
{
    size_t capacity = SLOTS_MIN;
    while (capacity < 2 * model->selection.count)
        capacity *= 2;
    model->slots = core_calloc(capacity, sizeof *model->slots);
    if (!model->slots)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    model->slot_mask = capacity - 1;
    for (size_t i = 0; i < model->selection.count; i++) {
        size_t slot = first_slot(model, model->tensors[i].name);
        while (model->slots[slot])
            slot = (slot + 1) & model->slot_mask;
        model->slots[slot] = i + 1;
    }
    return RAFFIA_OK;
}

static raffia_status list_tensors(raffia_model *model)
{
    model->tensors = core_calloc(model->selection.count + 1, sizeof *model->tensors);
    if (!model->tensors)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < model->selection.count; i++) {
        const struct load_selected *selected = &model->selection.tensors[i];
        model->tensors[i] = (raffia_tensor){
            .name = selected->tensor->name,
            .dtype = selected->tensor->dtype,
            .rank = selected->tensor->rank,
            .shape = selected->shape,
            .bytes = (size_t)selected->bytes,
            .file = model->catalog->files[selected->tensor->file].path,
            .file_offset = selected->file_offset,
        };
    }
    return index_names(model);
}

raffia_status load_model_open(const char *path, const raffia_load_options *options,
                              raffia_model **model_p)
{
    struct catalog_limits limits = {.header_bytes = options->header_limit_bytes,
                                    .lenient = options->lenient};
    if (!path)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "the path of the model is NULL");
    raffia_model *model = core_calloc(1, sizeof *model);
    if (!model)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    raffia_status status = catalog_open(path, &limits, &model->catalog);
    if (status)
        goto release_model;
    status = load_select(model->catalog, options, &model->selection);
    if (!status)
        status = load_plan_make(&model->selection, &model->plan);
    if (!status)
        status = list_tensors(model);
    if (status) {
        core_error_prefix("%s", catalog_show_path(path).text);
        goto release_model;
    }
    model->needed = model->plan.needed;
    model->generation = core_fork_generation();
    *model_p = model;
    return RAFFIA_OK;
release_model:
    raffia_model_release(model);
    return status;
}

void load_model_place(raffia_model *model)
{
    for (size_t i = 0; i < model->plan.item_count; i++)
        model->tensors[model->plan.items[i].tensor].data =
            load_destination_address(&model->destination, &model->plan, i);
}

void load_model_settle(raffia_model *model)
{
    for (size_t i = 0; i < model->catalog->file_count; i++) {
        struct catalog_file *file = &model->catalog->files[i];
        if (file->fd >= 0)
            sys_close(file->fd);
        file->fd = -1;
    }
    load_plan_free(&model->plan);
}

void raffia_model_release(raffia_model *model)
{
    if (!model)
        return;
    load_destination_free(&model->destination);
    core_free(model->slots);
    core_free(model->tensors);
    load_plan_free(&model->plan);
    load_selection_free(&model->selection);
    catalog_close(model->catalog);
    core_free(model);
}

size_t raffia_model_tensor_count(const raffia_model *model)
{
    return model->selection.count;
}

const raffia_tensor *raffia_model_tensor_at(const raffia_model *model, size_t index)
{
    return index < model->selection.count ? &model->tensors[index] : NULL;
}

const raffia_tensor *raffia_model_tensor(const raffia_model *model, const char *name)
{
    if (!name)
        return NULL;
    for (size_t slot = first_slot(model, name); model->slots[slot];
         slot = (slot + 1) & model->slot_mask) {
        const raffia_tensor *tensor = &model->tensors[model->slots[slot] - 1];
        if (strcmp(tensor->name, name) == 0)
            return tensor;
    }
    return NULL;
}

const char *raffia_model_metadata(const raffia_model *model, const char *key)
{
    for (size_t i = 0; key && i < model->catalog->metadata_count; i++)
        if (strcmp(model->catalog->metadata[i].key, key) == 0)
            return model->catalog->metadata[i].value;
    return NULL;
}

bool raffia_model_metadata_at(const raffia_model *model, size_t index, const char **key_p,
                              const char **value_p)
{
    if (index >= model->catalog->metadata_count)
        return false;
    *key_p = model->catalog->metadata[index].key;
    *value_p = model->catalog->metadata[index].value;
    return true;
}

uint64_t raffia_model_bytes(const raffia_model *model)
{
    return model->selection.bytes;
}

size_t raffia_model_bytes_needed(const raffia_model *model)
{
    return model->needed;
}

const raffia_load_report *raffia_model_report(const raffia_model *model)
{
    return &model->report;
}

raffia_pool *raffia_model_pool(const raffia_model *model)
{
    return model->destination.pool;
}
