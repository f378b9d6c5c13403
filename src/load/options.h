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

#endif
