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

#endif
