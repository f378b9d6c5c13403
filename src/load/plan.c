/* Placement of tensors and cutting of files into windows. */
#include "load/plan.h"

#include "core/checked.h"
#include "core/error.h"
#include "core/memory.h"
#include "load/catalog_show.h"
#include "load/options.h"

#include <assert.h>
#include <stdlib.h>

#define WINDOWS_FIRST ((size_t)64)

static int by_file_and_offset(const void *left, const void *right)
{
    const struct load_item *a = left, *b = right;
    if (a->file != b->file)
        return a->file < b->file ? -1 : 1;
    if (a->file_offset != b->file_offset)
        return a->file_offset < b->file_offset ? -1 : 1;
    return a->tensor < b->tensor ? -1 : a->tensor > b->tensor;
}

static raffia_status list_items(const struct load_selection *selection, struct load_plan *plan)
{
    plan->items = core_calloc(selection->count + 1, sizeof *plan->items);
    if (!plan->items)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < selection->count; i++) {
        const struct load_selected *selected = &selection->tensors[i];
        if (selected->bytes == 0)
            continue;
        plan->items[plan->item_count++] = (struct load_item){
            .name = selected->tensor->name,
            .tensor = i,
            .file = selected->tensor->file,
            .bytes = selected->bytes,
            .file_offset = selected->file_offset,
            .piece_bytes = selected->piece_bytes,
            .piece_stride = selected->piece_stride,
        };
    }
    qsort(plan->items, plan->item_count, sizeof *plan->items, by_file_and_offset);
    return RAFFIA_OK;
}

/* A tensor in several pieces would agree with the file in its first piece only. */
static bool can_be_congruent(const struct load_item *item)
{
    return item->bytes >= LOAD_CONGRUENT_BYTES_MIN && item->piece_bytes == item->bytes &&
           item->file_offset % RAFFIA_TENSOR_ALIGNMENT == 0;
}

static raffia_status place_items(struct load_plan *plan)
{
    size_t end = 0;
    for (size_t i = 0; i < plan->item_count; i++) {
        struct load_item *item = &plan->items[i];
        size_t offset;
        bool fits = core_align_up(end, RAFFIA_TENSOR_ALIGNMENT, &offset);
        if (fits && can_be_congruent(item)) {
            size_t distance = ((size_t)item->file_offset - offset) % LOAD_CONGRUENCE;
            fits = core_add(offset, distance, &offset);
        }
        if (!fits || item->bytes > SIZE_MAX || !core_add(offset, (size_t)item->bytes, &end))
            return core_error(RAFFIA_ERROR_OVERFLOW,
                              "tensor '%s': the model up to here does not fit into the address "
                              "space",
                              catalog_show(item->name).text);
        item->offset = offset;
    }
    plan->needed = end;
    return RAFFIA_OK;
}

struct load_piece load_piece_next(const struct load_plan *plan, struct load_cursor *cursor,
                                  uint64_t end)
{
    assert(cursor->item < plan->item_count);
    const struct load_item *item = &plan->items[cursor->item];
    uint64_t within = cursor->position % item->piece_bytes;
    struct load_piece piece = {
        .item = cursor->item,
        .position = cursor->position,
        .file_offset =
            item->file_offset + cursor->position / item->piece_bytes * item->piece_stride + within,
        .bytes = item->piece_bytes - within,
    };
    if (piece.file_offset < end && piece.bytes > end - piece.file_offset)
        piece.bytes = end - piece.file_offset;
    cursor->position += piece.bytes;
    if (cursor->position == item->bytes)
        *cursor = (struct load_cursor){.item = cursor->item + 1};
    return piece;
}

/* The window being gathered, beyond what it keeps. */
struct gathering {
    struct load_window *window; /* NULL: none yet */
    size_t capacity;
    size_t pieces;  /* gaps included */
    uint64_t limit; /* the window must end at or before this offset of its file */
};

/* Whether a piece that begins at `offset` of `file` may go on with the window. One that lies before
 * the window's end (tensors that share bytes) may not. */
static bool can_join(const struct gathering *gathering, size_t file, uint64_t offset)
{
    const struct load_window *window = gathering->window;
    if (!window || window->file != file || offset >= gathering->limit)
        return false;
    uint64_t end = window->file_offset + window->bytes;
    return offset >= end && offset - end <= LOAD_GAP_BYTES_MAX &&
           gathering->pieces + (offset > end ? 2 : 1) <= LOAD_WINDOW_PIECES_MAX;
}

static raffia_status open_window(struct load_plan *plan, struct gathering *gathering, size_t file,
                                 uint64_t offset, struct load_cursor cursor, size_t window_bytes)
{
    if (plan->window_count == gathering->capacity) {
        size_t capacity = gathering->capacity ? 2 * gathering->capacity : WINDOWS_FIRST;
        void *grown = core_reallocate(plan->windows, capacity, sizeof *plan->windows);
        if (!grown)
            return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
        plan->windows = grown;
        gathering->capacity = capacity;
    }
    gathering->window = &plan->windows[plan->window_count++];
    *gathering->window =
        (struct load_window){.file = file, .file_offset = offset, .cursor = cursor};
    gathering->pieces = 0;
    gathering->limit = offset - offset % LOAD_STAGING_UNIT + window_bytes;
    return RAFFIA_OK;
}

raffia_status load_plan_cut(struct load_plan *plan, size_t first_bytes, size_t window_bytes)
{
    assert(first_bytes && first_bytes % LOAD_STAGING_UNIT == 0 && first_bytes <= window_bytes);
    assert(window_bytes % LOAD_STAGING_UNIT == 0 && !plan->windows);
    struct gathering gathering = {0};
    size_t next_bytes = first_bytes;
    struct load_cursor cursor = {0};
    while (cursor.item < plan->item_count) {
        struct load_cursor start = cursor;
        struct load_piece piece = load_piece_next(plan, &cursor, UINT64_MAX);
        size_t file = plan->items[piece.item].file;
        if (!can_join(&gathering, file, piece.file_offset)) {
            raffia_status status =
                open_window(plan, &gathering, file, piece.file_offset, start, next_bytes);
            if (status)
                return status;
            next_bytes = core_min(2 * next_bytes, window_bytes);
        }
        if (piece.bytes > gathering.limit - piece.file_offset) {
            cursor = start;
            piece = load_piece_next(plan, &cursor, gathering.limit);
        }
        struct load_window *window = gathering.window;
        uint64_t end = window->file_offset + window->bytes;
        gathering.pieces += piece.file_offset > end ? 2 : 1;
        window->bytes = (size_t)(piece.file_offset + piece.bytes - window->file_offset);
        window->payload += (size_t)piece.bytes;
    }
    return RAFFIA_OK;
}

raffia_status load_plan_make(const struct load_selection *selection, struct load_plan *plan)
{
    struct load_plan made = {0};
    raffia_status status = list_items(selection, &made);
    if (!status)
        status = place_items(&made);
    if (status)
        load_plan_free(&made);
    else
        *plan = made;
    return status;
}

void load_plan_free(struct load_plan *plan)
{
    core_free(plan->items);
    core_free(plan->windows);
    *plan = (struct load_plan){0};
}
