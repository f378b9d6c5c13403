/*
 * Numbers as text, strictly: the whole text must be the number, nothing wraps, nothing is guessed.
 */
#ifndef CORE_TEXT_H
#define CORE_TEXT_H

#include <raffia/base.h>
#include <raffia/status.h>

/*
 * A size in bytes: digits, an optional fraction, and an optional unit: B, KiB, MiB, GiB, TiB
 * (binary), kB, KB, MB, GB, TB (decimal). No sign, no space inside, no fraction without a unit, and
 * the value must come out a whole number of bytes, less than RAFFIA_NONE.
 */
raffia_status core_parse_size(const char *text, size_t *bytes_p);

/* The same, or "none", which is RAFFIA_NONE. */
raffia_status core_parse_size_or_none(const char *text, size_t *bytes_p);

/* A share, "8%" or "12.5%", as a fraction from 0 to `maximum`. */
raffia_status core_parse_share(const char *text, double maximum, double *share_p);

/* An unsigned decimal number of at most `maximum`. */
raffia_status core_parse_count(const char *text, uint64_t maximum, uint64_t *count_p);

/* Room for any text of core_format_size(). */
#define CORE_SIZE_TEXT_MAX 32

/* "64 MiB" where the size is a whole number of units, else "1.52 GiB"; returns `buffer`. Every size
 * is a number here: what RAFFIA_NONE means is for the caller to say. */
const char *core_format_size(size_t bytes, char buffer[static CORE_SIZE_TEXT_MAX]);

#endif
