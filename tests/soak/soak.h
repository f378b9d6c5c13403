/*
 * Random operations on one pool from several threads, against a map that knows who owns what.
 *
 * The map has an entry for each granule of the pool's addresses. A thread enters its number for
 * each granule of a block it was given, and takes it out before it frees the block: an entry that
 * is not empty is two blocks in one place. The first and last bytes of each block hold its number,
 * so that memory which was moved, or shared, would show.
 */
#ifndef SOAK_SOAK_H
#define SOAK_SOAK_H

#include <raffia/base.h>

struct soak {
    uint64_t seed;
    size_t operations; /* of all threads together */
    unsigned threads;
    unsigned flags;    /* of the pool */
    size_t granule;    /* of the pool */
    bool asynchronous; /* some frees and allocations are made on streams */
};

struct soak_figures {
    uint64_t allocations, refused, frees, bad_frees, resizes, trims, remaps, remapped_chunks;
    size_t checks;
    double fill; /* mean of the requested bytes at each check, over the maximum */
};

/* Runs it and adds to the figures. False, with a complaint on standard error, if anything was
 * wrong. */
bool soak_run(const struct soak *soak, struct soak_figures *figures);

#endif
