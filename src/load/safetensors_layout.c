#include "load/safetensors_layout.h"

#include "core/checked.h"
#include "core/error.h"
#include "core/log.h"
#include "load/catalog_show.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long printed;

static uint64_t end_of(const struct catalog_tensor *tensor)
{
    return tensor->offset + tensor->bytes;
}

/* Tensors without bytes may share their offsets; their names make the order certain. */
static int by_place(const void *left, const void *right)
{
    const struct catalog_tensor *a = left, *b = right;
    if (a->offset != b->offset)
        return a->offset < b->offset ? -1 : 1;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? -1 : 1;
    return strcmp(a->name, b->name);
}

static raffia_status misplaced(const struct safetensors_layout *layout,
                               const struct catalog_tensor *tensor,
                               const struct catalog_tensor *previous)
{
    uint64_t expected = previous ? end_of(previous) : 0;
    printed begin = tensor->offset, end = end_of(tensor),
            place = layout->data_offset + tensor->offset;
    if (tensor->offset < expected)
        return core_error(RAFFIA_ERROR_FORMAT,
                          "tensor '%s': data_offsets [%llu, %llu] overlap tensor '%s', which ends "
                          "at %llu (offset %llu in the file)",
                          catalog_show(tensor->name).text, begin, end,
                          catalog_show(previous->name).text, (printed)expected, place);
    return core_error(RAFFIA_ERROR_FORMAT,
                      "tensor '%s': data_offsets [%llu, %llu] leave a hole of %llu bytes after %s%s"
                      "%s (offset %llu in the file)",
                      catalog_show(tensor->name).text, begin, end,
                      (printed)(tensor->offset - expected), previous ? "tensor '" : "the header",
                      previous ? catalog_show(previous->name).text : "", previous ? "'" : "",
                      (printed)(layout->data_offset + expected));
}

static raffia_status cut_short(const struct safetensors_layout *layout, uint64_t described_bytes)
{
    const struct catalog_tensor *first = layout->tensors;
    while (layout->data_offset + end_of(first) <= layout->file_bytes)
        first++;
    return core_error(RAFFIA_ERROR_FORMAT,
                      "the header describes %llu bytes, the file has %llu: %llu bytes are missing, "
                      "from tensor '%s' (offset %llu in the file) on",
                      (printed)described_bytes, (printed)layout->file_bytes,
                      (printed)(described_bytes - layout->file_bytes),
                      catalog_show(first->name).text,
                      (printed)(layout->data_offset + first->offset));
}

static raffia_status check_end(const struct safetensors_layout *layout)
{
    assert(layout->data_offset <= layout->file_bytes);
    uint64_t data_bytes = layout->count ? end_of(&layout->tensors[layout->count - 1]) : 0;
    size_t described_bytes;
    if (!core_add(layout->data_offset, data_bytes, &described_bytes))
        return core_error(RAFFIA_ERROR_FORMAT, "the tensors end beyond the largest file");
    if (described_bytes > layout->file_bytes)
        return cut_short(layout, described_bytes);
    if (described_bytes == layout->file_bytes)
        return RAFFIA_OK;
    printed surplus = layout->file_bytes - described_bytes;
    if (!layout->lenient)
        return core_error(RAFFIA_ERROR_FORMAT,
                          "the header describes %llu bytes, the file has %llu: %llu bytes follow "
                          "the last tensor (the lenient option accepts them)",
                          (printed)described_bytes, (printed)layout->file_bytes, surplus);
    core_log_warn("%s: %llu bytes follow the last tensor at offset %llu; they are ignored",
                  catalog_show_path(layout->path).text, surplus, (printed)described_bytes);
    return RAFFIA_OK;
}

raffia_status safetensors_layout_settle(const struct safetensors_layout *layout)
{
    struct catalog_tensor *tensors = layout->tensors;
    if (layout->count)
        qsort(tensors, layout->count, sizeof *tensors, by_place);
    for (size_t i = 0; i < layout->count; i++) {
        const struct catalog_tensor *previous = i ? &tensors[i - 1] : NULL;
        if (tensors[i].offset != (previous ? end_of(previous) : 0))
            return misplaced(layout, &tensors[i], previous);
    }
    raffia_status status = check_end(layout);
    if (status)
        return status;
    for (size_t i = 0; i < layout->count; i++) {
        tensors[i].offset += layout->data_offset;
        assert(end_of(&tensors[i]) <= layout->file_bytes);
    }
    return RAFFIA_OK;
}
