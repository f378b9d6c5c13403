/*
 * The options of a load, checked and with every default filled in.
 */
#ifndef LOAD_OPTIONS_H
#define LOAD_OPTIONS_H

#include <raffia/load.h>

/*
 * Staging buffers are whole multiples of this, and windows begin and end at multiples of it inside
 * a tensor: no alignment that a file system asks of O_DIRECT is larger.
 */
#define LOAD_STAGING_UNIT ((size_t)64 << 10)

/*
 * Copies the caller's options (NULL: none given), refuses what contradicts itself or is out of
 * range, and replaces each zero by its default: `threads` buffers of `window_bytes` then fit into
 * `budget_bytes`, and window_bytes is a multiple of LOAD_STAGING_UNIT.
 */
raffia_status load_options_resolve(const raffia_load_options *given, raffia_load_options *resolved);

/*
 * Makes do with less where `room`, the bytes of memory still to be had, is short: buffers that
 * filled it would not fail but get somebody killed. Half of it is left to others.
 */
void load_options_fit_room(raffia_load_options *options, size_t room);

/* How data goes through a ring to memory that the CPU cannot touch. */
struct load_shape {
    size_t slot_bytes; /* a multiple of LOAD_STAGING_UNIT, as are the next two */
    size_t piece_bytes;
    size_t first_bytes; /* of the first slot: a short one, so that the link is not kept waiting */
    unsigned slot_count;
    unsigned threads;
};

/*
 * The shape of the ring for a load: slots of the setting `load_slot` as far as budget and `room`
 * go, at least two if that is possible. `given` are the caller's own options, for what they left
 * open; NULL = all.
 */
struct load_shape load_options_shape(const raffia_load_options *given,
                                     const raffia_load_options *resolved, size_t room);

#endif
