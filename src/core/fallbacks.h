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

/*
 * The same for a step down in how host memory is pinned, whose reason is PIN: sizes are those of
 * the pieces registered. REGULAR: the driver's own allocation; NONE: pageable memory, the only step
 * that is worth a warning. `what` says what is done now.
 */
void core_fallback_pin(raffia_page_kind from_kind, size_t from_size, raffia_page_kind to_kind,
                       size_t to_size, const char *what, const char *detail);

#endif
