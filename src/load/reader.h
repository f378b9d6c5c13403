/*
 * A reader: reads windows of the plan into place, one at a time, through the page cache or past it.
 */
#ifndef LOAD_READER_H
#define LOAD_READER_H

#include "load/source.h"

#include <sys/uio.h>

/* A stretch of a window that is read in one way. A long piece that can be read straight into place
 * is cut into its aligned middle and what sticks out before and behind. */
struct load_part {
    unsigned char *address;
    uint64_t file_offset;
    size_t bytes;
    bool in_place;
};

#define LOAD_PARTS_MAX (3 * LOAD_WINDOW_PIECES_MAX)

struct load_reader {
    struct load_source *source;
    unsigned char *staging; /* NULL until the first read that needs it */
    struct iovec vectors[LOAD_WINDOW_PIECES_MAX];
    struct load_part parts[LOAD_PARTS_MAX];
    unsigned char gap[LOAD_GAP_BYTES_MAX]; /* takes the bytes between pieces */
};

/*
 * Reads one window. Where the source has been told to stop it may return RAFFIA_OK with the window
 * incomplete.
 */
raffia_status load_read_window(struct load_reader *reader, const struct load_window *window);

/* Whether a stretch of a file is to be read past the page cache. */
bool load_wants_direct(const struct load_source *source, size_t file, uint64_t offset,
                       size_t bytes);

/* Frees the staging buffer. */
void load_reader_close(struct load_reader *reader);

/* The failures of a read, in words: the file ended at `offset`, or errno says what happened. */
raffia_status load_read_short(const struct load_reader *reader, const struct load_window *window,
                              uint64_t offset);
raffia_status load_read_failed(const struct load_reader *reader, const struct load_window *window,
                               uint64_t offset, int error_number);

#endif
