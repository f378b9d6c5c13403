/*
 * The process-wide table of steps down the ladder, counted by reason (raffia_fallbacks()).
 */
#ifndef CORE_FALLBACKS_H
#define CORE_FALLBACKS_H

#include <raffia/pages.h>

/*
 * Counts one step from one kind of page to the next, and warns of it the first time in the process
 * that this step is taken for this reason. `detail` is the sentence behind it. to_kind NONE:
 * nothing was left to try.
 */
void core_fallback(raffia_page_kind from_kind, size_t from_size, raffia_page_kind to_kind,
                   size_t to_size, raffia_fallback_reason reason, const char *detail);

#endif
