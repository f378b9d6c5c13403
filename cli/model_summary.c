#include "cli/model_summary.h"

#include "core/checked.h"
#include "core/memory.h"
#include "load/model.h"

#include <stdlib.h>
#include <string.h>

static int by_path(const void *left, const void *right)
{
    const struct model_summary_file *a = left, *b = right;
    return strcmp(a->path, b->path);
}

static raffia_status find_files(const raffia_model *model, struct model_summary *summary)
{
    /* Not from the tensors: a file may have none. */
    const struct catalog *catalog = model->catalog;
    struct model_summary_file *files = core_calloc(core_max(catalog->file_count, 1), sizeof *files);
    if (!files)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < catalog->file_count; i++)
        files[i] = (struct model_summary_file){catalog->files[i].path, catalog->files[i].bytes};
    qsort(files, catalog->file_count, sizeof *files, by_path);
    summary->file_count = catalog->file_count;
    summary->files = files;
    return RAFFIA_OK;
}

/* Keeps the list in order; the last one drops out when it is full. */
static void consider(struct model_summary *summary, const raffia_tensor *tensor)
{
    size_t place = summary->largest_count;
    while (place > 0 && summary->largest[place - 1]->bytes < tensor->bytes)
        place--;
    if (place == MODEL_SUMMARY_LARGEST)
        return;
    if (summary->largest_count < MODEL_SUMMARY_LARGEST)
        summary->largest_count++;
    for (size_t i = summary->largest_count - 1; i > place; i--)
        summary->largest[i] = summary->largest[i - 1];
    summary->largest[place] = tensor;
}

raffia_status model_summary_make(const raffia_model *model, struct model_summary *summary)
{
    struct model_summary made = {0};
    raffia_status status = find_files(model, &made);
    if (status)
        return status;
    for (size_t i = 0; i < raffia_model_tensor_count(model); i++) {
        const raffia_tensor *tensor = raffia_model_tensor_at(model, i);
        made.dtypes[tensor->dtype].tensors++;
        made.dtypes[tensor->dtype].bytes += tensor->bytes;
        consider(&made, tensor);
    }
    *summary = made;
    return RAFFIA_OK;
}

void model_summary_free(struct model_summary *summary)
{
    core_free(summary->files);
    *summary = (struct model_summary){0};
}
