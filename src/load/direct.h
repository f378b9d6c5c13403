/*
 * Reading past the page cache.
 */
#ifndef LOAD_DIRECT_H
#define LOAD_DIRECT_H

#include "load/reader.h"

/*
 * Reads the window with O_DIRECT: straight into place where file and memory allow it, through the
 * reader's staging buffer elsewhere. *refused_p becomes true, with RAFFIA_OK, where the file system
 * refuses (that file is then left to buffered reads) or there is no staging memory; the window must
 * then be read again in whole.
 */
raffia_status load_read_direct(struct load_reader *reader, const struct load_window *window,
                               bool *refused_p);

/*
 * Reads `bytes` at `offset`, which lie in the window, with O_DIRECT to `to`. Memory up to the next
 * multiples of LOAD_STAGING_UNIT before and behind the stretch in the file must be the caller's
 * too, and `to` as far from a page's start as `offset` is: what has to be read along lands there.
 */
raffia_status load_read_direct_at(struct load_reader *reader, const struct load_window *window,
                                  unsigned char *to, uint64_t offset, size_t bytes,
                                  bool *refused_p);

#endif
