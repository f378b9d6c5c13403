/*
 * The plan of a load: where each tensor goes, and the stretches of the files that are read for it.
 *
 * Reads follow the files, not the tensors: in order of file and offset, neighbours are gathered
 * into one window and long tensors are cut into several.
 */
#ifndef LOAD_PLAN_H
#define LOAD_PLAN_H

#include "load/select.h"

/* Most pieces of one window, stretches skipped included: what preadv(2) takes. */
#define LOAD_WINDOW_PIECES_MAX 1024u

/* Stretches of a file that no tensor wants are read along up to this size: the kernel reads whole
 * pages anyway. */
#define LOAD_GAP_BYTES_MAX 4095u

/* Where a tensor of at least LOAD_CONGRUENT_BYTES_MIN lies at a fitting offset of its file, it is
 * placed so that offset and file offset agree modulo this: O_DIRECT can then read into place. */
#define LOAD_CONGRUENCE          ((size_t)4096)
#define LOAD_CONGRUENT_BYTES_MIN ((size_t)64 << 10)

/* A tensor that has bytes, in order of file and offset. */
struct load_item {
    const char *name;
    size_t tensor; /* index into the selection */
    size_t file;
    size_t offset; /* in the destination */
    uint64_t bytes;
    uint64_t file_offset;
    uint64_t piece_bytes;
    uint64_t piece_stride;
};

/* A place in the sequence of all bytes of all items. */
struct load_cursor {
    size_t item;
    uint64_t position; /* bytes of the item that lie before it */
};

/* Bytes that lie together in the file and in the destination. */
struct load_piece {
    size_t item;
    uint64_t position; /* in the item */
    uint64_t file_offset;
    uint64_t bytes;
};

/* One stretch of one file. */
struct load_window {
    size_t file;
    uint64_t file_offset;
    size_t bytes;              /* from the first byte wanted to the last; gaps included */
    size_t payload;            /* bytes wanted */
    struct load_cursor cursor; /* of the first byte */
};

struct load_plan {
    struct load_item *items;
    size_t item_count;
    struct load_window *windows;
    size_t window_count;
    size_t needed; /* bytes of the destination, padding included */
};

/* Places the tensors. There are no windows yet. */
raffia_status load_plan_make(const struct load_selection *selection, struct load_plan *plan);

/*
 * Cuts the files into windows. Both sizes are multiples of LOAD_STAGING_UNIT; a window, extended to
 * multiples of that unit at both ends, is never longer than `window_bytes`, the first not longer
 * than `first_bytes`, and each not longer than twice the limit of the one before. To be called once
 * there is memory for the tensors: the number of windows grows with what a file's header claims.
 */
raffia_status load_plan_cut(struct load_plan *plan, size_t first_bytes, size_t window_bytes);

/* The piece at the cursor, which must not be at the end, cut before `end` of its file; moves the
 * cursor behind it. */
struct load_piece load_piece_next(const struct load_plan *plan, struct load_cursor *cursor,
                                  uint64_t end);

void load_plan_free(struct load_plan *plan);

#endif
