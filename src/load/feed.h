/*
 * Feeding a ring: the plan's windows become the stretches that go through its slots.
 *
 * A slot is the image of its window, from the multiple of LOAD_STAGING_UNIT at or before its start,
 * so that direct reads of any alignment land where buffered ones do. Readers fill it in pieces that
 * begin and end at such multiples in the file.
 */
#ifndef LOAD_FEED_H
#define LOAD_FEED_H

#include "copy/staging.h"
#include "load/reader.h"

struct load_feed {
    struct load_source *source;
    size_t piece_bytes; /* most of one read; a multiple of LOAD_STAGING_UNIT */
    unsigned readers;   /* that are to share each window */
    bool one_block;     /* what lies between two tensors in memory is theirs */
};

/* Cuts the windows to pieces for a ring. The feed is borrowed. */
struct staging_work load_feed_work(struct load_feed *feed);

/* Reads one piece into its slot. Where the source was told to stop it may return RAFFIA_OK with the
 * piece incomplete: then it must not be put. */
raffia_status load_feed_piece(const struct load_feed *feed, struct load_reader *reader,
                              const struct staging_piece *piece);

#endif
